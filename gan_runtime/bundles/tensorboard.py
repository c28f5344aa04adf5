"""Folders of TensorBoard's event files as runs.

As in TensorBoard, every folder with event files is one run. Its scalars and images are imported,
and its options if this program wrote the files (export.py). Without options the run has the
workload `tensorboard`; no imported run has checkpoints, so none can be resumed. Either all runs are
imported or none. What a log has grown by since its import becomes the next attempt of its run.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import math
import os
import re
import stat
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from PIL import Image
from pydantic import ValidationError

from gan_runtime.base import disk, formats
from gan_runtime.base.errors import BundleError, PictureError
from gan_runtime.bundles import event_files, unpacking
from gan_runtime.bundles.event_files import EventFileError, EventImage, StepEvent
from gan_runtime.records import image_files, journal, run_files
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Created, EpochScores, Renamed, StatusChange
from gan_runtime.records.record import MAX_METRICS, MAX_NAME, Record
from gan_runtime.records.run_folder import RunDir, latest_status, write_json
from gan_runtime.records.states import Reason, cause
from gan_runtime.spec import RunSpec, nesting

UNKNOWN: dict[str, Any] = {
    **{"workload": nesting.EVENT_LOG, "dataset": "unknown", "precision": "unknown", "replicas": 1},
    **{"batch_size_global": 1, "seed": 0},
}
EPOCH, OPTIONS = "epoch", "options"  # tags in addition to the numbers
EVENT_FILE = "tfevents"  # in the name of every event file
MAX_FILES, MAX_RUNS, MAX_NUMBERS = 10_000, 1_000, 5_000_000  # limits of an import
MOST_STEPS, MOST_IMAGES = 10**12, 10**15
_GIVE = "give the log folder that TensorBoard opens"
MAX_IMAGES, MAX_TILES = 2_000, 64  # steps with images of a run; images of a step
_KIND = re.compile(r"[^a-z0-9]+")
_PIECE = 10_000  # records that are written at once


@dataclass
class EventLog:
    """The contents of the event files of one folder, by step."""

    name: str
    scalars: dict[int, dict[str, float]] = field(default_factory=dict)
    images: dict[int, dict[str, Sequence[EventImage]]] = field(default_factory=dict)
    times: dict[int, float] = field(default_factory=dict)  # seconds since 1970
    options: str = ""
    left_out: set[str] = field(default_factory=set)  # tags of unsupported kinds
    begin: float = math.inf
    at_step_0: list[StepEvent] = field(default_factory=list)  # also those without a step
    is_numbered: bool = False

    def add(self, event: StepEvent) -> None:
        """The newest value of a step counts; a restarted writer voids later steps."""
        step = max(0, event.step)
        if event.is_restart:
            for values in (self.scalars, self.images, self.times):
                for later in [at for at in values if at >= step]:
                    del values[later]  # type: ignore[attr-defined]
            self.at_step_0 = self.at_step_0 if step else []
        self.begin = min(self.begin, event.wall_time)
        self.options = event.texts.get(OPTIONS, self.options)
        self.left_out |= event.others | (event.texts.keys() - {OPTIONS})
        if event.scalars or event.images:
            self.at_step_0 += [] if step else [event]
            self.times[step] = event.wall_time
            self.scalars.setdefault(step, {}).update(event.scalars)
            if event.images:
                self.images.setdefault(step, {}).update(event.images)

    @property
    def repeats_at_step_0(self) -> int:
        """Values that another value of the same tag at step 0 follows."""
        tags = [tag for event in self.at_step_0 for tag in (*event.scalars, *event.images)]
        return len(tags) - len(set(tags))

    def number_values(self) -> bool:
        """Numbers the values of each tag in their order, from 0, if the writer gave no steps;
        returns whether it did.
        """
        if max(self.scalars, default=0) > 0 or not self.repeats_at_step_0:
            return False
        self.scalars, self.images, counts = {}, {}, Counter[str]()
        for event in self.at_step_0:
            for tag in (*event.scalars, *event.images):
                step, counts[tag] = counts[tag], counts[tag] + 1
                self.times[step] = event.wall_time
                scalars = self.scalars.setdefault(step, {})
                if tag in event.scalars:
                    scalars[tag] = event.scalars[tag]
                else:
                    self.images.setdefault(step, {})[tag] = event.images[tag]
        return True

    def epochs(self) -> dict[int, int]:
        """Step → epoch: by the tag `epoch`, else counted by the steps with images.

        Epochs that begin at 0 are numbered from 1, unless this program wrote the files: its epoch 0
        is before training.
        """
        values = ((step, tags.get(EPOCH, math.nan)) for step, tags in self.scalars.items())
        stated = {step: math.ceil(value) for step, value in values if 0 <= value < MOST_STEPS - 1}
        begins_at_0 = not self.options and 0 in stated.values()
        epoch, counted = -1, 1
        epochs = {}
        for step in sorted(self.scalars):
            epoch = stated.get(step, epoch)
            epochs[step] = counted if epoch < 0 else epoch + begins_at_0
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
            f" events.out.tfevents.1700000000.host): {_GIVE}."
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
    """Reads the event files of a run. Raises BundleError for an unreadable file, or if a journal's
    limits are exceeded.
    """
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
    log.is_numbered = log.number_values()
    if reason := _excess(log):
        raise BundleError(f"run {name} has {reason}: write fewer, shorter or smaller ones.")
    return log


def _excess(log: EventLog) -> str:
    """The part of a log that exceeds the limits of a journal, as text; "" if none does."""
    most = max((len(values) for values in log.scalars.values()), default=0)
    tags = {tag for values in log.scalars.values() for tag in values}
    long = next((tag for tag in tags if len(tag) > MAX_NAME), "")
    last = max(log.scalars, default=0)
    if most > MAX_METRICS:
        return f"{most:,} tags at one step, but at most {MAX_METRICS:,} are allowed"
    if long:
        return f"the tag {long[:40]}…, but at most {MAX_NAME} characters are allowed"
    return f"step {last:,}, but at most {MOST_STEPS:,} is allowed" if last > MOST_STEPS else ""


def import_folder(folder: Path, home: Home) -> list[str]:
    """Imports a folder of event files, except runs that were imported before and have not grown;
    returns the ids of new and grown runs.

    Raises:
        BundleError: the folder has no event files, damaged files, or too much data; nothing is
            imported.
        HomeError: the home cannot be written, or its disk has too little space; nothing is
            imported.
    """
    files = event_files_in(folder)
    home.prepare()
    size = sum(path.stat().st_size for paths in files.values() for path in paths)
    disk.require(home.runs, 3 * size, f"the import of {folder}")
    existing = {run.run_id: run for run in home.run_dirs()}
    grown: list[tuple[RunDir, EventLog, int]] = []
    with tempfile.TemporaryDirectory(dir=home.runs, prefix=".import-") as temporary:
        runs, numbers = [], 0
        for name, paths in files.items():
            log = read_log(name, paths)
            numbers += sum(map(len, log.scalars.values()))
            if numbers > MAX_NUMBERS:
                raise BundleError(
                    f"{folder} holds more than {MAX_NUMBERS:,} numbers: import its subfolders one"
                    " by one."
                )
            run = RunDir(Path(temporary) / _run_id(log))
            if log.scalars and run.run_id not in existing:
                _write(run, log)
                runs.append(run.path)
            elif log.scalars:
                unchanged = _unchanged_until(existing[run.run_id], log)
                grown += [] if unchanged is None else [(existing[run.run_id], log, unchanged)]
        if not any((runs, existing)):
            raise BundleError(f"the event files in {folder} hold no scalars and images: {_GIVE}.")
        return [*unpacking.place(runs, home), *(_append(*news) for news in grown)]


def _run_id(log: EventLog) -> str:
    """The run id of a log, which stays the same when the log grows."""
    digest = hashlib.sha256(f"{log.name} {log.begin!r}".encode()).digest()
    return f"tensorboard-{10_000_000 + int.from_bytes(digest[:8]) % 90_000_000}"


def _write(run: RunDir, log: EventLog) -> None:
    run.samples.mkdir(parents=True)
    created = _created(log, max(1, max(log.epochs().values())))
    write_json(run.spec_path, created.spec)
    note = f"Imported from event files of TensorBoard: {log.name}"
    journal.append(
        run.supervisor_journal,
        1,
        created,
        Renamed(name=log.name[:MAX_NAME], asker="import"),
        journal.Marked(tags=["TensorBoard"], remark=note[:1_000], asker="import"),
    )
    _write_numbers(run, 1, log, created.spec)


def _write_numbers(
    run: RunDir, attempt: int, log: EventLog, spec: dict[str, Any], after: int | None = None
) -> None:
    """Writes an attempt with the values after a step, or with all."""
    steps, epochs = (
        [step for step in sorted(log.scalars) if after is None or step > after],
        log.epochs(),
    )
    last = max(1, max(epochs.values()))
    begin, end = (_moment(log.times[step]) for step in (steps[0], steps[-1]))
    samples = list(_samples(run, log, epochs, steps))
    records: Iterator[Record] = itertools.chain(
        [
            StatusChange.of("running", cause(Reason.TRAINING, steps=steps[-1]), at=begin),
            journal.AttemptStart(resume_step=after or 0, at=begin),
            journal.AttemptPlan(
                images=0, steps_per_epoch=max(1, -(-steps[-1] // last)), epochs=last, at=begin
            ),
        ],
        (_scores(log, step, epochs[step]) for step in steps if log.scalars[step]),
        (
            done
            for done in _epochs_done(log, epochs, nesting.images_per_step(spec))
            if done.step >= steps[0]
        ),
        samples,
        _events_about(log, sum(len(log.images.get(step, {})) for step in steps) - len(samples)),
        [StatusChange.of("finished", cause(Reason.IMPORTED), at=end)],
    )
    while piece := list(itertools.islice(records, _PIECE)):
        journal.append(run.trainer_journal(), attempt, *piece)


def _unchanged_until(run: RunDir, log: EventLog) -> int | None:
    """The end of the last epoch that an imported run and its log have in common, 0 without one;
    None if the log has nothing newer.
    """
    stored: dict[int, tuple[int, float]] = {}  # step → epoch and time
    ends: set[int] = set()
    newest = 0
    for record in journal.read_all(run.trainer_journal()):
        if isinstance(record, journal.AttemptStart):
            begin = record.resume_step
            stored = {step: value for step, value in stored.items() if step <= begin}
            ends, newest = {step for step in ends if step <= begin}, min(newest, begin)
        elif isinstance(record, EpochScores):
            stored[record.step] = record.epoch, record.wall_s
        elif isinstance(record, journal.EpochDone):
            ends.add(record.step)
        if isinstance(record, EpochScores | journal.EpochDone | journal.Sample):
            newest = max(newest, record.step)
    epochs = log.epochs()
    read = {step: (epochs[step], _wall_s(log, step)) for step in log.scalars if log.scalars[step]}
    is_later = max((s for _, s in read.values()), default=0) > max(
        (s for _, s in stored.values()), default=0
    )
    if max(epochs) <= newest and not is_later:
        return None
    changed = min(
        (step for step in read.keys() | stored.keys() if read.get(step) != stored.get(step)),
        default=math.inf,
    )
    common = ends & set({epoch: step for step, epoch in sorted(epochs.items())}.values())
    unchanged = max((end for end in common if end < changed), default=0)
    return unchanged if unchanged < max(epochs) else None


def _append(run: RunDir, log: EventLog, after: int) -> str:
    """Appends an attempt with the values of a longer log; returns the run's id."""
    spec = json.loads(run_files.content(run.spec_path))
    attempt = latest_status(run).attempt + 1
    if nesting.workload_of(spec) == nesting.EVENT_LOG:
        longer = _created(log, max(1, max(log.epochs().values()))).spec
        write_json(run.spec_path, longer)
        journal.append(run.supervisor_journal, attempt, journal.Changed(spec=longer))
    _write_numbers(run, attempt, log, spec, after)
    run.announce()
    return run.run_id


def _scores(log: EventLog, step: int, epoch: int) -> EpochScores:
    values = {tag: value for tag, value in log.scalars[step].items() if tag != EPOCH}
    return EpochScores(epoch=epoch, step=step, wall_s=_wall_s(log, step), values=values)


def _wall_s(log: EventLog, step: int) -> float:
    """Seconds since the first event."""
    seconds = log.times[step] - log.begin
    return seconds if 0 <= seconds < math.inf else 0.0


def _epochs_done(
    log: EventLog, epochs: dict[int, int], images_per_step: int
) -> Iterator[journal.EpochDone]:
    """Each epoch ends with its last step; epoch 0 is before training. `images_per_step`: 0 if
    unknown.
    """
    ends = {epoch: step for step, epoch in epochs.items() if epoch > 0}
    before, before_s = 0, 0.0
    for epoch, step in sorted(ends.items(), key=lambda end: end[1]):
        seconds = _wall_s(log, step) - before_s
        images = min((step - before) * images_per_step, MOST_IMAGES) if images_per_step else None
        yield journal.EpochDone(
            epoch=epoch,
            step=step,
            seconds=max(0.0, seconds),
            images=images,
            images_per_s=images / seconds if images and seconds > 0 else None,
        )
        before, before_s = step, _wall_s(log, step)


def _created(log: EventLog, epochs: int) -> Created:
    """The submission, with the options in the log if they are valid for a run, else only with the
    number of epochs.
    """
    at = _moment(log.begin)
    with contextlib.suppress(ValueError, RecursionError):  # pydantic's error is a ValueError
        spec = json.loads(log.options)
        return Created(spec=spec, accelerator=_accelerator(spec), color=_color(log), at=at)
    most = RunSpec.options()["epochs"].maximum or math.inf
    spec = {**UNKNOWN, "epochs": int(min(epochs, most))}
    return Created(spec=spec, accelerator="cpu", color=_color(log), at=at)


def _accelerator(spec: Any) -> str:
    kind = spec.get("accelerator", "") if isinstance(spec, dict) else ""
    return kind if kind in ("gpu", "tpu") else "cpu"


def _color(log: EventLog) -> int:
    return int(_run_id(log)[-2:])


def _moment(seconds: float) -> datetime:
    """The time of an event, or the current time if it is outside a journal's limits."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
        return Record(at=moment).at
    except (ValidationError, ValueError, OverflowError, OSError):
        return journal.now()


def _samples(
    run: RunDir, log: EventLog, epochs: dict[int, int], steps: list[int]
) -> Iterator[journal.Sample]:
    """Writes the images of these steps that can be read, the last of each tag and epoch, and names
    them.
    """
    kinds: dict[str, str] = {}
    newest: dict[tuple[str, int], tuple[int, str, Sequence[EventImage]]] = {}
    for step in [step for step in steps if step in log.images][-MAX_IMAGES:]:
        for tag, images in log.images[step].items():
            kind = kinds.setdefault(tag, _kind(tag, kinds))
            newest[kind, epochs[step]] = (step, tag, images)
    for (kind, epoch), (step, tag, images) in newest.items():
        path = run.sample_file(kind, epoch)
        with contextlib.suppress(PictureError):
            path.write_bytes(_png(images))
            file, meta = f"{run.samples.name}/{path.name}", {"tag": tag[:MAX_NAME]}
            yield journal.Sample(epoch=epoch, step=step, sample_kind=kind, file=file, meta=meta)


def _kind(tag: str, kinds: dict[str, str]) -> str:
    """A unique file name for a tag."""
    words = _KIND.sub("_", tag.lower()).strip("_")
    name = (words if words[:1].isalpha() else f"image_{words}")[:36].strip("_")
    numbered = (f"{name}{number}" for number in itertools.count(2))
    return next(free for free in itertools.chain([name], numbered) if free not in kinds.values())


def _png(images: Sequence[EventImage]) -> bytes:
    """The images side by side, nearly in a square. Raises PictureError where none can be read."""
    try:
        pictures = [_opened(image.content) for image in images[:MAX_TILES]]
        width, height = pictures[0].size
        across = math.ceil(math.sqrt(len(pictures)))
        down = math.ceil(len(pictures) / across)
        if max(across * width, down * height) > image_files.MAX_SIDE:
            pictures, across, down = pictures[:1], 1, 1
        grid = Image.new("RGB", (across * width, down * height))
        for place, picture in enumerate(pictures):
            grid.paste(picture.convert("RGB"), (place % across * width, place // across * height))
        content = io.BytesIO()
        grid.save(content, "PNG")
    except Exception:
        # A broken file makes Pillow raise OSError, SyntaxError, zlib.error, …
        raise PictureError("no image of the event can be read") from None
    image_files.check_grid(content.getvalue())
    return content.getvalue()


def _opened(content: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(content), formats=("PNG", "JPEG"))
    if max(image.size) > image_files.MAX_SIDE:  # before Pillow allocates the pixels
        raise PictureError("it is too large")
    return image


def _events_about(log: EventLog, images: int) -> Iterator[journal.Event]:
    """Events about values without a step, and about what was left out, such as `images`, with
    reasons.
    """
    if log.is_numbered:
        message = (
            "The values have no step on import: each tag's values are numbered in their order."
        )
        yield journal.Event(level="warning", topic="import", message=message)
    because = f"damaged, too large, not the last of its epoch, or beyond {MAX_IMAGES:,}"
    tags = ", ".join(sorted(log.left_out)[:10])
    for what, reason in (
        (formats.quantity(images, "image"), because),
        (formats.quantity(len(log.left_out), "tag"), f"neither numbers nor images: {tags}"),
        (
            formats.quantity(0 if log.is_numbered else log.repeats_at_step_0, "value"),
            "without a step, or at step 0 again: the last of each tag counts",
        ),
    ):
        if not what.startswith("0 "):
            message = f"{what} left out on import ({reason})."
            yield journal.Event(level="warning", topic="import", message=message)
