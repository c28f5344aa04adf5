"""The results of a study, in words, cells and points, and their conditions.

Every number is computed from its runs.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dashboard import palette, words
from dashboard.studies.measures import FASTER, THREE_DIGITS, TIME, Measure, measure_of, measures
from dashboard.words import plain
from gan_runtime import catalog
from gan_runtime.base import formats
from gan_runtime.records.journal import ENDED
from gan_runtime.spec.run_options import HERE
from gan_runtime.store.queries import Conditions
from gan_runtime.studies.design import MAX_REPEATS
from gan_runtime.studies.statistics import (
    CLEAR_AT_SOME_LOOK,
    LEVEL,
    Difference,
    Interval,
    difference,
    geometric_interval,
    level_of_each,
    mean_interval,
    pooled_spread,
    repeats_needed,
)

CUT_OFF = "A gray bar in a chart is the 95% interval of one variant, cut off far beyond the runs."
UNCORRECTED = (
    "Nothing is corrected across measures, studies or figures: without any effect, about"
    f" {round(20 * (1.0 - LEVEL))} of 20 is “clear” by chance."
)
SIZES = (0.02, 0.05, 0.10)  # differences whose needed repeats the report states
FULLY_SHOWN = 0.75  # how far an interval is drawn beyond the points, as a share of their range
NO_LATER_EPOCH = (
    "its runs have one epoch, which includes compiling; the time of an epoch is measured from the"
    " second on"
)


def against_first(results: pd.DataFrame, measure: str, variant: str) -> Difference | None:
    """A variant's `measure` over that of the first variant, repeat by repeat.

    `results`: as `queries.study_results`. The interval is simultaneous for all variants compared
    with the first.
    """
    first = results[results["variant_index"] == results["variant_index"].min()]
    of_variant = _by_repeat(results[results["variant"] == variant], measure)
    return difference(of_variant, _by_repeat(first, measure), comparisons(results))


def comparisons(results: pd.DataFrame) -> int:
    """The number of variants compared with the first."""
    return max(1, results["variant"].nunique() - 1)


def effects(results: pd.DataFrame, measure: str = "epoch_seconds") -> dict[str, Difference]:
    """Variant → its difference from the first, if it has one."""
    variants = list(dict.fromkeys(results["variant"]))[1:]
    differences = {str(variant): against_first(results, measure, variant) for variant in variants}
    return {variant: effect for variant, effect in differences.items() if effect is not None}


def sentences(results: pd.DataFrame) -> list[str]:
    """Each variant's effect on the time per epoch, against the first one, and how sure it is."""
    first = str(results["variant"].iloc[0])
    return [sentence(variant, first, effect) for variant, effect in effects(results).items()]


def outcome(results: pd.DataFrame, measure: str) -> str:
    """**Spread of images** (real images = 1): batch 64 0.60; batch 512 0.41 (clear). Empty before a
    run has measured it.
    """
    column, compared = measure_of(measure, results), effects(results, measure)
    parts = []
    for variant, runs in results.dropna(subset=[measure]).groupby("variant", sort=False):
        interval = _interval(runs[measure] * column.scale, column)
        against = f" ({compared[str(variant)].sureness})" if str(variant) in compared else ""
        parts.append(f"{plain(str(variant))} {interval.mean:{column.form}}{against}")
    unit = f" ({column.unit})" if column.unit else ""
    return f"**{plain(column.title)}**{unit}: {'; '.join(parts)}." if parts else ""


def sentence(variant: str, reference: str, effect: Difference) -> str:
    """For example: **batch 512** takes 38% less time per epoch than batch 64 (× 0.62, 0.60 to 0.64:
    clear).
    """
    return (
        f"**{plain(variant)}** takes {amount(effect.ratio.mean, 'epoch')} {plain(reference)}"
        f" ({evidence(effect)})."
    )


def amount(ratio: float, what: str) -> str:
    """A ratio of times in words: "38% less time per epoch than", "5.0 × as long per step as"."""
    if abs(1.0 - ratio) < 0.005:
        return f"the same time per {what} as"
    if ratio >= 2.0:
        return f"{ratio:.1f} × as long per {what} as"
    difference = formats.percent(abs(1.0 - ratio))
    return f"{difference} {'less' if ratio < 1.0 else 'more'} time per {what} than"


def evidence(effect: Difference) -> str:
    """× 0.62, 0.60 to 0.64: clear."""
    ratio = effect.ratio
    ends = f", {factor(ratio.low)} to {factor(ratio.high)}" if ratio.is_known else ""
    return f"× {factor(ratio.mean)}{ends}: {effect.sureness}"


def factor(ratio: float) -> str:
    """0.62 · 12.3 · over 1000, under 0.01: few scattered repeats allow numbers that say nothing."""
    if not 0.01 <= ratio <= 1000.0:
        return "over 1000" if ratio > 1.0 else "under 0.01"
    return f"{ratio:.3f}" if ratio < 0.1 else f"{ratio:.2f}" if ratio < 10.0 else f"{ratio:.3g}"


def levels(results: pd.DataFrame) -> str:
    """What the intervals and "clear" mean."""
    count = comparisons(results)
    together = (
        f"the {count} comparisons with the first variant hold together at {formats.percent(LEVEL)}"
        f" ({formats.percent(level_of_each(count), 1)} each)"
        if count > 1
        else f"the comparison with the first variant holds at {formats.percent(LEVEL)}"
    )
    return (
        f"In brackets: the {formats.percent(LEVEL)} interval of the mean of each number"
        f" (Student's t). “Against” compares repeat by repeat; {together}. “Clear”: that"
        " interval excludes × 1."
        " Times of epochs and steps, rates and bytes are geometric means; the others are plain"
        " means. The intervals assume that repeats (of times: their logarithms) are about normally"
        " distributed."
        f" {UNCORRECTED} {CUT_OFF}"
    )


def early_looks() -> str:
    """For an unfinished study: the error rate if every repeat is checked."""
    return (
        "This study is not done. Fix the number of repeats in advance and read “clear” at the"
        " end. Suppose you check after each repeat from the 3rd to the 10th, until one is “clear”:"
        f" {round(100 * CLEAR_AT_SOME_LOOK)} of 100 studies without any effect have one. With a"
        f" fixed number, {round(100 * (1.0 - LEVEL))} have."
    )


def repeats(results: pd.DataFrame) -> str:
    """The repeats that a difference in time per epoch needs, from the scatter of this study; with
    fewer than two repeats, a hint.
    """
    spread = pooled_spread(list(effects(results).values()))
    if spread is None:
        return "With two or more repeats this page estimates how many repeats a difference needs."
    compared = comparisons(results)
    return (
        f"Time per epoch against the first variant scatters by {formats.percent(spread, 1)} from"
        f" repeat to repeat here. {_repeats_sentence(spread, compared, 'such studies')}"
    )


def scatter(results: pd.DataFrame) -> str:
    """For a study of seeds: the scatter of runs by chance alone, and what it demands of other
    studies.
    """
    times = results["epoch_seconds"].dropna()
    if len(times) < 2:
        return missing(results, "epoch_seconds") if times.empty else "One run has no scatter yet."
    spread = float(np.log(times).std(ddof=1))
    of_ratios = math.sqrt(2.0) * spread
    return (
        f"Runs that differ in the seed alone scatter by {formats.percent(spread, 1)} in their time"
        f" per epoch (standard deviation of {len(times)} runs). Ratios of two such runs scatter by"
        f" {formats.percent(of_ratios, 1)}."
        f" {_repeats_sentence(of_ratios, 1, 'studies of two variants')}"
    )


def _repeats_sentence(spread: float, compared: int, studies: str) -> str:
    first, *further = [
        (formats.percent(size), repeats_in_words(spread, size, compared)) for size in SIZES
    ]
    rest = ", ".join(f"of {size} {needed}" for size, needed in further)
    return (
        f"A true difference of {first[0]} is clear in 8 of 10 {studies} with {first[1]} repeats;"
        f" {rest}."
    )


def repeats_in_words(spread: float, size: float, compared: int) -> str:
    """About 7, or more than a study can have."""
    needed = repeats_needed(spread, size, compared)
    return (
        f"about {needed}"
        if needed is not None and needed <= MAX_REPEATS
        else f"more than {MAX_REPEATS}"
    )


def missing(results: pd.DataFrame, measure: str) -> str:
    """Why a measure has no number: not yet, or never."""
    title = measure_of(measure, results).title
    if not set(results["status"]) <= set(ENDED):
        return f"{title}: not measured yet."
    if measure in (TIME, "images_per_s", FASTER) and (results["epochs"] == 1).all():
        return f"{title}: not measured, because {NO_LATER_EPOCH}."
    return f"{title}: not measured; no run of this study has recorded it."


def points(results: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The rows of `figures.variant_points` for one measure, without runs that lack it."""
    column = measure_of(measure, results)
    measured = results.dropna(subset=[measure]).assign(
        value=lambda frame: frame[measure] * column.scale
    )
    if measured.empty:
        return measured
    intervals = {
        variant: _interval(rows["value"], column) for variant, rows in measured.groupby("variant")
    }
    margin = FULLY_SHOWN * float(measured["value"].max() - measured["value"].min())
    floor, ceiling = measured["value"].min() - margin, measured["value"].max() + margin
    ends = {
        part: [getattr(intervals[name], part) for name in measured["variant"]]
        for part in ("mean", "low", "high")
    }
    frame = measured.assign(color=measured["variant_index"].map(palette.run_color), **ends)
    return frame.assign(
        drawn_low=frame["low"].clip(lower=floor), drawn_high=frame["high"].clip(upper=ceiling)
    )


def table(results: pd.DataFrame) -> pd.DataFrame:
    """A row for each variant: runs, means with intervals, and time per epoch against the first
    variant.
    """
    rows = []
    differences = effects(results)
    for variant, runs in results.groupby("variant", sort=False):
        against = evidence(differences[str(variant)]) if str(variant) in differences else "–"
        cells = {
            measure.label: _cell(runs[name], measure) for name, measure in measures(results).items()
        }
        rows.append(
            {
                "Variant": variant,
                "Runs": int(runs["seconds"].notna().sum()),
                "Time per epoch, against": against,
                **cells,
            }
        )
    return pd.DataFrame(rows)


def _by_repeat(runs: pd.DataFrame, measure: str) -> dict[int, float]:
    measured = runs.dropna(subset=[measure])
    return dict(zip(measured["repeat"].astype(int), measured[measure].astype(float), strict=True))


def _interval(values: pd.Series, measure: Measure) -> Interval:
    """The mean and interval of one variant.

    Without positive numbers there is no geometric mean; then it is NaN.
    """
    interval = (geometric_interval if measure.by_factors else mean_interval)(values)
    return interval or Interval(math.nan, math.nan, math.nan, 0)


def _cell(values: pd.Series, measure: Measure) -> str:
    values = values.dropna() * measure.scale
    if values.empty:
        return "–"
    interval, form = _interval(values, measure), measure.form
    if form == THREE_DIGITS:  # of the mean, and as many decimals at both ends
        form = (
            f".{max(0, 2 - math.floor(math.log10(abs(interval.mean))))}f"
            if interval.mean
            else ".3f"
        )
    ends = f" ({interval.low:{form}} to {interval.high:{form}})" if interval.is_known else ""
    return f"{interval.mean:{form}}{ends}".replace("-", "\u2212")


ENGINES = {"tensorflow": "TensorFlow", "jax": "JAX", "auto": "TensorFlow"}
IMPORTED = "imported, so the times are those of the host it came from"


def conditions(runs: list[Conditions]) -> str:
    """What these runs share, with "or" between differing values: safe inside Markdown."""
    if not runs:
        return "No run."
    parts = (
        [images_of(run.dataset, run.images) for run in runs],
        [processor(run.accelerator, run.cpu_model, run.target) for run in runs],
        [ENGINES.get(run.engine, run.engine) for run in runs],
        [f"{run.devices} device{'s' if run.devices > 1 else ''}" for run in runs],
        [f"{run.epochs} epoch{'s' if run.epochs > 1 else ''}" for run in runs],
        [IMPORTED for run in runs if run.imported],
    )
    return " · ".join(words.plain(" or ".join(dict.fromkeys(part))) for part in parts if part)


def images_of(dataset: str, images: int | None) -> str:
    """For example: MNIST, 10,000 of its 60,000 images."""
    entry = catalog.DATASETS.get(dataset)
    name = entry.title if entry else dataset
    if images is None:
        return name
    whole = entry.rows if entry else images
    of = f" of its {formats.count(whole)}" if images < whole else ""
    return f"{name}, {formats.count(images)}{of} images"


def processor(accelerator: str, cpu_model: str, target: str) -> str:
    """For example: CPU (AMD EPYC 9B14) on atlas."""
    model = f" ({cpu_model})" if cpu_model else ""
    return f"{accelerator.upper()}{model}{f' on {target}' if target != HERE else ''}"
