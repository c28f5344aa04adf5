"""What stored runs say to each figure of the paper, in sentences. Every number is computed from the runs."""

from __future__ import annotations

import pandas as pd

from dashboard.study_words import against_first, amount, evidence
from dashboard.words import plain
from gan_runtime.store.queries import SurfaceRow
from gan_runtime.studies.references import PAPER_TIME_SAVED, PAPER_XLA_SPEEDUP
from gan_runtime.studies.statistics import Difference

NOT_YET = "Not measured here yet: the study has no second variant with a finished second epoch."


def time_by_batch(results: pd.DataFrame, accelerator: str) -> str:
    """Fig. 5: the time of an epoch with the largest batch against the smallest."""
    first, last = results["variant"].iloc[0], results["variant"].iloc[-1]
    found = against_first(results, "epoch_seconds", last)
    if found is None or first == last:
        return NOT_YET
    saved = 1.0 - found.ratio.mean
    sentence = f"An epoch of {plain(last)} takes {_share(saved)} time than one of {plain(first)} ({_range(found)})."
    if saved < PAPER_TIME_SAVED - 0.05 and accelerator == "cpu":
        sentence += (
            " Less is saved than in the paper: a CPU is busy with one small batch already, while eight TPU cores wait between small "
            "batches for their host and for each other."
        )
    return sentence


def time_by_epoch(epochs: pd.DataFrame) -> str:
    """Fig. 6: how steady the time of an epoch is. `epochs`: variant, run_id, epoch, seconds; the first of each run compiles."""
    later = epochs[epochs["epoch"] > epochs.groupby("run_id")["epoch"].transform("min")]
    if later.empty:
        return "Not measured here yet: no run has finished its second epoch."
    spread = later.groupby("run_id")["seconds"].agg(lambda values: (values.max() - values.min()) / values.median())
    return (
        f"After the first epoch, which holds the compiling, the epochs of a run differ by {spread.median():.0%} from the fastest to "
        "the slowest (median of the runs)."
    ).replace("%", " %")


def losses(results: pd.DataFrame) -> str:
    """Fig. 7: mean losses of the last epoch of each variant."""
    known = results.dropna(subset=["loss_generator", "loss_discriminator"])
    means = known.groupby("variant", sort=False)[["loss_generator", "loss_discriminator"]].mean()
    parts = [
        f"{plain(str(variant))}: G {row.loss_generator:.2f}, D {row.loss_discriminator:.2f}" for variant, row in means.iterrows()
    ]
    return f"Mean losses of the last epoch in nats. {'; '.join(parts)}. Where D can only guess, both are 0.69 and 1.39."


def concentration(quartiles: pd.DataFrame) -> str:
    """Fig. 8: whether D's losses gather as training goes on. `quartiles`: variant, epoch, width (of the middle half, nats)."""
    parts = []
    for variant, rows in quartiles.groupby("variant", sort=False):
        ordered = rows.sort_values("epoch")
        if len(ordered) > 1:
            parts.append(f"{plain(str(variant))}: from {ordered['width'].iloc[0]:.2f} to {ordered['width'].iloc[-1]:.2f}")
    if not parts:
        return "Not measured here yet: no run has finished its second epoch."
    return f"Width of the middle half of D's losses in the first and in the last epoch, in nats. {'; '.join(parts)}."


def rates(curves: pd.DataFrame) -> str:
    """Fig. 9: what the learning rate did. `curves`: variant, x, mean."""
    parts = []
    for variant, rows in curves.sort_values("x").groupby("variant", sort=False):
        low, high, rises = rows["mean"].min(), rows["mean"].max(), int((rows["mean"].diff() > 0.2 * rows["mean"].max()).sum())
        moves = (
            f"constant {high:.2g}"
            if low == high
            else f"{low:.2g} to {high:.2g} with {rises} abrupt rise{'s' if rises != 1 else ''}"
        )
        parts.append(f"{plain(str(variant))}: {moves}")
    return f"{'; '.join(parts)}."


def lowest(results: pd.DataFrame) -> str:
    """Fig. 10: which variant ends with the lowest losses."""
    known = results.dropna(subset=["loss_generator", "loss_discriminator"])
    means = known.groupby("variant", sort=False)[["loss_generator", "loss_discriminator"]].mean()
    best_g, best_d = means["loss_generator"].idxmin(), means["loss_discriminator"].idxmin()
    return (
        f"In the last epoch {plain(str(best_g))} has the lowest loss of G ({means['loss_generator'].min():.2f}) and {plain(str(best_d))} the lowest of D "
        f"({means['loss_discriminator'].min():.2f}). A low loss of one network mostly means that the other one is weak."
    )


def descent(surfaces: list[SurfaceRow]) -> str:
    """Fig. 11: how the loss changes along each path, and how much of the movement the picture shows."""
    parts = [
        f"{one.network.capitalize()}: from {one.path_loss[0]:.2f} to {one.path_loss[-1]:.2f} nats; the map holds "
        f"{(one.share_x + one.share_y) * 100:.0f} % of its movement."
        for one in surfaces
    ]
    return f"Loss along each path, from before the first epoch to after epoch {surfaces[0].path_epoch[-1]}. {' '.join(parts)}"


def xla(results: pd.DataFrame) -> str:
    """Fig. 12: steady steps with XLA against without."""
    found = against_first(results, "steady_step", "xla jit")
    if found is None:
        return "Not measured here yet: the study has no finished run with XLA and one without in the same repeat."
    speed = 1.0 / found.ratio.mean
    sentence = f"With XLA a run takes {amount(found.ratio.mean, 'step')} without ({_range(found)})."
    if speed < PAPER_XLA_SPEEDUP - 0.05:
        sentence += (
            " Without XLA this program uses hand-laid CPU kernels (docs/training.md) that the compiler cannot use, so there is less to "
            "gain than in the paper, and on a CPU XLA's convolutions are slower."
        )
    return sentence


def accelerators(kinds: list[str]) -> str:
    """Fig. 13, as far as this store goes. `kinds`: the accelerators of its finished runs."""
    missing = [name for name in ("cpu", "gpu", "tpu") if name not in kinds]
    if not missing:
        return "Images per second of the stored runs of the paper's network, by accelerator."
    return (
        f"No run on {' or '.join(name.upper() for name in missing)} is stored here, so the paper's comparison cannot be made; the same "
        "run on such a host, imported here, completes it."
    )


def _share(saved: float) -> str:
    return f"{abs(saved) * 100:.0f} % {'less' if saved >= 0 else 'more'}"


def _range(found: Difference) -> str:
    return evidence(found)
