"""The job that feeds a model with its own images: requests, records, and refused options."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from gan_runtime.base.errors import CheckpointError, DatasetError, SpecError
from gan_runtime.cli import following
from gan_runtime.cli.app import app
from gan_runtime.commands import Commands
from gan_runtime.domains.flows import evaluation, lattice, rollout
from gan_runtime.domains.flows import lattice as of_flow
from gan_runtime.domains.flows.evaluation import USUAL_STEPS, RolloutOptions, usual_steps
from gan_runtime.domains.flows.fields import DIAMETER
from gan_runtime.domains.flows.films import Film
from gan_runtime.domains.flows.rollout import RolloutCase, RolloutModel
from gan_runtime.domains.flows.score_metrics import SCORES
from gan_runtime.engines.tiles import COMPILE, EXECUTE, STAGES, Stopwatch
from gan_runtime.evaluation.jobs import evaluate
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir
from gan_runtime.jobs.process import Cancelled
from gan_runtime.records import image_files, journal
from gan_runtime.records.answer import Answer
from gan_runtime.records.home import Home
from gan_runtime.records.journal import AttemptPlan
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints, inference
from gan_runtime.training.checkpoints import Checkpoint
from tests.support import measured_flows, stored_films
from tests.support.asking import ask
from tests.support.flow_jobs import done, task_of

NewRun = Callable[..., RunDir]
TILE = 16


@dataclass
class Toy:
    """Replaces a trained network. `fade`: the factor applied to each frame."""

    tile: int = TILE
    fade: float = 1.0


class MovedByAPixel:
    """Replaces an engine's program: moves every tile by one pixel downstream, as the flow does.
    Pixels that leave at one end enter at the other.
    """

    def __init__(self, toy: Toy, cores: int, tiles: tuple[int, ...], stopwatch: Stopwatch) -> None:
        self._toy, self._rows, self._watch = toy, cores * tiles[0] * tiles[1], stopwatch
        with stopwatch.of(COMPILE):
            pass

    def __call__(self, tiles: np.ndarray, rounds: np.ndarray) -> np.ndarray:
        assert len(tiles) == self._rows
        assert rounds.max() >= 1
        with self._watch.of(EXECUTE):
            channels = min(3, tiles.shape[-1])
            return self._toy.fade * np.roll(tiles[..., :channels], 1, axis=2)


@pytest.fixture
def toy(home: Home, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """Replaces a run's network in the job, and stores the data set `street`."""
    stored_films.stored_flows(home)
    generator = Toy()

    def model_of(*_: Any) -> RolloutModel:
        checkpoint = Checkpoint({}, 20, 1.0, Path("step-20"))
        return RolloutModel(RunSpec(), checkpoint, generator, MovedByAPixel)  # type: ignore[arg-type]

    monkeypatch.setattr(rollout, "model_of", model_of)
    return generator


@pytest.fixture
def run(new_run: NewRun) -> RunDir:
    """A run of ten steps per epoch on `street`."""
    run_folder = new_run("quick-0001", dataset="street")
    journal.append(
        run_folder.trainer_journal(), 1, AttemptPlan(images=3, steps_per_epoch=10, epochs=2)
    )
    return run_folder


def single(answer: Answer, name: str) -> tuple[float, float]:
    score = next(score for score in answer.scores if score.name == name)
    return score.value, score.baselines.get("reference", math.nan)


def lines(answer: Answer, name: str) -> dict[str, list[float]]:
    """The values of each series of a curve, by series name."""
    curve = next(curve for curve in answer.curves if curve.name == name)
    return {line.name: line.values for line in curve.series}


@pytest.mark.usefixtures("toy")
def test_perfect_model_has_no_error_whole_but_seams_in_tiles(home: Home, run: RunDir) -> None:
    """36 steps are three periods of the waves."""
    whole, tiled = done(home, run, steps=36, ways=("whole", "map_reduce"), start=2)
    assert (whole.facts["way"], tiled.facts["way"]) == (
        "whole",
        "map_reduce",
    ), "in the requested order"
    assert single(whole, "rmse")[0] == 0.0
    assert single(whole, "rmse")[1] > 0.1, "a copied frame is wrong"
    assert single(whole, "ssim")[0] == pytest.approx(1.0)
    assert single(whole, "horizon")[0] == 36
    assert single(whole, "strouhal") == pytest.approx((10.0 / (0.1 * 24 * 12),) * 2, rel=0.01)
    # The true value comes from the whole film, the predicted one from these steps. Each is accurate
    # to half a percent.
    assert single(whole, "strouhal_error")[0] == pytest.approx(0.0, abs=0.01)
    assert single(whole, "period")[1] == pytest.approx(12.0, rel=0.01)
    assert single(whole, "rmse_period") == pytest.approx((0.0, single(whole, "rmse")[1]), rel=0.05)
    assert single(tiled, "ssim_period")[0] < 1.0
    assert single(whole, "enstrophy_ratio")[0] == pytest.approx(1.0)
    assert single(whole, "seam_ratio")[0] == pytest.approx(single(whole, "seam_ratio")[1])
    assert single(tiled, "rmse")[0] > 0.05
    assert single(tiled, "seam_ratio")[0] > 1.2 * single(tiled, "seam_ratio")[1]
    assert (
        whole.facts["tiles"],
        whole.facts["tile"],
        tiled.facts["tiles"],
        tiled.facts["tile"],
    ) == (
        1,
        [32, 48],
        6,
        [16, 16],
    )


@pytest.mark.usefixtures("toy")
def test_record_contains_the_request_and_the_measurement(home: Home, run: RunDir) -> None:
    (record,) = done(home, run, steps=5, cores=4, trajectory=1, start=1, overlap=4, blend="hann")
    assert (record.epoch, record.step, record.checkpoint, record.facts["iteration"]) == (
        2,
        20,
        "newest",
        "iterate-0001",
    )
    assert (
        record.facts["reynolds"],
        record.facts["solver_steps"],
        record.facts["start"],
        record.facts["steps"],
    ) == (200.0, 24, 1, 5)
    assert not record.facts["is_usual"]
    assert (
        record.facts["cores"],
        record.facts["overlap"],
        record.facts["blend"],
        record.facts["grid"],
    ) == (
        4,
        4,
        "hann",
        [32, 48, 3],
    )
    assert {score.name for score in record.scores} == {score.name for score in SCORES} - {"probe"}
    by_step = {score.name for score in SCORES if score.by_step}
    assert {curve.name for curve in record.curves} == {*by_step, "stages"}
    stages = next(curve for curve in record.curves if curve.name == "stages")
    assert stages.facts["names"] == list(STAGES)
    times = zip(STAGES, lines(record, "stages")["times"], strict=True)
    assert {count for name, count in times if name not in ("trace", "compile")} == {5}
    assert single(record, "ms_frame")[1] > 0.0, "next to the time of the solver"
    assert math.isnan(single(record, "strouhal_error")[0]), "five frames tell no frequency"
    assert math.isnan(single(record, "rmse_period")[0]), "and are less than a period"


@pytest.mark.usefixtures("toy")
def test_record_marks_the_usual_rollout(home: Home, run: RunDir) -> None:
    (record,) = done(home, run, steps=40, ways=("whole",))
    assert record.facts["is_usual"]
    assert record.checkpoint == "newest"
    chosen_epoch = done(home, run, steps=40, ways=("whole",), epoch=1)[-1]
    assert chosen_epoch.checkpoint == "epoch 1"
    assert not chosen_epoch.facts["is_usual"], "a chosen epoch is no score of the run"


@pytest.mark.usefixtures("toy")
def test_stored_frames_start_at_the_truth_with_the_obstacle(home: Home, run: RunDir) -> None:
    naive, grouped = done(home, run, steps=3, ways=("naive", "map_reduce"), cores=3)
    films = [image_files.read_film(run, record.arrays[0].file) for record in (naive, grouped)]
    np.testing.assert_array_equal(films[0].predicted, films[1].predicted)
    film = films[0]
    assert film.steps.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(
        film.truth, [stored_films.frame(step, 120.0) for step in range(4)]
    )
    np.testing.assert_array_equal(film.predicted[0], film.truth[0])
    np.testing.assert_array_equal(film.mask, stored_films.obstacle())
    assert (naive.facts["cores"], grouped.facts["cores"]) == (1, 3)


@pytest.mark.parametrize("shape", ["circle", "square"])
def test_solver_is_timed_with_the_obstacle_of_the_flow(shape: lattice.Shape) -> None:
    """Half-size frames give the obstacle to the nearest two cells."""
    cells = lattice.OBSTACLES[shape]()
    fine, coarse = cells[..., np.newaxis].astype(np.float32), np.zeros((40, 96, 1), np.float32)
    coarse[..., 0] = of_flow.halved(fine)[..., 0] >= 0.5
    of_cells, of_fours = given_past(fine), given_past(coarse)
    solver = rollout.solver_of(of_cells)
    assert solver is not None
    np.testing.assert_array_equal(solver.obstacle, cells)
    assert of_fours.obstacle.shape == cells.shape
    assert of_fours.obstacle.sum() == pytest.approx(cells.sum(), rel=0.5)
    assert not (of_fours.obstacle & ~square_around(cells, 1)).any()
    assert rollout.solver_seconds(of_cells) > 0.0
    assert rollout.solver_seconds(of_fours) > 0.0


def test_solver_is_timed_at_the_viscosity_of_a_wider_obstacle() -> None:
    cells = lattice.square(diameter=16.0)
    solver = rollout.solver_of(given_past(cells[..., np.newaxis].astype(np.float32), width=16.0))
    assert solver is not None
    wide, usual = (lattice.Lattice(120.0, cells, diameter=diameter) for diameter in (16.0, 10.0))
    for flow in (solver, wide, usual):
        flow.advance(24)
    np.testing.assert_array_equal(of_flow.of(solver), of_flow.of(wide))
    assert not np.array_equal(of_flow.of(solver), of_flow.of(usual))


def given_past(mask: np.ndarray, width: float = DIAMETER) -> RolloutCase:
    """Two frames at rest. `mask`: (height, width, 1) float32; `width`: of the obstacle."""
    source = np.pad(mask, [(0, 0), (0, 0), (3, 0)])
    truth = np.zeros((3, *mask.shape[:2], 3), np.float32)
    return RolloutCase(Film(0, 0, 2, 120.0, 24, width), source, truth, 24.0)


def square_around(cells: np.ndarray, more: int) -> np.ndarray:
    """True in the bounding box of the cells, extended by `more` cells on all sides."""
    around = np.zeros_like(cells)
    rows, columns = (np.flatnonzero(cells.any(axis=axis)) for axis in (1, 0))
    around[rows[0] - more : rows[-1] + more + 1, columns[0] - more : columns[-1] + more + 1] = True
    return around


def test_rollout_feeds_frames_back_and_keeps_extra_channels() -> None:
    sources: list[np.ndarray] = []

    def doubled(source: np.ndarray) -> np.ndarray:
        sources.append(source)
        return 2.0 * source[..., :2]

    first_frame = np.full((1, 1, 3), 1.0, np.float32)
    frames = rollout.rolled_out(doubled, first_frame, 3, lambda _: None)
    assert frames[:, 0, 0, 0].tolist() == [1.0, 2.0, 4.0, 8.0]
    assert [source[0, 0].tolist() for source in sources] == [
        [1.0, 1.0, 1.0],
        [2.0, 2.0, 1.0],
        [4.0, 4.0, 1.0],
    ]


def test_enstrophy_ratio_reveals_a_fading_flow(home: Home, run: RunDir, toy: Toy) -> None:
    toy.fade = 0.5
    (record,) = done(home, run, steps=2, ways=("whole",))
    ratio = lines(record, "enstrophy_ratio")
    assert ratio["prediction"] == pytest.approx([0.25, 0.0625], rel=1e-3)
    assert ratio["persistence"] == pytest.approx([1.0, 1.0], rel=0.1)


def test_image_pairs_are_rolled_out_for_one_step(home: Home, new_run: NewRun, toy: Toy) -> None:
    stored_films.stored_pairs(home)
    run, toy.fade = new_run("quick-0001", dataset="edges"), -1.0
    (record,) = done(home, run, steps=1, trajectory=1, ways=("whole",))
    assert (record.facts["reynolds"], record.facts["grid"]) == (None, [16, 16, 1])
    assert {score.name for score in record.scores} == {
        *(
            "mae",
            "rmse",
            "psnr",
            "ssim",
            "spectrum",
            "seam_ratio",
            "horizon",
            "horizon_replay",
            "ms_frame",
        )
    }
    assert math.isnan(single(record, "ms_frame")[1]), "no solver makes these"
    film = image_files.read_film(run, record.arrays[0].file)
    assert film.mask.shape == (16, 16, 0)
    np.testing.assert_allclose(film.truth[1], -film.truth[0], atol=1e-3)


@pytest.mark.usefixtures("toy")
def test_failed_or_cancelled_rollout_leaves_no_records_or_frames(
    home: Home, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(journal, "append", refuse)
        with pytest.raises(OSError, match="No space"):
            done(home, run, steps=2, ways=("naive", "whole"))
    assert list(run.films.iterdir()) == []
    assert not run.evaluations_journal.exists()
    task = task_of(home, steps=2)
    JobDir(home.jobs / "iterate-0002").request_stop("a test")
    with pytest.raises(Cancelled):
        evaluate(task)
    assert list(run.films.iterdir()) == []


@pytest.mark.usefixtures("toy")
def test_overlap_as_large_as_a_tile_is_refused(home: Home, run: RunDir) -> None:
    with pytest.raises(SpecError, match="overlap is 16, but allowed is 0 to 15"):
        done(home, run, steps=1, overlap=16)


def test_torn_or_float16_overflowing_weights_are_refused(home: Home, run: RunDir) -> None:
    stored_films.stored_flows(home)
    checkpoints.save(
        run.checkpoints, {"net/weight": np.zeros(1, np.float32)}, 20, wall_s=1.0, retained=1
    )
    with np.errstate(over="ignore"):
        checkpoints.save_snapshot(run.snapshots, {"net/weight": np.full(3, 1e5, np.float32)}, 1)
    with pytest.raises(
        CheckpointError, match="weights of epoch 1 are unusable: net/weight exceeds float16"
    ):
        done(home, run, steps=1, epoch=1)
    (run.snapshots / "epoch-00001.safetensors").write_bytes(b"torn")
    with pytest.raises(
        CheckpointError, match=r"epoch-00001.safetensors cannot be read .*another epoch"
    ):
        done(home, run, steps=1, epoch=1)
    assert not run.evaluations_journal.exists()


# ---- requests and commands -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps is 0, but allowed is a whole number from 1 to 10000"),
        ({"cores": 9}, "cores is 9, but allowed is a whole number from 1 to 8"),
        ({"overlap": -1}, "overlap is -1, but allowed is a whole number from 0 to 512"),
        ({"start": -1}, r"First frame \(start\) is -1"),
        (
            {"ways": ()},
            r"ways is \(\), but allowed is one or more of naive, map_reduce, whole, each once",
        ),
        ({"ways": ("whole", "whole")}, "ways is .*each once"),
        ({"blend": "sharp"}, "blend is 'sharp', but allowed is none, hann"),
    ],
)
def test_invalid_options_are_refused(
    home: Home, new_run: NewRun, options: dict[str, Any], message: str
) -> None:
    new_run("quick-0001")
    with pytest.raises(SpecError, match=message):
        ask(home).evaluate("quick-0001", "rollout", options)
    assert not home.jobs.exists()


def test_run_that_is_not_image_to_image_is_refused(home: Home, new_run: NewRun) -> None:
    new_run("quick-0001")
    with pytest.raises(
        DatasetError,
        match=r"This run is not an image-to-image model: its data set has no source and target",
    ):
        ask(home).evaluate("quick-0001", "rollout", {"steps": 100})


def test_overlap_as_large_as_the_tiles_is_refused_before_a_job(home: Home, new_run: NewRun) -> None:
    stored_films.stored_flows(home)
    run = new_run("quick-0001", workload="pix2pix", dataset="street", **{"pix2pix.tile": 16})
    with pytest.raises(CheckpointError, match="no checkpoint"):
        ask(home).evaluate("quick-0001", "rollout", {"steps": 5, "overlap": 15})
    checkpoints.save(run.checkpoints, {"a": np.zeros(1, np.float32)}, 10, wall_s=1.0, retained=1)
    with pytest.raises(
        SpecError, match="overlap is 16, but allowed is 0 to 15: the tiles of run quick-0001"
    ):
        ask(home).evaluate("quick-0001", "rollout", {"steps": 5, "overlap": 16})
    assert not home.jobs.exists()


def test_epoch_without_weights_is_refused_with_the_stored_epochs(
    home: Home, new_run: NewRun
) -> None:
    stored_films.stored_flows(home)
    options = {"workload": "pix2pix", "dataset": "street", "pix2pix.tile": 16}
    run, averaged = (
        new_run("quick-0001", **options),
        new_run("ema-0001", **options, samples_from="ema", ema_decay=0.9),
    )

    def rollout(run: RunDir, **options: Any) -> None:
        ask(home).evaluate(run.run_id, "rollout", {"steps": 5, **options})

    for each in (run, averaged):
        checkpoints.save(
            each.checkpoints, {"a": np.zeros(1, np.float32)}, 10, wall_s=1.0, retained=1
        )
    assert inference.stored_epochs(run) == []
    with pytest.raises(
        CheckpointError, match="epoch is 3, but run quick-0001 has only the newest checkpoint"
    ):
        rollout(run, epoch=3)
    for epoch in (0, 1, 2, 5):
        for each in (run, averaged):
            checkpoints.save_snapshot(each.snapshots, {"a": np.zeros(1, np.float32)}, epoch)
    assert inference.stored_epochs(run) == [0, 1, 2, 5]
    there = "epoch is 3, but run quick-0001 has the newest checkpoint and epochs 0 to 2 and 5"
    with pytest.raises(CheckpointError, match=there):
        rollout(run, epoch=3)
    checkpoints.save(
        run.checkpoints, {"a": np.zeros(1, np.float32)}, 20, wall_s=1.0, retained=1, shortfall=0.0
    )
    with pytest.raises(
        CheckpointError, match="checkpoint is 'best' and epoch is 2: leave out one of them"
    ):
        rollout(run, checkpoint="best", epoch=2)
    with pytest.raises(CheckpointError, match="run ema-0001 has only the"):
        rollout(averaged, epoch=2)  # samples use the average, which these snapshots lack
    weights = {"a": np.zeros(1, np.float32), "average/a": np.ones(1, np.float32)}
    checkpoints.save_snapshot(averaged.snapshots, weights, 7, averages=True)
    assert inference.stored_epochs(averaged) == [7]
    assert not home.jobs.exists()


@pytest.mark.usefixtures("toy")
def test_mismatched_channels_are_refused_by_request_and_by_job(home: Home, new_run: NewRun) -> None:
    stored_films.stored_pairs(home, target_channels=3)
    run = new_run("quick-0001", workload="pix2pix", dataset="edges", **{"pix2pix.tile": 16})
    checkpoints.save(run.checkpoints, {"a": np.zeros(1, np.float32)}, 10, wall_s=1.0, retained=1)
    refusal = (
        "targets of the data set have 3 channels and its sources 1, so outputs cannot be inputs"
    )
    with pytest.raises(DatasetError, match=refusal):
        ask(home).evaluate("quick-0001", "rollout", {"steps": 1})
    assert not home.jobs.exists()
    with pytest.raises(DatasetError, match=refusal):
        done(home, run, steps=1)


def test_only_runs_with_stored_weights_can_be_rolled_out(
    home: Home, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_films.stored_flows(home)
    requests: list[dict[str, Any]] = []
    run = new_run("quick-0001", workload="pix2pix", dataset="street", **{"pix2pix.tile": 16})
    monkeypatch.setattr(
        job_queue,
        "enqueue",
        lambda _, kind, options, actor: requests.append({"kind": kind, **options, "asker": actor}),
    )
    with pytest.raises(CheckpointError, match="run quick-0001 has no checkpoint to evaluate"):
        ask(home).evaluate("quick-0001", "rollout", {"steps": 100})
    checkpoints.save(run.checkpoints, {"a": np.zeros(1, np.float32)}, 10, wall_s=1.0, retained=1)
    with pytest.raises(
        CheckpointError, match="checkpoint is 'best', but run quick-0001 has newest"
    ):
        ask(home).evaluate("quick-0001", "rollout", {"checkpoint": "best"})
    with pytest.raises(
        DatasetError, match="100 steps from frame 0 on are requested, but Re 120 has 40 in all"
    ):
        ask(home).evaluate("quick-0001", "rollout", {"steps": 100})
    assert requests == []
    ask(home).evaluate("quick-0001", "rollout", {"steps": 40})
    assert [(request["kind"], request["steps"], request["asker"]) for request in requests] == [
        ("rollout", 40, "a test")
    ]
    assert [film.reynolds for film in evaluation.trajectories(home, run)] == [120.0, 200.0]


def test_deleted_data_set_has_no_films(home: Home, run: RunDir) -> None:
    assert evaluation.trajectories(home, run) == []


def test_command_prints_scores_with_persistence_and_stage_times(
    home: Home, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[Mapping[str, Any]] = []

    def evaluate(asked_by: Commands, run_id: str, name: str, options: Mapping[str, Any]) -> JobDir:
        assert (run_id, name) == ("quick-0001", "rollout")
        requests.append(options)
        journal.append(
            run.earlier_journal("flow"),
            1,
            *(measured_flows.iteration(way=way) for way in options["ways"].split(",")),
        )
        return JobDir(home.jobs / f"iterate-0001-{asked_by.actor.name[:1]}")

    monkeypatch.setattr(Commands, "evaluate", evaluate)
    monkeypatch.setattr(
        following, "to_its_end", lambda *_: {"iteration": "iterate-0001", "warnings": []}
    )
    command = [
        *("evaluate", "quick-0001", "rollout", "--home", str(home.path)),
        *("--set", "steps=20", "--set", "ways=map_reduce,naive"),
    ]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert requests == [{"steps": "20", "ways": "map_reduce,naive"}]
    assert "quick-0001 after epoch 1 (best), 20 steps of Re 110, map_reduce" in result.output
    assert "0.3000 (persistence)" in result.output
    assert "0.1500" in result.output, "the replay"
    assert "the frames after the nearest training frame, Re 100 from frame 7." in " ".join(
        result.output.split()
    )
    assert "naive" in result.output
    assert "compile" in result.output
    document = json.loads(CliRunner().invoke(app, [*command, "--json"]).output)
    assert [way["way"] for way in document["ways"]][-2:] == ["map_reduce", "naive"]


def test_command_accepts_an_epoch_of_stored_weights(
    home: Home, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[Mapping[str, Any]] = []

    def evaluate(asked_by: Commands, run_id: str, name: str, options: Mapping[str, Any]) -> JobDir:
        assert (run_id, name) == ("quick-0001", "rollout")
        requests.append(options)
        record = measured_flows.iteration(epoch=1).model_copy(
            update={"checkpoint": RolloutOptions(epoch=int(options["epoch"])).state}
        )
        journal.append(run.earlier_journal("flow"), 1, record)
        return JobDir(home.jobs / f"iterate-0001-{asked_by.actor.name[:1]}")

    monkeypatch.setattr(Commands, "evaluate", evaluate)
    monkeypatch.setattr(
        following, "to_its_end", lambda *_: {"iteration": "iterate-0001", "warnings": []}
    )
    words = ("evaluate", "quick-0001", "rollout", "--set", "epoch=1")
    command = [*words, "--home", str(home.path)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert requests == [{"epoch": "1"}]
    assert "quick-0001 after epoch 1 (stored weights), 20 steps" in result.output


@pytest.mark.parametrize(
    ("options", "steps"),
    [({}, 40), ({"start": 4}, 36), ({"trajectory": 1}, 6)],
)
def test_default_steps_are_limited_by_a_short_film(
    home: Home, run: RunDir, options: dict[str, int], steps: int
) -> None:
    stored_films.stored_flows(home)
    _, step_count = evaluation.film_of(
        evaluation.trajectories(home, run), RolloutOptions(**options)
    )
    assert step_count == steps


def test_usual_rollout_is_the_first_film_from_its_first_frame() -> None:
    assert RolloutOptions().is_usual(247)
    assert RolloutOptions(steps=40).is_usual(40), "all that a shorter film has"
    for other in ({"steps": 99}, {"start": 1}, {"trajectory": 1}, {"epoch": 50}):
        assert not RolloutOptions(**other).is_usual(247), other


def test_usual_steps_are_capped_by_the_available_frames() -> None:
    assert [usual_steps(there) for there in (247, 100, 41, 1, 0, -3)] == [
        USUAL_STEPS,
        100,
        41,
        1,
        1,
        1,
    ]
    assert [RolloutOptions().steps_of(there) for there in (247, 41)] == [USUAL_STEPS, 41]


def test_ways_accept_a_list_or_text() -> None:
    assert RolloutOptions(ways="naive, whole").ways == ("naive", "whole")  # type: ignore[arg-type]
    assert RolloutOptions(ways=["naive", "whole"]).ways == ("naive", "whole")  # type: ignore[arg-type]
