"""The lists of pinned packages agree with each other."""

from __future__ import annotations

from pathlib import Path

from tests.support.sources import pins, text

OF_AN_ENGINE = {"tensorflow", "tensorflow-tpu", "libtpu", "jax", "jaxlib"}


def test_tensorflow_tpu_host_uses_the_same_other_versions() -> None:
    usual, tpu = pins("requirements.txt"), pins("requirements-tpu-tensorflow.txt")
    assert {name: version for name, version in tpu.items() if name not in OF_AN_ENGINE} == {
        name: version for name, version in usual.items() if name not in OF_AN_ENGINE
    }


def test_jax_on_a_tpu_host_has_the_same_version() -> None:
    assert "-r requirements.txt" in text(Path("requirements-tpu.txt")).splitlines()
    assert pins("requirements-tpu.txt") == {"jax": pins("requirements.txt")["jax"]}


def test_tensorflow_on_a_gpu_host_has_the_same_version() -> None:
    assert "-r requirements.txt" in text(Path("requirements-gpu.txt")).splitlines()
    assert pins("requirements-gpu.txt") == {"tensorflow": pins("requirements.txt")["tensorflow"]}
