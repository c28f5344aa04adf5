"""Results of the example runs of showers, from their bundle: the table and the image of
docs/3dgan.md.

python -m benchmarks.shower_results                    prints the table, in about a minute
python -m benchmarks.shower_results --picture docs/screenshots/showers-example.png
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from PIL import Image

from benchmarks import bundle_command, markdown
from gan_runtime import pictures
from gan_runtime.bundles.packing import example
from gan_runtime.domains.showers.features import values_of
from gan_runtime.domains.showers.score_metrics import SCORES, Estimate
from gan_runtime.domains.showers.scores import ShowerSample, compared, sample
from gan_runtime.domains.showers.simulation import TINY, simulate
from gan_runtime.records import journal
from gan_runtime.records.answer import Answer
from gan_runtime.records.journal import EpochDone
from gan_runtime.records.run_folder import RunDir, answers_of

# The authors' first score, the mean profiles, and the scores that the field compares by.
COLUMNS = (
    *("sampling_fraction", "profile_x", "profile_y", "profile_z"),
    *("challenge_fpd", "fpd", "auc_high", "ms_batch"),
)
SHOWERS, NOISE_SEED = 1_000, 7
ENERGIES_GEV, ANGLES = (100.0, 200.0), (60.0, 120.0)  # degrees; as in the data set
CHUNK = 50
PAIRS = 9  # the lower three of five energy bins, times three angle bins
PIXELS = 2  # image pixels per pixel of the dashboard's image
Scores = Mapping[str, Estimate]


def main() -> None:
    """Prints the table; draws the image on request."""
    bundle_command.run(
        __doc__, example("showers"), table, lambda run: image_of(measurements(run)[-1])
    )


def measurements(run: RunDir) -> list[Answer]:
    """The newest measurement of each epoch of a run, in order."""
    newest = {answer.epoch: answer for answer in answers_of(run, "physics")}
    return [newest[epoch] for epoch in sorted(newest)]


def table(runs: list[RunDir]) -> str:
    """A line for each run after its last epoch, then the mean of the untrained networks, noise, and
    the floor.
    """
    titles = {score.name: score.title for score in SCORES}
    lines = [
        *map(_run_line, runs),
        _untrained_line(runs),
        _line("noise", "", noise()),
        _floor_line(runs),
    ]
    return markdown.table(("", "Minutes", *(titles[name] for name in COLUMNS)), lines)


def noise() -> Scores:
    """Scores of simulated showers with shuffled cells: every energy is right, every position
    wrong.
    """
    random = np.random.default_rng(NOISE_SEED)
    real, second = _simulated(random), _simulated(random)
    cells = second.cells_gev.reshape(SHOWERS, -1)
    shuffled = random.permuted(cells, axis=1).reshape(second.cells_gev.shape)
    return compared(real, sample(shuffled, second.features.energy_gev, second.requested_angle, ()))


def image_of(measured: Answer) -> Image.Image:
    """Simulated showers on the left, generated ones with the same energies and angles on the
    right.
    """
    arrays, grid = measured.arrays[: 2 * PAIRS], measured.facts["grid"]
    cells_gev = np.zeros((len(arrays), math.prod(grid)), np.float32)
    for row, shower in zip(cells_gev, arrays, strict=True):
        row[shower.places] = np.asarray(shower.values) / 1e3
    values = values_of(cells_gev.reshape(-1, *grid))[..., np.newaxis]
    image = pictures.render("shower_projections", (values,), ())
    return image.resize((image.width * PIXELS, image.height * PIXELS), Image.Resampling.NEAREST)


def _run_line(run: RunDir) -> list[str]:
    last = measurements(run)[-1]
    epochs = [
        record
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, EpochDone)
    ]
    minutes = sum(record.seconds for record in epochs) / 60.0
    scores = {score.name: Estimate(score.value, score.error) for score in last.scores}
    return _line(f"seed {run.spec().seed}, epoch {last.epoch}", f"{minutes:.1f}", scores)


def _untrained_line(runs: list[RunDir]) -> list[str]:
    first = [{score.name: score.value for score in measurements(run)[0].scores} for run in runs]
    means = {
        name: Estimate(float(np.mean([scores[name] for scores in first]))) for name in first[0]
    }
    return _line("untrained, mean", "0", means)


def _floor_line(runs: list[RunDir]) -> list[str]:
    last = measurements(runs[0])[-1]
    return _line(
        "floor",
        "",
        {score.name: Estimate(score.floor, score.floor_error) for score in last.scores},
    )


def _line(name: str, minutes: str, scores: Scores) -> list[str]:
    by_name = {score.name: score for score in SCORES}
    missing = Estimate(math.nan)
    values = (scores.get(column, missing) for column in COLUMNS)
    return [
        name,
        minutes,
        *(
            by_name[column].words(*vars(value).values())
            for column, value in zip(COLUMNS, values, strict=True)
        ),
    ]


def _simulated(random: np.random.Generator) -> ShowerSample:
    parts = list(_parts(random))
    cells, energies, angles = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return sample(cells, energies, angles, ())


def _parts(random: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    for _ in range(SHOWERS // CHUNK):
        energies, angles = (
            random.uniform(*ENERGIES_GEV, CHUNK),
            np.radians(random.uniform(*ANGLES, CHUNK)),
        )
        yield simulate(energies, angles, random, TINY), energies, angles


if __name__ == "__main__":
    main()
