"""Generates inception_reference.npz, features of torch-fidelity's Inception network with random
weights, to which test_inception.py compares this project's, and the two files of PyTorch tensors
for tests/evaluation/test_image_features.py.

    python -m venv /tmp/fid
    /tmp/fid/bin/pip install torch==2.13.0 torch-fidelity==0.4.0
    /tmp/fid/bin/python -m tests.full.evaluation.inception_reference

torchvision, which torch-fidelity imports for its other networks, is mocked.
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
from numpy.typing import NDArray

FIGURES = Path(__file__).with_name("inception_reference.npz")
TORCH_FILES = Path(__file__).parents[2] / "support" / "torch_files"
SIDES = ((28, 28), (64, 48))  # image sizes, smaller than the network's 299 pixels


def images(height: int, width: int) -> NDArray[np.uint8]:
    """Returns two images (2, height, width, 3)."""
    random = np.random.RandomState(height)
    return random.randint(0, 256, (2, height, width, 3)).astype(np.uint8)


def random_tensors(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[np.float32]]:
    """Returns tensors by PyTorch name, scaled so that values neither vanish nor explode."""
    return {name: _tensor(name, shape) for name, shape in shapes.items()}


def _tensor(name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    random = np.random.RandomState(zlib.crc32(name.encode()))
    if name.endswith("conv.weight"):
        values = random.standard_normal(shape) * np.sqrt(2.0 / np.prod(shape[1:]))
    elif name.endswith(("bn.weight", "running_var")):
        values = random.uniform(0.8, 1.2, shape)
    else:
        values = random.standard_normal(shape) * 0.1
    return np.asarray(values, np.float32)


def small_tensors() -> dict[str, NDArray[np.float32]]:
    """Returns the contents of both PyTorch files; `turned` is the transpose of a (2, 3) storage."""
    return {
        "kernel": np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2),
        "turned": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "count": np.asarray(7, np.int64),
    }


def write_torch_files() -> None:
    """Saves a state dictionary in PyTorch's current format and in the one before version 1.6."""
    import torch

    tensors = {name: torch.from_numpy(array) for name, array in small_tensors().items()}
    TORCH_FILES.mkdir(exist_ok=True)
    for name, is_zip in (("zip", True), ("pickles", False)):
        path = TORCH_FILES / f"{name}.pth"
        torch.save(tensors, path, _use_new_zipfile_serialization=is_zip)


def main() -> None:
    """Writes the features and the two files."""
    for name in ("", ".transforms", ".transforms.functional", ".datasets", ".models"):
        sys.modules[f"torchvision{name}"] = MagicMock()
    import torch
    from torch_fidelity import feature_extractor_inceptionv3 as reference

    class Shapes(reference.FeatureExtractorInceptionV3):
        """Stops before weights are loaded."""

        def load_state_dict(self, *_: object) -> None:
            raise StopIteration(
                {name: tuple(tensor.shape) for name, tensor in self.state_dict().items()}
            )

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "weights.pth")
        torch.save({}, path)
        try:
            Shapes("shapes", ["2048"], path)
        except StopIteration as stop:
            (shapes,) = stop.args
        tensors = random_tensors(shapes)
        torch.save({name: torch.from_numpy(array) for name, array in tensors.items()}, path)
        network = reference.FeatureExtractorInceptionV3("reference", ["2048"], path)
    figures = {}
    for height, width in SIDES:
        pixels = torch.from_numpy(images(height, width)).permute(0, 3, 1, 2)
        figures[f"{height}x{width}"] = network(pixels)[0].numpy()
    np.savez_compressed(FIGURES, allow_pickle=False, **figures)
    write_torch_files()


if __name__ == "__main__":
    main()
