"""The conditions for starting a run: this host can train it, its data set is prepared, and the run
that it depends on has ended.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gan_runtime.base import disk
from gan_runtime.base.errors import (
    AcceleratorError,
    CheckpointError,
    DatasetError,
    FieldError,
    GanRuntimeError,
    JobError,
    RunStateError,
    SpecError,
    TargetSettingError,
    UnknownRunError,
    quoted,
)
from gan_runtime.data import loading
from gan_runtime.data.contract import Availability
from gan_runtime.hardware import machine
from gan_runtime.hardware.hosts import Host
from gan_runtime.jobs import core_jobs, job_queue
from gan_runtime.jobs.folder import JobSnapshot
from gan_runtime.records.home import Home, is_run_name
from gan_runtime.records.journal import Condition, StatusChange
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.records.states import CUT_SHORT, ENDED, WAITS_FOR_A_RUN, Cause, Reason, cause
from gan_runtime.spec import RunSpec
from gan_runtime.spec.run_options import HERE
from gan_runtime.store.store import Store
from gan_runtime.targets import configuration
from gan_runtime.training import starting_point, watch

Result = TypeVar("Result")
TOO_LITTLE_MEMORY = (
    "This needs more memory than this host has: lower the global batch or the number of workers."
)


@dataclass(frozen=True)
class Admission:
    """A run that this host can train.

    `spec`: with the resolved engine, so that every attempt uses the same one. `accelerator`: cpu,
    gpu or tpu. `data`: availability of its data set. `memory_bytes`: estimate for all processes.
    `checkpoint_bytes`: size of all retained checkpoints. While the data set is being prepared,
    these three are None, None and 0. `warnings`: sentences.
    """

    spec: RunSpec
    accelerator: str
    data: Availability | None
    memory_bytes: float | None
    checkpoint_bytes: int
    warnings: tuple[str, ...] = ()

    @property
    def waits_for_data(self) -> bool:
        """Whether its data set is being prepared, or must be downloaded or generated first."""
        return self.data is None or not self.data.ready


def admit(spec: RunSpec, host: Host, home: Home | None = None, after: str = "") -> Admission:
    """Checks whether this host can train a run. Changes nothing.

    `home`: the home with the prepared data sets; a set that is still being prepared is checked by
    the trainer. `after`: the run that this run waits for, which can still write checkpoints.

    Raises SpecError with a sentence for each option that prevents it.
    """
    wrong: list[FieldError] = []
    if spec.target == HERE:
        accelerator = _tried(lambda: host.resolve(spec), "accelerator", wrong)
        resolved = _resolved(spec, host, accelerator, wrong) if accelerator else None
    else:
        resolved = _tried(lambda: _on_target(spec, home), "target", wrong)
        accelerator = resolved.accelerator if resolved else None
    is_being_prepared = home is not None and core_jobs.preparing_job(home, spec.dataset) is not None
    data = fields = None
    if not is_being_prepared and (
        fields := _tried(lambda: loading.check(spec, home), "dataset", wrong)
    ):
        data = _tried(lambda: _enough(spec, home), "dataset", wrong)
    if home is not None:
        _tried(lambda: starting_point.check(home, spec, after), "start_from", wrong)
        if spec.target != HERE and resolved is not None:
            _tried(lambda: _has_weights(spec, home), "start_from", wrong)
    if wrong or accelerator is None or resolved is None:
        raise SpecError(wrong)
    if fields is None:
        return Admission(resolved, accelerator, None, None, 0, _warnings(resolved, host, None))
    checkpoints = watch.checkpoints_bytes(spec, fields)
    memory = watch.estimated_memory_bytes(spec, home)
    warnings = _warnings(resolved, host, memory) if spec.target == HERE else ()
    return Admission(resolved, accelerator, data, memory, checkpoints, warnings)


def require_space(home: Home, admissions: Sequence[Admission]) -> None:
    """Raises HomeError if the disk has too little space for all these runs."""
    needed = sum(admission.checkpoint_bytes for admission in admissions)
    purpose = "starting a run" if len(admissions) < 2 else f"starting {len(admissions)} runs"
    disk.require(
        home.path,
        disk.LEAST_BYTES + needed,
        f"{purpose} with its checkpoints" if needed else purpose,
    )


def _enough(spec: RunSpec, home: Home | None) -> Availability:
    data = loading.availability(spec.dataset, home)
    spec.check_set(data.images)
    return data


def _resolved(
    spec: RunSpec, host: Host, accelerator: str, wrong: list[FieldError]
) -> RunSpec | None:
    """The spec with its engine resolved, so that rules about accelerators and engines also apply to
    `auto`.
    """
    try:
        engine = host.engine(spec)
        RunSpec.parse({**spec.model_dump(), "accelerator": accelerator, "engine": engine})
        return RunSpec.parse({**spec.model_dump(), "engine": engine})
    except SpecError as error:
        wrong.extend(error.errors)
    except AcceleratorError as error:
        wrong.append(FieldError("accelerator", str(error)))
    return None


def _on_target(spec: RunSpec, home: Home | None) -> RunSpec:
    """The spec with accelerator and engine resolved for its target. Whether it has the devices, its
    scheduler says.

    Raises SpecError, TargetSettingError.
    """
    options = configuration.target(home, spec.target)
    if spec.job_options and options.kind != "slurm":
        raise SpecError(
            [
                FieldError(
                    "job_options",
                    f"{RunSpec.named('job_options')} is {quoted(spec.job_options)}, but"
                    f" {spec.target} has no sbatch: leave it empty.",
                )
            ]
        )
    values = spec.model_dump()
    if spec.accelerator == "auto":
        values["accelerator"] = options.accelerator
    if spec.engine == "auto":
        values["engine"] = "jax" if values["accelerator"] == "tpu" else "tensorflow"
    return RunSpec.parse(values)


def _has_weights(spec: RunSpec, home: Home) -> None:
    """Raises CheckpointError: the target does not see the weights to start from."""
    source = spec.start_from.partition(":")[0]
    if (
        source
        and configuration.is_apart(home, spec)
        and home.run_dir(source).spec().target != spec.target
    ):
        raise CheckpointError(
            f"{spec.target} does not have the weights of {source}: name a run that trained there."
        )


def _tried(ask: Callable[[], Result], field: str, wrong: list[FieldError]) -> Result | None:
    try:
        return ask()
    except SpecError as error:
        wrong.extend(error.errors)
    except (
        *(AcceleratorError, DatasetError, CheckpointError),
        *(TargetSettingError, UnknownRunError),
    ) as error:
        wrong.append(FieldError(field, str(error)))
    return None


def _warnings(spec: RunSpec, host: Host, memory_bytes: float | None) -> tuple[str, ...]:
    too_large = TOO_LITTLE_MEMORY if (memory_bytes or 0.0) > host.memory_bytes else ""
    return tuple(filter(None, (machine.precision_warning(spec), too_large)))


# ---- dependencies --------------------------------------------------------------------------------


UNREADABLE = "unreadable"  # replaces the state of a quarantined run


@dataclass(frozen=True)
class Dependency:
    """The run that must end, or finish, before another one starts.

    Ended means finished, stopped, failed, lost or deleted.
    """

    run_id: str
    condition: Condition = "ended"

    def cause(self, status: str | None) -> Cause | None:
        """The cause for which the waiting run still waits; None if it can start.

        `status`: state of the other run; None if it is deleted, UNREADABLE if its journals are.
        """
        must_finish, is_over = self.condition == "finished", status in (*ENDED, None)
        if status == UNREADABLE:
            waits = (
                Reason.WAITS_FOR_FINISH_OF_UNREADABLE
                if must_finish
                else Reason.WAITS_FOR_END_OF_UNREADABLE
            )
        elif not is_over:
            waits = Reason.WAITS_FOR_FINISH if must_finish else Reason.WAITS_FOR_END
        elif not must_finish or status == "finished":
            return None
        elif status is None:
            waits = Reason.WAITS_FOR_FINISH_OF_DELETED
        else:
            return cause(Reason.WAITS_FOR_FINISH_OF_CUT_SHORT, run=self.run_id, status=status)
        return cause(waits, run=self.run_id)


def check_dependency(home: Home, waiting: Collection[str], after: Dependency) -> None:
    """Checks whether the runs `waiting` can wait for another run.

    Raises:
        UnknownRunError: there is no run to wait for.
        RunStateError: the runs could never start.
    """
    state = latest_status(home.run_dir(after.run_id))
    if after.condition == "finished" and state.status in CUT_SHORT:
        raise RunStateError(
            f"run {after.run_id} is {state.status}: resume it first, or start after it ends in any"
            " state."
        )
    run_id, chain = after.run_id, set()
    while run_id not in waiting:
        chain.add(run_id)
        if state.status != "queued" or not state.after or state.after in chain:
            return
        run_id = state.after
        if not (home.runs / run_id).is_dir():
            return
        state = latest_status(home.run_dir(run_id))
    raise RunStateError(
        f"run {run_id} cannot wait for itself: choose another run."
        if run_id == after.run_id
        else (
            f"run {after.run_id} already waits for run {run_id}, so neither could start: choose"
            " another run."
        )
    )


# ---- data sets -----------------------------------------------------------------------------------


NOTED_STEPS = 10  # steps of the progress, each a line in the run's journal


@dataclass(frozen=True)
class Readiness:
    """Whether a dependency is fulfilled. `news`: a new line for the run's journal; `failure`: why
    the dependency can never be fulfilled.
    """

    is_ready: bool
    news: StatusChange | None = None
    failure: Cause | None = None


READY = Readiness(is_ready=True)


class DataDependencies:
    """Checks at each tick whether the data sets of waiting runs are ready."""

    def __init__(self, home: Home) -> None:
        self._home = home
        # run and attempt → the job that the run waits for, or ""
        self._jobs: dict[tuple[str, int], str] = {}
        # run → tenth and data set of its newest line
        self._noted: dict[str, tuple[int, str]] = {}

    def of(self, run: RunDir, attempt: int) -> Readiness:
        """Whether a run's data set is ready. Raises RunStateError as `latest_status`."""
        key = (run.run_id, attempt)
        if key not in self._jobs:
            self._jobs[key] = latest_status(run).waits_for
        if not self._jobs[key]:
            return READY
        try:
            job = job_queue.job_dir(self._home, self._jobs[key]).snapshot()
        except JobError:
            job = None
        if job is None or job.state == "finished":
            # If the job's folder was deleted, the trainer reports missing data.
            return READY
        name = core_jobs.name_of(job.request)
        if job.end is not None:
            end = {"state": job.end.state, "message": job.end.reason}
            return Readiness(False, failure=cause(Reason.DATA_NOT_PREPARED, data_set=name, **end))
        return Readiness(False, news=self._news(run, name, job))

    def _news(self, run: RunDir, name: str, job: JobSnapshot) -> StatusChange | None:
        """A journal line for each tenth of the progress; None in between."""
        tenth = int(job.progress.share * NOTED_STEPS)
        if self._noted.setdefault(run.run_id, (0, name)) == (tenth, name):
            return None
        self._noted[run.run_id] = (tenth, name)
        newest = latest_status(run)  # the run's place in the queue can have changed
        return newest.because(
            cause(Reason.WAITS_FOR_DATA, data_set=name, percent=round(100 * tenth / NOTED_STEPS))
        )


# ---- runs ----------------------------------------------------------------------------------------


JournalStamp = tuple[int, int]  # bytes, and modification time in nanoseconds


class RunDependencies:
    """Checks at each tick whether the runs that waiting runs depend on have ended.

    If that is uncertain, the run waits.
    """

    def __init__(self, home: Home, store: Store, will_resume: Callable[[str], bool]) -> None:
        """`will_resume`: whether a lost run resumes automatically, and so has not ended."""
        self._home, self._store, self._will_resume = home, store, will_resume
        self._read: dict[str, tuple[JournalStamp, StatusChange]] = {}  # run → its newest state
        self._states: dict[str, str | None] = {}  # run depended on → its state; None: deleted
        self._has_store = True

    def refresh(self, waiting: Iterable[RunDir], has_store: bool = True) -> None:
        """Reads the dependencies of waiting runs; called after news. `has_store`: whether the
        database answers.
        """
        before, self._read, self._states, self._has_store = self._read, {}, {}, has_store
        for run in waiting:
            with contextlib.suppress(OSError, GanRuntimeError):  # `of` raises it again
                self._read[run.run_id] = _newest(run, before.get(run.run_id))
        self._note_states()

    def of(self, run: RunDir) -> Readiness:
        """Whether the run that this one depends on has ended.

        Raises OSError or GanRuntimeError while journals cannot be read.
        """
        if run.run_id not in self._read:
            self._read[run.run_id] = _newest(run, None)
            self._note_states()
        _, newest = self._read[run.run_id]
        if not newest.after:
            return READY
        status = self._states[newest.after]
        if status in ("lost", "stopped") and self._will_resume(newest.after):
            status = "queued"
        before = newest.cause
        waits = Dependency(newest.after, newest.after_if).cause(status)
        if waits is None and (before is None or before.code not in WAITS_FOR_A_RUN):
            return READY
        why = waits or cause(Reason.WAITS_FOR_DEVICE)
        if why == before:
            return Readiness(waits is None)
        now = latest_status(run)  # the run's place or dependency can have changed
        if (now.status, now.after, now.after_if) != (newest.status, newest.after, newest.after_if):
            return Readiness(is_ready=False)
        return Readiness(waits is None, now.because(why))

    def _note_states(self) -> None:
        before = {newest.after for _, newest in self._read.values()} - {""} - self._states.keys()
        stored: dict[str, str] = {}
        if self._has_store and before:
            sql = "SELECT run_id, status FROM ingest.newest WHERE list_contains(?, run_id)"
            stored = dict(self._store.rows(sql, [sorted(before)]))  # type: ignore[arg-type]
        for run_id in before:
            otherwise = self._of_folder if self._has_store else self._in_journals
            self._states[run_id] = stored.get(run_id) or otherwise(run_id)

    def _in_journals(self, run_id: str) -> str | None:
        """The state of a run by its journals. A lost run counts as queued, since only the database
        shows whether it resumes.
        """
        if self._of_folder(run_id) is None:
            return None
        try:
            status = latest_status(RunDir(self._home.runs / run_id)).status
        except (OSError, GanRuntimeError):
            return UNREADABLE
        return "queued" if status == "lost" else status

    def _of_folder(self, run_id: str) -> str | None:
        """The state of a run that the database lacks: UNREADABLE, or None if it is deleted."""
        if not is_run_name(run_id):
            return None
        try:
            (self._home.runs / run_id).lstat()
        except FileNotFoundError:
            return None
        except OSError:  # uncertain
            pass
        return UNREADABLE


def _newest(
    run: RunDir, before: tuple[JournalStamp, StatusChange] | None
) -> tuple[JournalStamp, StatusChange]:
    """The newest state of a run with its journal stamp. `before`: the last result, reused if the
    journal is unchanged.
    """
    file = run.supervisor_journal.stat()
    stamp = (file.st_size, file.st_mtime_ns)
    return before if before and before[0] == stamp else (stamp, latest_status(run))
