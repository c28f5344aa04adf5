"""Image features from pretrained ImageNet networks: MobileNetV2, as in Keras, and the Inception
network of FID (inception.py), with the files of their weights.

Loads Keras when a network is built, on the engine of the process.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickletools
import secrets
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base import disk
from gan_runtime.base.errors import JobError
from gan_runtime.data.contract import Progress
from gan_runtime.evaluation.mobilenet_file import MOBILENET, mobilenet_path

if TYPE_CHECKING:
    import keras

# The weights of the FID paper, under the file names of pytorch-fid and torch-fidelity. The files
# are equal.
INCEPTION_FILES = (
    "pt_inception-2015-12-05-6726825d.pth",
    "weights-inception-2015-12-05-6726825d.pth",
)
INCEPTION_DIGEST = "6726825d0af5f729cebd5821db510b11b1cfad8faad88a03f1befd49fb9129b2"  # SHA-256
INCEPTION_URL = (
    f"https://github.com/mseitzer/pytorch-fid/releases/download/fid_weights/{INCEPTION_FILES[0]}"
)
MOBILENET_URL = (
    f"https://storage.googleapis.com/tensorflow/keras-applications/mobilenet_v2/{MOBILENET}"
)
MOBILENET_SIDE, INCEPTION_SIDE = 224, 299  # pixels
IMAGES_AT_A_TIME = 50
SECONDS_WITHOUT_DATA = 30.0
Values = NDArray[np.floating[Any]]
STORAGES = {  # PyTorch's → NumPy's type
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
}
_MARK = object()
CONSTANTS: dict[str, Callable[[], Any]] = {  # values by pickle opcode
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "MARK": lambda: _MARK,
}


@dataclass(frozen=True)
class FeatureNetwork:
    """A pretrained network without classes. `name`: "imagenet" or "inception". `digest`: 16 digits
    of the digest of its weights file. `model`: images (N, side, side, 3) → features (N, F).
    `resize`: images as floats from 0 to 255, (N, height, width, 3) → input of the model.
    """

    name: str
    digest: str
    model: keras.Model
    resize: Callable[[NDArray[np.float32]], NDArray[np.float32]]
    progress: Progress
    parts: tuple[int, ...] = ()
    warning: str = ""

    @property
    def facts(self) -> dict[str, Any]:
        """Facts about the network for answers."""
        return {"weights": self.digest}

    def read(self, images: Values) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values from -1 to 1, (N, height, width, 1 or 3) → features (N, F), and empty class
        probabilities (N, 0).

        Values are rounded to bytes first, as in image files; gray images get three equal channels.
        """
        import keras

        features = []
        for begin in range(0, len(images), IMAGES_AT_A_TIME):
            self.progress(begin, len(images), f"features of {len(images):,} images")
            batch = self.resize(as_bytes(images[begin : begin + IMAGES_AT_A_TIME]))
            features.append(keras.ops.convert_to_numpy(self.model(batch)))
        return np.concatenate(features).astype(np.float64), np.empty((len(images), 0))


def as_bytes(images: Values) -> NDArray[np.float32]:
    """Values from -1 to 1 → whole numbers from 0 to 255 in three channels, as float32."""
    levels = np.clip(np.rint((images + 1.0) * 127.5), 0.0, 255.0).astype(np.float32)
    return np.repeat(levels, 3, axis=-1) if levels.shape[-1] == 1 else levels


def resized(images: NDArray[np.float32], side: int, half_pixels: bool) -> NDArray[np.float32]:
    """Resizes bilinearly: (N, height, width, C) → (N, side, side, C)."""
    rows, columns = (bilinear(size, side, half_pixels) for size in images.shape[1:3])
    channels = np.moveaxis(images, -1, 1)  # (N, C, height, width)
    return np.ascontiguousarray(np.moveaxis(rows @ channels @ columns.T, 1, -1))


def bilinear(size: int, side: int, half_pixels: bool) -> NDArray[np.float32]:
    """The weights (side, size) of the old pixels in the new pixels.

    New pixel i is at old position i · size / side, as in TensorFlow 1, which computed the published
    FID; with `half_pixels` it is at (i + ½) · size / side - ½, as in current libraries. Weights are
    linear between two old pixels; positions beyond the border use the border pixel.
    """
    shift = 0.5 if half_pixels else 0.0
    places = np.clip((np.arange(side) + shift) * (size / side) - shift, 0.0, size - 1.0)
    return np.maximum(0.0, 1.0 - np.abs(places[:, np.newaxis] - np.arange(size))).astype(np.float32)


# ---- the two networks ----------------------------------------------------------------------------


def inception_network(path: Path, progress: Progress) -> FeatureNetwork:
    """The network of the FID paper, with the weights of a file.

    Raises:
        JobError: the file has other weights, so the distance would not be FID.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != INCEPTION_DIGEST:
        raise JobError(
            f"{path} has the SHA-256 {digest[:8]}…, but the weights of the FID paper have"
            f" {INCEPTION_DIGEST[:8]}…: get {INCEPTION_URL}."
        )
    from gan_runtime.evaluation import inception  # loads Keras

    model = inception.network()
    inception.load(model, tensors_of(path))
    return FeatureNetwork("inception", digest[:16], model, inception_input, progress)


def inception_input(levels: NDArray[np.float32]) -> NDArray[np.float32]:
    """(x - 128) / 128, as in torch-fidelity and bit for bit as in the original FID network."""
    return (resized(levels, INCEPTION_SIDE, half_pixels=False) - 128.0) / 128.0


def imagenet_network(progress: Progress, url: str = MOBILENET_URL) -> FeatureNetwork:
    """MobileNetV2 without its class layer; its weights are downloaded once into Keras' cache.

    Raises:
        JobError: the weights cannot be downloaded, or are damaged.
    """
    import keras

    path = mobilenet_file(progress, url)
    policy = keras.config.dtype_policy()  # that of the run, which can be half precision
    keras.config.set_dtype_policy("float32")
    try:
        model = keras.applications.MobileNetV2(
            input_shape=(MOBILENET_SIDE, MOBILENET_SIDE, 3),
            include_top=False,
            weights=str(path),
            pooling="avg",
        )
    except (OSError, ValueError, KeyError) as error:
        raise JobError(f"{path} is damaged ({error}): delete it, and try again.") from None
    finally:
        keras.config.set_dtype_policy(policy)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return FeatureNetwork("imagenet", digest, model, imagenet_input, progress)


def imagenet_input(levels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scales to the range from -1 to 1, as Keras does for this network."""
    return resized(levels, MOBILENET_SIDE, half_pixels=True) / 127.5 - 1.0


# ---- files of weights ----------------------------------------------------------------------------


def mobilenet_file(progress: Progress, url: str = MOBILENET_URL) -> Path:
    """The weights file in Keras' cache, downloaded if it is missing.

    Raises:
        JobError: there is no network connection, or no disk space.
    """
    path = mobilenet_path()
    if path.is_file():
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Another job can download it at the same time.
        partial = path.with_suffix(f".{secrets.token_hex(4)}.part")
        with disk.whole_file(path, partial=partial) as part:
            _download(url, part, progress)
    except OSError as error:
        raise JobError(
            f"features is imagenet, but MobileNetV2 is not on this machine and cannot be downloaded"
            f" ({error}): connect to the network, put {url} into {path.parent}, or use"
            " features=classifier."
        ) from None
    return path


def _download(url: str, path: Path, progress: Progress) -> None:
    """Downloads in parts, and can be cancelled between two of them. Raises OSError."""
    import httpx  # 8 MB that the dashboard, which has the declarations of this file, does not need

    try:
        with (
            httpx.stream("GET", url, timeout=SECONDS_WITHOUT_DATA, follow_redirects=True) as answer,
            path.open("wb") as file,
        ):
            answer.raise_for_status()
            total = int(answer.headers.get("content-length", 0))
            for part in answer.iter_bytes(2**16):
                file.write(part)
                progress(file.tell(), max(total, file.tell()), "downloading MobileNetV2")
    except httpx.HTTPError as error:
        raise OSError(str(error)) from error


def inception_places(folder: Path) -> list[Path]:
    """The paths that are searched for the file: `folder`, then the cache of torch.hub, to which
    pytorch-fid and torch-fidelity download.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    hub = Path(os.environ.get("TORCH_HOME") or f"{cache}/torch") / "hub" / "checkpoints"
    return [place / name for place in (folder, hub) for name in INCEPTION_FILES]


def inception_file(folder: Path) -> Path:
    """The path of the Inception weights.

    Raises:
        JobError: the file is not on this machine; the message names its URL and its folder.
    """
    for path in inception_places(folder):
        if path.is_file():
            return path
    raise JobError(
        f"features is inception, but its weights are not on this machine: put {INCEPTION_URL} into"
        f" {folder}, or use features=classifier."
    )


def tensors_of(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a PyTorch state dictionary, by name, as NumPy arrays.

    The file is a zip with a pickle and one file per storage; before PyTorch 1.6 it is a sequence of
    pickles followed by the storages. Nothing but tensors is built.

    Raises:
        JobError: the file has another format.
    """
    try:
        with path.open("rb") as file:
            if zipfile.is_zipfile(file):
                return _of_zip(file)
            file.seek(0)
            return _of_pickles(file)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise JobError(f"{path} is not a file of PyTorch tensors: {error}.") from None


def _of_zip(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    storages: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(file) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("data.pkl"))
        root = name.removesuffix("data.pkl")
        tensors = _built(io.BytesIO(archive.read(name)), storages)
        for key, storage in storages.items():
            storage[:] = np.frombuffer(archive.read(f"{root}data/{key}"), storage.dtype)
    return dict(tensors)


def _of_pickles(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    storages: dict[str, NDArray[Any]] = {}
    for _ in range(3):  # a magic number, the version, and the system
        _built(file, {})
    tensors = _built(file, storages)
    for key in _built(file, {}):
        storage, count = storages[key], int.from_bytes(file.read(8), "little")
        data = file.read(count * storage.itemsize)
        storage[:] = np.frombuffer(data, storage.dtype)
    return dict(tensors)


def _built(file: IO[bytes], storages: dict[str, NDArray[Any]]) -> Any:
    """Interprets a pickle of tensors without unpickling it, so that no code in it can run. The
    arrays are views of `storages`, which the caller fills. Raises ValueError for anything else.
    """
    stack: list[Any] = []
    memo: dict[Any, Any] = {}
    for opcode, argument, _ in pickletools.genops(file):
        name = opcode.name
        if name in CONSTANTS:
            stack.append(CONSTANTS[name]())
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        elif name in ("TUPLE", "SETITEMS", "APPENDS"):
            _add(stack, name)
        elif name in ("SETITEM", "APPEND"):
            stack.insert(-2 if name == "SETITEM" else -1, _MARK)
            _add(stack, f"{name}S")
        elif name == "GLOBAL":
            stack.append(_part_of_tensors(str(argument)))
        elif name == "REDUCE":
            arguments = stack.pop()
            stack.append(stack.pop()(*arguments))
        elif name == "BINPERSID":
            _, kind, key, _, count, *_ = stack.pop()
            stack.append(storages.setdefault(str(key), np.zeros(count, kind)))
        elif name == "BUILD":
            stack.pop()  # drops attributes of the dictionary
        elif argument is not None and name not in ("PROTO", "FRAME"):
            stack.append(argument)  # a number or text
        elif name not in ("PROTO", "FRAME", "STOP"):
            raise ValueError(f"{name} builds no tensor")
    return stack.pop()


def _add(stack: list[Any], name: str) -> None:
    """Moves all values above the mark into one tuple, or into the collection below the mark."""
    mark = max(place for place, value in enumerate(stack) if value is _MARK)
    items = stack[mark + 1 :]
    del stack[mark:]
    if name == "TUPLE":
        stack.append(tuple(items))
    elif name == "APPENDS":
        stack[-1].extend(items)
    else:
        stack[-1].update(zip(items[::2], items[1::2], strict=True))


def _part_of_tensors(place: str) -> Any:
    """What a PyTorch name builds. `place`: module and name of a class or function of PyTorch."""
    module, _, name = place.partition(" ")
    if (module, name) == ("collections", "OrderedDict"):
        return dict
    if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
        return _view
    if module == "torch" and name in STORAGES:
        return np.dtype(STORAGES[name])
    raise ValueError(f"it holds {module}.{name}, which is not a tensor")


def _view(
    storage: NDArray[Any], offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any
) -> NDArray[Any]:
    """A strided view of a storage, strides in elements. Raises ValueError if the storage is too
    short.
    """
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if min(shape, default=1) > 0 and not 0 <= offset <= last < len(storage):
        raise ValueError("a tensor is longer than its storage")
    in_bytes = tuple(stride * storage.itemsize for stride in strides)
    return np.lib.stride_tricks.as_strided(storage[offset:], shape, in_bytes, writeable=False)
