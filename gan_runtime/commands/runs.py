"""Commands about runs: submit, stop, resume, rename. Part of `Commands`."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gan_runtime.base.errors import FieldError, HomeError, RunStateError, SpecError
from gan_runtime.commands.bound import Bound, change
from gan_runtime.jobs import data_jobs
from gan_runtime.records import journal
from gan_runtime.records.home import Home, next_number, next_rank
from gan_runtime.records.journal import ACTIVE, ENDED, Created, Renamed, StatusChange, StudyPlace
from gan_runtime.records.run_folder import RunDir, latest_status, write_json
from gan_runtime.records.states import CUT_SHORT, Reason, cause
from gan_runtime.spec import RunSpec
from gan_runtime.studies.design import StudyDesign
from gan_runtime.supervision import queue, trash
from gan_runtime.supervision.admission import Admission, Dependency, admit, require_space
from gan_runtime.supervision.admission import check_dependency as check_after

RUN_COLORS = 8  # length of the run palette in dashboard/palette.py


class RunCommands(Bound):
    """What may be asked of runs."""

    @change
    def submit(self, spec: RunSpec, preset: str = "", after: Dependency | None = None) -> RunDir:
        """Queues a new run, which starts in its turn, and no sooner than `after` says.

        Everything that can be known beforehand is checked first, so nothing is left half-made.

        Raises:
            SpecError: this host cannot train that; see `admit`.
            UnknownRunError, RunStateError: see `dependencies.check`.
            HomeError: the home folder cannot be written.
        """
        admission = admit(spec, self.host(), self.home, after.run_id if after else "")
        require_space(self.home.prepare(), [admission])
        if after:
            check_after(self.home, (), after)
        return self._queue(admission, preset, None, after)

    @change
    def submit_study(self, design: StudyDesign) -> list[RunDir]:
        """Queues all runs of a study in their order; nothing is queued unless this host can train
        every one of them.

        Raises as `submit`.
        """
        host = self.host()
        admissions = [admit(planned.spec, host, self.home) for planned in design.runs]
        require_space(self.home.prepare(), admissions)
        study_id = f"study-{next_number(self.home.runs):04d}"
        queued: list[RunDir] = []
        try:
            for planned, admission in zip(design.runs, admissions, strict=True):
                place = StudyPlace(
                    study_id=study_id,
                    question=design.question,
                    title=design.title,
                    variant=planned.variant,
                    variant_index=planned.index,
                    repeat=planned.repeat,
                )
                queued.append(self._queue(admission, design.question.replace("_", "-"), place))
        except HomeError:  # a full disk must not leave half a study
            for run in reversed(queued):
                if latest_status(run).status not in ACTIVE:  # one that trains already stays
                    trash.discard(self.home, run.path)
            raise
        return queued

    def _queue(
        self,
        admission: Admission,
        preset: str,
        study: StudyPlace | None,
        after: Dependency | None = None,
    ) -> RunDir:
        """`preset`: the name before the number, and with a preset what the run was made from."""
        spec, home = admission.spec, self.home
        waits_for = data_jobs.job_for(home, spec.dataset) if admission.waits_for_data else ""
        with tempfile.TemporaryDirectory(dir=home.runs, prefix=".new-") as aside:
            new = RunDir(Path(aside) / "run")
            new.path.mkdir()
            write_json(new.spec_path, spec.model_dump())
            created = Created(
                spec=spec.model_dump(),
                accelerator=admission.accelerator,
                color=len(home.run_dirs()) % RUN_COLORS,
                preset=preset,
                study=study,
                images_per_step=spec.images_per_step,
                asker=self.actor.name,
            )
            waiting = _waiting(spec, waits_for, after, next_rank(home))
            journal.append(new.supervisor_journal, 1, created, waiting)
            return _place(home, new, preset or "run")

    @change
    def stop(self, run_id: str) -> None:
        """Asks a waiting or training run to save and end.

        Raises:
            RunStateError: it has ended already.
        """
        self._stop(self.home.run_dir(run_id))

    @change
    def stop_all(self, run_ids: Sequence[str]) -> None:
        """Asks those of the runs that wait or train to end: the last of the queue first, so
        that none starts meanwhile.
        """
        states = [(run, latest_status(run)) for run in map(self.home.run_dir, run_ids)]
        for run, state in sorted(
            states, key=lambda entry: (entry[1].status != "queued", -(entry[1].queue_rank or 0.0))
        ):
            if state.status not in ENDED:
                with contextlib.suppress(RunStateError):  # it has ended by itself
                    self._stop(run)

    def _stop(self, run: RunDir) -> None:
        status = latest_status(run).status
        if status in ENDED:
            raise RunStateError(
                f"run {run.run_id} is {status} already: only a queued or training run can be"
                " stopped."
            )
        run.request_stop(self.actor.name)

    @change
    def resume(self, run_id: str, changes: Mapping[str, Any] | None = None) -> None:
        """Queues an ended run again, from its last checkpoint. Raises as `next_attempt.queue`."""
        queue.resume(self.home, self.home.run_dir(run_id), changes or {}, self.actor.name)

    @change
    def resume_all(self, run_ids: Sequence[str]) -> None:
        """Queues those of the runs again that ended before their time, in the order given.

        Raises:
            RunStateError: none of them can go on; the message says why the first cannot.
        """
        runs = [self.home.run_dir(run_id) for run_id in run_ids]
        refusals = {
            run: queue.resume_refusal(run) for run in runs if latest_status(run).status in CUT_SHORT
        }
        if refusals and all(refusals.values()):
            raise RunStateError(next(iter(refusals.values())))
        for run, why_not in refusals.items():
            if not why_not:
                queue.resume(self.home, run, {}, self.actor.name)

    @change
    def rename(self, run_id: str, name: str) -> None:
        """Gives a run another name in all lists; its id stays.

        Raises:
            SpecError: the name is empty, too long, or has odd characters.
        """
        run = self.home.run_dir(run_id)
        if not name:
            option = RunSpec.options()["name"]
            sentence = f"{option.named} is '', but allowed is {option.allowed}, and not empty."
            raise SpecError([FieldError("name", sentence)])
        RunSpec.parse({"name": name})
        renamed = Renamed(name=name, asker=self.actor.name)
        journal.append(run.supervisor_journal, latest_status(run).attempt, renamed)
        run.announce()


def _waiting(spec: RunSpec, waits_for: str, after: Dependency | None, rank: float) -> StatusChange:
    """The first line of a run's life in the queue.

    The owner looks whether the run before it has ended already.
    """
    why = after.cause("queued") if after else None
    if waits_for:
        why = cause(Reason.WAITS_FOR_DATA, data_set=spec.dataset, percent=0)
    order = {"after": after.run_id, "after_if": after.condition} if after else {}
    why = why or cause(Reason.WAITS_FOR_DEVICE)
    return StatusChange.of("queued", why, queue_rank=rank, waits_for=waits_for, **order)


def _place(home: Home, new: RunDir, stem: str) -> RunDir:
    """Gives the finished folder the next number, such as quick-0007."""
    return RunDir(new.path.rename(home.runs / f"{stem}-{next_number(home.runs):04d}"))
