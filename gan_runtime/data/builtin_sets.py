"""The built-in data sets of images: MNIST, Fashion-MNIST, digits and stacked digits.

MNIST and Fashion-MNIST: 28 × 28 gray images with labels, 60,000 to train on and 10,000 held out.
They are read from the folder GAN_DATA_DIR (idx_files.py), else from Keras' cache, else Keras
downloads them, in a child process and into a new folder, so that the cache gets whole files only.

Digits: 1,797 handwritten digits of 8 × 8 pixels, embedded in scikit-learn, enlarged to 28 × 28.
None are held out. Source: Alpaydin and Kaynak 1998, UCI Optical Recognition of Handwritten Digits
(test part); values 0 to 16.

Stacked digits: three digits as red, green and blue; 1,000 modes, each identified by its label, so
that lost modes of a generator can be counted. Source: Metz et al. 2017, arXiv:1611.02163, section
3.3.1, and Srivastava et al. 2017, arXiv:1705.07761, section 4.2, who stack MNIST; here
scikit-learn's digits, so that nothing is downloaded.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import signal
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from gan_runtime import catalog
from gan_runtime.base import formats
from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import IMAGES, LABELS, Fields
from gan_runtime.base.framework_settings import keras_cache
from gan_runtime.data import idx_files
from gan_runtime.data.contract import Arrays, ArraySet, Availability, Progress, picture_set
from gan_runtime.data.idx_files import (
    DATA_VARIABLE,
    HELD_OUT,
    SIDE,
    TRAINING,
    FolderFiles,
)
from gan_runtime.data.summary import Summary
from gan_runtime.records import processes

DIGITS_FILE = "digits.csv.gz"  # in scikit-learn: each row has 64 pixels and the digit
# Pixels of black around each digit, as in MNIST, so that strokes are not cut at the border.
MARGIN = 2
DIGIT_CLASSES = tuple("0123456789")
STACKED_ROWS, STACKED_HELD_OUT = 20_000, 2_000
STACKED_SEED = 0  # the same rows on every machine
DIGITS_ORIGIN = "scikit-learn"
DOWNLOAD_SECONDS = 300.0
POLL_SECONDS = 0.2
DOWNLOAD_PREFIX = ".gan-download-"


def availability(name: str) -> Availability:
    """The rows that a run trains on; `ready` is False when Keras must download them first.

    Raises:
        DatasetError: GAN_DATA_DIR is set but has no such images, or a damaged file.
    """
    files = idx_files.find(name)
    if files:
        classes = len(_classes(name))
        if files.held_out:
            files.held_out.check(classes)
        return Availability(True, files.training.check(classes), files.origin, files.note)
    cached = _in_keras_cache(name)
    origin = f"Keras' cache ({cached})" if cached else "Keras downloads it when the run starts"
    return Availability(cached is not None, catalog.DATASETS[name].rows, origin)


def fields(name: str) -> Fields:
    """Images, and labels where there are label files. Raises DatasetError as `availability`."""
    offered = catalog.DATASETS[name].fields
    files = idx_files.find(name)
    return offered if files is None or files.training.labels else {IMAGES: offered[IMAGES]}


def load(name: str) -> ArraySet:
    """Images uint8 (N, 28, 28, 1) and their labels.

    Raises:
        DatasetError: no files and no network; the message names the three ways to get the images.
    """
    files = idx_files.find(name)
    if files is None:
        training, held_out = _from_keras(name)
        return _set(name, training, held_out, "Keras' cache")
    classes = len(_classes(name))
    training = files.training.read(classes)
    held_out = files.held_out.read(classes) if files.held_out else {}
    return _set(name, training, held_out, files.origin, files.note)


def summary(name: str) -> Summary | None:
    """Rows of each class and split, from the labels on this machine; None without labels or usable
    files.
    """
    try:
        availability(name)
        files = idx_files.find(name)
        counts_of_parts = _counts_of(files) if files else _counts_in_keras_cache(name)
    except (DatasetError, OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None  # `availability` raises the reason
    if counts_of_parts is None:
        return None
    training, held_out = (
        dict(zip(_classes(name), numbers, strict=False)) for numbers in counts_of_parts
    )
    counts = {label: training.get(label, 0) + held_out.get(label, 0) for label in _classes(name)}
    return Summary(held_out=sum(held_out.values()), counts=counts, held_out_counts=held_out)


def _counts_of(files: FolderFiles) -> tuple[Sequence[int], Sequence[int]] | None:
    """The number of training and held-out labels by class. Raises DatasetError."""
    if files.training.labels is None:
        return None
    held_out = files.held_out.labels if files.held_out else None
    return idx_files.counts(files.training.labels), idx_files.counts(held_out) if held_out else ()


def _counts_in_keras_cache(name: str) -> tuple[Sequence[int], Sequence[int]] | None:
    """The same counts from Keras' files; None without them. Reads only the labels."""
    path = _in_keras_cache(name)
    if path is None:
        return None
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return np.bincount(arrays["y_train"]).tolist(), np.bincount(arrays["y_test"]).tolist()
    first, second = (
        path.with_name(f"{part}-labels-idx1-ubyte.gz") for part in (TRAINING, HELD_OUT)
    )
    return idx_files.counts(first), idx_files.counts(second)


def _classes(name: str) -> tuple[str, ...]:
    return catalog.DATASETS[name].fields[LABELS].classes


def _set(name: str, training: Arrays, held_out: Arrays, origin: str, note: str = "") -> ArraySet:
    """Leaves out held-out rows without labels if the rows to train on have labels."""
    return picture_set(
        name,
        training[IMAGES],
        origin,
        labels=training.get(LABELS),
        classes=_classes(name),
        note=note,
        kept_back=held_out if set(training) <= set(held_out) else {},
    )


def _in_keras_cache(name: str) -> Path | None:
    try:
        path = keras_cache() / (
            "mnist.npz" if name == "mnist" else "fashion-mnist/train-images-idx3-ubyte.gz"
        )
        return path if path.is_file() else None
    except (OSError, RuntimeError):  # there is no home folder, or the name is too long
        return None


def _from_keras(name: str) -> tuple[Arrays, Arrays]:
    """Rows to train on, and held-out rows."""
    import keras  # runs only in trainers and in the child process that downloads

    try:
        training, held_out = getattr(keras.datasets, name).load_data()
    except Exception as error:  # Keras raises bare Exception when a download fails
        raise DatasetError(
            f"{name} is not on this machine, and Keras cannot download it ({_first_line(error)}):"
            f" connect to the network, set {DATA_VARIABLE} to a folder of its IDX files, or put"
            " Keras' copy into ~/.keras/datasets. Data set digits needs no download."
        ) from None
    return _arrays(*training), _arrays(*held_out)


def _arrays(images: np.ndarray, labels: np.ndarray) -> Arrays:
    return {IMAGES: np.asarray(images, np.uint8)[..., None], LABELS: np.asarray(labels, np.int32)}


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def load_digits() -> ArraySet:
    """Images uint8 (1797, 28, 28, 1) and labels; bicubic enlargement keeps strokes smooth.

    Reads the file without importing scikit-learn, which takes a second.
    """
    (file,) = (
        path for path in importlib.metadata.files("scikit-learn") or () if path.name == DIGITS_FILE
    )
    table = np.loadtxt(file.locate(), delimiter=",")  # (1797, 65)
    small = (table[:, :-1].reshape(-1, 8, 8) * (255.0 / 16.0)).round().astype(np.uint8)
    images = np.stack([_enlarge_digit(image) for image in small])[..., None]
    return picture_set("digits", images, DIGITS_ORIGIN, labels=table[:, -1], classes=DIGIT_CLASSES)


def _enlarge_digit(image: np.ndarray) -> np.ndarray:
    inner = SIDE - 2 * MARGIN
    return np.pad(
        np.asarray(Image.fromarray(image).resize((inner, inner), Image.Resampling.BICUBIC)), MARGIN
    )


def load_stacked_digits() -> ArraySet:
    """Images uint8 (20000, 28, 28, 3), and 2,000 held out; label 123 is a red 1, a green 2 and a
    blue 3.
    """
    single = load_digits()
    images, numbers = single.resident[IMAGES][..., 0], single.resident[LABELS]
    count = STACKED_ROWS + STACKED_HELD_OUT
    digits = np.random.RandomState(STACKED_SEED).randint(len(images), size=(count, 3))
    # (N, 3, 28, 28) → (N, 28, 28, 3)
    stacked = np.ascontiguousarray(images[digits].transpose(0, 2, 3, 1))
    labels = (numbers[digits] @ np.array([100, 10, 1])).astype(np.int32)
    return picture_set(
        "stacked_digits",
        stacked[:STACKED_ROWS],
        DIGITS_ORIGIN,
        labels=labels[:STACKED_ROWS],
        classes=_classes("stacked_digits"),
        kept_back={IMAGES: stacked[STACKED_ROWS:], LABELS: labels[STACKED_ROWS:]},
    )


def prepare_in_keras_cache(name: str, progress: Progress) -> None:
    """Downloads the images, unless they are on this machine.

    Raises:
        DatasetError: the download fails; the message names the three ways to get the images.
    """
    if availability(name).ready:
        return
    datasets = keras_cache()
    try:
        datasets.mkdir(parents=True, exist_ok=True)
        _remove_old_downloads(datasets)
        with tempfile.TemporaryDirectory(dir=datasets, prefix=DOWNLOAD_PREFIX) as folder:
            download(name, Path(folder), progress)
            shutil.copytree(
                Path(folder) / "datasets", datasets, dirs_exist_ok=True, copy_function=_move_file
            )
    except OSError as error:
        raise DatasetError(
            f"{name} cannot be stored in Keras' cache ({datasets}: {error.strerror}): free space on"
            " its disk, or set KERAS_HOME to another folder."
        ) from None


def _remove_old_downloads(datasets: Path) -> None:
    """Removes the folders of downloads that were killed."""
    for path in datasets.glob(f"{DOWNLOAD_PREFIX}*"):
        if time.time() - path.stat().st_mtime > 2 * DOWNLOAD_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def _move_file(source: str, target: str) -> None:
    Path(source).replace(target)


def download(name: str, keras_home: Path, progress: Progress) -> None:
    """Downloads into the folder `keras_home`, in a child process that `progress` can cancel."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            processes.command("gan_runtime.data.loading", name),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=processes.environment({**os.environ, "KERAS_HOME": str(keras_home)}),
        )
        try:
            while child.poll() is None:
                seconds = time.monotonic() - begin
                if seconds > DOWNLOAD_SECONDS:
                    raise DatasetError(
                        f"{name} was not downloaded within {formats.duration(DOWNLOAD_SECONDS)}:"
                        f" try again, or set {DATA_VARIABLE} to a folder of IDX files."
                    )
                progress(
                    0, 0, f"Keras downloads {name}, {formats.duration(max(1, round(seconds)))}"
                )
                time.sleep(POLL_SECONDS)
        finally:
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
                child.wait()
        if child.returncode:
            output.seek(0)
            lines = output.read().decode(errors="replace").strip().splitlines()
            raise DatasetError((lines or [f"{name} cannot be downloaded."])[-1])
