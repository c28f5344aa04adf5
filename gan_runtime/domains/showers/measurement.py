"""The work of the job that measures showers: checkpoints of a run are asked with the energies and
angles of held-out rows, and what comes is compared with these rows. One answer for each checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import Fields
from gan_runtime.data.contract import DataSet
from gan_runtime.domains.showers import calochallenge
from gan_runtime.domains.showers.cells import values_of
from gan_runtime.domains.showers.curves import ShowerCurve, bounds, curves
from gan_runtime.domains.showers.evaluation import NAME, SUBMISSION_FILE, PhysicsOptions
from gan_runtime.domains.showers.fields import ANGLE, BELIEF, ENERGY, ENERGY_SCALE, SHOWERS
from gan_runtime.domains.showers.network_probes import Reading
from gan_runtime.domains.showers.pictures import cells_in_gev
from gan_runtime.domains.showers.score_metrics import MEASURED, Value
from gan_runtime.domains.showers.scores import ShowerSample, binned, compared, sample, with_reading
from gan_runtime.engines.inputs import host_values
from gan_runtime.evaluation.work import Evaluated, Subject
from gan_runtime.records.answer import Answer, ArrayFile, Curve, Score, Series
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import steps_per_epoch

MOST_STATES = 12
FEWEST_REAL = (
    20  # classifiers are tried five times on a fifth of the showers, with some of these put aside
)
MOST_CELLS = 1_500  # of a shower that is kept to be looked at; a real one of 100 GeV hits about 800
FAINTEST_GEV = 1e-5
DIGITS, DIGITS_OF_ERRORS = 5, 3
Told = Callable[[str], None]


@dataclass(frozen=True)
class ShowerState:
    """Weights of a run: after which step and epoch, what they are called, and the arrays."""

    epoch: int
    step: int
    name: str
    arrays: dict[str, NDArray[Any]]


def measure(subject: Subject) -> Evaluated:
    """An answer for each checkpoint that is measured. The result has their epochs.

    Raises:
        CheckpointError, DatasetError, SpecError: see `trained.of_run`.
    """
    options, run = subject.options, subject.run
    subject.progress(0, 1, "building the networks")
    from gan_runtime.domains.showers.network_probes import milliseconds_each, reading
    from gan_runtime.training import trained

    networks = trained.of_run(
        run, subject.home, "best" if options.checkpoint == "best" else "newest"
    )
    states = list(_states(run, networks, options))
    stages = len(states) + 2
    subject.progress(1, stages, "measuring real showers")
    real, others = _real(networks.data, options.showers)
    floor = compared(real, others)
    times = {
        "ms_single": Value(milliseconds_each(networks, 1)),
        "ms_batch": Value(milliseconds_each(networks, 100)),
    }
    read = reading(networks.workload, networks.spec.of_workload, networks.data.fields)
    answers = []
    for number, state in enumerate(states, 2):
        told = partial(_tell, subject, number, stages, state)
        told("generating showers")
        networks.engine.load(state.arrays)
        made = _generated(networks, options, real)
        scores = compared(real, made, told) | times
        told("asking the judging network")
        of_real, of_made = (_judged(side, state, read) for side in (real, made))
        answers.append(answer_of(state, of_real, of_made, scores, floor, networks.data.fields))
    if options.submission == "yes":
        calochallenge.write_submission(
            subject.results / SUBMISSION_FILE, [(made.cells_gev, made.features.energy_gev)]
        )
    epochs = [state.epoch for state in states]
    result = {"epochs": epochs, "warnings": list(networks.checkpoint.warnings)}
    return Evaluated(answers, result)


def _tell(subject: Subject, number: int, stages: int, state: ShowerState, sentence: str) -> None:
    subject.progress(number, stages, f"epoch {state.epoch}: {sentence}")


def _states(run: RunDir, networks: Any, options: PhysicsOptions) -> Iterator[ShowerState]:
    """What is to be measured, the earliest first."""
    from gan_runtime.training import snapshots

    checkpoint = networks.checkpoint
    per_epoch = steps_per_epoch(run)
    kept = snapshots.epochs(run.snapshots) if options.checkpoint == "every" else []
    places = np.unique(
        np.linspace(0, max(0, len(kept) - 1), min(MOST_STATES, len(kept))).astype(int)
    )
    for epoch in [kept[place] for place in places]:
        arrays = {**checkpoint.arrays, **snapshots.load_one(run.snapshots, epoch)}
        yield ShowerState(epoch, epoch * per_epoch, f"epoch {epoch}", arrays)
    newest = round(checkpoint.step / per_epoch)
    if newest not in kept:
        name = "newest" if options.checkpoint == "every" else options.checkpoint
        yield ShowerState(newest, checkpoint.step, name, checkpoint.arrays)


def _real(data: DataSet, count: int) -> tuple[ShowerSample, ShowerSample]:
    """Held-out showers, and as many that the run was trained on: how far two real samples are
    apart.

    Raises:
        DatasetError: too few of either, or of both together where none are held out.
    """
    rows = min(count, data.held_out, data.rows) if data.held_out else min(count, data.rows // 2)
    if rows < FEWEST_REAL:
        raise DatasetError(
            f"data set {data.name} has {data.rows:,} showers to train on and {data.held_out:,} held"
            f" out, but scores need at least {FEWEST_REAL} of each, or {2 * FEWEST_REAL} with none"
            " held out: prepare more."
        )
    held_out = data.read_held_out(rows)
    begin = 0 if data.held_out else rows  # without held-out rows the first ones are taken for them
    others = data.read(np.arange(begin, begin + rows))
    return _of_rows(held_out, data.fields), _of_rows(others, data.fields)


def _of_rows(stored: dict[str, NDArray[Any]], fields: Fields) -> ShowerSample:
    return of_values(host_values(stored, fields), fields)


def of_values(values: dict[str, NDArray[Any]], fields: Fields) -> ShowerSample:
    """Measured, from values by field as networks see them."""
    angle = values[ANGLE].astype(np.float64) if ANGLE in values else None
    return sample(
        cells_in_gev(values[SHOWERS]), _gev(values[ENERGY]), angle, fields[SHOWERS].periodic
    )


def _gev(energy: NDArray[Any]) -> NDArray[np.float64]:
    return energy.astype(np.float64) / ENERGY_SCALE


def _generated(networks: Any, options: PhysicsOptions, real: ShowerSample) -> ShowerSample:
    """As many as there are real ones, each asked for with the energy and the angle of the
    real one in its place.
    """
    shown = networks.generated(len(real), options.seed)
    angle = None if np.isnan(real.asked_angle).any() else real.asked_angle
    periodic = networks.data.fields[SHOWERS].periodic
    return sample(cells_in_gev(shown[SHOWERS]), real.features.energy_gev, angle, periodic)


def _judged(showers: ShowerSample, state: ShowerState, read: Reading | None) -> ShowerSample:
    """With what the judging network of this state reads; as they are where none can be asked."""
    if read is None:
        return showers
    found = read(state.arrays, {SHOWERS: values_of(showers.cells_gev)[..., np.newaxis]})
    return with_reading(showers, found[BELIEF].astype(np.float64), _gev(found[ENERGY]))


def answer_of(
    state: ShowerState,
    real: ShowerSample,
    made: ShowerSample,
    found: dict[str, Value],
    floor: dict[str, Value],
    fields: Fields,
) -> Answer:
    """The answer about one checkpoint: scores and their floor, curves, and a few showers."""
    none = Value(math.nan)
    return Answer(
        evaluation=NAME,
        key=f"epoch {state.epoch}",
        epoch=state.epoch,
        step=state.step,
        checkpoint=state.name,
        facts={
            "showers": len(real),
            "grid": list(real.cells_gev.shape[1:]),
            "periodic": list(fields[SHOWERS].periodic),
        },
        metric_prefix=f"{MEASURED}_",
        scores=[
            Score(
                name=name,
                value=value.value,
                error=value.error,
                floor=floor.get(name, none).value,
                floor_error=floor.get(name, none).error,
                samples=len(real),
            )
            for name, value in found.items()
        ],
        curves=[stored_curve(curve, *bounds(real)) for curve in curves(real, made)],
        arrays=list(_pictures(real, made)),
    )


def stored_curve(
    curve: ShowerCurve, energy: NDArray[np.float64], angle: NDArray[np.float64]
) -> Curve:
    """As it is in an answer. `energy`, `angle`: the edges of the bins that it may be of."""
    bins = {"energy": _range(energy, curve.bins[0]), "angle": _range(angle, curve.bins[1])}
    sides = (
        ("real", curve.real, curve.real_error),
        ("generated", curve.generated, curve.generated_error),
    )
    return Curve(
        name=curve.name,
        x=_rounded(curve.x),
        y=_rounded(curve.y),
        series=[
            Series(name=side, values=_rounded(values), error=_rounded(errors, DIGITS_OF_ERRORS))
            for side, values, errors in sides
        ],
        facts={name: limits for name, limits in bins.items() if limits is not None},
    )


def _range(edges: NDArray[np.float64], number: int) -> list[float] | None:
    return None if number < 0 else [float(edges[number]), float(edges[number + 1])]


def _rounded(numbers: NDArray[np.floating], digits: int = DIGITS) -> list[float]:
    return [float(f"{number:.{digits}g}") for number in numbers.tolist()]


def _pictures(real: ShowerSample, made: ShowerSample) -> Iterator[ArrayFile]:
    """A real and a generated shower in the middle of each bin of energy and angle."""
    for pair, row in enumerate(_middles(real)):
        yield from pictures_of(pair, row, real, made)


def pictures_of(pair: int, row: int, real: ShowerSample, made: ShowerSample) -> Iterator[ArrayFile]:
    """The real and the generated shower in one place of their samples, as their brightest cells in
    MeV.

    Both of a pair were asked for with the same energy and angle. The fact `share` is how much of a
    shower's energy its cells hold.
    """
    angle = None if np.isnan(real.asked_angle[row]) else float(real.asked_angle[row])
    for side, showers in (("real", real), ("generated", made)):
        cells = showers.cells_gev[row].reshape(-1)
        brightest = np.argsort(cells)[::-1][:MOST_CELLS]
        brightest = np.sort(brightest[cells[brightest] > FAINTEST_GEV])
        total = float(cells.sum())
        yield ArrayFile(
            name=side,
            places=brightest.tolist(),
            values=_rounded(cells[brightest] * 1e3),
            facts={
                "pair": pair,
                "energy_gev": float(real.features.energy_gev[row]),
                "angle": angle,
                "share": float(cells[brightest].sum()) / total if total else 1.0,
            },
        )


def _middles(real: ShowerSample) -> list[int]:
    """Rows: of each bin of energy and angle the shower that is nearest to the middle of both."""
    energies, angles = bounds(real)
    by_angle = binned(real.asked_angle, angles) if len(angles) else [np.arange(len(real))]
    found = []
    for place, one in enumerate(binned(real.features.energy_gev, energies)):
        for other_place, two in enumerate(by_angle):
            rows = np.intersect1d(one, two)
            if len(rows):
                away = _away(real.features.energy_gev[rows], energies, place)
                away += _away(real.asked_angle[rows], angles, other_place) if len(angles) else 0.0
                found.append(int(rows[away.argmin()]))
    return found


def _away(
    numbers: NDArray[np.float64], edges: NDArray[np.float64], place: int
) -> NDArray[np.float64]:
    """From the middle of a bin, in widths of it."""
    if len(edges) < 2:
        return np.zeros(len(numbers))
    low, high = edges[place], edges[place + 1]
    return np.abs(numbers - (low + high) / 2.0) / max(high - low, 1e-9)
