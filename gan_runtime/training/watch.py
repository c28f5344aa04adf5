"""Acts on alarms: writes each down once, rolls back to the last good checkpoint, and saves the states that are good."""

from __future__ import annotations

from gan_runtime import journal
from gan_runtime.engines.contract import Engine
from gan_runtime.errors import AlarmError, NonFiniteError
from gan_runtime.journal import JournalWriter
from gan_runtime.rundir import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.surface import snapshots
from gan_runtime.training import alarms, checkpoints
from gan_runtime.training.alarms import Alarm

MOST_ROLL_BACKS = 3  # in one attempt; a run that fails four times in a row needs a person
SLOWER = 0.5  # what a roll-back leaves of the learning rates


class Watch:
    """The alarms of one attempt. `rank`: which of several workers this is; all come to the same verdicts, the first one saves."""

    def __init__(self, spec: RunSpec, writer: JournalWriter, rank: int = 0) -> None:
        self._spec, self._writer, self._rank = spec, writer, rank
        self._present: set[str] = set()  # topics that were raised in the epoch before: said once, not every epoch
        self._roll_backs = self._since_save = 0

    def epoch(self, scores: dict[str, float], epoch: int) -> Alarm | None:
        """The first alarm that an epoch's scores raise; new ones are written down."""
        found = alarms.raised(self._spec, scores, epoch)
        for alarm in found:
            if alarm.topic not in self._present:
                self._note(alarm)
        self._present = {alarm.topic for alarm in found}
        return found[0] if found else None

    def not_finite(self, error: NonFiniteError) -> Alarm:
        """A NaN as an alarm. Raises it again unless the run is to roll back: such a state is worth nothing."""
        if self._spec.alarm_action != "roll_back":
            raise error
        alarm = Alarm("alarm_not_finite", str(error))
        self._note(alarm)
        return alarm

    def roll_back(self, engine: Engine, run: RunDir, alarm: Alarm) -> tuple[int, float]:
        """Takes the engine back to its newest checkpoint, with half the rates; returns that step and its training seconds.

        Raises:
            AlarmError: so many roll-backs have not helped.
        """
        checkpoint = checkpoints.load_newest(run.checkpoints)
        if self._roll_backs == MOST_ROLL_BACKS or checkpoint is None:
            raise AlarmError(
                f"after {self._roll_backs} roll-backs, each with half the learning rates, the training still fails: {alarm.message} "
                "Change the options and start a new run."
            )
        self._roll_backs += 1
        self._since_save += 1
        self._present = set()
        engine.load(checkpoint.arrays)
        engine.slow_down(SLOWER**self._since_save)
        message = (
            f"Rolled back to step {checkpoint.step}; the learning rates are {SLOWER**self._since_save:g} of what they were then."
        )
        self._writer.write(journal.Event(level="warning", topic="roll_back", message=message))
        return checkpoint.step, checkpoint.wall_s

    def save(
        self, engine: Engine, run: RunDir, step: int, wall_s: float, scores: dict[str, float], epoch: int | None = None
    ) -> None:
        """Saves the state. `scores`: those of the epoch that has just ended, empty within an epoch; `epoch`: its number, 0
        before training, None within one."""
        gap = abs(scores["probe_score_real"] - scores["probe_score_fake"]) if scores else None
        state = engine.state()  # asked of all workers: they average what has drifted apart
        if self._rank == 0:
            checkpoints.save(run.checkpoints, state, step, wall_s, self._spec.keep_checkpoints, gap)
            if epoch is not None and self._spec.weight_snapshots == "yes":
                snapshots.save(run.snapshots, state, epoch)
        self._since_save = 0

    def _note(self, alarm: Alarm) -> None:
        self._writer.write(journal.Event(level="warning", topic=alarm.topic, message=alarm.message))
