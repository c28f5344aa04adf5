"""The probe of this host in a process with TensorFlow."""

from __future__ import annotations

import importlib.metadata
import os

from gan_runtime.hardware import hosts


def test_host_probe_reports_cpu_for_tensorflow() -> None:
    host = hosts.probe()
    assert host.tensorflow == importlib.metadata.version("tensorflow")
    assert host.devices["cpu"].engines[0] == "tensorflow"
    assert host.devices["cpu"].count == os.cpu_count()
