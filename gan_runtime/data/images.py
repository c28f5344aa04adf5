"""The preparation `pictures`: a folder or a .zip of images of any size becomes a data set.

Sub-folders are labels, except those of splits (folder_layout.py): test and the like are held out.
The rows are shuffled, in the same order for the same names, so that the first rows and the held-out
rows are random samples of all classes. Files that cannot be used are skipped by name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import field_validator

from gan_runtime.base import disk, formats
from gan_runtime.base.errors import DatasetError, quoted
from gan_runtime.base.fields import IMAGES, LABELS, Fields, labels
from gan_runtime.base.fields import pictures as image_field
from gan_runtime.base.options import OptionRecord, option
from gan_runtime.data import conversion, folder_layout, image_sizes, image_sources
from gan_runtime.data.contract import Progress
from gan_runtime.data.conversion import GROUNDS, ConvertedImage, Target, convert, convert_file
from gan_runtime.data.decoding import NotUsableError
from gan_runtime.data.folder_layout import ImagePlace, in_order
from gan_runtime.data.image_files import ImageSource
from gan_runtime.data.image_sizes import AUTO
from gan_runtime.data.image_sources import CodePage
from gan_runtime.data.prepared import Stored
from gan_runtime.data.sharded import FieldWriter, row_bytes
from gan_runtime.data.summary import GRID_IMAGES, Skip, Survey, Tally, readable

Pixels = Literal["auto", "28", "32", "64", "128"]
USUAL_PIXELS = (28, 32, 64)  # the largest one that most images have is the default
Color = Literal["gray", "rgb"]
Frame = Literal["crop", "fit"]
Ground = Literal["black", "white", "gray"]
Labels = Literal["folders", "none"]
GROUP = "Model and data"


def as_gray(value: Any) -> Any:
    """The value in today's spelling: earlier versions wrote `grey`."""
    return "gray" if value == "grey" else value


def frame() -> Any:
    """The option that makes an image square."""
    return option(
        "crop",
        label="Fit to a square",
        group=GROUP,
        choices=get_args(Frame),
        help="'crop' keeps the middle square. 'fit' keeps the whole image, on the background.",
        error="use crop or fit.",
    )


def ground() -> Any:
    """The color behind and around images."""
    return option(
        "black",
        label="Background",
        group=GROUP,
        choices=get_args(Ground),
        help="The color behind transparent pixels, and around an image that is fitted in.",
        error="use one of these colors.",
    )


def held_out_percent(default: float) -> Any:
    """The share of held-out images."""
    return option(
        default,
        label="Held out",
        group=GROUP,
        unit="%",
        ge=0,
        le=50,
        help=(
            "Share of the images that no run trains on, for evaluation. Has no effect where folders"
            " are held out."
        ),
        error="use 0, or about 10.",
    )


def held_out_folders() -> Any:
    """The option for held-out folders."""
    return option(
        "auto",
        label="Held-out folders",
        group=GROUP,
        text="auto, none, or names of folders with commas between",
        max_length=200,
        help=(
            "Folders at any level that no run trains on, instead of a share. 'auto': val, test,"
            " holdout, dev, eval and the like. 'none': no folder. Or names, such as fold-5."
        ),
        error="use auto, none, or the names of folders.",
    )


def zip_names() -> Any:
    """The code page of the names in a zip."""
    return option(
        "auto",
        label="Names in the zip",
        group=GROUP,
        choices=get_args(CodePage),
        help=(
            "The code page of names that are not marked as UTF-8, such as cp932 for Japanese."
            " 'auto': UTF-8, else cp437."
        ),
        error="use auto, or the code page of the system that packed the zip.",
    )


class ImageOptions(OptionRecord):
    """The options of the preparation `pictures`."""

    pixels: Pixels = option(
        AUTO,
        label="Image size",
        group=GROUP,
        unit="pixels",
        choices=get_args(Pixels),
        help=(
            "Width and height of each image. Smaller ones are skipped, never enlarged. 'auto': 64,"
            " or the largest size that 9 in 10 images have."
        ),
        error="use one of these sizes.",
    )
    color: Color = option(
        "rgb",
        label="Color",
        group=GROUP,
        choices=get_args(Color),
        help="'rgb' stores three channels, 'gray' the luminance (ITU-R 601).",
        error="use one of these two.",
    )
    frame: Frame = frame()
    ground: Ground = ground()
    labels: Labels = option(
        "folders",
        label="Labels",
        group=GROUP,
        choices=get_args(Labels),
        help=("'folders': each sub-folder is a class, in alphabetical order. 'none': no classes."),
        error="use folders or none.",
    )
    held_out_percent: float = held_out_percent(10.0)
    held_out_folders: str = held_out_folders()
    zip_names: CodePage = zip_names()
    _spelling = field_validator("color", "ground", mode="before")(as_gray)

    @property
    def target(self) -> Target:
        """The shape of a row. Raises ValueError before `image_sizes.sized` has set the size."""
        channels = 1 if self.color == "gray" else 3
        return Target(int(self.pixels), channels, GROUNDS[self.ground], self.frame == "crop")


MAX_CLASSES = 10_000


def survey(source: Path, options: ImageOptions, progress: Progress) -> Survey:
    """Converts every image and stores nothing.

    Raises DatasetError: the source cannot be read, or has no usable image.
    """
    with image_sources.open_source(source, options.zip_names) as files:
        tally = Tally(files.hidden)
        images = _labeled_images(files, options, tally, progress)
        names = [image.name for image in images]
        options = image_sizes.sized(options, files, names, USUAL_PIXELS, tally, progress)
        grid: list[NDArray[np.uint8]] = []
        for rows in _rows(files, images, options, tally, progress):
            grid += rows[: GRID_IMAGES - len(grid)]
    fields = _fields(tally, options)
    summary = tally.summary(options.held_out_percent)
    return Survey(
        fields=fields,
        rows=tally.rows - summary.held_out,
        summary=summary,
        grid=np.stack(grid),
        grid_labels=tuple(tally.labels[: len(grid)]) if tally.classes else (),
        bytes_on_disk=tally.rows * sum(map(row_bytes, fields.values())),
    )


def content(source: Path, progress: Progress) -> str:
    """A hash of the names and bytes of all files."""
    # In FALLBACK any bytes are a valid name.
    with image_sources.open_source(source, image_sources.FALLBACK) as files:
        return files.content(progress)


def prepare(source: Path, options: ImageOptions, folder: Path, progress: Progress) -> Stored:
    """Writes the rows of all usable images into the existing, empty `folder`.

    Raises:
        DatasetError: as `survey`. HomeError: the disk has too little space.
    """
    with image_sources.open_source(source, options.zip_names) as files:
        tally = Tally(files.hidden)
        images = _labeled_images(files, options, tally, progress)
        names = [image.name for image in images]
        options = image_sizes.sized(options, files, names, USUAL_PIXELS, tally, progress)
        field = image_field(*options.target.shape)
        size = len(images) * row_bytes(field)
        purpose = f"a data set of {formats.quantity(len(images), 'image')}"
        disk.require(folder, size + disk.LEAST_BYTES, purpose)
        with FieldWriter(folder, IMAGES, field) as writer:
            for rows in _rows(files, images, options, tally, progress):
                writer.append(rows)
    fields = _fields(tally, options)
    shards = {IMAGES: tuple(writer.shards)}
    if LABELS in fields:
        number = {name: place for place, name in enumerate(tally.classes)}
        with FieldWriter(folder, LABELS, fields[LABELS]) as numbers:
            numbers.append(np.array([number[label] for label in tally.labels]))
        shards[LABELS] = tuple(numbers.shards)
    return Stored(fields, shards, tally.summary(options.held_out_percent))


def labels_of(folders: Iterable[str]) -> dict[str, str]:
    """The class of each folder.

    Raises:
        DatasetError: there are too many folders for classes, or two of them have the same name.
    """
    folder_of: dict[str, str] = {}
    for folder in sorted(set(folders)):
        same = folder_of.setdefault(readable(folder), folder)
        if same != folder:
            raise DatasetError(
                f"the folders {quoted(same)} and {quoted(folder)} would both be the class"
                f" {quoted(readable(folder))}: rename one of them, or use labels=none."
            )
    if len(folder_of) > MAX_CLASSES:
        raise DatasetError(
            f"the images are in more than {formats.count(MAX_CLASSES)} sub-folders, too many for"
            " classes: use labels=none."
        )
    return {folder: name for name, folder in folder_of.items()}


@dataclass(frozen=True)
class LabeledImage:
    """A file that begins as an image. `label`: its class; empty without labels."""

    name: str
    label: str
    place: ImagePlace


def _labeled_images(
    files: ImageSource, options: ImageOptions, tally: Tally, progress: Progress
) -> list[LabeledImage]:
    """All images, in the order of their rows; `tally` counts the skipped files.

    Raises DatasetError as `survey`.
    """
    contents = image_sources.sort_files(files, progress)
    places = folder_layout.places(contents.images, options.held_out_folders)
    skips = [*files.skipped, *contents.skips, *places.skipped]
    tally.begin(skips, (files.warning, places.warning), places.holds_out)
    if options.labels == "none":
        return in_order([LabeledImage(name, "", place) for name, place in places.of.items()])
    label_of = labels_of(place.folder for place in places.of.values())
    images = [
        LabeledImage(name, label_of[place.folder], place) for name, place in places.of.items()
    ]
    if any(image.label for image in images):
        for image in images:
            if not image.label:
                tally.skip(Skip.of(image.name, "no label", "it is in no folder of a class"))
        images = [image for image in images if image.label]
    return in_order(images)


def _fields(tally: Tally, options: ImageOptions) -> Fields:
    """The fields of a row. Raises DatasetError without a usable image."""
    tally.check()
    label_field = {LABELS: labels(tally.classes)} if tally.classes else {}
    return {IMAGES: image_field(*options.target.shape), **label_field}


def _rows(
    files: ImageSource,
    images: list[LabeledImage],
    options: ImageOptions,
    tally: Tally,
    progress: Progress,
) -> Iterator[list[NDArray[np.uint8]]]:
    """Rows in parts; `tally` counts each row and each skipped file."""
    white, warning = conversion.white_of(files, progress)
    tally.warn(warning)
    target = replace(options.target, white=white)
    contrasts: list[tuple[float, ...]] = []
    mixed: list[tuple[LabeledImage, int]] = []
    for part in conversion.read_in_parts(
        images, lambda image: _row(files, image.name, target), progress, "file"
    ):
        rows = []
        for image, result in part:
            is_untrained = image.label and image.label not in tally.trained_classes
            if isinstance(result, Skip):
                tally.skip(result)
            elif image.place.held_out and is_untrained:
                reason = "no image of its class is trained on"
                tally.skip(Skip.of(image.name, "no label", reason))
            else:
                tally.add(image.place.held_out_split, result.changes, image.label)
                contrasts.append(result.contrasts)
                mixed.append((image, result.mixed))
                rows.append(result.pixels)
        yield rows
    tally.warn(conversion.ground_warning(contrasts, options.ground), _label_map_warning(mixed))
    done = formats.quantity(tally.rows, "image")
    progress(len(images), len(images), f"Converted {done}")


def _row(files: ImageSource, name: str, target: Target) -> ConvertedImage | Skip:
    """The row of an image, or why it has none."""
    try:
        return convert_file(files, name, lambda file: convert(file, target))
    except NotUsableError as error:
        return Skip.of(name, error.kind, str(error))


def _label_map_warning(mixed: Sequence[tuple[LabeledImage, int]]) -> str:
    """The warning about classes that are probably label maps of the images of another class, since
    each of their images has few colors and the name of one of those; "" without any.
    """
    names: dict[str, set[tuple[str, str]]] = defaultdict(set)
    plain: dict[str, bool] = defaultdict(lambda: True)  # whether all images have few colors
    for image, colors in mixed:
        stem = str(PurePosixPath(image.place.rest).with_suffix(""))
        names[image.label].add((image.place.split, stem))
        plain[image.label] &= colors > 0
    photos = [label for label in names if not plain[label]]
    maps = [
        label
        for label in names
        if plain[label] and any(names[label] <= names[photo] for photo in photos)
    ]
    if not maps:
        return ""
    return (
        f"The images of {folder_layout.quoted_names(maps)} have few colors, and the names of images"
        " of another class. If they are label maps, they are no class: give only the folder of the"
        " images, or prepare picture_pairs with layout=folders."
    )
