"""What stored runs say to the paper's figures of losses, learning rates and the descent on the loss surface."""

from __future__ import annotations

import pandas as pd

from dashboard.paper.verdicts import Verdict, by_repeat
from dashboard.studies.words import effects, evidence
from dashboard.words import plain, share
from gan_runtime.store.queries import SurfaceRow
from gan_runtime.studies import references
from gan_runtime.studies.statistics import difference

ABRUPT = 0.2  # of the highest rate: what a rate has to rise by between two points to rise abruptly


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
    compared = effects(known, "width")
    if not compared:
        return Verdict(None, "there are not two batch sizes with a finished run in the same repeat.")
    first = plain(str(known["variant"].iloc[0]))
    listed = "; ".join(f"{plain(variant)} {evidence(effect)}" for variant, effect in compared.items())
    clear = any(effect.is_clear for effect in compared.values())
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
        found = difference(by_repeat(results, best, name), by_repeat(results, other, name), compared)
        if found is None:
            return Verdict(None, "no two batch sizes have positive losses in the same repeat.")
        parts.append(f"{network}'s loss with {best} over that with {other} {evidence(found)}")
        verdicts.append(found.ratio.mean < 1.0 if found.is_clear else None)
    agrees = False if False in verdicts else None if None in verdicts else True
    return Verdict(agrees, f"{'; '.join(parts)}.")


def _last_losses(results: pd.DataFrame) -> pd.DataFrame:
    known = results.dropna(subset=["loss_generator", "loss_discriminator"])
    return known.groupby("variant", sort=False)[["loss_generator", "loss_discriminator"]].mean()


def descent(surfaces: list[SurfaceRow]) -> str:
    """Fig. 11: how much of the movement the picture shows."""
    parts = [
        f"{surface.network.capitalize()}: the map holds {share(surface.share_x + surface.share_y)} of its movement"
        for surface in surfaces
    ]
    return f"From before the first epoch to after epoch {surfaces[0].path_epoch[-1]}. {'; '.join(parts)}."


def descends(surfaces: list[SurfaceRow]) -> Verdict:
    """Fig. 11: both descend. D maximizes its objective by minimizing its loss, which is the objective with the sign turned."""
    parts = [
        f"{surface.network.capitalize()} from {surface.path_loss[0]:.2f} to {surface.path_loss[-1]:.2f} nats"
        for surface in surfaces
    ]
    falls = all(surface.path_loss[-1] < surface.path_loss[0] for surface in surfaces)
    return Verdict(
        falls, f"loss along each path: {'; '.join(parts)}. D maximizes its objective where this loss falls."
    )
