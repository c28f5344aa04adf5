"""The probe of this host in a process with TensorFlow."""

from __future__ import annotations

import importlib.metadata
import json
import os
from pathlib import Path

import pytest

from gan_runtime.hardware import hosts


def test_host_probe_reports_cpu_for_tensorflow() -> None:
    host = hosts.probe()
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
    assert hosts.probe().devices["cpu"].available
