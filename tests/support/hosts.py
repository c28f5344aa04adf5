"""A fixed host: detecting the real one would load TensorFlow in a child process."""

from __future__ import annotations

from gan_runtime.hardware.hosts import Device, Host

CORES = 8


def stated_host() -> Host:
    """A machine with eight CPU cores and neither GPU nor TPU."""
    absent = {
        name: Device(available=False, count=0, name="", reason=f"this host has no {name.upper()}.")
        for name in ("gpu", "tpu")
    }
    cpu = Device(available=True, count=CORES, name="test processor")
    return Host(
        cpu_model="test processor",
        cores=CORES,
        memory_bytes=8_000_000_000,
        python="3.11.0",
        tensorflow="2.21.0",
        devices={"cpu": cpu, **absent},
    )
