"""What the event files of a folder hold: a log for each folder, as TensorBoard has it."""

from __future__ import annotations

import contextlib
import math
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gan_runtime.base.errors import BundleError
from gan_runtime.bundles import event_files
from gan_runtime.bundles.event_files import EventFileError, EventImage, StepEvent
from gan_runtime.records.record import MAX_METRICS, MAX_NAME

EPOCH, OPTIONS = "epoch", "options"  # tags in addition to the numbers
EVENT_FILE = "tfevents"  # in the name of every event file
MAX_FILES, MAX_RUNS = 10_000, 1_000  # of an import
MOST_STEPS = 10**12
GIVE = "give the log folder that TensorBoard opens"


@dataclass
class EventLog:
    """What the event files of one folder hold, by step."""

    name: str
    scalars: dict[int, dict[str, float]] = field(default_factory=dict)
    images: dict[int, dict[str, Sequence[EventImage]]] = field(default_factory=dict)
    times: dict[int, float] = field(default_factory=dict)  # seconds since 1970
    options: str = ""
    left_out: set[str] = field(default_factory=set)  # tags of other kinds
    begin: float = math.inf

    def add(self, event: StepEvent) -> None:
        """The newest value of a step counts; a restarted writer voids later steps."""
        step = max(0, event.step)
        if event.is_restart:
            for values in (self.scalars, self.images, self.times):
                for later in [at for at in values if at >= step]:
                    del values[later]  # type: ignore[attr-defined]
        self.begin = min(self.begin, event.wall_time)
        self.options = event.texts.get(OPTIONS, self.options)
        self.left_out |= event.others | (event.texts.keys() - {OPTIONS})
        if event.scalars or event.images:
            self.times[step] = event.wall_time
            self.scalars.setdefault(step, {}).update(event.scalars)
            if event.images:
                self.images.setdefault(step, {}).update(event.images)

    def epochs(self) -> dict[int, int]:
        """Step → epoch: as the tag `epoch` says, else counted by the steps with images."""
        known, counted = 0, 1
        epochs = {}
        for step in sorted(self.scalars):
            value = self.scalars[step].get(EPOCH, math.nan)
            known = int(value) if 0 <= value < 1e12 else known
            epochs[step] = known or counted
            counted += step in self.images
        return epochs


def event_files_in(folder: Path) -> dict[str, list[Path]]:
    """Name of a run → its event files, the oldest first. A run is a folder."""
    files: dict[str, list[Path]] = {}
    for place, folders, names in os.walk(folder):
        folders.sort()
        paths = [Path(place) / name for name in sorted(names) if EVENT_FILE in name]
        regular = [path for path in paths if _is_regular(path)]
        if regular:
            relative = Path(place).relative_to(folder).as_posix()
            files[folder.resolve().name if relative == "." else relative] = regular
    count = sum(map(len, files.values()))
    if not files:
        raise BundleError(
            f"{folder} holds no event files (names with {EVENT_FILE}, such as"
            f" events.out.tfevents.1700000000.host): {GIVE}."
        )
    if len(files) > MAX_RUNS or count > MAX_FILES:
        raise BundleError(
            f"{folder} holds {count:,} event files in {len(files):,} folders, but at most"
            f" {MAX_FILES:,} in {MAX_RUNS:,} are allowed: import its subfolders one by one."
        )
    return files


def _is_regular(path: Path) -> bool:
    """A pipe would block."""
    with contextlib.suppress(OSError):
        return stat.S_ISREG(path.stat().st_mode)
    return False


def read_log(name: str, paths: list[Path]) -> EventLog:
    """Raises BundleError for a file that cannot be read, and for what no journal can hold."""
    log = EventLog(name)
    for path in paths:
        try:
            for event in event_files.read(path):
                log.add(event)
        except (EventFileError, OSError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise BundleError(
                f"{path} cannot be read ({reason}): copy it again, or move it out of the folder."
            ) from None
    if reason := _excess(log):
        raise BundleError(f"run {name} has {reason}: write fewer, shorter or smaller ones.")
    return log


def _excess(log: EventLog) -> str:
    """What of a log exceeds the limits of a journal; empty where nothing does."""
    most = max((len(values) for values in log.scalars.values()), default=0)
    tags = {tag for values in log.scalars.values() for tag in values}
    long = next((tag for tag in tags if len(tag) > MAX_NAME), "")
    last = max(log.scalars, default=0)
    if most > MAX_METRICS:
        return f"{most:,} tags at one step, but at most {MAX_METRICS:,} are allowed"
    if long:
        return f"the tag {long[:40]}…, but at most {MAX_NAME} characters are allowed"
    return f"step {last:,}, but at most {MOST_STEPS:,} is allowed" if last > MOST_STEPS else ""
