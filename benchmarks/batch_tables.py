"""The tables of the equivalence study (benchmarks/batch_study.py), computed from its stored runs.

docs/quality.md has the definitions, written before any run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks import markdown
from gan_runtime import api
from gan_runtime.evaluation.quality_scores import QUALITY, QUALITY_METRICS
from gan_runtime.records.home import Home
from gan_runtime.studies.statistics import Equivalence

TITLE = "Equivalence "  # prefix of the studies' titles
IMAGES, UPDATES, LONGER = "images", "updates", "longer"  # the budgets
MARGIN_STDS = 1.96  # the margin, in standard deviations between seeds
LEAST_PAIRS = 5  # with three, equal recipes are almost never found equivalent
TOO_FEW = "too few pairs"
SCORES = ("fcd_infinite", "kcd", "coverage")
METRICS = {metric.name.removeprefix(f"{QUALITY}_"): metric for metric in QUALITY_METRICS}
QUERY = f"""
SELECT studies.title, run_id, batch_size_global AS batch, seed, runs.status, epoch, e.step,
       e.step * images_per_step AS images, replicas * workers AS devices, score, value, floor,
       (SELECT sum(seconds) FROM epochs WHERE epochs.run_id = e.run_id AND epochs.step <= e.step) AS wall_s
FROM evaluation_scores e JOIN runs USING (run_id) JOIN studies USING (study_id)
WHERE e.evaluation = 'quality' AND score IN {SCORES} AND studies.title LIKE '{TITLE}%'
  AND runs.status = 'finished'
"""  # noqa: E501
ValueBySeed = dict[int, float]


def evaluated_epochs(home: Home) -> pd.DataFrame:
    """A row for each evaluated epoch of a finished run; empty without runs.

    Columns: recipe, budget, batch, seed, epoch, images, device_s, SCORES, log_fcd. log_fcd: ln of
    FCD∞, where values below the floor count as the floor.
    """
    frame = api.sql(home, QUERY)
    title_parts = frame.title.str.removeprefix(TITLE).str.split(" ")
    frame = frame.assign(
        recipe=title_parts.str[0],
        budget=title_parts.str[1],
        device_s=frame.wall_s.fillna(0.0) * frame.devices,
    )
    keys = ["recipe", "budget", "batch", "seed", "epoch", "images", "device_s"]
    values = frame.pivot_table(index=keys, columns="score", values="value").reset_index()
    # A score that is NaN everywhere (FCD∞ of few images) has no column.
    values = values.reindex(columns=[*keys, *SCORES])
    floors = frame[frame.score == "fcd_infinite"].set_index(keys).floor
    if values.empty:
        return pd.DataFrame(columns=[*keys, *SCORES, "log_fcd"])
    floor = floors.groupby(level=keys).first().reindex(values.set_index(keys).index)
    least = np.maximum(floor.to_numpy(), 1e-3)
    return values.assign(log_fcd=np.log(np.maximum(values.fcd_infinite.to_numpy(), least)))


def text(frame: pd.DataFrame, batches: Sequence[int]) -> str:
    """All tables as Markdown."""
    if frame.empty:
        return f"{markdown.NOT_MEASURED.capitalize()} yet."
    of_batches = tuple(map(str, batches))
    decisions = ("Recipe, budget", "Pairs", "ln FCD∞", "KCD", "Coverage", "Equivalent")
    return "\n".join(
        [
            "### After the last epoch\n",
            "Means over the seeds (medians) of FCD∞, KCD and coverage, and mean device seconds, by"
            " batch.\n",
            markdown.table(("Recipe, budget", *of_batches), _end_lines(frame, batches)),
            f"### Batch {batches[-1]} against {batches[0]}\n",
            "Mean difference over the pairs (margin). p: of the test that it is within the margin,"
            " for coverage that no more is lost.\n",
            markdown.table(decisions, _decision_lines(frame, batches)),
            f"### To the quality of batch {batches[0]}\n",
            _targets(frame, batches),
        ]
    )


def ends(frame: pd.DataFrame) -> pd.DataFrame:
    """The last evaluated epoch of each run."""
    keys = ["recipe", "budget", "batch", "seed"]
    return frame.sort_values("epoch").groupby(keys, as_index=False).last()


def _parts(frame: pd.DataFrame, batches: Sequence[int]) -> Iterator[tuple[str, pd.DataFrame]]:
    """The name and the epochs of each recipe and budget.

    `longer` has only the largest batch: it is compared with the smallest of `updates`.
    """
    for (recipe, budget), epochs in frame.groupby(["recipe", "budget"]):
        if budget == LONGER:
            of_recipe = frame[(frame.recipe == recipe) & (frame.batch == batches[0])]
            epochs = pd.concat([of_recipe[of_recipe.budget == UPDATES], epochs])
        yield f"{recipe}, {budget}", epochs


def _end_lines(frame: pd.DataFrame, batches: Sequence[int]) -> list[list[str]]:
    """A line for each recipe and budget; a cell for each batch."""
    return [
        [name, *(_end_cell(runs[runs.batch == batch]) for batch in batches)]
        for name, runs in _parts(ends(frame), batches)
    ]


def _end_cell(runs: pd.DataFrame) -> str:
    """A table cell such as "5.39 (5.14); 0.606 (0.57); 89% (88%); 45 s"; a dash without runs."""
    if runs.empty:
        return "–"
    fcd = METRICS["fcd_infinite"].in_words
    kcd = METRICS["kcd"].in_words
    values = np.exp(runs.log_fcd)
    return (
        f"{fcd(values.mean())} ({fcd(values.median())});"
        f" {kcd(runs.kcd.mean())} ({kcd(runs.kcd.median())});"
        f" {runs.coverage.mean():.0%} ({runs.coverage.median():.0%}); {runs.device_s.mean():.0f} s"
    )


@dataclass(frozen=True)
class Decision:
    """Whether the largest batch is equivalent to the smallest, for one recipe and budget."""

    log_fcd: Equivalence
    kcd: Equivalence
    coverage: Equivalence

    @property
    def is_equivalent(self) -> bool:
        """All three tests hold at 95%, and therefore jointly (intersection-union, Berger 1982)."""
        return self.log_fcd.is_equivalent and self.kcd.is_equivalent and self.coverage.is_not_lower


def decision(last: pd.DataFrame, batches: Sequence[int]) -> Decision | None:
    """The decision from the `last` epochs of one recipe and budget; None without two pairs.

    Margin: MARGIN_STDS standard deviations between the seeds at the smallest batch.
    """
    sides = {
        batch: last[last.batch == batch].set_index("seed").sort_index()
        for batch in (batches[0], batches[-1])
    }
    small, large = sides[batches[0]], sides[batches[-1]]
    seeds = small.index.intersection(large.index)
    if len(seeds) < 2:
        return None

    def equivalence(score: str) -> Equivalence:
        differences = large.loc[seeds, score] - small.loc[seeds, score]
        return Equivalence(tuple(differences), MARGIN_STDS * float(small[score].std(ddof=1)))

    return Decision(equivalence("log_fcd"), equivalence("kcd"), equivalence("coverage"))


def _decision_lines(frame: pd.DataFrame, batches: Sequence[int]) -> list[list[str]]:
    lines = []
    for name, runs in _parts(ends(frame), batches):
        if (result := decision(runs, batches)) is None:
            lines.append([name, *["–"] * 4, TOO_FEW])
            continue
        tests = [
            _test(result.log_fcd, result.log_fcd.p_value),
            _test(result.kcd, result.kcd.p_value),
            _test(result.coverage, result.coverage.p_lower),
        ]
        pairs = len(result.kcd.differences)
        answer = "yes" if result.is_equivalent else "not shown"
        lines.append([name, str(pairs), *tests, answer if pairs >= LEAST_PAIRS else TOO_FEW])
    return lines


def _test(test: Equivalence, p: float) -> str:
    return f"{test.mean.mean:+.2g} ({test.margin:.2g}), p = {p:.2g}"


def cost_to_target(frame: pd.DataFrame, target: float) -> dict[str, ValueBySeed]:
    """Images and device seconds until ln FCD∞ is first at most `target`, by seed, for one batch.
    Seeds that never reach it are missing.
    """
    hits = frame[frame.log_fcd <= target].sort_values("epoch")
    first = hits.groupby("seed", as_index=False).first()
    return {
        name: dict(zip(first.seed, first[name], strict=True)) for name in ("images", "device_s")
    }


def _targets(frame: pd.DataFrame, batches: Sequence[int]) -> str:
    """The table of all recipes and budgets with which a larger batch reaches the target."""
    lines = [line for line in _target_lines(frame, batches) if set(line[2:]) != {"–"}]
    if not lines:
        return "No larger batch reaches the mean FCD∞ at which it ends.\n"
    table = markdown.table(("Recipe, budget", *map(str, batches)), lines)
    return (
        "Mean thousands of images, and device seconds; of how many seeds, where some do not reach"
        f" it.\n\n{table}"
    )


def _target_lines(frame: pd.DataFrame, batches: Sequence[int]) -> list[list[str]]:
    """Target: the final mean ln FCD∞ of the smallest batch, with the same recipe and budget."""
    lines = []
    for name, epochs in _parts(frame, batches):
        last = ends(epochs)
        target = float(last[last.batch == batches[0]].log_fcd.mean())
        cells = [_target_cell(epochs[epochs.batch == batch], target) for batch in batches]
        lines.append([name, *cells])
    return lines


def _target_cell(runs: pd.DataFrame, target: float) -> str:
    """A table cell such as "140, 55 s (2 of 3)"; a dash if no run reaches the target."""
    cost, seeds = cost_to_target(runs, target), runs.seed.nunique()
    images, seconds = cost["images"], cost["device_s"]
    if not images:
        return "–"
    reached = "" if len(images) == seeds else f" ({len(images)} of {seeds})"
    means = np.mean([*images.values()]) / 1e3, np.mean([*seconds.values()])
    return f"{means[0]:,.0f}, {means[1]:.0f} s{reached}"
