"""The parts of image quality that a data set determines: the real images to compare with, and the
classifier whose 128 features and class probabilities are compared.

The classifier is a small convolutional network. It is trained once per data set and home, with
fixed seeds, and stored in `classifiers/`. Building it loads Keras on the engine of the process.
"""

from __future__ import annotations

import hashlib
import logging
import math
import secrets
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime import catalog
from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import IMAGES, LABELS, Field, Fields
from gan_runtime.data.contract import Array, Arrays, DataSet, Progress
from gan_runtime.engines.inputs import host_value
from gan_runtime.evaluation.sample_scores import IMAGES_OF_FID, joint, nearest_distances
from gan_runtime.records.home import Home

if TYPE_CHECKING:
    import keras

log = logging.getLogger("gan_runtime")
VERSION = 1  # of networks and training; scores of different versions are not comparable
FEATURES, WIDTHS, KERNEL = 128, (32, 64), 5  # LeCun et al. 1998, wider
SMALLEST_SIDE = 8  # most pixels per side of the last feature map
MOST_ROWS, MOST_BYTES, MOST_TEST_ROWS = 60_000, 2**30, 10_000
TEST_SHARE = 5  # every 5th row is a test row in a data set without held-out rows
FEWEST_SEEN, MOST_SEEN, EPOCHS, BATCH = 30_000, 480_000, 15, 64  # training images over all epochs
RATE, DROPOUT, SEED = 2e-3, 0.4, 0
# Held-out accuracy that makes scores meaningful, by data set; MNIST in full, or 10,000 of its rows.
EXPECTED_ACCURACY = {"digits": 0.97, "stacked_digits": 0.9, "mnist": 0.993}
EXPECTED_OF_FEW, FEW, EXPECTED_OF_OTHERS = 0.985, 30_000, 0.9
FEWEST_IMAGES = 100  # on each side
SHIPPED = Path(__file__).parent / "classifiers"
MOST_SEARCHED = 2**22  # numbers of training images that are read at a time
MOST_SIDE = 32  # pixels per side that are compared with training images
LEAST_ACCURACY = 0.25  # of held-out images: below, features mean nothing
MOST_NUMBERS = 2**26  # pixels × channels of one set of images: half a gigabyte
MOST_NUMBERS_OF_FID = 2**30  # 4 GB of single precision; 50,000 images of 84 × 84 × 3 pixels
DAMAGED = ".damaged"  # the new ending of a damaged file
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, KeyError),
    *(OverflowError, MemoryError, NotImplementedError),
)
IMAGES_OF_MODES = 25_600  # Metz et al. 2017, section 3.3.1


@dataclass(frozen=True)
class RealImages:
    """Two halves of the real images, values (N, height, width, channels). The second half is empty
    if FID has too few held-out images.

    `searched`: the data set whose training images are searched for copies; None for no search.
    `are_held_out`: whether the reference is held out; otherwise it is training images. `is_whole`:
    whether it has all of them, or as many as an FID needs.
    """

    reference: NDArray[np.float32]
    others: NDArray[np.float32]
    searched: DataSet | None
    are_held_out: bool
    is_whole: bool = False

    @property
    def noun(self) -> str:
        """The name of the real images in sentences."""
        return "held-out images" if self.are_held_out else "training images"


def real_images(data: DataSet, count: int, seed: int) -> RealImages:
    """Random halves of the held-out images, or of the training images where too few are held out.

    Raises:
        DatasetError: there are fewer than 200.
    """
    random = np.random.RandomState(seed)
    are_held_out = data.held_out >= 2 * FEWEST_IMAGES
    available = data.held_out if are_held_out else data.rows
    most = MOST_NUMBERS // math.prod(data.fields[IMAGES].shape)
    half = min(count, available // 2, most)
    if half < FEWEST_IMAGES:
        raise DatasetError(
            f"data set {data.name} has {data.rows:,} images, but quality needs"
            f" {2 * FEWEST_IMAGES}: prepare more."
        )
    rows = random.permutation(available)[: 2 * half]
    if are_held_out:
        images = data.read_held_out(available)[IMAGES][rows]
    else:
        images = data.read(rows)[IMAGES]
    value = partial(host_value, field=data.fields[IMAGES])
    return RealImages(value(images[:half]), value(images[half:]), data, are_held_out)


def images_of_fid(data: DataSet, count: int, seed: int) -> RealImages:
    """The real images for FID, as published FIDs use them: the reference is training images, and
    the other half is held out; it is empty if too few are. No copies are searched for.
    """
    if data.rows < 2 * FEWEST_IMAGES:
        return replace(real_images(data, count, seed), searched=None)
    random = np.random.RandomState(seed)
    most = min(count, MOST_NUMBERS_OF_FID // math.prod(data.fields[IMAGES].shape))
    rows = np.sort(random.permutation(data.rows)[:most])
    value = partial(host_value, field=data.fields[IMAGES])
    others = np.empty((0, *data.fields[IMAGES].shape), np.float32)
    if data.held_out >= FEWEST_IMAGES:
        other_rows = np.sort(random.permutation(data.held_out)[:most])
        others = value(data.read_held_out(data.held_out)[IMAGES][other_rows])
    return RealImages(
        value(data.read(rows)[IMAGES]),
        others,
        searched=None,
        are_held_out=False,
        is_whole=len(rows) >= min(data.rows, IMAGES_OF_FID),
    )


def images_to_generate(real: RealImages, count: int, is_fid: bool) -> int:
    """The number of images to generate: as many as the reference has; `count` for an FID, even if
    the data set is smaller.
    """
    return count if is_fid and real.is_whole else min(count, len(real.reference))


def nearest_training(
    images: Array, real: RealImages, progress: Progress, *, are_real: bool = False
) -> NDArray[np.float64]:
    """The distance of each image to the nearest of all training images, without itself: (N,); ones
    where no copies are searched for. Of large images, every second, third, … pixel is compared.
    """
    data = real.searched
    if data is None:
        return np.ones(len(images))
    step = -(-max(images.shape[1:3]) // MOST_SIDE)
    at_a_time = max(1, MOST_SEARCHED // math.prod(images.shape[1:]))

    def blocks() -> Iterator[Array]:
        for begin in range(0, data.rows, at_a_time):
            progress(begin, data.rows, "searching for copies")
            rows = np.arange(begin, min(begin + at_a_time, data.rows))
            block = host_value(data.read(rows)[IMAGES], data.fields[IMAGES])
            yield block[:, ::step, ::step]

    return nearest_distances(
        images[:, ::step, ::step], blocks(), are_among=are_real and not real.are_held_out
    )


def label_parts(name: str, fields: Fields) -> tuple[int, ...]:
    """The sizes of the independent parts of a label; a single part of K classes for
    most data sets.
    """
    declared = catalog.DATASETS[name].label_parts if name in catalog.DATASETS else ()
    return declared or (len(fields[LABELS].classes),)


def images_of_modes(data: DataSet) -> NDArray[np.float32]:
    """The training images whose classes are counted, as many as are generated."""
    rows = np.random.RandomState(SEED).permutation(data.rows)
    field = data.fields[IMAGES]
    most = min(IMAGES_OF_MODES, MOST_NUMBERS // math.prod(field.shape))
    return host_value(data.read(np.sort(rows[:most]))[IMAGES], field)


# ---- classifier ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ImageClassifier:
    """A trained classifier. `digest`: of the weights, which distinguishes scores of different
    classifiers.

    `accuracy`: share of held-out rows classified correctly, 0 to 1. `expected`: the least accuracy
    that makes scores meaningful.
    """

    model: keras.Model
    parts: tuple[int, ...]
    digest: str
    accuracy: float
    expected: float

    @property
    def warning(self) -> str:
        """A warning about low accuracy; empty for an accurate classifier."""
        if self.accuracy >= self.expected:
            return ""
        return (
            f"The classifier is right on {self.accuracy:.1%} of held-out images, but should be on"
            f" {self.expected:.1%}: compare scores with care."
        )

    @property
    def facts(self) -> dict[str, Any]:
        """Facts about the classifier for answers."""
        return {"classifier": self.digest, "accuracy": self.accuracy}

    def read(self, images: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values (N, height, width, channels), as networks receive them → features (N, 128) and
        probabilities of the classes (N, K).
        """
        outputs = [
            [np.asarray(output, np.float64) for output in _on_host(self.model(part))]
            for part in np.array_split(images.astype(np.float32), -(-len(images) // 500))
        ]
        features, *parts = (np.concatenate(pieces) for pieces in zip(*outputs, strict=True))
        return features, joint(parts)


def classifier_of(
    data: DataSet, parts: tuple[int, ...], home: Home, progress: Progress
) -> ImageClassifier:
    """Loads the classifier of a labeled data set from the home or from this program, or trains and
    stores it. The digits' comes with the program, so their scores compare between machines.

    `parts`: sizes of the independent parts of a label, such as (10, 10, 10); (K,) for K classes.

    Raises:
        DatasetError: it is right on less than a quarter of the held-out images.
    """
    field = data.fields[IMAGES]
    training, test = _split(data)
    path = home.path / "classifiers" / f"{_content(training, test, parts)}.npz"
    model = network(field.shape, parts)
    if not path.is_file() and not path.with_suffix(DAMAGED).is_file():
        _copy_shipped(path)
    accuracy = _stored(path, model)
    if accuracy is None:
        again = ", whose file was damaged" if path.with_suffix(DAMAGED).is_file() else ""
        _train(model, training, parts, field, progress, f"training the classifier{again}")
        accuracy = _store(path, model, _accuracy(model, test, parts, field))
    if accuracy < LEAST_ACCURACY:
        raise DatasetError(
            f"The classifier of data set {data.name} is right on {accuracy:.1%} of held-out images."
            f" It has {data.rows:,} images of {math.prod(parts):,} classes to learn from, so scores"
            " would mean nothing: use features=imagenet, or prepare more images per class."
        )
    return ImageClassifier(
        model,
        parts,
        _digest(model.get_weights()),
        accuracy,
        expected_accuracy(data.name, data.rows),
    )


def network(shape: tuple[int, ...], parts: tuple[int, ...]) -> keras.Model:
    """Values (N, height, width, channels) → 128 features, then the probabilities of each part."""
    import keras

    seeds = iter(range(SEED, SEED + 100))

    def drawn() -> Any:
        return keras.initializers.HeNormal(seed=next(seeds))

    inputs = keras.Input(shape, dtype="float32")
    values, side, width = inputs, min(shape[:2]), iter(WIDTHS)
    filters = WIDTHS[0]
    while side > SMALLEST_SIDE:
        filters = next(width, filters)
        values = keras.layers.Conv2D(
            filters,
            KERNEL,
            padding="same",
            activation="relu",
            kernel_initializer=drawn(),
            dtype="float32",
        )(values)
        values = keras.layers.MaxPooling2D(2, dtype="float32")(values)
        side //= 2
    values = keras.layers.Flatten(dtype="float32")(values)
    features = keras.layers.Dense(
        FEATURES, activation="relu", kernel_initializer=drawn(), dtype="float32", name="features"
    )(values)
    values = keras.layers.Dropout(DROPOUT, seed=SEED, dtype="float32")(features)
    outputs = [
        keras.layers.Dense(size, activation="softmax", kernel_initializer=drawn(), dtype="float32")(
            values
        )
        for size in parts
    ]
    return keras.Model(inputs, [features, *outputs])


def _split(data: DataSet) -> tuple[Arrays, Arrays]:
    """Training rows and test rows. Test rows are held-out rows, or every fifth row in
    random order.
    """
    row_bytes = (
        int(np.prod(data.fields[IMAGES].shape)) * np.dtype(data.fields[IMAGES].dtype).itemsize
    )
    count = min(data.rows, MOST_ROWS, MOST_BYTES // row_bytes)
    order = np.random.RandomState(SEED).permutation(data.rows)[:count]
    if data.held_out:
        return data.read(np.sort(order)), data.read_held_out(MOST_TEST_ROWS)
    tested = len(order) // TEST_SHARE
    return data.read(order[tested:]), data.read(order[:tested])


def _train(
    model: keras.Model,
    rows: Arrays,
    parts: tuple[int, ...],
    field: Field,
    progress: Progress,
    sentence: str,
) -> None:
    import keras

    count = len(rows[LABELS])
    epochs = max(1, round(max(FEWEST_SEEN, min(EPOCHS * count, MOST_SEEN)) / count))
    steps = max(1, count // BATCH)
    rate = keras.optimizers.schedules.CosineDecay(RATE, epochs * steps)
    model.compile(
        optimizer=keras.optimizers.Adam(rate),
        loss=[None, *("sparse_categorical_crossentropy" for _ in parts)],
    )
    labels, random = (
        np.unravel_index(rows[LABELS].astype(np.int64), parts),
        np.random.RandomState(SEED),
    )
    nothing = np.zeros((min(BATCH, count), FEATURES), np.float32)  # features have no loss
    for epoch in range(epochs):
        order = random.permutation(count)
        for step in range(steps):
            progress(epoch * steps + step, epochs * steps, sentence)
            batch = order[step * BATCH : (step + 1) * BATCH]
            model.train_on_batch(
                host_value(rows[IMAGES][batch], field),
                [nothing, *(part[batch] for part in labels)],
            )


def _accuracy(model: keras.Model, rows: Arrays, parts: tuple[int, ...], field: Field) -> float:
    """The share of rows with every part of the label classified correctly."""
    own = ImageClassifier(model, parts, "", 0.0, 0.0)
    predicted = own.read(host_value(rows[IMAGES], field))[1].argmax(axis=1)
    return float((predicted == rows[LABELS]).mean())


def _on_host(outputs: Any) -> list[Any]:
    import keras

    return [keras.ops.convert_to_numpy(output) for output in outputs]


def _content(training: Arrays, test: Arrays, parts: tuple[int, ...]) -> str:
    digest = hashlib.sha256(f"{VERSION} {parts}".encode())
    for rows in (training, test):
        for name in (IMAGES, LABELS):
            digest.update(np.ascontiguousarray(rows[name]).data)
    return digest.hexdigest()[:32]


def _digest(weights: list[NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for array in weights:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


def _copy_shipped(path: Path) -> None:
    """Copies the file of that name, of a classifier that comes with this program, if there is one.

    The name is a digest of recipe and images, so a changed recipe finds none and trains.
    """
    shipped = SHIPPED / path.name
    if shipped.is_file():
        path.parent.mkdir(exist_ok=True)
        part = path.with_suffix(f".{secrets.token_hex(4)}.part.npz")
        shutil.copyfile(shipped, part)
        part.replace(path)


def _stored(path: Path, model: keras.Model) -> float | None:
    """Loads stored weights and returns their accuracy; None without. A damaged file is renamed,
    so that the classifier is trained again.
    """
    if not path.is_file():
        return None
    try:
        with np.load(path) as stored:
            weights = [stored[f"weight_{place}"] for place in range(len(stored.files) - 1)]
            accuracy = float(stored["accuracy"])
        model.set_weights(weights)
    except _DAMAGED as error:
        aside = path.replace(path.with_suffix(DAMAGED))
        log.warning(
            "The stored classifier is damaged (%s), so it is now %s, and is trained again.",
            type(error).__name__,
            aside,
        )
        return None
    return accuracy


def _store(path: Path, model: keras.Model, accuracy: float) -> float:
    """Writes the file whole or not at all, and returns the accuracy. If another job has stored a
    classifier of this data set meanwhile, that one stays, so that both jobs use it.
    """
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(f".{secrets.token_hex(4)}.part.npz")
    arrays = {f"weight_{place}": array for place, array in enumerate(model.get_weights())}
    np.savez(part, allow_pickle=False, accuracy=np.float64(accuracy), **arrays)
    other = _stored(path, model)
    if other is not None:
        part.unlink()
        return other
    part.replace(path)
    return accuracy


def expected_accuracy(name: str, rows: int) -> float:
    """The held-out accuracy, 0 to 1, below which scores need a warning. `name`: of the data set;
    `rows`: its training images.
    """
    if name == "mnist" and rows < FEW:
        return EXPECTED_OF_FEW
    return EXPECTED_ACCURACY.get(name, EXPECTED_OF_OTHERS)
