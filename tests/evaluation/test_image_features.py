"""Third-party pretrained networks: image resizing and weight files."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

from gan_runtime.base.errors import JobError
from gan_runtime.evaluation import image_features
from gan_runtime.jobs.process import Cancelled
from tests.full.evaluation.inception_reference import TORCH_FILES, small_tensors

WEIGHTS = bytes(range(256)) * 1_000


@pytest.mark.parametrize("name", ["zip.pth", "pickles.pth"])
def test_pytorch_tensors_are_read_without_pytorch(name: str) -> None:
    tensors = image_features.tensors_of(TORCH_FILES / name)
    assert set(tensors) == set(small_tensors())
    for key, array in small_tensors().items():
        assert tensors[key].dtype == array.dtype
        assert tensors[key].tolist() == array.tolist(), key


class Malicious:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("true",)


def test_file_with_more_than_tensors_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.pth"
    path.write_bytes(pickle.dumps(Malicious(), protocol=2))
    with pytest.raises(JobError, match=r"system, which is not a tensor"):
        image_features.tensors_of(path)


@pytest.mark.parametrize("share", [0.2, 0.7, 0.99])
def test_truncated_file_is_refused(tmp_path: Path, share: float) -> None:
    whole = (TORCH_FILES / "pickles.pth").read_bytes()
    path = tmp_path / "weights.pth"
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(JobError, match=r"weights\.pth is not a file of PyTorch tensors"):
        image_features.tensors_of(path)


def test_bilinear_resizing_supports_both_pixel_conventions() -> None:
    old = np.array([0.0, 8.0])
    assert (image_features.bilinear(2, 4, half_pixels=False) @ old).tolist() == [0, 4, 8, 8]
    assert (image_features.bilinear(2, 4, half_pixels=True) @ old).tolist() == [0, 2, 6, 8]
    image = np.arange(12, dtype=np.float32).reshape(1, 2, 3, 2)
    larger = image_features.resized(image, 6, half_pixels=False)
    assert larger.shape == (1, 6, 6, 2)
    assert larger[0, ::3, ::2].tolist() == image[0].tolist()


def test_gray_values_become_three_equal_byte_channels() -> None:
    values = np.array([-1.1, -1.0, 0.0, 0.2, 1.0]).reshape(1, 1, 5, 1)
    levels = image_features.as_bytes(values)
    assert levels.shape == (1, 1, 5, 3)
    assert levels[0, 0].T.tolist() == [[0.0, 0.0, 128.0, 153.0, 255.0]] * 3


def test_inception_weights_are_searched_in_home_and_torch_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    with pytest.raises(JobError, match=r"put https://github\.com/.*pth into"):
        image_features.inception_file(tmp_path)
    hub = tmp_path / "torch" / "hub" / "checkpoints" / image_features.INCEPTION_FILES[1]
    hub.parent.mkdir(parents=True)
    hub.touch()
    assert image_features.inception_file(tmp_path) == hub
    (tmp_path / image_features.INCEPTION_FILES[0]).touch()
    assert image_features.inception_file(tmp_path).parent == tmp_path


class WeightsServer(HTTPServer):
    """Serves WEIGHTS, in full or in part, at any address that does not end in "missing"."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests, self.sent = 0, len(WEIGHTS)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/weights"


class _Handler(BaseHTTPRequestHandler):
    server: WeightsServer

    def do_GET(self) -> None:
        self.server.requests += 1
        if self.path.endswith("missing"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(WEIGHTS)))
        self.end_headers()
        self.wfile.write(WEIGHTS[: self.server.sent])

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@pytest.fixture
def server() -> Iterator[WeightsServer]:
    """A server on this machine that replaces Google's."""
    with WeightsServer() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.05,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of Keras' cache, which does not exist yet."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    return tmp_path / "models"


def test_weights_are_downloaded_once(server: WeightsServer, models: Path) -> None:
    reports: list[tuple[int, int]] = []

    def progress(done: int, total: int, _sentence: str) -> None:
        reports.append((done, total))

    path = image_features.mobilenet_file(progress, server.url)
    assert path.read_bytes() == WEIGHTS
    assert reports[-1] == (len(WEIGHTS), len(WEIGHTS))
    assert image_features.mobilenet_file(progress, server.url) == path
    assert (server.requests, list(models.iterdir())) == (1, [path])


def test_failed_or_cancelled_download_leaves_no_file(server: WeightsServer, models: Path) -> None:
    def cancel(*_: object) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        image_features.mobilenet_file(cancel, server.url)
    server.sent = 1_000
    with pytest.raises(JobError, match="cannot be downloaded"):
        image_features.mobilenet_file(lambda *_: None, server.url)
    assert list(models.iterdir()) == []


def test_download_error_explains_the_remedy_without_network(
    server: WeightsServer, models: Path
) -> None:
    with pytest.raises(JobError, match="404"):
        image_features.mobilenet_file(lambda *_: None, f"{server.url}/missing")
    with pytest.raises(
        JobError, match=r"MobileNetV2 is not on this machine .* put http.* use features=classifier"
    ):
        image_features.mobilenet_file(lambda *_: None, "http://127.0.0.1:9/weights")
    assert list(models.iterdir()) == []
