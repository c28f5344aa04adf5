"""What Keras reads from its cache, and reports without a network, in processes that load it."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from gan_runtime.base.errors import DatasetError
from gan_runtime.data import builtin_sets
from gan_runtime.records.home import REPOSITORY
from tests.data.idx_files import TEST, TRAIN, WriteIdx, pictures
from tests.support.offline import alone  # noqa: F401


@pytest.mark.usefixtures("alone")
def test_images_in_the_keras_cache_are_loaded(tmp_path: Path, write_idx: WriteIdx) -> None:
    """In a subprocess, because Keras fixes its home folder on import; with Fashion-MNIST, whose
    files have no checksum.
    """
    cache = tmp_path / ".keras" / "datasets" / "fashion-mnist"
    for images in (TRAIN, TEST):
        write_idx(cache / f"{images}.gz", pictures(3))
        labels = cache / f"{images.replace('images-idx3', 'labels-idx1')}.gz"
        labels.write_bytes(gzip.compress(b"\x00\x00\x08\x01" + b"\x00\x00\x00\x03" + b"\x00" * 3))
    code = (
        "from gan_runtime.data import loading; data = loading.load('fashion_mnist');images ="
        " data.resident['images']; print(images.shape, images.dtype, images[2, 1, 0, 0],"
        " data.held_out, len(data.fields), data.origin)"
    )
    child = _child(["-c", code])
    assert child.stdout.splitlines()[-1:] == ["(3, 28, 28, 1) uint8 20 3 2 Keras' cache"], (
        child.stderr
    )


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
@pytest.mark.usefixtures("alone")
def test_failed_keras_download_is_reported_and_leaves_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        DatasetError, match=f"^{name} is not on this machine, and Keras cannot download it"
    ):
        builtin_sets.prepare_in_keras_cache(name, lambda *_: None)
    assert not list((tmp_path / ".keras" / "datasets").iterdir())


def _child(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
