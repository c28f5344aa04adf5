"""The Keras cache and download, without which MNIST may be unavailable.

tests/full/data/test_keras_cache.py imports Keras.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from gan_runtime.base.errors import DatasetError
from gan_runtime.data import builtin_sets, loading
from tests.data.idx_files import TRAIN, WriteIdx, pictures
from tests.support.offline import alone  # noqa: F401


def test_the_keras_cache_is_detected_without_importing_keras(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GAN_DATA_DIR", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    assert not loading.availability("mnist").ready
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "mnist.npz").touch()
    availability = loading.availability("mnist")
    assert (availability.ready, availability.images) == (True, 60_000)
    assert not loading.availability("fashion_mnist").ready


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
@pytest.mark.usefixtures("alone")
def test_a_failed_download_names_three_ways_to_get_the_images(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def load_data() -> None:
        raise Exception("URL fetch failure\nand more")  # as raised by Keras

    keras = SimpleNamespace(
        datasets=SimpleNamespace(**{name: SimpleNamespace(load_data=load_data)})
    )
    monkeypatch.setitem(sys.modules, "keras", keras)
    with pytest.raises(DatasetError) as refused:
        loading.load(name)
    assert (
        str(refused.value)
        == f"{name} is not on this machine, and Keras cannot download it (URL fetch failure):"
        " connect to the network, set GAN_DATA_DIR to a folder of its IDX files, or put Keras'"
        " copy into ~/.keras/datasets. Data set digits needs no download."
    )


@pytest.mark.usefixtures("alone")
def test_a_cancelled_download_leaves_no_files_and_no_process(tmp_path: Path) -> None:
    class CancelledError(Exception):
        """Raised by a caller to cancel."""

    def progress(*_: object) -> None:
        raise CancelledError

    before = set(psutil.Process().children())  # from other tests in this process, such as a browser
    with pytest.raises(CancelledError):
        builtin_sets.prepare_in_keras_cache("mnist", progress)
    assert not list((tmp_path / ".keras" / "datasets").iterdir())
    assert set(psutil.Process().children()) <= before


@pytest.mark.usefixtures("alone")
def test_a_complete_download_is_moved_into_the_cache(
    tmp_path: Path, write_idx: WriteIdx, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(_name: str, aside: Path, _progress: object) -> None:
        write_idx(aside / "datasets" / "fashion-mnist" / f"{TRAIN}.gz", pictures(3))

    monkeypatch.setattr(builtin_sets, "download", download)
    assert not loading.availability("fashion_mnist").ready
    builtin_sets.prepare_in_keras_cache("fashion_mnist", lambda *_: None)
    assert loading.availability("fashion_mnist").ready
    assert [path.name for path in (tmp_path / ".keras" / "datasets").iterdir()] == ["fashion-mnist"]


@pytest.mark.usefixtures("alone")
def test_an_unwritable_cache_is_named(tmp_path: Path) -> None:
    (tmp_path / ".keras").write_text("a file")
    with pytest.raises(
        DatasetError,
        match=r"mnist cannot be stored in Keras' cache \(.+datasets: Not a directory\)",
    ):
        builtin_sets.prepare_in_keras_cache("mnist", lambda *_: None)
