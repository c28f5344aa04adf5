"""The tables of the equivalence study (benchmarks/batch_study.py), computed from its stored runs.

The definitions are those of docs/quality.md, which were written before any run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks import markdown
from gan_runtime import api
from gan_runtime.records.home import Home
from gan_runtime.studies.statistics import Equivalence

TITLE = "Equivalence "  # prefix of the studies' names, before recipe and budget
SPREADS = 1.96  # standard deviations between seeds: the margin
SCORES = ("fcd_infinite", "kcd", "coverage")
QUERY = f"""
SELECT studies.title, run_id, batch_size_global AS batch, seed, runs.status, epoch, e.step,
       e.step * images_per_step AS images, replicas * workers AS devices, score, value, floor,
       (SELECT sum(seconds) FROM epochs WHERE epochs.run_id = e.run_id AND epochs.step <= e.step) AS wall_s
FROM evaluation_scores e JOIN runs USING (run_id) JOIN studies USING (study_id)
WHERE e.evaluation = 'quality' AND score IN {SCORES} AND studies.title LIKE '{TITLE}%'
  AND runs.status = 'finished'
"""  # noqa: E501
Seeds = dict[int, float]  # seed → number


def measured(home: Home) -> pd.DataFrame:
    """A row for each measured epoch of a finished run: recipe, budget, batch, seed, epoch, images,
    device_s, and the transformed scores as columns. Empty without runs.

    log_fcd: ln of FCD∞, of which values below that of real images count as that one.
    """
    frame = api.sql(home, QUERY)
    words = frame.title.str.removeprefix(TITLE).str.split(" ")
    frame = frame.assign(
        recipe=words.str[0],
        budget=words.str[1],
        device_s=frame.wall_s.fillna(0.0) * frame.devices,
    )
    keys = ["recipe", "budget", "batch", "seed", "epoch", "images", "device_s"]
    values = frame.pivot_table(index=keys, columns="score", values="value").reset_index()
    # a score that is NaN everywhere, as FCD∞ of few images, has no column
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
    decisions = ("Recipe, budget", "ln FCD∞", "KCD", "Coverage", "Equivalent")
    return "\n".join(
        [
            "### After the last epoch\n",
            "Means over the seeds, by batch.\n",
            markdown.table(("Recipe, budget", "", *of_batches), _end_lines(frame, batches)),
            f"### Batch {batches[-1]} against {batches[0]}\n",
            "Mean difference over the pairs, and the margin.\n",
            markdown.table(decisions, _decision_lines(frame, batches)),
            f"### To the quality of batch {batches[0]}\n",
            _targets(frame, batches),
        ]
    )


def ends(frame: pd.DataFrame) -> pd.DataFrame:
    """The last measured epoch of each run."""
    keys = ["recipe", "budget", "batch", "seed"]
    return frame.sort_values("epoch").groupby(keys, as_index=False).last()


def _end_lines(frame: pd.DataFrame, batches: Sequence[int]) -> list[list[str]]:
    """A line for each recipe, budget and number; a cell for each batch."""
    lines = []
    for key, runs in ends(frame).groupby(["recipe", "budget"]):
        of_batch = {batch: runs[runs.batch == batch] for batch in batches}
        numbers: dict[str, Callable[[pd.DataFrame], str]] = {
            "FCD∞": lambda some: _three_digits(np.exp(some.log_fcd).mean()),
            "KCD": lambda some: _three_digits(some.kcd.mean()),
            "coverage": lambda some: f"{some.coverage.mean():.0%}",
            "device seconds": lambda some: f"{some.device_s.mean():.0f}",
            "seeds": lambda some: str(len(some)),
        }
        lines += [
            [
                ", ".join(key) if name == next(iter(numbers)) else "",
                name,
                *(of(some) if len(some) else "–" for some in of_batch.values()),
            ]
            for name, of in numbers.items()
        ]
    return lines


def _three_digits(number: float) -> str:
    """The number with three digits: 0.606 · 469 · 1,150."""
    return f"{float(f'{number:.3g}'):,g}"


@dataclass(frozen=True)
class Decision:
    """The decision about the largest batch against the smallest, for one recipe and budget."""

    log_fcd: Equivalence
    kcd: Equivalence
    coverage: Equivalence

    @property
    def is_equivalent(self) -> bool:
        """All three tests hold, each at 95%; then together they do (Berger 1982)."""
        return self.log_fcd.is_equivalent and self.kcd.is_equivalent and self.coverage.is_not_lower


def decision(last: pd.DataFrame, batches: Sequence[int]) -> Decision | None:
    """The decision from the `last` rows of one recipe and budget. None if a margin or a pair is
    missing.

    Margin: SPREADS standard deviations between the seeds at the smallest batch.
    """
    sides = {
        batch: last[last.batch == batch].set_index("seed").sort_index()
        for batch in (batches[0], batches[-1])
    }
    usual, large = sides[batches[0]], sides[batches[-1]]
    seeds = usual.index.intersection(large.index)
    if len(seeds) < 2:
        return None

    def of(score: str) -> Equivalence:
        differences = large.loc[seeds, score] - usual.loc[seeds, score]
        return Equivalence(tuple(differences), SPREADS * float(usual[score].std(ddof=1)))

    return Decision(of("log_fcd"), of("kcd"), of("coverage"))


def _decision_lines(frame: pd.DataFrame, batches: Sequence[int]) -> list[list[str]]:
    lines = []
    for key, runs in ends(frame).groupby(["recipe", "budget"]):
        if (result := decision(runs, batches)) is None:
            lines.append([", ".join(key), *["too few seeds"] * 3, markdown.NOT_MEASURED])
            continue
        coverage = result.coverage
        tests = [
            _test(result.log_fcd),
            _test(result.kcd),
            f"{coverage.mean.mean:+.1%}, at least {coverage.mean.low:+.1%},"
            f" margin {coverage.margin:.1%}",
        ]
        answer = "yes" if result.is_equivalent else "not shown"
        lines.append([", ".join(key), *tests, answer])
    return lines


def _test(test: Equivalence) -> str:
    return f"{test.mean.mean:+.2g}, margin {test.margin:.2g}, p = {test.p_value:.2g}"


def reached(frame: pd.DataFrame, target: float) -> dict[str, Seeds]:
    """Images and device seconds of each run of one batch until ln FCD∞ is first at most `target`;
    seeds that never reach it are missing.
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
    """Target: the mean ln FCD∞ at the end of the smallest batch with the same recipe and budget."""
    lines = []
    last = ends(frame)
    for key, runs in frame.groupby(["recipe", "budget"]):
        of_key = last[(last.recipe == key[0]) & (last.budget == key[1])]
        target = float(of_key[of_key.batch == batches[0]].log_fcd.mean())
        cells = [_target_cell(runs[runs.batch == batch], target) for batch in batches]
        lines.append([", ".join(key), *cells])
    return lines


def _target_cell(runs: pd.DataFrame, target: float) -> str:
    """A table cell such as "140, 55 s (2 of 3)"; a dash if no run reaches the target."""
    first, seeds = reached(runs, target), runs.seed.nunique()
    images, seconds = first["images"], first["device_s"]
    if not images:
        return "–"
    of = "" if len(images) == seeds else f" ({len(images)} of {seeds})"
    means = np.mean([*images.values()]) / 1e3, np.mean([*seconds.values()])
    return f"{means[0]:,.0f}, {means[1]:.0f} s{of}"
