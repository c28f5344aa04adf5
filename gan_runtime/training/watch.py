"""Acts on alarms: writes each down once, rolls back to the last good checkpoint, and saves
the states that are good.
"""

from __future__ import annotations

import shlex

from gan_runtime.base.errors import AlarmError, NonFiniteError
from gan_runtime.engines.contract import Arrays, Engine
from gan_runtime.records import journal
from gan_runtime.records.home import Home, command_line
from gan_runtime.records.journal import JournalWriter
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training import alarms, checkpoints, snapshots
from gan_runtime.training.alarms import Alarm

MOST_ROLL_BACKS = 3  # in one attempt; a run that fails four times in a row needs a person
SLOWER = 0.5  # what a roll-back leaves of the learning rates


class TrainingWatch:
    """The alarms of one attempt, which goes on from the checkpoint of step `resumed`, None without
    one.

    `rank`: which of several workers this is; all come to the same verdicts, the first one saves.
    """

    def __init__(
        self,
        spec: RunSpec,
        engine: Engine,
        run: RunDir,
        writer: JournalWriter,
        rank: int = 0,
        resumed: int | None = None,
    ) -> None:
        self._spec, self._engine, self._run, self._writer, self._rank = (
            spec,
            engine,
            run,
            writer,
            rank,
        )
        self._present: set[str] = (
            set()
        )  # topics that were raised in the epoch before: said once, not every epoch
        self._before: dict[str, float] = {}  # scores of the epoch before
        self._roll_backs = self._since_save = 0
        self._newest = resumed  # step of the checkpoint that was saved or loaded last

    def epoch(self, scores: dict[str, float], epoch: int) -> Alarm | None:
        """The first alarm that an epoch's scores raise; new ones are written down.

        Raises:
            NonFiniteError: a score is NaN or infinite.
        """
        alarms.check_scores(scores, epoch)
        raised = alarms.raised(self._spec, scores, epoch, self._before)
        self._before = scores
        for alarm in raised:
            if alarm.topic not in self._present:
                self._note(alarm)
        self._present = {alarm.topic for alarm in raised}
        return raised[0] if raised else None

    def state(self, step: int, epoch: int) -> Arrays:
        """The engine's state, asked of all workers: they average what has drifted apart.

        Raises:
            NonFiniteError: it holds a number that is none. Such a state is never saved.
        """
        return alarms.check_state(self._engine.state(), step, epoch)

    def not_finite(self, error: NonFiniteError) -> Alarm:
        """A NaN as an alarm.

        Raises it again, with what to do, unless the run is to roll back: such a state is worth
        nothing.
        """
        if self._spec.alarm_action != "roll_back":
            raise NonFiniteError(f"{error} {self._next_attempt()}".rstrip())
        alarm = Alarm("alarm_not_finite", str(error))
        self._note(alarm)
        return alarm

    def _next_attempt(self) -> str:
        """From where it would go on, and the command for it."""
        if self._rank != 0:
            return ""  # the first worker tells it
        older = (
            None
            if self._newest is None
            else checkpoints.note_failure(self._run.checkpoints, self._newest)
        )
        from_older = (
            f"It has failed twice from step {self._newest}, so it goes on from step {older} next"
            " time. "
        )
        command = with_lower_rates(
            self._run, self._spec, SLOWER, resumable=self._newest is not None
        )
        return f"{'' if older is None else from_older}{command}"

    def roll_back(self, alarm: Alarm) -> tuple[int, float]:
        """Takes the engine back to its newest checkpoint, with half the rates; returns that step
        and its training seconds.

        Another failure before a new checkpoint goes back to the one before it, as far as there is
        one: a state can be finite and yet beyond repair.

        Raises:
            AlarmError: so many roll-backs have not helped.
        """
        folder = self._run.checkpoints
        older = (
            checkpoints.load_newest(folder, below=self._newest)
            if self._since_save and self._newest is not None
            else None
        )
        checkpoint = older or checkpoints.load_newest(folder)
        if self._roll_backs == MOST_ROLL_BACKS or checkpoint is None:
            raise AlarmError(
                f"after {self._roll_backs} roll-backs, each with half the learning rates, the"
                f" training still fails: {alarm.message} Change the options and start a new run."
            )
        if older is not None and self._newest is not None and self._rank == 0:
            checkpoints.remove_from(folder, self._newest)
        self._roll_backs += 1
        self._since_save += 1
        self._present, self._before, self._newest = set(), {}, checkpoint.step
        self._engine.load(checkpoint.arrays)
        self._engine.slow_down(SLOWER**self._since_save)
        message = (
            f"Rolled back to step {checkpoint.step}; the learning rates are"
            f" {SLOWER**self._since_save:g} of what they were then."
        )
        self._writer.write(journal.Event(level="warning", topic="roll_back", message=message))
        return checkpoint.step, checkpoint.wall_s

    def save(
        self,
        state: Arrays,
        step: int,
        wall_s: float,
        scores: dict[str, float],
        epoch: int | None = None,
    ) -> None:
        """Saves a state that is good.

        `scores`: those of the epoch that has just ended, empty within an epoch; `epoch`: its
        number, 0 before training, None within one.
        """
        shortfall = alarms.shortfall(self._spec, scores)
        if self._rank == 0:
            checkpoints.save(
                self._run.checkpoints, state, step, wall_s, self._spec.keep_checkpoints, shortfall
            )
            if epoch is not None and self._spec.weight_snapshots == "yes":
                snapshots.save(self._run.snapshots, state, epoch)
        self._since_save, self._newest = 0, step

    def _note(self, alarm: Alarm) -> None:
        self._writer.write(journal.Event(level="warning", topic=alarm.topic, message=alarm.message))


def with_lower_rates(run: RunDir, spec: RunSpec, factor: float, resumable: bool) -> str:
    """A sentence with the whole command.

    `factor`: what it leaves of all rates, 0 to 1; `resumable`: there is a checkpoint.
    """
    home = Home(run.path.resolve().parent.parent)
    rates = "".join(f" --set {name}={spec.value(name) * factor:g}" for name in spec.entry.rates)
    if resumable:
        return f"Go on with lower rates: {command_line()} resume {run.run_id}{rates}{home.flag}"
    return (
        f"It has no checkpoint yet; begin anew with lower rates: {command_line()} train --spec"
        f" {shlex.quote(str(run.spec_path))}{rates}{home.flag}"
    )
