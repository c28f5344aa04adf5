"""Keras' cache and its download, without which there may be no MNIST."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gan_runtime.data import keras_sets, loading
from gan_runtime.errors import DatasetError
from gan_runtime.home import REPOSITORY
from tests.data.idx_files import TEST, TRAIN, WriteIdx, pictures


def test_keras_cache_is_found_without_loading_keras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAN_DATA_DIR", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    assert not loading.availability("mnist").ready
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "mnist.npz").touch()
    known = loading.availability("mnist")
    assert (known.ready, known.images) == (True, 60_000)
    assert not loading.availability("fashion_mnist").ready


@pytest.mark.usefixtures("alone")
def test_images_in_keras_cache_are_loaded(tmp_path: Path, write_idx: WriteIdx) -> None:
    """In a child, because Keras fixes its home folder when it is imported; Fashion-MNIST, whose files carry
    no checksum.
    """
    cache = tmp_path / ".keras" / "datasets" / "fashion-mnist"
    for images in (TRAIN, TEST):
        write_idx(cache / f"{images}.gz", pictures(3))
        labels = cache / f"{images.replace('images-idx3', 'labels-idx1')}.gz"
        labels.write_bytes(gzip.compress(b"\x00\x00\x08\x01" + b"\x00\x00\x00\x03" + b"\x00" * 3))
    code = (
        "from gan_runtime.data import loading; data = loading.load('fashion_mnist');"
        "images = data.resident['images']; "
        "print(images.shape, images.dtype, images[2, 1, 0, 0], data.held_out, len(data.fields), data.origin)"
    )
    child = _child(["-c", code])
    assert child.stdout.splitlines()[-1:] == ["(3, 28, 28, 1) uint8 20 3 2 Keras' cache"], child.stderr


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
@pytest.mark.usefixtures("alone")
def test_without_network_the_three_ways_to_get_the_images_are_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(DatasetError) as refused:
        keras_sets.prepare(name, lambda *_: None)
    sentence = str(refused.value)
    assert sentence.startswith(f"{name} is not on this machine and Keras could not download it (")
    assert sentence.endswith(
        "): connect to the network, or set GAN_DATA_DIR to a folder with its IDX files, "
        "or put Keras' own copy into ~/.keras/datasets; dataset digits needs none of this."
    )
    assert not list((tmp_path / ".keras" / "datasets").iterdir())


@pytest.mark.usefixtures("alone")
def test_a_cancelled_download_leaves_nothing_and_no_process(tmp_path: Path) -> None:
    class CancelledError(Exception):
        """What a caller raises to cancel."""

    def progress(*_: object) -> None:
        raise CancelledError

    before = set(psutil.Process().children())  # of other tests of this process, such as a browser
    with pytest.raises(CancelledError):
        keras_sets.prepare("mnist", progress)
    assert not list((tmp_path / ".keras" / "datasets").iterdir())
    assert set(psutil.Process().children()) <= before


@pytest.mark.usefixtures("alone")
def test_what_was_downloaded_as_a_whole_gets_into_the_cache(
    tmp_path: Path, write_idx: WriteIdx, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(_name: str, aside: Path, _progress: object) -> None:
        write_idx(aside / "datasets" / "fashion-mnist" / f"{TRAIN}.gz", pictures(3))

    monkeypatch.setattr(keras_sets, "_download", download)
    assert not loading.availability("fashion_mnist").ready
    keras_sets.prepare("fashion_mnist", lambda *_: None)
    assert loading.availability("fashion_mnist").ready
    assert [path.name for path in (tmp_path / ".keras" / "datasets").iterdir()] == ["fashion-mnist"]


@pytest.mark.usefixtures("alone")
def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / ".keras").write_text("a file")
    with pytest.raises(
        DatasetError, match=r"mnist cannot be put into Keras' cache \(.+datasets: Not a directory\)"
    ):
        keras_sets.prepare("mnist", lambda *_: None)


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty home folder, no folder of data, and no way to the network."""
    for name in ("GAN_DATA_DIR", "KERAS_HOME", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("HOME", str(tmp_path))


def _child(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
