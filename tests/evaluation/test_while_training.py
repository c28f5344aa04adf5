"""Quality measured during training: which runs, which checkpoints, and which becomes the best."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from gan_runtime.base.errors import CheckpointError
from gan_runtime.base.fields import IMAGES, pictures
from gan_runtime.catalog.evaluations import evaluation
from gan_runtime.cli.evaluating import wait_for_the_last_epochs
from gan_runtime.evaluation import jobs, quality, while_training
from gan_runtime.evaluation.catalog import Subject
from gan_runtime.evaluation.mobilenet_file import MOBILENET
from gan_runtime.evaluation.quality import QualityOptions
from gan_runtime.evaluation.quality_measurement import measure
from gan_runtime.evaluation.training_requests import (
    RETRY_SECONDS,
    SWITCH,
    RequestsWhileTraining,
    is_measured_while_training,
)
from gan_runtime.evaluation.while_training import MOST_SHARE, START_S, Pace, age_s
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import End
from gan_runtime.records import journal, processes
from gan_runtime.records.answer import Answer, Score
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir, TrainerProcess
from gan_runtime.training import checkpoints
from tests.support.measured_images import answer

NewRun = Callable[..., RunDir]
# Seconds of training after which the start of a job takes its share of the processor time.
WHEN_START_FITS_S = START_S / (MOST_SHARE * processes.usable_cores()) + 0.1


@pytest.fixture(autouse=True)
def requested(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Options of the jobs that would have started; each also has a job folder."""
    begun: list[dict[str, Any]] = []

    def begin(job: Any) -> None:
        begun.append(job.request().options)

    monkeypatch.delenv(SWITCH)  # tests/conftest.py sets it
    monkeypatch.setattr(job_queue, "start", begin)
    monkeypatch.setattr(while_training, "age_s", lambda _: WHEN_START_FITS_S)
    return begun


@pytest.fixture
def training(new_run: NewRun) -> Iterator[Callable[..., RunDir]]:
    """Creates runs whose trainer is a sleeping process; the module's `end()` ends it."""
    children: list[subprocess.Popen[bytes]] = []

    def make(run_id: str = "quick-0001", **options: Any) -> RunDir:
        run = new_run(run_id, **options)
        children.append(subprocess.Popen(["sleep", "60"]))
        begin(run, children[-1].pid)
        return run

    yield make
    for child in children:
        child.kill()
        child.wait()


def begin(run: RunDir, pid: int) -> None:
    run.write_process(TrainerProcess.of(pid, attempt=1))
    running = StatusChange(status="running", reason="training")
    journal.append(run.trainer_journal(), 1, running)


def end(run: RunDir) -> None:
    process = run.process()
    assert process is not None
    os.kill(process.pid, 9)
    os.waitpid(process.pid, 0)


def saved(run: RunDir, *steps: int, retained: int = 3) -> None:
    for step in steps:
        arrays = {"weight": np.full(2, step, np.float32)}
        checkpoints.save(run.checkpoints, arrays, step, wall_s=0.1 * step, retained=retained)


def test_environment_variable_turns_off_measuring(
    home: Home,
    training: Callable[..., RunDir],
    requested: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = training()
    saved(run, 10)
    monkeypatch.setenv(SWITCH, "off")
    RequestsWhileTraining(home).tick([(run, 1)])
    assert requested == []


# ---- user evaluations ----------------------------------------------------------------------------


def test_evaluate_waits_for_the_job_of_an_ended_run_only(
    home: Home, training: Callable[..., RunDir]
) -> None:
    run = training()
    saved(run, 10)
    RequestsWhileTraining(home).tick([(run, 1)])
    [job] = job_queue.job_dirs(home)
    wait_for_the_last_epochs(home, run, evaluation("quality"))
    assert jobs.newest_request(home, run.run_id, "quality").is_live, "the run trains: no waiting"

    journal.append(run.trainer_journal(), 1, StatusChange(status="finished", reason="all_epochs"))
    threading.Timer(0.3, job.write_end, [End(state="finished", reason="done")]).start()
    wait_for_the_last_epochs(home, run, evaluation("quality"))
    assert not jobs.newest_request(home, run.run_id, "quality").is_live


# ---- eligible runs -------------------------------------------------------------------------------


def test_running_run_is_measured_once_it_has_a_checkpoint(
    home: Home, training: Callable[..., RunDir], requested: list[dict[str, Any]]
) -> None:
    run = training(quality_every=3)
    requests = RequestsWhileTraining(home)
    requests.tick([(run, 1)])
    assert requested == [], "there is nothing to measure yet"
    saved(run, 10)
    for _ in range(3):
        requests.tick([(run, 1)])
    [options] = requested
    assert (options["run_id"], options["features"], options["while_training"]) == (
        "quick-0001",
        "classifier",
        3,
    )
    RequestsWhileTraining(home).tick([(run, 1)])
    assert len(requested) == 1, "the next owner finds the request of the one before"
    job_queue.cancel(job_queue.job_dirs(home)[0], "a test")
    requests.tick([(run, 2)])
    assert len(requested) == 1, "its trainer is as old as before"


@pytest.mark.parametrize(
    "options",
    [
        {"quality_every": 0},
        {"quality_every": 6, "epochs": 5},
        {"workload": "shower_3dgan", "dataset": "showers"},
    ],
    ids=["disabled", "shorter than the cadence", "no images"],
)
def test_ineligible_runs_are_not_measured(
    home: Home,
    training: Callable[..., RunDir],
    requested: list[dict[str, Any]],
    options: dict[str, Any],
) -> None:
    run = training(**options)
    saved(run, 10)
    RequestsWhileTraining(home).tick([(run, 1)])
    assert requested == []
    assert not home.jobs.exists()
    assert not is_measured_while_training(home, run)


@pytest.fixture
def unlabeled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Images lose their labels; returns where Keras' cache would have MobileNetV2."""
    fields = {IMAGES: pictures(28, 28, 1)}
    monkeypatch.setattr(quality.loading, "fields_of", lambda *_: fields)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    return tmp_path / "keras" / "models" / MOBILENET


def downloaded(weights: Path) -> None:
    weights.parent.mkdir(parents=True)
    weights.touch()


def test_unlabeled_images_are_measured_with_the_network_that_is_here(
    home: Home,
    training: Callable[..., RunDir],
    requested: list[dict[str, Any]],
    unlabeled: Path,
) -> None:
    downloaded(unlabeled)
    run, requests = training(), RequestsWhileTraining(home)
    assert is_measured_while_training(home, run)
    saved(run, 10)
    for _ in range(2):
        requests.tick([(run, 1)])
    assert [(options["features"], options["checkpoint"]) for options in requested] == [
        ("imagenet", "newest")
    ]
    RequestsWhileTraining(home).tick([(run, 1)])
    assert len(requested) == 1, "the next owner finds the request of the one before"
    job_queue.cancel(job_queue.job_dirs(home)[0], "a test")
    assert not is_measured_while_training(home, run)


def test_unlabeled_images_start_no_download(
    home: Home,
    training: Callable[..., RunDir],
    requested: list[dict[str, Any]],
    unlabeled: Path,
) -> None:
    """Once a user has started it, the run is measured while it trains on."""
    run, now_s = training(), [0.0]
    saved(run, 10)
    requests = RequestsWhileTraining(home, clock=lambda: now_s[0])
    requests.tick([(run, 1)])
    assert (requested, is_measured_while_training(home, run)) == ([], False)
    downloaded(unlabeled)
    requests.tick([(run, 1)])
    assert requested == [], "it is not asked for in each tick"
    now_s[0] = RETRY_SECONDS
    requests.tick([(run, 1)])
    assert [options["features"] for options in requested] == ["imagenet"]


def test_ended_run_is_not_measured_by_a_later_download(
    home: Home,
    training: Callable[..., RunDir],
    requested: list[dict[str, Any]],
    unlabeled: Path,
) -> None:
    run, now_s = training(), [0.0]
    saved(run, 10)
    requests = RequestsWhileTraining(home, clock=lambda: now_s[0])
    requests.expect([(run, 1)])
    requests.tick([])
    downloaded(unlabeled)
    now_s[0] = RETRY_SECONDS
    requests.tick([])
    assert requested == []


def test_request_waits_until_the_start_of_its_job_takes_three_percent(
    home: Home,
    training: Callable[..., RunDir],
    requested: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, requests = training(), RequestsWhileTraining(home)
    saved(run, 10)
    monkeypatch.setattr(while_training, "age_s", lambda _: WHEN_START_FITS_S - 0.2)
    requests.tick([(run, 1)])
    assert requested == []
    monkeypatch.setattr(while_training, "age_s", lambda _: WHEN_START_FITS_S)
    requests.tick([(run, 1)])
    assert len(requested) == 1


def test_run_that_ends_before_its_first_request_is_measured_at_its_end(
    home: Home,
    training: Callable[..., RunDir],
    requested: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(while_training, "age_s", lambda _: 1.0)
    run, requests = training(), RequestsWhileTraining(home)
    saved(run, 10)
    requests.tick([(run, 1)])
    assert requested == []
    for _ in range(2):
        requests.tick([])
        assert len(requested) == 1


def test_new_owner_measures_a_run_that_ended_without_owner(
    home: Home, training: Callable[..., RunDir], requested: list[dict[str, Any]]
) -> None:
    run, requests = training(), RequestsWhileTraining(home)
    saved(run, 10)
    requests.expect([(run, 1)])  # by the database, before the new owner reads the journals
    requests.tick([])
    assert len(requested) == 1
    later = RequestsWhileTraining(home)
    later.expect([(run, 1)])
    later.tick([])
    assert len(requested) == 1, "the owner before has requested it"


def test_run_that_ends_without_a_checkpoint_is_not_measured(
    home: Home, training: Callable[..., RunDir], requested: list[dict[str, Any]]
) -> None:
    run, requests = training(), RequestsWhileTraining(home)
    requests.tick([(run, 1)])
    requests.tick([])
    saved(run, 10)
    requests.tick([])
    assert requested == []


@pytest.mark.parametrize("has_ended", [False, True], ids=["training", "ended"])
def test_request_waits_while_a_user_measures_the_run(
    home: Home,
    training: Callable[..., RunDir],
    requested: list[dict[str, Any]],
    has_ended: bool,
) -> None:
    run, now_s = training(), [0.0]
    saved(run, 10)
    of_user = jobs.request(home, run.run_id, "quality", {}, "a test")
    requests = RequestsWhileTraining(home, clock=lambda: now_s[0])
    requests.expect([(run, 1)])
    running = [] if has_ended else [(run, 1)]
    requests.tick(running)
    of_user.write_end(End(state="finished", reason="done"))
    requests.tick(running)
    assert len(requested) == 1, "it is not asked for in each tick"
    now_s[0] = RETRY_SECONDS
    requests.tick(running)
    assert [options["while_training"] for options in requested] == [0, 5]


def test_quality_is_expected_until_the_job_of_the_attempt_ends(
    home: Home, training: Callable[..., RunDir]
) -> None:
    run = training()
    assert is_measured_while_training(home, run)
    saved(run, 10)
    RequestsWhileTraining(home).tick([(run, 1)])
    assert is_measured_while_training(home, run)
    job_queue.cancel(job_queue.job_dirs(home)[0], "a test")
    assert not is_measured_while_training(home, run)


# ---- measured checkpoints ------------------------------------------------------------------------


class Clock:
    """The time and the processor time of a job on 2 cores, which 3 s of both per 50 s are 3% of."""

    def __init__(self) -> None:
        self.now_s, self.cpu_s = 0.0, 0.0

    def pace(self) -> Pace:
        """A pace without a start, such as that of a job whose networks are built."""
        pace = Pace(cores=2, clock=lambda: self.now_s, cpu_s=lambda: self.cpu_s)
        pace.begin()
        return pace


def test_checkpoints_are_measured_at_the_cadence_and_at_the_end(
    training: Callable[..., RunDir],
) -> None:
    run, waits, pace = training(), list[int](), Clock().pace()
    # Steps saved during each pause.
    pauses = iter([(10,), (20,), (30, 40, 50), (60,), ()])

    def sleep(_: float) -> None:
        steps = next(pauses)
        saved(run, *steps)
        if not steps:
            end(run)

    steps = [
        each.step for each in while_training.new_checkpoints(run, 20, waits.append, pace, sleep)
    ]
    assert steps == [20, 50, 60], "too late for 40, and the last one is measured after the end"
    assert waits == [20, 20, 40, 70, 70]


def test_measurements_take_three_percent_of_cpu_time(
    training: Callable[..., RunDir],
) -> None:
    run, clock = training(), Clock()
    saved(run, 10)

    def sleep(_: float) -> None:  # one epoch per second
        clock.now_s += 1.0
        saved(run, 10 * round(clock.now_s + 1))
        if clock.now_s == 170.0:
            end(run)

    begun_s = []
    for _ in while_training.new_checkpoints(run, 10, lambda _: None, clock.pace(), sleep):
        begun_s.append(clock.now_s)
        clock.cpu_s += 3.0
    assert begun_s == [0.0, 100.0, 150.0, 170.0], "each begins once its 3 s of 2 cores are 3%"


def test_job_starts_when_its_start_takes_three_percent_of_cpu_time(
    training: Callable[..., RunDir],
) -> None:
    run, clock, sentences = training(), Clock(), list[str]()
    pace = Pace(20.0, cores=2, clock=lambda: clock.now_s, cpu_s=lambda: clock.cpu_s)

    def sleep(seconds: float) -> None:
        clock.now_s += seconds

    def progress(*report: Any) -> None:
        sentences.append(report[-1])

    report = while_training.paced(progress, run, pace, sleep)
    report(0, 1, "building the networks")
    assert clock.now_s == pytest.approx(START_S / 0.06 - 20.0, abs=1.0), "it trains for 20 s"
    assert list(dict.fromkeys(sentences[1:])) == [
        "waiting, so that training stays fast",
        "building the networks",
    ]

    pace.begin()
    clock.cpu_s, begun_s = START_S + 6.0, clock.now_s
    report(1, 9, "training the classifier")
    assert clock.now_s == pytest.approx(begun_s + 100.0, abs=1.0), "6 s more than was planned"

    clock.cpu_s, begun_s = 1000.0, clock.now_s
    end(run)
    report(2, 9, "training the classifier")
    assert clock.now_s == begun_s, "the run has ended"


@pytest.mark.parametrize(("trained_s", "waits"), [(0.0, True), (1e7, False)])
def test_job_of_an_old_run_starts_at_once(
    home: Home,
    training: Callable[..., RunDir],
    monkeypatch: pytest.MonkeyPatch,
    trained_s: float,
    waits: bool,
) -> None:
    run, sentences = training(), list[str]()
    monkeypatch.setattr(processes, "lower_priority", lambda: None)
    monkeypatch.setattr(while_training, "age_s", lambda _: trained_s)

    def progress(*report: Any) -> None:
        sentences.append(report[-1])
        if "waiting" in sentences[-1]:
            end(run)

    options = QualityOptions(while_training=1)
    with pytest.raises(CheckpointError):  # the run has none
        measure(Subject(home, run, options, "key", home.path, progress, lambda _: None))
    assert ("waiting, so that training stays fast" in sentences) == waits


def test_age_is_that_of_the_newest_trainer(new_run: NewRun) -> None:
    run = new_run("quick-0001")
    assert age_s(run) == 0.0
    run.write_process(TrainerProcess.of(os.getpid(), attempt=1))
    expected = time.time() - psutil.Process().create_time()
    assert age_s(run) == pytest.approx(expected, abs=5.0)
    assert expected > 0.0


def test_cluster_run_trains_until_its_journals_say_otherwise(new_run: NewRun) -> None:
    """Its process is on another host, where the same pid means nothing here."""
    run = new_run("quick-0001")
    run.write_process(TrainerProcess(pid=4_000_000, started=1.0, attempt=1, cluster_host="node-7"))
    running = StatusChange(status="running", reason="training")
    journal.append(run.trainer_journal(), 1, running)
    assert while_training.is_training(run)
    journal.append(run.trainer_journal(), 1, StatusChange(status="finished", reason="all_epochs"))
    assert not while_training.is_training(run)


def test_cancelled_job_does_not_wait(training: Callable[..., RunDir]) -> None:
    class CancelledError(Exception):
        pass

    run, calls = training(), iter(range(3))

    def progress(*_: object) -> None:
        if next(calls) == 2:
            raise CancelledError

    with pytest.raises(CancelledError):
        while_training.paced(progress, run, Pace(cores=1), lambda _: None)(0, 1, "building")


def test_ended_run_yields_at_most_its_last_checkpoint(new_run: NewRun) -> None:
    run = new_run("quick-0001")
    assert list(while_training.new_checkpoints(run, 20, lambda _: None, Pace())) == []
    saved(run, 10, 15)
    [last] = while_training.new_checkpoints(run, 20, lambda _: None, Pace())
    assert (last.step, last.wall_s, last.arrays["weight"].tolist()) == (15, 1.5, [15.0, 15.0])


def test_damaged_checkpoint_falls_back_to_the_previous_one(new_run: NewRun) -> None:
    run = new_run("quick-0001")
    saved(run, 10, 20)
    (run.checkpoints / "step-00000020.safetensors").write_bytes(b"torn")
    [last] = while_training.new_checkpoints(run, 20, lambda _: None, Pace())
    assert last.step == 10
    (run.checkpoints / "step-00000010.safetensors").write_bytes(b"torn")
    assert list(while_training.new_checkpoints(run, 20, lambda _: None, Pace())) == []


# ---- best checkpoint -----------------------------------------------------------------------------


def test_epoch_with_the_best_quality_becomes_the_best_checkpoint(new_run: NewRun) -> None:
    run = new_run("quick-0001")
    saved(run, 50)
    kept = []
    for epoch, kcd in ((1, 9.0), (2, 4.0), (3, 5.0), (4, 4.0), (5, float("nan"))):
        measured = answer(epoch, kcd=kcd)
        journal.append(run.evaluations_journal, 1, measured)
        arrays = {"weight": np.full(2, epoch, np.float32)}
        kept.append(while_training.keep_if_best(run, measured, arrays, wall_s=epoch))
    assert kept == [True, True, False, False, False]
    best = checkpoints.load(run.checkpoints, "best")
    assert (best.step, best.wall_s, best.arrays["weight"].tolist()) == (20, 2.0, [2.0, 2.0])
    events = [
        record.message
        for record in journal.read_all(run.supervisor_journal)
        if isinstance(record, journal.Event)
    ]
    assert events == [
        "The best checkpoint is now that of epoch 1, by KCD (9, 95% 8.8 to 9.2).",
        "The best checkpoint is now that of epoch 2, by KCD (4, 95% 3.8 to 4.2).",
    ]


def test_imagenet_scores_pick_the_best_only_without_classifier_ones(
    new_run: NewRun,
) -> None:
    def of_imagenet(epoch: int, value: float) -> Answer:
        score = Score(name="imagenet_kcd", value=value, low=value, high=value)
        return answer(epoch).model_copy(update={"key": f"{epoch} imagenet", "scores": [score]})

    run = new_run("quick-0001")
    saved(run, 50)
    kept = []
    measurements = (of_imagenet(1, 3.0), of_imagenet(2, 2.0), answer(3), of_imagenet(4, 1.0))
    for measured in measurements:
        journal.append(run.evaluations_journal, 1, measured)
        arrays = {"weight": np.full(2, measured.epoch, np.float32)}
        kept.append(while_training.keep_if_best(run, measured, arrays, wall_s=1.0))
    assert kept == [True, True, True, False]


def test_measuring_the_best_epoch_again_keeps_its_checkpoint(new_run: NewRun) -> None:
    """Stored weights of an epoch are in half precision; the checkpoint is not."""
    run, measured = new_run("quick-0001"), answer(1)
    saved(run, 50)
    for weight in (1.0001, 1.0):
        journal.append(run.evaluations_journal, 1, measured)
        arrays = {"weight": np.full(2, weight, np.float32)}
        while_training.keep_if_best(run, measured, arrays, wall_s=1.0)
    best = checkpoints.load(run.checkpoints, "best")
    assert best.arrays["weight"].tolist() == pytest.approx([1.0001, 1.0001])
    events = [each for each in journal.read_all(run.supervisor_journal) if "best" in str(each)]
    assert len(events) == 1


def test_scores_of_another_classifier_do_not_count_for_the_best(new_run: NewRun) -> None:
    run, kept = new_run("quick-0001"), []
    saved(run, 50)
    for epoch, classifier, kcd in ((1, "first", 1.0), (2, "second", 3.0), (3, "second", 4.0)):
        measured = answer(epoch, kcd=kcd)
        measured = measured.model_copy(
            update={"facts": {**measured.facts, "classifier": classifier}}
        )
        journal.append(run.evaluations_journal, 1, measured)
        arrays = {"weight": np.full(2, epoch, np.float32)}
        kept.append(while_training.keep_if_best(run, measured, arrays, wall_s=1.0))
    assert kept == [True, True, False]


def test_nonfinite_weights_are_never_the_best(new_run: NewRun) -> None:
    run, measured = new_run("quick-0001"), answer(1)
    journal.append(run.evaluations_journal, 1, measured)
    broken = {"weight": np.full(2, np.inf, np.float32)}
    assert not while_training.keep_if_best(run, measured, broken, wall_s=1.0)
    assert checkpoints.steps(run.checkpoints) == {}


def test_ended_runs_are_measured_one_at_a_time(home: Home) -> None:
    home.jobs.mkdir()
    sentences, measured = list[str](), threading.Event()

    def second() -> None:
        with while_training.alone(
            home, lambda _, __, sentence: sentences.append(sentence), lambda _: time.sleep(0.01)
        ):
            measured.set()

    thread = threading.Thread(target=second)
    with while_training.alone(home, lambda *_: None):
        thread.start()
        while not sentences:
            time.sleep(0.01)
        assert not measured.is_set()
    thread.join(10.0)
    assert measured.is_set()
    assert set(sentences) == {"waiting until the quality of another run is measured"}


def test_usable_cores_are_those_of_the_affinity() -> None:
    script = (
        "import os; os.sched_setaffinity(0, {max(os.sched_getaffinity(0))});"
        " from gan_runtime.records.processes import usable_cores; print(usable_cores())"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert shown.stdout.strip() == b"1"


# ---- process priority ----------------------------------------------------------------------------


def test_lower_priority_sets_niceness_to_10() -> None:
    script = "from gan_runtime.records.processes import lower_priority as low; import os; low()"
    shown = subprocess.run(
        [sys.executable, "-c", f"{script}; print(os.getpriority(os.PRIO_PROCESS, 0))"],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
    )
    assert shown.stdout.strip() == "10"
