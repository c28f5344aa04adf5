"""What people may ask of runs. Each request is a file or a journal line, so any process may make it:
the owner of the home (dashboard or command line) sees it within a moment and acts.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from gan_runtime import disk
from gan_runtime.data import door, loading
from gan_runtime.errors import FieldError, HomeError, RunStateError, SpecError
from gan_runtime.home import Home, command_line, run_number
from gan_runtime.hosts import Host
from gan_runtime.records import journal
from gan_runtime.records.journal import ACTIVE, ENDED, Changed, Created, Renamed, StatusChange, StudyPlace
from gan_runtime.records.rundir import RunDir, write_json, write_whole
from gan_runtime.runtime.other_rates import other_rates
from gan_runtime.spec import RunSpec
from gan_runtime.studies.design import StudyDesign

RUN_COLORS = 8  # length of the run palette in dashboard/palette.py


def check(spec: RunSpec, host: Host, home: Home | None = None) -> str:
    """The accelerator (cpu, gpu or tpu) on which this host can train `spec`, whose data are at hand and fit. Writes nothing.

    `home`: where prepared data sets are looked for.

    Raises:
        AcceleratorError, DatasetError: this host cannot train that; the message says what it can.
        SpecError: see `with_engine`.
    """
    door.check(spec, home)
    accelerator = host.resolve(spec)
    with_engine(spec, host)
    spec.check_set(loading.ensure(spec.dataset, home).images)
    return accelerator


def with_engine(spec: RunSpec, host: Host) -> RunSpec:
    """The spec with the engine that `auto` stands for on this host, so that every later attempt trains with the same one.

    Raises:
        AcceleratorError: this host cannot train `spec`.
        SpecError: that engine cannot do what other options ask for.
    """
    return RunSpec.parse({**spec.model_dump(), "engine": host.engine(spec)})


def submit(home: Home, spec: RunSpec, host: Host, preset: str = "") -> RunDir:
    """Queues a new run. Everything that can be known beforehand is checked first, so nothing is left half-made.

    Raises:
        AcceleratorError, DatasetError: see `check`.
        HomeError: the home folder cannot be written.
    """
    accelerator = check(spec, host, home)
    _check_space(home.prepare())
    return _queue(home, with_engine(spec, host), accelerator, preset, None)


def submit_study(home: Home, design: StudyDesign, host: Host) -> list[RunDir]:
    """Queues all runs of a study in their order; nothing is queued unless this host can train every one of them.

    Raises as `submit`.
    """
    accelerators = [check(planned.spec, host, home) for planned in design.runs]
    _check_space(home.prepare())
    study_id = f"study-{_next_number(home):04d}"
    queued: list[RunDir] = []
    try:
        for planned, accelerator in zip(design.runs, accelerators, strict=True):
            place = StudyPlace(
                study_id=study_id,
                question=design.question,
                title=design.title,
                variant=planned.variant,
                variant_index=planned.index,
                repeat=planned.repeat,
            )
            queued.append(
                _queue(
                    home,
                    with_engine(planned.spec, host),
                    accelerator,
                    design.question.replace("_", "-"),
                    place,
                )
            )
    except HomeError:  # a full disk must not leave half a study
        for run in reversed(queued):
            with contextlib.suppress(RunStateError):  # one that trains already stays
                delete(run)
        raise
    return queued


def _check_space(home: Home) -> None:
    """A run that nobody can start or follow must not wait without a word."""
    disk.require(home.path, disk.LEAST_BYTES, "starting a run")


def _queue(home: Home, spec: RunSpec, accelerator: str, preset: str, study: StudyPlace | None) -> RunDir:
    """`preset`: the name before the number, and with a preset what the run was made from."""
    with tempfile.TemporaryDirectory(dir=home.runs, prefix=".new-") as aside:
        new = RunDir(Path(aside) / "run")
        new.path.mkdir()
        write_json(new.spec_path, spec.model_dump())
        color = len(home.run_dirs()) % RUN_COLORS
        journal.append(
            new.supervisor_journal,
            1,
            Created(
                spec=spec.model_dump(),
                accelerator=accelerator,
                color=color,
                preset=preset,
                study=study,
                images_per_step=spec.images_per_step,
            ),
            StatusChange(status="queued", reason="waiting for the accelerator", queue_rank=time.time()),
        )
        return _place(home, new, preset or "run")


def _place(home: Home, new: RunDir, stem: str) -> RunDir:
    """Gives the finished folder the next number, such as quick-0007."""
    return RunDir(new.path.rename(home.runs / f"{stem}-{_next_number(home):04d}"))


def _next_number(home: Home) -> int:
    """No number is given twice, also when its run is deleted: whoever still holds rows of the old run would mix up the two."""
    with FileLock(home.last_number_file.with_suffix(".lock")):
        number = _highest_number(home) + 1
        write_whole(home.last_number_file, f"{number}\n")
        return number


def _highest_number(home: Home) -> int:
    """The remembered one or that of a folder: the file may be missing in a home that was copied or written by hand."""
    try:
        remembered = home.last_number_file.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        remembered = ""
    numbers = [number for path in home.runs.iterdir() if (number := run_number(path.name)) is not None]
    return max([*numbers, int(remembered) if remembered.isdecimal() else 0])


def latest_status(run: RunDir) -> StatusChange:
    """The newest state of a run, read from its journals without any store.

    Raises:
        RunStateError: no line of them says in what state it is.
    """
    changes = [
        (journal.standing(change, path.name, place), change)
        for path in run.journals()
        for place, change in journal.statuses(path)
    ]
    if not changes:
        raise RunStateError(
            f"run {run.run_id} cannot be read: no line of its journals says in what state it is."
        )
    return max(changes, key=lambda item: item[0])[1]


def stop(run: RunDir) -> None:
    """Asks a waiting or training run to save and end.

    Raises:
        RunStateError: it has ended already.
    """
    status = latest_status(run).status
    if status in ENDED:
        raise RunStateError(
            f"run {run.run_id} is {status} already: only a queued or training run can be stopped."
        )
    run.request_stop()


def resume(run: RunDir, changes: Mapping[str, Any] | None = None) -> None:
    """Queues an ended run again: same run, next attempt, from its last checkpoint.

    `changes`: other values of options that a resume may change (see `other_rates.changeable`), from the next attempt on.

    Raises:
        RunStateError: it has not ended, all its epochs are done, it is to change though it belongs to a study, or
            `why_not_resumed` says why.
        SpecError: a value is wrong, or of an option that no resume changes.
        HomeError: the disk has no space left for it.
    """
    last = latest_status(run)
    if last.status not in ("stopped", "failed", "lost"):
        raise RunStateError(
            f"run {run.run_id} is {last.status}: only a stopped, failed or lost run can be resumed."
        )
    if refusal := why_not_resumed(run):
        raise RunStateError(refusal)
    other = other_rates(run, changes or {})
    _check_space(Home(run.path.parent.parent))
    run.stop_file.unlink(missing_ok=True)
    reason = f"resumed{f' with {other.in_words}' if other else ''}: waiting for the accelerator"
    queued = StatusChange(status="queued", reason=reason, queue_rank=time.time())
    if other:
        write_json(run.spec_path, other.spec)  # before the journal: the owner may start the trainer at once
        journal.append(run.supervisor_journal, last.attempt + 1, Changed(spec=other.spec), queued)
    else:
        journal.append(run.supervisor_journal, last.attempt + 1, queued)
    run.announce()


def why_not_resumed(run: RunDir) -> str:
    """Why an ended run cannot go on; empty when it can. A run that has measured nothing yet may begin anew.

    An imported run has numbers and no checkpoints: a trainer would begin at step 1, and every number beyond it be void.
    """
    if any(run.checkpoints.glob("*.safetensors")) or not _has_measured(run):
        return ""
    again = (
        f"{command_line()} train --spec {shlex.quote(str(run.spec_path))}{Home(run.path.parent.parent).flag}"
    )
    return f"run {run.run_id} has no checkpoint, so there is nothing to resume from: train its settings again with `{again}`."


def _has_measured(run: RunDir) -> bool:
    journals = [path for path in run.journals() if path != run.supervisor_journal]
    return any(b'"kind":"scalars"' in path.read_bytes() for path in journals)


def rename(run: RunDir, name: str) -> None:
    """Gives a run another name in all lists; its id stays.

    Raises:
        SpecError: the name is empty, too long, or has odd characters.
    """
    if not name:
        option = RunSpec.options()["name"]
        raise SpecError(
            [FieldError("name", f"{option.named} is '', but allowed is {option.allowed}, and not empty.")]
        )
    RunSpec.parse({"name": name})
    journal.append(run.supervisor_journal, latest_status(run).attempt, Renamed(name=name))
    run.announce()


def delete(run: RunDir) -> None:
    """Removes a run's folder for good.

    Raises:
        RunStateError: it is training; stop it first.
    """
    status = latest_status(run).status
    if status in ACTIVE:
        raise RunStateError(f"run {run.run_id} is {status}: stop it first, then delete it.")
    doomed = run.path.with_name(f".deleted-{run.run_id}")
    run.path.rename(doomed)  # gone from every list at once, even if removing the files takes a while
    shutil.rmtree(doomed, ignore_errors=True)


def swap_in_queue(earlier: list[RunDir], later: list[RunDir]) -> None:
    """Lets the waiting runs `later` go before `earlier`, which keep their order: two runs, or whole studies.

    Does nothing if one of them has started meanwhile.
    """
    order = [*later, *earlier]
    states = [latest_status(run) for run in order]
    if any(state.status != "queued" for state in states):
        return
    ranks = sorted(state.queue_rank or 0.0 for state in states)
    for run, state, rank in zip(order, states, ranks, strict=True):
        moved = StatusChange(status="queued", reason="moved in the queue", queue_rank=rank)
        journal.append(run.supervisor_journal, state.attempt, moved)
