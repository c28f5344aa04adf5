"""What the example runs of showers reached, out of their bundle: the table and the image of
docs/3dgan.md.

python -m benchmarks.shower_results                                     prints the table, in about a
minute
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

# Of all that is measured: the authors' first score, the mean profiles, and what the field compares
# by.
COLUMNS = (
    *("sampling_fraction", "profile_x", "profile_y", "profile_z"),
    *("challenge_fpd", "fpd", "auc_high", "ms_batch"),
)
REAL, NOISE_SEED = 1_000, 7
ENERGIES_GEV, ANGLES = (100.0, 200.0), (60.0, 120.0)  # the data set's
AT_ONCE = 50
PAIRS = 9  # of the lower three of five bins of energy, and three of angle
PIXELS = 2  # of the documents' image for one pixel of the program's image
Scores = Mapping[str, Estimate]


def main() -> None:
    """Prints the table; draws the image on request."""
    bundle_command.run(
        __doc__, example("showers"), table, lambda run: image_of(measurements(run)[-1])
    )


def measurements(run: RunDir) -> list[Answer]:
    """The measurements of a run in the order of epochs; of each epoch the newest."""
    newest = {answer.epoch: answer for answer in answers_of(run, "physics")}
    return [newest[epoch] for epoch in sorted(newest)]


def table(runs: list[RunDir]) -> str:
    """A line for each run after its last epoch; then the mean of the untrained networks,
    noise, and two samples of simulated showers.
    """
    titles = {score.name: score.title for score in SCORES}
    lines = [*map(_of_run, runs), _untrained(runs), _line("noise", "", noise()), _floor(runs)]
    return markdown.table(("", "Minutes", *(titles[name] for name in COLUMNS)), lines)


def noise() -> Scores:
    """Simulated showers with shuffled cells, next to other simulated ones: every energy is right,
    and every position is wrong.
    """
    random = np.random.default_rng(NOISE_SEED)
    real, second = _simulated(random), _simulated(random)
    cells = second.cells_gev.reshape(REAL, -1)
    shuffled = random.permuted(cells, axis=1).reshape(second.cells_gev.shape)
    return compared(real, sample(shuffled, second.features.energy_gev, second.requested_angle, ()))


def image_of(measured: Answer) -> Image.Image:
    """Simulated showers on the left, generated ones of the same energies and angles on the
    right.
    """
    arrays, grid = measured.arrays[: 2 * PAIRS], measured.facts["grid"]
    cells_gev = np.zeros((len(arrays), math.prod(grid)), np.float32)
    for row, shower in zip(cells_gev, arrays, strict=True):
        row[shower.places] = np.asarray(shower.values) / 1e3
    values = values_of(cells_gev.reshape(-1, *grid))[..., np.newaxis]
    picture = pictures.render("shower_projections", (values,), ())
    return picture.resize(
        (picture.width * PIXELS, picture.height * PIXELS), Image.Resampling.NEAREST
    )


def _of_run(run: RunDir) -> list[str]:
    last = measurements(run)[-1]
    done = [
        record
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, EpochDone)
    ]
    minutes = sum(record.seconds for record in done) / 60.0
    scores = {score.name: Estimate(score.value, score.error) for score in last.scores}
    return _line(f"seed {run.spec().seed}, epoch {last.epoch}", f"{minutes:.1f}", scores)


def _untrained(runs: list[RunDir]) -> list[str]:
    first = [{score.name: score.value for score in measurements(run)[0].scores} for run in runs]
    means = {
        name: Estimate(float(np.mean([scores[name] for scores in first]))) for name in first[0]
    }
    return _line("untrained, mean of them", "0", means)


def _floor(runs: list[RunDir]) -> list[str]:
    last = measurements(runs[0])[-1]
    return _line(
        "real showers among themselves",
        "",
        {score.name: Estimate(score.floor, score.floor_error) for score in last.scores},
    )


def _line(name: str, minutes: str, scores: Scores) -> list[str]:
    by_name = {score.name: score for score in SCORES}
    nothing = Estimate(math.nan)
    values = (scores.get(column, nothing) for column in COLUMNS)
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
    for _ in range(REAL // AT_ONCE):
        energies, angles = (
            random.uniform(*ENERGIES_GEV, AT_ONCE),
            np.radians(random.uniform(*ANGLES, AT_ONCE)),
        )
        yield simulate(energies, angles, random, TINY), energies, angles


if __name__ == "__main__":
    main()
