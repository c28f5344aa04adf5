"""How a training shows itself while it goes on: a bar in a terminal, lines in a pipe or log, JSON lines for programs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from math import nan
from typing import Protocol

import typer
from rich.progress import BarColumn, Progress, TextColumn

from gan_runtime.catalog import declared
from gan_runtime.cli import output
from gan_runtime.cli.clock import clock
from gan_runtime.cli.follow import Snapshot
from gan_runtime.records.home import Home, command_line
from gan_runtime.supervision import owner


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
    """How a followed run has ended, and what to do next. Raises typer.Exit with code 1 when it failed or was lost."""
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
            "nobody trains in this home now: the run waits until a dashboard or another `train` is started."
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
    losses = [f"{known.loss_name(loss)} {progress.newest.get(loss.name, nan):.3f}" for loss in known.losses]
    parts = [f"epoch {progress.epoch}/{snapshot.row.epochs}", *losses]
    if progress.images_per_s is not None:
        parts.append(f"{progress.images_per_s:,.0f} images/s")
    if progress.seconds_left is not None and snapshot.row.is_live:
        parts.append(f"{clock(progress.seconds_left)} left")
    return ", ".join(parts)
