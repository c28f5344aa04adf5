"""MNIST and Fashion-MNIST: both come as IDX files of 28 × 28 grey images, 60,000 to train on and 10,000 to test.

Looked for in this order: the folder GAN_DATA_DIR, Keras' cache, then Keras' download. A folder `GAN_DATA_DIR/<dataset>`
wins over files directly in GAN_DATA_DIR; those count as Fashion-MNIST only if the folder's name contains "fashion",
because both sets use the same file names. A folder that holds only the t10k files gives the 10,000 test images, and says so.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gan_runtime.data import idx
from gan_runtime.data.contract import Availability, ImageSet
from gan_runtime.errors import QUOTED_CHARACTERS, DatasetError

DATA_VARIABLE = "GAN_DATA_DIR"
STEMS = ("train-images", "t10k-images")
ENDINGS = ("-idx3-ubyte", "-idx3-ubyte.gz", ".idx3-ubyte", ".idx3-ubyte.gz")
SIDE = 28


@dataclass(frozen=True)
class _Found:
    path: Path
    note: str


def availability(name: str) -> Availability:
    """What a run would train on, without keeping any of it; `ready` is False when Keras would have to download it first.

    Raises:
        DatasetError: GAN_DATA_DIR is set but holds no such images, or a file there is damaged.
    """
    found = _in_folder(name)
    if found:
        images, *_ = _checked_shape(found.path)
        idx.check(found.path)
        return Availability(True, images, str(found.path), found.note)
    cached = _in_keras_cache(name)
    origin = f"Keras' cache ({cached})" if cached else "to be downloaded by Keras when the run starts"
    return Availability(cached is not None, 60_000, origin)


def load(name: str) -> ImageSet:
    """uint8 (N, 28, 28, 1).

    Raises:
        DatasetError: nothing there and no network; the message names the three ways to get the images.
    """
    found = _in_folder(name)
    if found:
        _checked_shape(found.path)
        return ImageSet(name, idx.read_images(found.path)[..., None], str(found.path), found.note)
    return ImageSet(name, _from_keras(name)[..., None], "Keras' cache")


def _in_folder(name: str) -> _Found | None:
    given = os.environ.get(DATA_VARIABLE)
    if not given:
        return None
    root = _folder(given)
    for folder in _candidate_folders(root, name):
        for stem in STEMS:
            for path in (folder / f"{stem}{ending}" for ending in ENDINGS):
                if path.is_file():
                    reduced = stem == "t10k-images"
                    return _Found(
                        path,
                        f"{folder} has only the test files: training on these 10,000 images."
                        if reduced
                        else "",
                    )
    raise DatasetError(
        f"{DATA_VARIABLE} is {given!r}, but no {name} images are there: put train-images-idx3-ubyte (.gz or not) into "
        f"{root / name}, or unset {DATA_VARIABLE} to use Keras' cache or its download."
    )


def _folder(given: str) -> Path:
    try:
        root = Path(given).expanduser()
        if root.is_dir():
            return root
    except (OSError, RuntimeError, ValueError):  # a name too long, or of a user whom nobody knows
        given = given[:QUOTED_CHARACTERS]
    raise DatasetError(
        f"{DATA_VARIABLE} is {given!r}, which is not a folder: set it to a folder of IDX files, or unset it."
    )


def _candidate_folders(root: Path, name: str) -> list[Path]:
    own = [root / name, root / name.replace("_", "-")]
    is_fashion_folder = "fashion" in root.name.lower()
    return [*own, root] if is_fashion_folder == (name == "fashion_mnist") else own


def _checked_shape(path: Path) -> tuple[int, int, int]:
    images, height, width = idx.read_shape(path)
    if (height, width) != (SIDE, SIDE) or images == 0:
        raise DatasetError(
            f"{path} holds {images} images of {height} × {width} pixels, but 28 × 28 is needed: use the original files."
        )
    return images, height, width


def _in_keras_cache(name: str) -> Path | None:
    try:
        root = Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras") / "datasets"
        path = root / ("mnist.npz" if name == "mnist" else "fashion-mnist/train-images-idx3-ubyte.gz")
        return path if path.is_file() else None
    except (OSError, RuntimeError):  # no home folder, or a name too long
        return None


def _from_keras(name: str) -> np.ndarray:
    import keras  # only trainers and the fetching child process come here

    try:
        (images, _), _ = getattr(keras.datasets, name).load_data()
    except Exception as error:  # Keras raises bare Exception when a download fails
        raise DatasetError(
            f"{name} is not on this machine and Keras could not download it ({_first_line(error)}): "
            f"connect to the network, or set {DATA_VARIABLE} to a folder with its IDX files, "
            f"or put Keras' own copy into ~/.keras/datasets; dataset digits needs none of this."
        ) from None
    return np.asarray(images, dtype=np.uint8)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
