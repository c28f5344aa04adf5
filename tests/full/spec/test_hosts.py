"""This host, asked in a process with TensorFlow; and one on which that does not load."""

from __future__ import annotations

import importlib.metadata
import json
import os
from pathlib import Path

import pytest

from gan_runtime.hardware import hosts
from tests.support.commands_in_processes import starting


def test_host_probe_reports_cpu_for_tensorflow() -> None:
    host = hosts.asked_host()
    assert host == hosts.probe()
    assert host.tensorflow == importlib.metadata.version("tensorflow")
    assert host.devices["cpu"].engines[0] == "tensorflow"
    assert host.devices["cpu"].count == os.cpu_count()


@pytest.mark.parametrize(
    "settings", [{"floatx": "bfloat16"}, {"image_data_format": "channels_middle"}]
)
def test_host_probe_ignores_user_settings_that_keras_refuses(
    settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keras.json").write_text(json.dumps(settings), encoding="utf-8")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    assert hosts.asked_host().devices["cpu"].available


def test_run_without_its_framework_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "modules" / "tensorflow.py"
    broken.parent.mkdir()
    broken.write_text("raise ImportError('libfoo.so.1: no such file')\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(broken.parent), prepend=os.pathsep)
    with starting(tmp_path / "home") as start:
        training = start("train", "--set", "workload=mlp_gan", "--set", "dataset=digits")
        _, notes = training.communicate(timeout=200)
    assert training.returncode == 1
    assert "TensorFlow cannot be loaded (ImportError: libfoo.so.1: no such file)" in notes
    assert "run `make setup` again" in notes
