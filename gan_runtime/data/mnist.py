"""MNIST and Fashion-MNIST: IDX files of 28 × 28 grey images with labels, 60,000 to train on, 10,000
held out.

Looked for in this order: the folder GAN_DATA_DIR, Keras' cache, then Keras' download. A folder
`GAN_DATA_DIR/<dataset>` wins over files directly in GAN_DATA_DIR; those count as Fashion-MNIST only
if the folder's name contains "fashion", because both sets use the same file names. A folder that
holds only the t10k files gives the 10,000 test images to train on, and says so. Label files lie
beside the images; images without them make a set without labels.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gan_runtime import catalog
from gan_runtime.base.errors import QUOTED_CHARACTERS, DatasetError, quoted
from gan_runtime.base.fields import IMAGES, LABELS, Fields
from gan_runtime.data import idx
from gan_runtime.data.contract import Arrays, ArraySet, Availability, picture_set
from gan_runtime.data.summary import Summary

DATA_VARIABLE = "GAN_DATA_DIR"
TRAINING, HELD_OUT = "train", "t10k"  # how the names of the files begin
ENDINGS = ("-{}-ubyte", "-{}-ubyte.gz", ".{}-ubyte", ".{}-ubyte.gz")
SIDE = 28


@dataclass(frozen=True)
class _Part:
    """The files of the training images, or of the test images.

    `labels` is None where no label file lies beside them.
    """

    images: Path
    labels: Path | None

    @classmethod
    def of(cls, folder: Path, part: str) -> _Part | None:
        images = _first_file(folder, f"{part}-images", "idx3")
        return cls(images, _first_file(folder, f"{part}-labels", "idx1")) if images else None

    def check(self, classes: int) -> int:
        """The number of images.

        Raises DatasetError when a file is damaged, the labels are not those of the images, or one
        is of no class.
        """
        count, height, width = idx.read_shape(self.images)
        if (height, width) != (SIDE, SIDE) or count == 0:
            raise DatasetError(
                f"{self.images} holds {count} images of {height} × {width} pixels, but 28 × 28 is"
                " needed: use the original files."
            )
        idx.check(self.images)
        if self.labels:
            idx.check(self.labels, idx.LABELS)
            (labels,) = idx.read_shape(self.labels, idx.LABELS)
            if labels != count:
                raise DatasetError(
                    f"{self.labels} holds {labels} labels, but {self.images.name} beside it {count}"
                    " images: use the original files."
                )
            _check_labels(self.labels, classes)
        return count

    def read(self, classes: int) -> Arrays:
        """Raises DatasetError: see `check`."""
        self.check(classes)
        images = {IMAGES: idx.read(self.images)[..., None]}
        if self.labels is None:
            return images
        return {**images, LABELS: idx.read(self.labels, idx.LABELS).astype(np.int32)}


@dataclass(frozen=True)
class _Files:
    """What of a set lies in GAN_DATA_DIR: the images to train on, and others that are held out."""

    training: _Part
    held_out: _Part | None
    note: str = ""

    @property
    def origin(self) -> str:
        """The file of the images."""
        return str(self.training.images)


def availability(name: str) -> Availability:
    """What a run would train on; `ready` is False when Keras would have to download it first.

    Raises:
        DatasetError: GAN_DATA_DIR is set but holds no such images, or a file there is damaged.
    """
    files = _in_folder(name)
    if files:
        classes = len(_classes(name))
        if files.held_out:
            files.held_out.check(classes)
        return Availability(True, files.training.check(classes), files.origin, files.note)
    cached = _in_keras_cache(name)
    origin = (
        f"Keras' cache ({cached})" if cached else "to be downloaded by Keras when the run starts"
    )
    return Availability(cached is not None, catalog.DATASETS[name].rows, origin)


def fields(name: str) -> Fields:
    """Pictures, and labels where there are any. Raises DatasetError as `availability`."""
    offered = catalog.DATASETS[name].fields
    files = _in_folder(name)
    return offered if files is None or files.training.labels else {IMAGES: offered[IMAGES]}


def load(name: str) -> ArraySet:
    """Pictures uint8 (N, 28, 28, 1) and their labels.

    Raises:
        DatasetError: nothing there and no network; the message names the three ways to get the
            images.
    """
    files = _in_folder(name)
    if files is None:
        training, held_out = _from_keras(name)
        return _set(name, training, held_out, "Keras' cache")
    classes = len(_classes(name))
    training = files.training.read(classes)
    held_out = files.held_out.read(classes) if files.held_out else {}
    return _set(name, training, held_out, files.origin, files.note)


def summary(name: str) -> Summary | None:
    """Rows of each class and split, from the labels of what is on this machine; None where
    there are no labels, or no files that can be used.
    """
    try:
        availability(name)
        files = _in_folder(name)
        counted = _counts_of(files) if files else _counts_in_keras_cache(name)
    except (
        DatasetError,
        OSError,
        ValueError,
        KeyError,
        zipfile.BadZipFile,
    ):  # the availability says why
        return None
    if counted is None:
        return None
    training, held_out = (dict(zip(_classes(name), numbers, strict=False)) for numbers in counted)
    counts = {label: training.get(label, 0) + held_out.get(label, 0) for label in _classes(name)}
    return Summary(held_out=sum(held_out.values()), counts=counts, held_out_counts=held_out)


def _counts_of(files: _Files) -> tuple[Sequence[int], Sequence[int]] | None:
    """How many labels of each class are trained on and held out. Raises DatasetError."""
    if files.training.labels is None:
        return None
    held_out = files.held_out.labels if files.held_out else None
    return idx.counts(files.training.labels), idx.counts(held_out) if held_out else ()


def _counts_in_keras_cache(name: str) -> tuple[Sequence[int], Sequence[int]] | None:
    """The same of Keras' files, of which only the labels are read; None where they are not
    there.
    """
    path = _in_keras_cache(name)
    if path is None:
        return None
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return np.bincount(arrays["y_train"]).tolist(), np.bincount(arrays["y_test"]).tolist()
    first, second = (
        path.with_name(f"{part}-labels-idx1-ubyte.gz") for part in (TRAINING, HELD_OUT)
    )
    return idx.counts(first), idx.counts(second)


def _classes(name: str) -> tuple[str, ...]:
    return catalog.DATASETS[name].fields[LABELS].classes


def _check_labels(path: Path, classes: int) -> None:
    """Raises DatasetError when one is of no class, as those of letters are."""
    largest = len(idx.counts(path)) - 1
    if largest >= classes:
        raise DatasetError(
            f"{path} holds the label {largest}, but allowed is 0 to {classes - 1}: use the original"
            " files. Other characters, such as those of EMNIST, become a data set of their own as"
            " pictures in a folder for each class, with `data prepare pictures`."
        )


def _set(name: str, training: Arrays, held_out: Arrays, origin: str, note: str = "") -> ArraySet:
    """Held-out rows without the labels that the others have are of no use."""
    return picture_set(
        name,
        training[IMAGES],
        origin,
        labels=training.get(LABELS),
        classes=_classes(name),
        note=note,
        kept_back=held_out if set(training) <= set(held_out) else {},
    )


def _in_folder(name: str) -> _Files | None:
    given = os.environ.get(DATA_VARIABLE)
    if not given:
        return None
    root = data_folder(given)
    for folder in _candidate_folders(root, name):
        try:
            training, held_out = _Part.of(folder, TRAINING), _Part.of(folder, HELD_OUT)
        except OSError as error:
            raise DatasetError(
                f"{DATA_VARIABLE} is {given!r}, but {folder} cannot be read ({error.strerror}): "
                f"give this user the right to read it, or unset {DATA_VARIABLE}."
            ) from None
        if training:
            return _Files(training, held_out)
        if held_out:
            note = f"{folder} has only the test files: training on these 10,000 images."
            return _Files(held_out, None, note)
    raise DatasetError(
        f"{DATA_VARIABLE} is {given!r}, but no {name} images are there: "
        f"put train-images-idx3-ubyte (.gz or not) into {root / name}, "
        f"or unset {DATA_VARIABLE} to use Keras' cache or its download."
    )


def _first_file(folder: Path, stem: str, kind: str) -> Path | None:
    """Kaggle puts each file into a folder of its name, and some programs keep the end of the
    address.
    """
    names = [f"{stem}{ending.format(kind)}" for ending in ENDINGS]
    paths = (
        folder / place for name in names for place in (name, f"{name}/{name}", f"{name}?download=1")
    )
    return next((path for path in paths if path.is_file()), None)


def data_folder(given: str) -> Path:
    """The folder that GAN_DATA_DIR names.

    Raises DatasetError when it is none, or cannot be read.
    """
    try:
        root = Path(given).expanduser()
        if root.is_dir():
            return root
    except PermissionError as error:
        raise DatasetError(
            f"{DATA_VARIABLE} is {quoted(given)}, which cannot be read ({error.strerror}): "
            f"give this user the right to read it, or unset {DATA_VARIABLE}."
        ) from None
    except (OSError, RuntimeError, ValueError):  # a name too long, or of a user whom nobody knows
        given = given[:QUOTED_CHARACTERS]
    raise DatasetError(
        f"{DATA_VARIABLE} is {given!r}, which is not a folder: set it to a folder of IDX files, or"
        " unset it."
    )


def _candidate_folders(root: Path, name: str) -> list[Path]:
    own = [root / name, root / name.replace("_", "-")]
    is_fashion_folder = "fashion" in root.name.lower()
    return [*own, root] if is_fashion_folder == (name == "fashion_mnist") else own


def keras_cache() -> Path:
    """Where Keras keeps what it has downloaded. Raises RuntimeError without a home folder."""
    return (Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras") / "datasets").resolve()


def _in_keras_cache(name: str) -> Path | None:
    try:
        path = keras_cache() / (
            "mnist.npz" if name == "mnist" else "fashion-mnist/train-images-idx3-ubyte.gz"
        )
        return path if path.is_file() else None
    except (OSError, RuntimeError):  # no home folder, or a name too long
        return None


def _from_keras(name: str) -> tuple[Arrays, Arrays]:
    """What is trained on, and what is held out."""
    import keras  # only trainers and the fetching child process come here

    try:
        training, held_out = getattr(keras.datasets, name).load_data()
    except Exception as error:  # Keras raises bare Exception when a download fails
        raise DatasetError(
            f"{name} is not on this machine and Keras could not download it ({_first_line(error)}):"
            f" connect to the network, or set {DATA_VARIABLE} to a folder with its IDX files, or"
            " put Keras' own copy into ~/.keras/datasets; dataset digits needs none of this."
        ) from None
    return _arrays(*training), _arrays(*held_out)


def _arrays(images: np.ndarray, labels: np.ndarray) -> Arrays:
    return {IMAGES: np.asarray(images, np.uint8)[..., None], LABELS: np.asarray(labels, np.int32)}


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
