"""What may be asked of runs: submit, stop, resume, rename. Part of `commands`."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gan_runtime.base import disk
from gan_runtime.base.errors import DatasetError, FieldError, HomeError, RunStateError, SpecError
from gan_runtime.commands.other_rates import other_rates
from gan_runtime.data import door, loading
from gan_runtime.hardware.hosts import Host
from gan_runtime.jobs import data_jobs
from gan_runtime.records import dataset_fingerprint, journal, lines
from gan_runtime.records.actors import Asker, for_operators
from gan_runtime.records.home import Home, command_line
from gan_runtime.records.journal import ACTIVE, ENDED, Changed, Created, Renamed, StatusChange, StudyPlace
from gan_runtime.records.numbering import next_number, next_rank
from gan_runtime.records.reasons import Reason, cause
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.records.run_state import latest_status
from gan_runtime.records.states import CUT_SHORT
from gan_runtime.spec import RunSpec
from gan_runtime.studies.design import StudyDesign
from gan_runtime.supervision import bin
from gan_runtime.supervision.run_dependencies import After
from gan_runtime.supervision.run_dependencies import check as check_after
from gan_runtime.training import initial_weights, memory_estimate, restoring

RUN_COLORS = 8  # length of the run palette in dashboard/palette.py


def check(spec: RunSpec, host: Host, home: Home | None = None) -> str:
    """The accelerator (cpu, gpu or tpu) on which this host can train `spec`, whose data fit. Writes nothing, and fetches no data.

    `home`: where prepared data sets lie. One in the making cannot be looked at yet: then the trainer does it.

    Raises:
        AcceleratorError, DatasetError: this host cannot train that; the message says what it can.
        SpecError: its accelerator or engine cannot do what other options ask for.
    """
    accelerator = host.resolve(spec)
    # Rules that name an accelerator or an engine hold for what `auto` stands for here as well.
    RunSpec.parse({**spec.model_dump(), "accelerator": accelerator, "engine": host.engine(spec)})
    if home is None or data_jobs.preparing_job(home, spec.dataset) is None:
        door.check(spec, home)
        spec.check_set(loading.availability(spec.dataset, home).images)
    return accelerator


def with_engine(spec: RunSpec, host: Host) -> RunSpec:
    """The spec with the engine that `auto` stands for on this host, so that every later attempt trains with the same one.

    Raises:
        AcceleratorError: this host cannot train `spec`.
        SpecError: that engine cannot do what other options ask for.
    """
    return RunSpec.parse({**spec.model_dump(), "engine": host.engine(spec)})


@for_operators
def submit(
    home: Home, spec: RunSpec, host: Host, preset: str = "", after: After | None = None, *, asker: Asker
) -> RunDir:
    """Queues a new run, which starts in its turn, and no sooner than `after` says. Everything that can be known beforehand is checked first,
    so nothing is left half-made.

    Raises:
        AcceleratorError, DatasetError: see `check`.
        UnknownRunError, RunStateError: see `after.check`.
        CheckpointError: see `initial_weights.check`.
        HomeError: the home folder cannot be written.
    """
    accelerator = check(spec, host, home)
    _check_space(home.prepare(), spec)
    if after:
        check_after(home, (), after)
    initial_weights.check(home, spec, after.run_id if after else "")
    waits_for = data_jobs.job_for(home, spec.dataset)
    return _queue(home, with_engine(spec, host), accelerator, preset, None, waits_for, asker, after)


@for_operators
def submit_study(home: Home, design: StudyDesign, host: Host, *, asker: Asker) -> list[RunDir]:
    """Queues all runs of a study in their order; nothing is queued unless this host can train every one of them.

    Raises as `submit`.
    """
    accelerators = [check(planned.spec, host, home) for planned in design.runs]
    for planned in design.runs:
        initial_weights.check(home, planned.spec)
    _check_space(home.prepare(), *(planned.spec for planned in design.runs))
    study_id = f"study-{next_number(home.runs):04d}"
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
                    data_jobs.job_for(home, planned.spec.dataset),
                    asker,
                )
            )
    except HomeError:  # a full disk must not leave half a study
        for run in reversed(queued):
            if latest_status(run).status not in ACTIVE:  # one that trains already stays
                bin.discard(home, run.path)
        raise
    return queued


def _check_space(home: Home, *specs: RunSpec) -> None:
    """A run that nobody can start or follow, or that has no room for its checkpoints, must not wait without a word."""
    needed = sum(_checkpoints_bytes(spec, home) for spec in specs)
    purpose = "starting a run" if len(specs) < 2 else f"starting {len(specs)} runs"
    disk.require(
        home.path, disk.LEAST_BYTES + needed, f"{purpose} with its checkpoints" if needed else purpose
    )


def _checkpoints_bytes(spec: RunSpec, home: Home) -> int:
    """0 where the data set is in the making, and nobody knows what the networks will be like: then the trainer looks."""
    if data_jobs.preparing_job(home, spec.dataset) is not None:
        return 0
    return memory_estimate.checkpoints_bytes(spec, door.check(spec, home))


def _queue(
    home: Home,
    spec: RunSpec,
    accelerator: str,
    preset: str,
    study: StudyPlace | None,
    waits_for: str,
    asker: Asker,
    after: After | None = None,
) -> RunDir:
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
                asker=asker.name,
            ),
            _waiting(spec, waits_for, after, next_rank(home)),
        )
        return _place(home, new, preset or "run")


def _waiting(spec: RunSpec, waits_for: str, after: After | None, rank: float) -> StatusChange:
    """The first line of a run's life in the queue. The owner looks whether the run before it has ended already."""
    why = after.cause("queued") if after else None
    if waits_for:
        why = cause(Reason.WAITS_FOR_DATA, data_set=spec.dataset, percent=0)
    order = {"after": after.run_id, "after_if": after.condition} if after else {}
    why = why or cause(Reason.WAITS_FOR_DEVICE)
    return StatusChange.of("queued", why, queue_rank=rank, waits_for=waits_for, **order)


def _place(home: Home, new: RunDir, stem: str) -> RunDir:
    """Gives the finished folder the next number, such as quick-0007."""
    return RunDir(new.path.rename(home.runs / f"{stem}-{next_number(home.runs):04d}"))


@for_operators
def stop(run: RunDir, *, asker: Asker) -> None:
    """Asks a waiting or training run to save and end.

    Raises:
        RunStateError: it has ended already.
    """
    status = latest_status(run).status
    if status in ENDED:
        raise RunStateError(
            f"run {run.run_id} is {status} already: only a queued or training run can be stopped."
        )
    run.request_stop(asker.name)


@for_operators
def resume(run: RunDir, changes: Mapping[str, Any] | None = None, *, asker: Asker) -> None:
    """Queues an ended run again: same run, next attempt, from its last checkpoint.

    `changes`: other values of options that a resume may change (see `other_rates.changeable`), from the next attempt on.

    Raises:
        RunStateError: it has not ended, all its epochs are done, it is to change though it belongs to a study, or
            `why_not_resumed` says why.
        SpecError: a value is wrong, or of an option that no resume changes.
        HomeError: the disk has no space left for it.
    """
    last = latest_status(run)
    if last.status not in CUT_SHORT:
        raise RunStateError(
            f"run {run.run_id} is {last.status}: only a stopped, failed or lost run can be resumed."
        )
    if refusal := why_not_resumed(run):
        raise RunStateError(refusal)
    other = other_rates(run, changes or {})
    home = Home(run.path.parent.parent)
    disk.require(home.path, disk.LEAST_BYTES + _newest_bytes(run), "going on with the run")
    dataset = _dataset_of(run)
    waits_for = data_jobs.job_for(home, dataset) if dataset else ""
    run.stop_file.unlink(missing_ok=True)
    changes_in_words = other.in_words if other else ""
    why = cause(Reason.RESUMED, changes=changes_in_words)
    if waits_for:
        why = cause(Reason.RESUMED_WAITS_FOR_DATA, changes=changes_in_words, data_set=dataset, percent=0)
    queued = StatusChange.of("queued", why, queue_rank=next_rank(home), waits_for=waits_for, asker=asker.name)
    if other:
        write_json(run.spec_path, other.spec)  # before the journal: the owner may start the trainer at once
        journal.append(run.supervisor_journal, last.attempt + 1, Changed(spec=other.spec), queued)
    else:
        journal.append(run.supervisor_journal, last.attempt + 1, queued)
    run.announce()


def _newest_bytes(run: RunDir) -> int:
    """What its next two checkpoints will take, as large as those that it has: the least that it needs to save and end again."""
    return 2 * max((path.stat().st_size for path in run.checkpoints.glob("*.safetensors")), default=0)


def _dataset_of(run: RunDir) -> str:
    """What a run trains on; empty where its options cannot be read, which its trainer then tells."""
    try:
        return run.spec().dataset
    except SpecError:
        return ""


def why_not_resumed(run: RunDir) -> str:
    """Why an ended run cannot go on; empty when it can. A run that has measured nothing yet may begin anew, and so may one that
    was killed here before its first checkpoint: as after any kill, what it measured since the last checkpoint is measured again.

    An imported run has numbers and no checkpoints: a trainer would begin at step 1, and every number beyond it be void. With
    another data set of the same name, the numbers to come would belong to another training.
    """
    if run.has_checkpoint:
        return _of_other_data(run)
    if not _has_measured(run) or restoring.is_cut_off_before_saving(run):
        return ""
    again = (
        f"{command_line()} train --spec {shlex.quote(str(run.spec_path))}{Home(run.path.parent.parent).flag}"
    )
    return f"run {run.run_id} has no checkpoint, so there is nothing to resume from: train its settings again with `{again}`."


def _of_other_data(run: RunDir) -> str:
    dataset, home = _dataset_of(run), Home(run.path.parent.parent)
    try:
        return dataset_fingerprint.refusal(run, dataset, loading.content_of(dataset, home))
    except DatasetError:  # it is gone, or damaged: told when the run asks for it
        return ""


def _has_measured(run: RunDir) -> bool:
    journals = [path for path in run.journals() if path != run.supervisor_journal]
    return any(b'"kind":"scalars"' in piece for path in journals for piece in lines.pieces(path))


@for_operators
def rename(run: RunDir, name: str, *, asker: Asker) -> None:
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
    journal.append(run.supervisor_journal, latest_status(run).attempt, Renamed(name=name, asker=asker.name))
    run.announce()
