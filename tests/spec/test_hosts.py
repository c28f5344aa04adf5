"""Engines that a host offers, and stored facts about the machine and software of an attempt."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gan_runtime.base.errors import AcceleratorError, SpecError
from gan_runtime.hardware import hosts, machine
from gan_runtime.hardware.hosts import NO_CORE, Device, Host
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec
from tests.support.asking import ask


def test_facts_include_the_machine_and_imported_package_versions() -> None:
    facts = machine.facts()
    versions = facts["versions"]
    assert isinstance(versions, dict)
    assert versions["numpy"] == np.__version__
    assert "jax" not in versions, "jax is not imported here, whether installed or not"
    assert facts["cores"] == os.cpu_count()
    assert facts["uncommitted_changes"] in (True, False, None)


def with_tpu(host: Host, reason: str) -> Host:
    is_coreless = reason == NO_CORE
    absent = Device(available=False, count=0, name="", reason=reason, is_coreless=is_coreless)
    return host.model_copy(update={"devices": {**host.devices, "tpu": absent}})


def test_a_tpu_without_cores_is_explained_by_the_libtpu_output(host: Host) -> None:
    said = (
        "W0000 tpu: ABORTED: The TPU is already in use by process with pid 77. Not attempting to"
        " load libtpu.so in this process."
    )
    device = hosts.explained(with_tpu(host, NO_CORE), said).devices["tpu"]
    assert device.reason.startswith("another process uses the TPU, and only one can")
    assert (
        hosts.explained(with_tpu(host, NO_CORE), "nothing of it").devices["tpu"].reason == NO_CORE
    )


def test_a_host_without_a_tpu_ignores_the_libtpu_output(host: Host) -> None:
    there = with_tpu(host, "this host has no TPU.")
    assert hosts.explained(there, "libtpu said something") == there


@pytest.mark.parametrize("ask", [hosts.probe, hosts.asked_host])
def test_a_cpu_run_does_not_wait_for_tensorflow(
    ask: Callable[[], Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "PROBE_SECONDS", 0.01)
    monkeypatch.setattr(machine, "has_gpu", lambda: False)
    monkeypatch.setattr(machine, "has_tpu", lambda: False)
    host = ask()
    assert host.resolve(RunSpec()) == "cpu"
    assert host.engine(RunSpec()) == "tensorflow"
    assert host.tensorflow == importlib.metadata.version("tensorflow")
    with pytest.raises(AcceleratorError, match="this host has no NVIDIA GPU"):
        host.resolve(RunSpec.parse({"accelerator": "gpu"}))


def test_auto_does_not_skip_an_accelerator_that_has_not_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "has_gpu", lambda: False)
    monkeypatch.setattr(machine, "has_tpu", lambda: True)
    host = hosts.unasked_host()
    assert host.resolve(RunSpec.parse({"accelerator": "cpu"})) == "cpu"
    for accelerator in ("auto", "tpu"):
        with pytest.raises(
            AcceleratorError, match=f"accelerator is {accelerator}, but TensorFlow did not start"
        ):
            host.resolve(RunSpec.parse({"accelerator": accelerator}))


def test_advice_names_the_file_that_replaces_a_module_of_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "platform.py").write_text("import turtle_game\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(AcceleratorError, match="turtle_game") as refused:
        hosts.asked_host()
    assert str(refused.value).endswith(
        f"{tmp_path / 'platform.py'} replaces the module of Python with that name: rename it."
    )


def test_files_of_packages_replace_no_module_of_python(tmp_path: Path) -> None:
    package = tmp_path / "keras"
    package.mkdir()
    for name in ("__init__.py", "random.py"):
        (package / name).touch()
    trace = f'  File "{package / "random.py"}", line 1, in <module>\n'
    trace += f'  File "{os.__file__}", line 1, in <module>\n'
    assert hosts.shadowing_file(trace) == ""


# ---- engines -------------------------------------------------------------------------------------


@pytest.fixture
def tpu_host(host: Host) -> Host:
    """A host with eight TPU cores for JAX only, and CPU cores for both engines."""
    cpu = host.devices["cpu"].model_copy(update={"engines": ("tensorflow", "jax")})
    tpu = Device(available=True, count=8, name="TPU v3", engines=("jax",))
    return host.model_copy(update={"devices": {**host.devices, "cpu": cpu, "tpu": tpu}})


@pytest.mark.parametrize(
    ("options", "accelerator", "engine"),
    [
        ({}, "tpu", "jax"),
        ({"accelerator": "tpu"}, "tpu", "jax"),
        ({"accelerator": "cpu"}, "cpu", "tensorflow"),
        ({"accelerator": "cpu", "engine": "jax"}, "cpu", "jax"),
        ({"engine": "tensorflow"}, "cpu", "tensorflow"),
        ({"accelerator": "tpu", "tpu_address": "my-tpu"}, "tpu", "tensorflow"),
    ],
)
def test_auto_is_tensorflow_unless_only_jax_reaches_the_accelerator(
    options: dict[str, Any], accelerator: str, engine: str, tpu_host: Host
) -> None:
    spec = RunSpec.parse(options)
    assert (tpu_host.resolve(spec), tpu_host.engine(spec)) == (accelerator, engine)


def test_an_engine_that_does_not_reach_the_accelerator_is_refused(
    tpu_host: Host, host: Host
) -> None:
    with pytest.raises(AcceleratorError) as refused:
        tpu_host.resolve(RunSpec.parse({"accelerator": "tpu", "engine": "tensorflow"}))
    assert (
        str(refused.value)
        == "engine is tensorflow, but only jax can use the TPU of this host: use engine=jax, or"
        " accelerator=cpu."
    )
    with pytest.raises(AcceleratorError) as refused:
        host.resolve(RunSpec.parse({"accelerator": "cpu", "engine": "jax"}))
    assert (
        str(refused.value)
        == "engine is jax, but only tensorflow can use the CPU of this host: use engine=tensorflow."
    )


def test_a_run_is_stored_with_the_engine_resolved_from_auto(home: Home, tpu_host: Host) -> None:
    assert ask(home, tpu_host).submit(RunSpec()).spec().engine == "jax"
    assert (
        ask(home, tpu_host).submit(RunSpec.parse({"accelerator": "cpu"})).spec().engine
        == "tensorflow"
    )


def test_options_the_auto_engine_lacks_are_refused_before_queueing(
    home: Home, tpu_host: Host
) -> None:
    with pytest.raises(SpecError, match="profile_steps is 5, but engine=jax has no step profile"):
        ask(home, tpu_host).submit(RunSpec.parse({"profile_steps": 5}))
    assert home.run_dirs() == []


def test_rules_apply_to_the_accelerator_resolved_from_auto(
    home: Home, host: Host, tpu_host: Host
) -> None:
    """In an earlier version, these runs were queued and failed in their first step."""
    showers = {"workload": "shower_3dgan", "precision": "mixed_float16"}
    with pytest.raises(SpecError, match="TensorFlow on a CPU cannot pool float16 volumes"):
        ask(home, host).submit(RunSpec.parse(showers))
    with pytest.raises(SpecError, match="a TPU has no float16 arithmetic"):
        ask(home, tpu_host).submit(RunSpec.parse({"precision": "mixed_float16"}))
    assert home.run_dirs() == []


def test_keras_loop_is_refused_if_auto_resolves_to_a_tpu(tpu_host: Host) -> None:
    tpu = tpu_host.devices["tpu"].model_copy(update={"engines": ("tensorflow",)})
    only_tensorflow = tpu_host.model_copy(update={"devices": {**tpu_host.devices, "tpu": tpu}})
    spec = RunSpec.parse({"loop": "keras"})
    with pytest.raises(
        AcceleratorError, match="on a TPU Keras reports the numbers of the first core alone"
    ):
        only_tensorflow.resolve(spec)
    assert only_tensorflow.resolve(RunSpec.parse({"loop": "keras", "accelerator": "cpu"})) == "cpu"


def test_jax_workers_can_have_several_cpu_replicas_but_share_no_tpu(
    tpu_host: Host,
) -> None:
    both = {"workers": 2, "replicas": 2}
    assert tpu_host.resolve(RunSpec.parse({**both, "engine": "jax", "accelerator": "cpu"})) == "cpu"
    with pytest.raises(AcceleratorError, match="TensorFlow runs one replica per CPU worker"):
        tpu_host.resolve(RunSpec.parse({**both, "engine": "tensorflow"}))
    with pytest.raises(AcceleratorError, match="the cores of a TPU are the replicas of one worker"):
        tpu_host.resolve(RunSpec.parse({**both, "engine": "jax", "accelerator": "tpu"}))
