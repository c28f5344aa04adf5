"""What stored runs say to each figure of the paper, in sentences, and whether they agree. Every number is computed from runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from dashboard.studies.words import against_first, amount, effects, evidence, factor
from dashboard.words import plain, share
from gan_runtime.store.queries import Conditions, SurfaceRow
from gan_runtime.studies import references
from gan_runtime.studies.statistics import Difference, difference

STEADY = 0.10  # epochs of a run that differ by less are "about the same from epoch to epoch"
ABRUPT = 0.2  # of the highest rate: what a rate has to rise by between two points to rise abruptly


@dataclass(frozen=True)
class Verdict:
    """Whether stored runs agree with a figure, and why; `agrees` None: they do not suffice to say."""

    agrees: bool | None
    why: str

    @property
    def word(self) -> str:
        """The verdict itself."""
        return (
            "Not enough runs yet"
            if self.agrees is None
            else "Agrees with the paper"
            if self.agrees
            else "Differs from the paper"
        )

    @property
    def icon(self) -> str:
        """Beside the word."""
        return {None: ":material/pending:", True: ":material/check_circle:", False: ":material/error:"}[
            self.agrees
        ]


NO_DEVICES = Verdict(
    None,
    "no study of the question Devices has a finished run here; the section on top of this page queues one for what this host has.",
)
NO_SCHEDULE = Verdict(
    None,
    f"the paper's rate has cycles, at batch {references.PAPER_RESTARTS_BATCH}, and no study of the question Rate schedule has a finished "
    "run here; the section on top of this page queues one.",
)
NO_XLA = Verdict(
    None,
    "no study of the question XLA has a finished run here; the section on top of this page queues one where XLA is a choice.",
)
NO_DESCENT = Verdict(
    None,
    "no run here has kept its weights. Start one with the option 'Weight snapshots' on; the section on top of this page queues such "
    "runs.",
)
NO_EPOCHS = Verdict(None, "no run has finished its second epoch, and the first one holds the compiling.")


def time_by_batch(results: pd.DataFrame, accelerators: Iterable[str]) -> Verdict:
    """Fig. 5: the time of an epoch with the largest batch against the smallest."""
    first, last = str(results["variant"].iloc[0]), str(results["variant"].iloc[-1])
    found = against_first(results, "epoch_seconds", last)
    if found is None or first == last:
        return Verdict(None, "the study has no second variant with a finished second epoch.")
    sentence = f"{plain(last)} takes {amount(found.ratio.mean, 'epoch')} {plain(first)} ({evidence(found)})"
    ends = f"batch {references.PAPER_BATCHES[0]}", f"batch {references.PAPER_BATCHES[-1]}"
    if (first, last) != ends:
        return Verdict(None, f"{sentence}; the paper compares {ends[0]} with {ends[1]}.")
    paper = 1.0 - references.PAPER_TIME_SAVED
    verdict = _of_ratio(found, paper, f"{sentence}; the paper has × {paper:.2f}")
    if verdict.agrees is False and found.ratio.mean > paper and set(accelerators) == {"cpu"}:
        why = "A likely reason: a CPU is busy with one small batch already, while TPU cores wait between small ones."
        return Verdict(False, f"{verdict.why} {why}")
    return verdict


def time_by_epoch(epochs: pd.DataFrame, results: pd.DataFrame) -> Verdict:
    """Fig. 6: larger batches have shorter epochs, about equal within a run. `epochs`: variant, run_id, epoch, seconds, in the order
    of the variants; the first of each run holds the compiling."""
    later = epochs[epochs["epoch"] > epochs.groupby("run_id")["epoch"].transform("min")]
    steady = later.groupby("run_id").filter(lambda rows: len(rows) > 1)
    if steady.empty:
        return (
            NO_EPOCHS
            if later.empty
            else Verdict(None, "no run has finished its third epoch, so none can be seen to be steady.")
        )
    spread = float(
        steady.groupby("run_id")["seconds"]
        .agg(lambda values: (values.max() - values.min()) / values.median())
        .median()
    )
    order = [name for name in dict.fromkeys(results["variant"]) if name in set(later["variant"])]
    means = [float(later.loc[later["variant"] == name, "seconds"].mean()) for name in order]
    listed = ", ".join(f"{plain(str(name))} {mean:.3g} s" for name, mean in zip(order, means, strict=True))
    sentence = f"mean times of the epochs after the first: {listed}; those of a run differ by {share(spread)} (median of the runs)"
    unclear = [name for name, effect in effects(results).items() if not effect.is_clear]
    if len(order) < 2 or unclear == order[1:]:
        return Verdict(None, f"{sentence}. No difference between batches is clear.")
    shorter = all(after < before for before, after in itertools.pairwise(means))
    return Verdict(shorter and spread <= STEADY, f"{sentence}. Up to {share(STEADY)} counts as steady.")


def losses(results: pd.DataFrame) -> str:
    """Fig. 7: mean losses of the last epoch of each variant."""
    known = results.dropna(subset=["loss_generator", "loss_discriminator"])
    means = known.groupby("variant", sort=False)[["loss_generator", "loss_discriminator"]].mean()
    parts = [
        f"{plain(str(variant))}: G {row.loss_generator:.2f}, D {row.loss_discriminator:.2f}"
        for variant, row in means.iterrows()
    ]
    return f"Mean losses of the last epoch in nats. {'; '.join(parts)}. Where D can only guess, both are 0.69 and 1.39."


def generator_improves(generator: pd.DataFrame, discriminator: pd.DataFrame) -> Verdict:
    """Fig. 7: the generator improves as D stops winning. Both frames: run_id, epoch, mean (`queries.loss_quartiles`)."""
    both = generator.merge(discriminator, on=["run_id", "epoch"], suffixes=("_g", "_d")).sort_values("epoch")
    runs = [rows for _, rows in both.groupby("run_id") if len(rows) > 1]
    if not runs:
        return Verdict(None, "no run has finished its second epoch.")
    improved = 0
    for rows in runs:
        best, last = rows.sort_values("mean_d").iloc[0], rows.iloc[-1]
        improved += bool(best["epoch"] < last["epoch"] and last["mean_g"] < best["mean_g"])
    return Verdict(
        improved > len(runs) / 2,
        f"in {improved} of {len(runs)} runs D's loss is lowest in an epoch before the last one, and G's loss has fallen since; more "
        "than half of the runs count as agreement.",
    )


def concentration(quartiles: pd.DataFrame) -> str:
    """Fig. 8: whether D's losses gather as training goes on. `quartiles`: variant, epoch, width (of the middle half, nats)."""
    parts = []
    for variant, rows in quartiles.groupby("variant", sort=False):
        widths = rows.groupby("epoch")["width"].mean()
        if len(widths) > 1:
            parts.append(f"{plain(str(variant))}: from {widths.iloc[0]:.2f} to {widths.iloc[-1]:.2f}")
    listed = "; ".join(parts) or "no run has finished its second epoch"
    return f"Width of the middle half of D's losses in the first and in the last epoch, in nats. {listed}."


def concentrated_differently(quartiles: pd.DataFrame, results: pd.DataFrame) -> Verdict:
    """Fig. 8: each batch size gathers the losses differently. Columns of `quartiles` as above, with run_id."""
    last = quartiles.sort_values("epoch").drop_duplicates("run_id", keep="last").set_index("run_id")["width"]
    known = results.assign(width=results["run_id"].map(last))
    found = effects(known, "width")
    if not found:
        return Verdict(None, "there are not two batch sizes with a finished run in the same repeat.")
    first = plain(str(known["variant"].iloc[0]))
    listed = "; ".join(f"{plain(variant)} {evidence(effect)}" for variant, effect in found.items())
    clear = any(effect.is_clear for effect in found.values())
    return Verdict(
        clear or None, f"width of the middle half of D's losses in the last epoch, against {first}: {listed}."
    )


def rates(curves: pd.DataFrame) -> str:
    """Fig. 9: what the learning rate did. `curves`: variant, x, mean."""
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
    """Fig. 9: dips and abrupt rises at the paper's batch. `curves` as above, of runs with these global batches."""
    if batches != {references.PAPER_RESTARTS_BATCH}:
        listed = ", ".join(str(batch) for batch in sorted(batches)) or "none"
        return Verdict(
            None, f"the paper shows batch {references.PAPER_RESTARTS_BATCH}; these runs have batch {listed}."
        )
    rises = max(
        (_abrupt_rises(rows["mean"]) for _, rows in curves.sort_values("x").groupby("variant")), default=0
    )
    return Verdict(
        rises > 0,
        f"the rate that falls along a cosine and starts anew has {rises} abrupt rise{'s' if rises != 1 else ''}. Table 1's constant "
        "rate cannot look like the paper's figure.",
    )


def _abrupt_rises(rate: pd.Series) -> int:
    return int((rate.diff() > ABRUPT * rate.max()).sum())


def lowest(results: pd.DataFrame) -> str:
    """Fig. 10: which variant ends with the lowest losses."""
    means = _last_losses(results)
    if means.empty:
        return "No loss is stored yet."
    best_g, best_d = means["loss_generator"].idxmin(), means["loss_discriminator"].idxmin()
    return (
        f"In the last epoch {plain(str(best_g))} has the lowest loss of G ({means['loss_generator'].min():.2f}) and "
        f"{plain(str(best_d))} the lowest of D ({means['loss_discriminator'].min():.2f}). A low loss of one network mostly means that "
        "the other one is weak."
    )


def optimized_best(results: pd.DataFrame) -> Verdict:
    """Fig. 10: both losses are lowest at the paper's best batches. The lowest of these against the lowest of the others."""
    named = {f"batch {batch}" for batch in references.PAPER_BEST_BATCHES}
    means = _last_losses(results)
    inside, outside = means[means.index.isin(named)], means[~means.index.isin(named)]
    if inside.empty or outside.empty:
        return Verdict(None, f"it takes {' or '.join(sorted(named))} and another batch size.")
    compared = 2 * len(inside) * len(outside)
    parts, verdicts = [], []
    for name, network in (("loss_generator", "G"), ("loss_discriminator", "D")):
        best, other = str(inside[name].idxmin()), str(outside[name].idxmin())
        found = difference(_by_repeat(results, best, name), _by_repeat(results, other, name), compared)
        if found is None:
            return Verdict(None, "no two batch sizes have positive losses in the same repeat.")
        parts.append(f"{network}'s loss with {best} over that with {other} {evidence(found)}")
        verdicts.append(found.ratio.mean < 1.0 if found.is_clear else None)
    agrees = False if False in verdicts else None if None in verdicts else True
    return Verdict(agrees, f"{'; '.join(parts)}.")


def _last_losses(results: pd.DataFrame) -> pd.DataFrame:
    known = results.dropna(subset=["loss_generator", "loss_discriminator"])
    return known.groupby("variant", sort=False)[["loss_generator", "loss_discriminator"]].mean()


def _by_repeat(results: pd.DataFrame, variant: str, measure: str) -> dict[int, float]:
    runs = results[results["variant"] == variant].dropna(subset=[measure])
    return dict(zip(runs["repeat"].astype(int), runs[measure].astype(float), strict=True))


def descent(surfaces: list[SurfaceRow]) -> str:
    """Fig. 11: how much of the movement the picture shows."""
    parts = [
        f"{one.network.capitalize()}: the map holds {share(one.share_x + one.share_y)} of its movement"
        for one in surfaces
    ]
    return f"From before the first epoch to after epoch {surfaces[0].path_epoch[-1]}. {'; '.join(parts)}."


def descends(surfaces: list[SurfaceRow]) -> Verdict:
    """Fig. 11: both descend. D maximizes its objective by minimizing its loss, which is the objective with the sign turned."""
    parts = [
        f"{one.network.capitalize()} from {one.path_loss[0]:.2f} to {one.path_loss[-1]:.2f} nats"
        for one in surfaces
    ]
    falls = all(one.path_loss[-1] < one.path_loss[0] for one in surfaces)
    return Verdict(
        falls, f"loss along each path: {'; '.join(parts)}. D maximizes its objective where this loss falls."
    )


def xla(results: pd.DataFrame, conditions: list[Conditions]) -> Verdict:
    """Fig. 12: steady steps with XLA against without, and what is known of the reason where they were measured."""
    compiled = next(
        (name for name in results["variant"] if name.lower() == "xla jit"), ""
    )  # studies before 0.2 wrote it small
    found = against_first(results, "steady_step", compiled)
    if found is None:
        return Verdict(None, "the study has no finished run with XLA and one without in the same repeat.")
    sentence = f"with XLA a run takes {amount(found.ratio.mean, 'step')} without ({evidence(found)})"
    where = {(one.accelerator, one.engine) for one in conditions}
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
    verdict = _of_ratio(
        found, paper, f"{sentence}; the paper's {references.PAPER_XLA_SPEEDUP} times as fast is × {paper:.2f}"
    )
    if verdict.agrees is False and found.ratio.mean > paper and {kind for kind, _ in where} == {"cpu"}:
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
    parts, verdicts = [], []
    for name, variant in others.items():
        together, alone = (_by_repeat(results, one, "epoch_seconds") for one in (all_cores, variant))
        found = difference(together, alone, len(others))
        if found is None:
            return Verdict(None, "no repeat has all of them.")
        paper = 1.0 - references.PAPER_FASTER_THAN[name]
        parts.append(f"against {variant} {evidence(found)} (the paper: × {paper:.2f})")
        verdicts.append(_of_ratio(found, paper, "").agrees)
    agrees = False if False in verdicts else None if None in verdicts else True
    return Verdict(agrees, f"time of an epoch with {all_cores} {'; '.join(parts)}.")


def _of_ratio(found: Difference, paper: float, sentence: str) -> Verdict:
    """Agrees where the interval holds the paper's ratio."""
    if not found.ratio.is_known:
        return Verdict(None, f"{sentence}.")
    within = found.ratio.low <= paper <= found.ratio.high
    if within and not found.is_clear:
        return Verdict(
            None, f"{sentence}, which the interval holds, but it holds no difference at all as well."
        )
    return Verdict(
        within,
        f"{sentence}, {'within' if within else 'outside'} {factor(found.ratio.low)} to {factor(found.ratio.high)}.",
    )
