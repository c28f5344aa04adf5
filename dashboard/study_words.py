"""What a study has measured, in words, cells and points. Every number is computed from its runs."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dashboard import palette
from gan_runtime.studies.statistics import Difference, Interval, difference, median_interval


@dataclass(frozen=True)
class Measure:
    """A column of `queries.study_results`. `scale`: what turns its unit there into `unit`; `form`: a Python format."""

    title: str
    unit: str
    form: str = ".3g"
    scale: float = 1.0
    help: str = ""

    @property
    def label(self) -> str:
        """Title and unit, as a table names it."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


MEASURES = {
    "epoch_seconds": Measure("Time per epoch", "s", help="Median of a run's epochs after the first, which holds the compiling."),
    "steady_step": Measure("Steady step", "ms", scale=1000.0, help="Median time of a training step, compiling left out."),
    "images_per_s": Measure("Images/s", "", ",.0f", help="Steady rate, all replicas together."),
    "compile": Measure("Compile", "s", help="What the first step took beyond a steady one."),
    "memory_bytes": Measure("Memory, peak", "GB", ".2f", 1e-9, "Highest resident memory of the trainer's process."),
    "loss_generator": Measure(
        "Loss G", "nats", ".3f", help="Mean over the last epoch. A loss of a GAN is no measure of its images."
    ),
    "loss_discriminator": Measure(
        "Loss D", "nats", ".3f", help="Mean over the last epoch. A loss of a GAN is no measure of its images."
    ),
    "spread_ratio": Measure(
        "Spread of images",
        "real ones = 1",
        ".2f",
        help="How much the generated images differ, over how much the real ones do. Near 0: they are all alike.",
    ),
}


def against_first(results: pd.DataFrame, measure: str, variant: str) -> Difference | None:
    """A variant's `measure` over that of the first variant, repeat by repeat. `results` as `queries.study_results` gives them."""
    first = results[results["variant_index"] == results["variant_index"].min()]
    return difference(_by_repeat(results[results["variant"] == variant], measure), _by_repeat(first, measure))


def sentences(results: pd.DataFrame) -> list[str]:
    """What each variant does to the time per epoch, against the first one, and how sure that is."""
    first, *others = dict.fromkeys(results["variant"])
    effects = {variant: against_first(results, "epoch_seconds", variant) for variant in others}
    return [sentence(variant, first, effect) for variant, effect in effects.items() if effect is not None]


def sentence(variant: str, reference: str, effect: Difference) -> str:
    """Such as: **batch 512** takes 38 % less time per epoch than batch 64 (× 0.62, 0.60 to 0.64): clear."""
    ratio, low, high = effect.ratio.median, effect.ratio.low, effect.ratio.high
    amount = f"{abs(1.0 - ratio) * 100:.0f} % {'less' if ratio < 1.0 else 'more'} time per epoch than"
    effect_words = amount if abs(1.0 - ratio) >= 0.005 else "the same time per epoch as"
    return f"**{variant}** takes {effect_words} {reference} (× {ratio:.2f}, {low:.2f} to {high:.2f}): {effect.sureness}."


def points(results: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The rows of `study_charts.variant_points` for one measure; runs that have not measured it are left out."""
    shown = results.dropna(subset=[measure]).assign(value=lambda frame: frame[measure] * MEASURES[measure].scale)
    medians = {variant: median_interval(list(rows["value"])) for variant, rows in shown.groupby("variant")}
    return shown.assign(
        color=shown["variant_index"].map(palette.run_color),
        **{
            part: shown["variant"].map(lambda name, part=part: getattr(medians[name], part)) for part in ("median", "low", "high")
        },
    )


def table(results: pd.DataFrame) -> pd.DataFrame:
    """One row a variant: runs, medians with intervals, and time per epoch against the first variant."""
    rows = []
    for variant, runs in results.groupby("variant", sort=False):
        found = against_first(results, "epoch_seconds", str(variant))
        against = (
            "–"
            if found is None or variant == results["variant"].iloc[0]
            else f"× {_spread(found.ratio, '.2f')}, {found.sureness}"
        )
        cells = {measure.label: _cell(runs, name) for name, measure in MEASURES.items()}
        rows.append({"Variant": variant, "Runs": int(runs["seconds"].notna().sum()), "Time per epoch, against": against, **cells})
    return pd.DataFrame(rows)


def _by_repeat(runs: pd.DataFrame, measure: str) -> dict[int, float]:
    known = runs.dropna(subset=[measure])
    return dict(zip(known["repeat"].astype(int), known[measure].astype(float), strict=True))


def _cell(runs: pd.DataFrame, measure: str) -> str:
    shown = MEASURES[measure]
    found = median_interval([value * shown.scale for value in runs[measure].dropna()])
    return "–" if found is None else _spread(found, shown.form)


def _spread(interval: Interval, form: str) -> str:
    if interval.count == 1:
        return f"{interval.median:{form}}"
    return f"{interval.median:{form}} ({interval.low:{form}} to {interval.high:{form}})"
