"""What stored runs say to the paper's figures of time: batch sizes, epochs, XLA, accelerators."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pandas as pd

from dashboard.paper.verdicts import NO_EPOCHS, Verdict, by_repeat, of_ratio
from dashboard.studies.words import against_first, amount, effects, evidence
from dashboard.words import plain
from gan_runtime.store.queries import Conditions
from gan_runtime.studies import references
from gan_runtime.studies.statistics import difference


def time_by_batch(results: pd.DataFrame, accelerators: Iterable[str]) -> Verdict:
    """Fig. 5: the time of an epoch with the largest batch against the smallest."""
    first, last = str(results["variant"].iloc[0]), str(results["variant"].iloc[-1])
    compared = against_first(results, "epoch_seconds", last)
    if compared is None or first == last:
        return Verdict(None, "the study has no second variant with a finished second epoch.")
    sentence = (
        f"{plain(last)} takes {amount(compared.ratio.mean, 'epoch')} {plain(first)} ({evidence(compared)})"
    )
    ends = f"batch {references.PAPER_BATCHES[0]}", f"batch {references.PAPER_BATCHES[-1]}"
    if (first, last) != ends:
        return Verdict(None, f"{sentence}; the paper compares {ends[0]} with {ends[1]}.")
    paper = 1.0 - references.PAPER_TIME_SAVED
    verdict = of_ratio(compared, paper, f"{sentence}; the paper has × {paper:.2f}")
    if verdict.agrees is False and compared.ratio.mean > paper and set(accelerators) == {"cpu"}:
        why = "A likely reason: a CPU is busy with one small batch already, while TPU cores wait between small ones."
        return Verdict(False, f"{verdict.why} {why}")
    return verdict


def time_grows(results: pd.DataFrame) -> Verdict:
    """Fig. 5, as section 5.1 has it: an epoch takes longer with the largest batch than with the smallest."""
    first, last = str(results["variant"].iloc[0]), str(results["variant"].iloc[-1])
    compared = against_first(results, "epoch_seconds", last)
    if compared is None or first == last:
        return Verdict(None, "the study has no second variant with a finished second epoch.")
    sentence = (
        f"{plain(last)} takes {amount(compared.ratio.mean, 'epoch')} {plain(first)} ({evidence(compared)})."
    )
    return Verdict(compared.ratio.mean > 1.0 if compared.is_clear else None, sentence)


def time_by_epoch(epochs: pd.DataFrame, results: pd.DataFrame) -> Verdict:
    """Fig. 6, as section 5.1 has it: epochs take longer from each batch to the next larger one. `epochs`: variant, run_id, epoch,
    seconds, in the order of the variants; the first of each run holds the compiling."""
    later = epochs[epochs["epoch"] > epochs.groupby("run_id")["epoch"].transform("min")]
    if later.empty:
        return NO_EPOCHS
    order = [name for name in dict.fromkeys(results["variant"]) if name in set(later["variant"])]
    means = [float(later.loc[later["variant"] == name, "seconds"].mean()) for name in order]
    listed = ", ".join(f"{plain(str(name))} {mean:.3g} s" for name, mean in zip(order, means, strict=True))
    sentence = f"mean times of the epochs after the first: {listed}"
    unclear = [name for name, effect in effects(results).items() if not effect.is_clear]
    if len(order) < 2 or unclear == order[1:]:
        return Verdict(None, f"{sentence}. No difference between batches is clear.")
    return Verdict(all(after > before for before, after in itertools.pairwise(means)), f"{sentence}.")


def xla(results: pd.DataFrame, conditions: list[Conditions]) -> Verdict:
    """Fig. 12: steady steps with XLA against without, and what is known of the reason where they were measured."""
    compiled = next(
        (name for name in results["variant"] if name.lower() == "xla jit"), ""
    )  # studies before 0.2 wrote it small
    compared = against_first(results, "steady_step", compiled)
    if compared is None:
        return Verdict(None, "the study has no finished run with XLA and one without in the same repeat.")
    sentence = f"with XLA a run takes {amount(compared.ratio.mean, 'step')} without ({evidence(compared)})"
    where = {(condition.accelerator, condition.engine) for condition in conditions}
    if any(engine == "jax" for _, engine in where):
        return Verdict(
            None,
            f"{sentence}; but JAX compiles every step whatever the option says, so both are the same program.",
        )
    if any(accelerator == "tpu" for accelerator, _ in where):
        return Verdict(
            None,
            f"{sentence}; but a TPU compiles every step whatever the option says, so both are the same program.",
        )
    paper = 1.0 / references.PAPER_XLA_SPEEDUP
    verdict = of_ratio(
        compared,
        paper,
        f"{sentence}; the paper's {references.PAPER_XLA_SPEEDUP} times as fast is × {paper:.2f}",
    )
    if verdict.agrees is False and compared.ratio.mean > paper and {kind for kind, _ in where} == {"cpu"}:
        why = (
            "On a CPU without XLA this program uses hand-laid kernels (docs/training.md) that the compiler cannot use, so there is less "
            "to gain, and XLA's own convolutions are slower there."
        )
        return Verdict(False, f"{verdict.why} {why}")
    return verdict


def accelerators(results: pd.DataFrame) -> Verdict:
    """Fig. 13: so many TPU cores against a CPU, a GPU and one TPU core. `results`: of a study of the question "devices"."""
    all_cores = f"tpu x{references.PAPER_REPLICAS}"
    others = {"CPU": "cpu x1", "GPU": "gpu x1", "TPU, serial": "tpu x1"}
    have = set(results.loc[results["epoch_seconds"].notna(), "variant"])
    missing = [name for name in (all_cores, *others.values()) if name not in have]
    if missing:
        return Verdict(
            None,
            f"the paper compares {all_cores} with {', '.join(others.values())}; missing here: {', '.join(missing)}.",
        )
    parts: list[str] = []
    readings: tuple[list[bool | None], list[bool | None]] = ([], [])
    for name, variant in others.items():
        together, alone = (by_repeat(results, one, "epoch_seconds") for one in (all_cores, variant))
        found = difference(together, alone, len(others))
        if found is None:
            return Verdict(None, "no repeat has all of them.")
        share = references.PAPER_FASTER_THAN[name]
        ratios = (1.0 - share, 1.0 / (1.0 + share))
        parts.append(
            f"against {variant} {evidence(found)} (the paper: × {ratios[0]:.2f} if it means less time, × {ratios[1]:.2f} if it means more "
            "speed)"
        )
        for verdicts, ratio in zip(readings, ratios, strict=True):
            verdicts.append(of_ratio(found, ratio, "").agrees)
    return Verdict(_of_readings(readings), f"time of an epoch with {all_cores} {'; '.join(parts)}.")


def _of_readings(readings: Iterable[list[bool | None]]) -> bool | None:
    """Agrees where all numbers agree in one reading of the sentence; differs where some number differs in each."""
    found = [False if False in verdicts else None if None in verdicts else True for verdicts in readings]
    return True if True in found else None if None in found else False
