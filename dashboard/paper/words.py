"""What stored runs say about the paper's figures: losses, learning rates, the descent on the loss
surface, and times.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pandas as pd

from dashboard.paper.verdicts import NO_EPOCHS, Verdict, by_repeat, of_ratio
from dashboard.studies.words import against_first, amount, effects, evidence
from dashboard.words import plain
from gan_runtime.base import formats
from gan_runtime.store.queries import Conditions, SurfaceRow
from gan_runtime.studies import references
from gan_runtime.studies.statistics import difference

ABRUPT = 0.2  # of the highest rate: the least rise between two points that counts as abrupt


def losses(results: pd.DataFrame) -> str:
    """Fig. 7: mean losses of the last epoch of each variant."""
    measured = results.dropna(subset=["loss_generator", "loss_discriminator"])
    means = measured.groupby("variant", sort=False)[["loss_generator", "loss_discriminator"]].mean()
    parts = [
        f"{plain(str(variant))}: G {row.loss_generator:.2f}, D {row.loss_discriminator:.2f}"
        for variant, row in means.iterrows()
    ]
    return (
        f"Mean losses of the last epoch in nats. {'; '.join(parts)}. If D can only guess, they are"
        " 0.69 and 1.39."
    )


def concentration(quartiles: pd.DataFrame) -> str:
    """Fig. 8: whether D's losses concentrate as training continues.

    `quartiles`: variant, epoch, width (of the middle half, nats).
    """
    parts = []
    for variant, rows in quartiles.groupby("variant", sort=False):
        widths = rows.groupby("epoch")["width"].mean()
        if len(widths) > 1:
            parts.append(
                f"{plain(str(variant))}: from {widths.iloc[0]:.2f} to {widths.iloc[-1]:.2f}"
            )
    sentence = "; ".join(parts) or "no run has finished its second epoch"
    return (
        "Width of the middle half of D's losses in the first and in the last epoch, in nats."
        f" {sentence}."
    )


def rates(curves: pd.DataFrame) -> str:
    """Fig. 9: the course of the learning rate. `curves`: variant, x, mean."""
    parts = []
    for variant, rows in curves.sort_values("x").groupby("variant", sort=False):
        low, high, rises = rows["mean"].min(), rows["mean"].max(), _abrupt_rises(rows["mean"])
        moves = (
            f"stays at {high:.2g}"
            if low == high
            else f"{low:.2g} to {high:.2g} with {rises} abrupt rise{'s' if rises != 1 else ''}"
        )
        parts.append(f"{plain(str(variant))}: {moves}")
    return f"{'; '.join(parts)}."


def rate_cycles(curves: pd.DataFrame, batches: set[int]) -> Verdict:
    """Fig. 9: dips and abrupt rises at the paper's batch.

    `curves`: as in `rates`, of runs with these global batches.
    """
    if batches != {references.PAPER_RESTARTS_BATCH}:
        batch_names = ", ".join(str(batch) for batch in sorted(batches)) or "none"
        return Verdict(
            None,
            f"the paper shows batch {references.PAPER_RESTARTS_BATCH}; these runs have batch"
            f" {batch_names}.",
        )
    rises = max(
        (_abrupt_rises(rows["mean"]) for _, rows in curves.sort_values("x").groupby("variant")),
        default=0,
    )
    return Verdict(
        rises > 0,
        f"the rate that falls along a cosine and restarts has {rises} abrupt"
        f" rise{'s' if rises != 1 else ''}, by definition. The schedule fits the sentence; that"
        " the authors used it is not shown. Table 1's constant rate does not fit it.",
    )


def _abrupt_rises(rate: pd.Series) -> int:
    return int((rate.diff() > ABRUPT * rate.max()).sum())


def lowest(results: pd.DataFrame) -> str:
    """Fig. 10: the variants with the lowest losses at the end."""
    means = _last_losses(results)
    if means.empty:
        return "No loss is stored yet."
    best_g, best_d = means["loss_generator"].idxmin(), means["loss_discriminator"].idxmin()
    return (
        f"In the last epoch {plain(str(best_g))} has the lowest loss of G"
        f" ({means['loss_generator'].min():.2f}) and {plain(str(best_d))} the lowest of D"
        f" ({means['loss_discriminator'].min():.2f}). A low loss of one network mostly means that"
        " the other one is weak."
    )


def optimized_best(results: pd.DataFrame) -> Verdict:
    """Fig. 10: G's loss is lowest at the paper's best batches: their lowest against the lowest of
    the others.

    "The loss" is read as G's, because under Fig. 11 the text says that D's grows with the batch.
    """
    return _lowest_at([f"batch {batch}" for batch in references.PAPER_BEST_BATCHES], results)


def least_at_512(results: pd.DataFrame) -> Verdict:
    """Fig. 11: G's loss is lowest at the largest batch."""
    return _lowest_at([f"batch {references.PAPER_BATCHES[-1]}"], results)


def _lowest_at(named: list[str], results: pd.DataFrame) -> Verdict:
    means = _last_losses(results)
    inside, outside = means[means.index.isin(named)], means[~means.index.isin(named)]
    if inside.empty or outside.empty:
        return Verdict(None, f"it takes {' or '.join(named)} and another batch size.")
    best, other = str(inside["loss_generator"].idxmin()), str(outside["loss_generator"].idxmin())
    compared = difference(
        by_repeat(results, best, "loss_generator"),
        by_repeat(results, other, "loss_generator"),
        len(inside) * len(outside),
    )
    if compared is None:
        return Verdict(None, "no two batch sizes have positive losses in the same repeat.")
    why = (
        f"G's loss in the last epoch, {plain(best)} over {plain(other)}, the lowest of the others:"
        f" {evidence(compared)}."
    )
    return Verdict(compared.ratio.mean < 1.0 if compared.is_clear else None, why)


def rises_in_d(results: pd.DataFrame) -> Verdict:
    """Fig. 11: D's loss grows with the batch, from the smallest to the largest."""
    first, last = str(results["variant"].iloc[0]), str(results["variant"].iloc[-1])
    compared = against_first(results, "loss_discriminator", last)
    if compared is None or first == last:
        return Verdict(None, "no two batch sizes have positive losses in the same repeat.")
    why = f"D's loss in the last epoch, {plain(last)} over {plain(first)}: {evidence(compared)}."
    return Verdict(compared.ratio.mean > 1.0 if compared.is_clear else None, why)


def _last_losses(results: pd.DataFrame) -> pd.DataFrame:
    measured = results.dropna(subset=["loss_generator", "loss_discriminator"])
    return measured.groupby("variant", sort=False)[["loss_generator", "loss_discriminator"]].mean()


def descent(surfaces: list[SurfaceRow]) -> str:
    """Fig. 11: the share of the movement that the map shows."""
    parts = [
        f"{surface.network.capitalize()}: the map contains"
        f" {formats.percent(surface.share_x + surface.share_y)} of its movement"
        for surface in surfaces
    ]
    return (
        f"From before the first epoch to after epoch {surfaces[0].path_epoch[-1]}."
        f" {'; '.join(parts)}."
    )


def descends(surfaces: list[SurfaceRow]) -> Verdict:
    """Fig. 11: the loss falls during training.

    The text does not say this of D, so D's loss is shown, not judged.
    """
    parts = [
        f"{surface.network.capitalize()} from {surface.path_loss[0]:.2f} to"
        f" {surface.path_loss[-1]:.2f}"
        for surface in surfaces
    ]
    generator = [surface for surface in surfaces if surface.network == "generator"]
    falls = (
        all(surface.path_loss[-1] < surface.path_loss[0] for surface in generator)
        if generator
        else None
    )
    return Verdict(
        falls,
        f"loss along each path: {'; '.join(parts)}. The paper says only of the generator's loss"
        " that it falls.",
    )


def time_by_batch(results: pd.DataFrame, accelerators: Iterable[str]) -> Verdict:
    """Fig. 5: the time of an epoch with the largest batch against the smallest."""
    first, last = str(results["variant"].iloc[0]), str(results["variant"].iloc[-1])
    compared = against_first(results, "epoch_seconds", last)
    if compared is None or first == last:
        return Verdict(None, "the study has no second variant with a finished second epoch.")
    sentence = (
        f"{plain(last)} takes {amount(compared.ratio.mean, 'epoch')} {plain(first)}"
        f" ({evidence(compared)})"
    )
    ends = f"batch {references.PAPER_BATCHES[0]}", f"batch {references.PAPER_BATCHES[-1]}"
    if (first, last) != ends:
        return Verdict(None, f"{sentence}; the paper compares {ends[0]} with {ends[1]}.")
    paper = 1.0 - references.PAPER_TIME_SAVED
    verdict = of_ratio(compared, paper, f"{sentence}; the paper has × {paper:.2f}")
    if verdict.agrees is False and compared.ratio.mean > paper and set(accelerators) == {"cpu"}:
        why = (
            "A likely reason: one small batch already keeps a CPU busy, while TPU cores wait"
            " between small batches."
        )
        return Verdict(False, f"{verdict.why} {why}")
    return verdict


def time_grows(results: pd.DataFrame) -> Verdict:
    """Fig. 5, as in section 5.1: an epoch takes longer with the largest batch than with the
    smallest.
    """
    first, last = str(results["variant"].iloc[0]), str(results["variant"].iloc[-1])
    compared = against_first(results, "epoch_seconds", last)
    if compared is None or first == last:
        return Verdict(None, "the study has no second variant with a finished second epoch.")
    sentence = (
        f"{plain(last)} takes {amount(compared.ratio.mean, 'epoch')} {plain(first)}"
        f" ({evidence(compared)})."
    )
    return Verdict(compared.ratio.mean > 1.0 if compared.is_clear else None, sentence)


def time_by_epoch(epochs: pd.DataFrame, results: pd.DataFrame) -> Verdict:
    """Fig. 6, as in section 5.1: epochs take longer from each batch to the next larger one.

    `epochs`: variant, run_id, epoch, seconds, in the order of the variants; the first of each run
    includes compiling.
    """
    later = epochs[epochs["epoch"] > epochs.groupby("run_id")["epoch"].transform("min")]
    if later.empty:
        return NO_EPOCHS
    order = [name for name in dict.fromkeys(results["variant"]) if name in set(later["variant"])]
    means = [float(later.loc[later["variant"] == name, "seconds"].mean()) for name in order]
    times = ", ".join(
        f"{plain(str(name))} {mean:.3g} s" for name, mean in zip(order, means, strict=True)
    )
    sentence = f"mean times of the epochs after the first: {times}"
    unclear = [name for name, effect in effects(results).items() if not effect.is_clear]
    if len(order) < 2 or unclear == order[1:]:
        return Verdict(None, f"{sentence}. No difference between batches is clear.")
    return Verdict(
        all(after > before for before, after in itertools.pairwise(means)), f"{sentence}."
    )


def xla(results: pd.DataFrame, conditions: list[Conditions]) -> Verdict:
    """Fig. 12: steady steps with XLA against without, and a known reason where one applies."""
    # Studies before version 0.2.0 wrote the name in lower case.
    compiled = next((name for name in results["variant"] if name.lower() == "xla jit"), "")
    compared = against_first(results, "steady_step", compiled)
    if compared is None:
        return Verdict(
            None, "the study has no finished run with XLA and one without in the same repeat."
        )
    sentence = (
        f"with XLA a run takes {amount(compared.ratio.mean, 'step')} without ({evidence(compared)})"
    )
    where = {(condition.accelerator, condition.engine) for condition in conditions}
    if any(engine == "jax" for _, engine in where):
        return Verdict(
            None,
            f"{sentence}; but JAX compiles every step whatever the option says, so both are the"
            " same program.",
        )
    if any(accelerator == "tpu" for accelerator, _ in where):
        return Verdict(
            None,
            f"{sentence}; but a TPU compiles every step whatever the option says, so both are the"
            " same program.",
        )
    paper = 1.0 / references.PAPER_XLA_SPEEDUP
    verdict = of_ratio(
        compared,
        paper,
        f"{sentence}; the paper's {references.PAPER_XLA_SPEEDUP} times as fast is × {paper:.2f}",
    )
    if (
        verdict.agrees is False
        and compared.ratio.mean > paper
        and {kind for kind, _ in where} == {"cpu"}
    ):
        why = (
            "On a CPU without XLA this program uses hand-written kernels (docs/training.md) that"
            " the compiler cannot use. There is less to gain, and XLA's convolutions are slower."
        )
        return Verdict(False, f"{verdict.why} {why}")
    return verdict


def accelerators(results: pd.DataFrame) -> Verdict:
    """Fig. 13: many TPU cores against a CPU, a GPU and one TPU core.

    `results`: of a study of the question "devices".
    """
    all_cores = f"tpu x{references.PAPER_REPLICAS}"
    devices = {"CPU": "cpu x1", "GPU": "gpu x1", "TPU, serial": "tpu x1"}
    have = set(results.loc[results["epoch_seconds"].notna(), "variant"])
    missing = [name for name in (all_cores, *devices.values()) if name not in have]
    if missing:
        return Verdict(
            None,
            f"the paper compares {all_cores} with {', '.join(devices.values())}; missing here:"
            f" {', '.join(missing)}.",
        )
    parts: list[str] = []
    readings: tuple[list[bool | None], list[bool | None]] = ([], [])
    for name, variant in devices.items():
        together, alone = (
            by_repeat(results, of_variant, "epoch_seconds") for of_variant in (all_cores, variant)
        )
        compared = difference(together, alone, len(devices))
        if compared is None:
            return Verdict(None, "no repeat has a run on each of these devices.")
        share = references.PAPER_FASTER_THAN[name]
        ratios = (1.0 - share, 1.0 / (1.0 + share))
        parts.append(
            f"against {variant} {evidence(compared)} (the paper: × {ratios[0]:.2f} if it means less"
            f" time, × {ratios[1]:.2f} if it means more speed)"
        )
        for verdicts, ratio in zip(readings, ratios, strict=True):
            verdicts.append(of_ratio(compared, ratio, "").agrees)
    return Verdict(_of_readings(readings), f"time of an epoch with {all_cores} {'; '.join(parts)}.")


def _of_readings(readings: Iterable[list[bool | None]]) -> bool | None:
    """Agrees if all numbers agree in one reading of the sentence; differs if some number differs
    in each.
    """
    judged = [
        False if False in verdicts else None if None in verdicts else True for verdicts in readings
    ]
    return True if True in judged else None if None in judged else False
