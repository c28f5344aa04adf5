"""`train`, `study` and `resume`: queue runs, see to it that someone supervises them, and show them
to their end.

A run is shown as a bar in a terminal, lines in a pipe or log, and JSON lines for programs.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import nan
from typing import Any, Protocol

import typer
from rich.progress import BarColumn, Progress, TextColumn

from gan_runtime.base.errors import HomeError, HomeInUseError, RunStateError
from gan_runtime.catalog import declared
from gan_runtime.cli import output
from gan_runtime.cli.arguments import COMMAND_LINE, commands
from gan_runtime.cli.following import Snapshot, StopWish, clock, follow, look
from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware import hosts
from gan_runtime.records.actors import Actor
from gan_runtime.records.home import Home, command_line
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.studies.design import StudyDesign
from gan_runtime.supervision import owner
from gan_runtime.supervision.admission import Dependency, admit

ORPHANED_SECONDS = 5.0  # a dashboard that restarts is back by then and keeps its home


class Supervision:
    """Makes sure that someone supervises the home: another process, or a runtime of our own."""

    def __init__(self, home: Home, clock: Callable[[], float] = time.monotonic) -> None:
        self._home, self._clock = home, clock
        self._owner_seen_s = clock()
        self.runtime = _open_if_free(home)

    def keep_up(self) -> None:
        """Takes over when the other owner is gone; else a waiting run would wait for ever."""
        if self.runtime is not None:
            return
        if owner.is_owned(self._home):
            self._owner_seen_s = self._clock()
        elif self._clock() - self._owner_seen_s > ORPHANED_SECONDS:
            self.runtime = _open_if_free(self._home)

    @property
    def trouble(self) -> str:
        """Why our own runtime cannot act; empty when all is well."""
        return self.runtime.trouble if self.runtime else ""

    def __enter__(self) -> Supervision:
        return self

    def __exit__(self, *_: object) -> None:
        if self.runtime is not None:
            _leave(self.runtime)


def queue(home: Home, spec: RunSpec, preset: str, after: Dependency | None = None) -> Snapshot:
    """Queues the run and leaves it to whoever owns the home, now or later.

    Raises as `Commands.submit`.
    """
    run = commands(home).submit(spec, preset, after)
    return look(home, run)


def train(
    home: Home,
    spec: RunSpec,
    preset: str,
    report: Report,
    after: Dependency | None = None,
    actor: Actor = COMMAND_LINE,
) -> Snapshot:
    """Queues the run and follows it; returns how it ended.

    Raises:
        StoreError, HomeError: the home cannot be used; nothing is queued.
        SpecError: this host cannot train that; nothing is written.
    """
    host = hosts.probe()
    admit(spec, host, home, after.run_id if after else "")
    with Supervision(home) as supervision, StopWish() as stop_wish:
        run = commands(home, lambda: host, actor).submit(spec, preset, after)
        return _to_the_end(home, run, supervision, stop_wish, report)


def queue_study(home: Home, design: StudyDesign) -> list[Snapshot]:
    """Queues all runs of a study and leaves them to whoever owns the home, now or later.

    Raises as `Commands.submit_study`.
    """
    runs = commands(home).submit_study(design)
    return [look(home, run) for run in runs]


def train_study(home: Home, design: StudyDesign, report: Report) -> list[Snapshot]:
    """Queues all runs of a study and follows them one after another; returns how they ended.

    Raises as `train`.
    """
    host = hosts.probe()
    for planned in design.runs:
        admit(planned.spec, host, home)
    ends: list[Snapshot] = []
    with Supervision(home) as supervision, StopWish() as stop_wish:
        runs = commands(home, lambda: host).submit_study(design)
        for number, run in enumerate(runs, 1):
            ends.append(_to_the_end(home, run, supervision, stop_wish, report, runs[number:]))
            if stop_wish.is_made:
                break
    return ends


def resume(home: Home, run_id: str, changes: Mapping[str, Any], report: Report) -> Snapshot:
    """Queues an ended run again, with some options changed, and follows it; returns how it ended.

    Raises as `Commands.resume` and `train`.
    """
    run = home.run_dir(run_id)
    with Supervision(home) as supervision, StopWish() as stop_wish:
        if supervision.runtime is not None:
            # a run whose trainer died while nobody looked is known as lost only now
            supervision.runtime.refresh()
        commands(home).resume(run_id, changes)
        return _to_the_end(home, run, supervision, stop_wish, report)


def _to_the_end(
    home: Home,
    run: RunDir,
    supervision: Supervision,
    stop_wish: StopWish,
    report: Report,
    waiting: Sequence[RunDir] = (),
) -> Snapshot:
    """Follows a run.

    A wish to stop is also one of the runs that wait behind it: they go first, so that none starts
    meanwhile.
    """
    asked, trouble = False, ""
    for snapshot in follow(home, run):
        report.show(snapshot)
        supervision.keep_up()
        if stop_wish.is_made and not asked:
            output.notes().print(
                f"stopping {run.run_id}: it saves and ends after the steps now under way (Ctrl-C"
                " again leaves at once)"
            )
            for each in (*reversed(waiting), run):
                with contextlib.suppress(RunStateError):  # it has ended by itself meanwhile
                    commands(home).stop(each.run_id)
            asked = True
        if supervision.trouble and supervision.trouble != trouble:
            trouble = supervision.trouble
            output.notes().print(f"the runs cannot be supervised: {trouble}")
    return snapshot


def _leave(runtime: Runtime) -> None:
    """Gives up the home with everything in results.duckdb, and says who is left waiting."""
    try:
        with contextlib.suppress(OSError, HomeError):  # a full disk must not hide how the run ended
            runtime.refresh()
        waiting = [row.run_id for row in queries.queue(runtime.store)]
        if waiting:
            output.notes().print(
                f"{', '.join(waiting)} still waits: start a dashboard or another `train` to go on"
                " with the queue."
            )
    finally:
        runtime.close()


def _open_if_free(home: Home) -> Runtime | None:
    """A runtime of our own; None when another process owns the home.

    Raises StoreError when the store is unusable.
    """
    try:
        runtime = Runtime.open(home)
    except HomeInUseError:
        return None
    for healed in runtime.recovered:
        output.note(healed.sentence)
    return runtime


class Report(Protocol):
    """Told of every new snapshot."""

    def show(self, snapshot: Snapshot) -> None:
        """Shows the run as it is now."""


class Bar:
    """One line that redraws itself, on stderr."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("looking at this host", total=None, text="")

    def show(self, snapshot: Snapshot) -> None:
        """Moves the bar; it swings while nothing can be counted yet."""
        row, progress = snapshot.row, snapshot.progress
        self._progress.update(
            self._task,
            description=f"{row.run_id} {row.status}",
            completed=progress.step,
            total=progress.last_step if progress.step else None,
            text=numbers(snapshot),
        )


class Lines:
    """One line whenever the state changes or an epoch is done, written by `write`."""

    def __init__(self, write: Callable[[Snapshot], None]) -> None:
        self._write = write
        self._last: tuple[int, str, int] | None = None

    def show(self, snapshot: Snapshot) -> None:
        """Writes the line if there is news."""
        news = (snapshot.row.attempt, snapshot.row.status, snapshot.epochs_done)
        if news != self._last:
            self._write(snapshot)
            self._last = news


@contextlib.contextmanager
def choose(as_json: bool) -> Iterator[Report]:
    """JSON lines on stdout, else a bar if stderr is a terminal, else plain lines on stderr."""
    if as_json:
        yield Lines(lambda snapshot: output.print_json(snapshot.as_dict(), indent=None))
    elif sys.stderr.isatty():
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
        with Progress(*columns, console=output.notes()) as progress:
            yield Bar(progress)
    else:
        yield Lines(lambda snapshot: output.notes().print(in_words(snapshot)))


def conclude(home: Home, end: Snapshot, as_json: bool) -> None:
    """How a followed run has ended, and what to do next.

    Raises typer.Exit with code 1 when it failed or was lost.
    """
    row = end.row
    if row.status in ("failed", "lost"):
        output.note(f"run {row.run_id} is {row.status}: {row.note}")
        raise typer.Exit(1)
    if as_json:
        return
    output.say(f"run {row.run_id} is {row.status}: {row.note}")
    if row.status == "stopped":
        elsewhere = "" if home == Home.choose() else f" --home {home.path}"
        output.say(f"go on with: {command_line()} resume {row.run_id}{elsewhere}")
    if row.status == "queued" and not owner.is_owned(home):
        output.say(
            "nobody trains in this home now: the run waits until a dashboard or another `train` is"
            " started."
        )


def in_words(snapshot: Snapshot) -> str:
    """quick-0001 running: epoch 3/15, …; before the first numbers, why it waits."""
    return f"{snapshot.row.run_id} {snapshot.row.status}: {numbers(snapshot) or snapshot.row.note}"


def numbers(snapshot: Snapshot) -> str:
    """Place, losses, rate and time left; empty before the first step."""
    progress = snapshot.progress
    if not progress.step:
        return ""
    known = declared.of(snapshot.row.workload)
    losses = [
        f"{known.loss_name(loss)} {progress.newest.get(loss.name, nan):.3f}"
        for loss in known.losses
    ]
    parts = [f"epoch {progress.epoch}/{snapshot.row.epochs}", *losses]
    if progress.images_per_s is not None:
        parts.append(f"{progress.images_per_s:,.0f} images/s")
    if progress.seconds_left is not None and snapshot.row.is_live:
        parts.append(f"{clock(progress.seconds_left)} left")
    return ", ".join(parts)
