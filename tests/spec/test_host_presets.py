"""bfloat16 support of the processor, and its effect on presets.

The other tests run as on a host with bfloat16 support.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gan_runtime.base import processor
from gan_runtime.base.errors import SpecError
from gan_runtime.catalog.entries import Caution
from gan_runtime.hardware import machine
from gan_runtime.spec import RunSpec
from gan_runtime.spec.presets import PRESETS, preset

TWO_CORES = """processor	: 0
model name	: Some CPU
flags		: fpu sse4_2 avx512_bf16 avx512f avx2 amx_bf16 hypervisor

processor	: 1
model name	: Some CPU
flags		: fpu avx2 avx512vl
"""
OLDER = "processor : 0\nmodel name : Older CPU\nflags : fpu sse4_2 avx2 f16c fma\n"
ARM = "processor : 0\nFeatures : fp asimd {}crc32\n"
Says = Callable[[str], Any]
HAS_BFLOAT16 = machine.has_bfloat16  # the original; conftest.py replaces it


@pytest.fixture
def cpu_info(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Says:
    """Writes /proc/cpuinfo of a host without GPU and TPU."""
    monkeypatch.setattr(machine, "has_bfloat16", HAS_BFLOAT16)
    monkeypatch.setattr(processor, "INFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(machine, "TPU_DEVICES", (tmp_path / "accel0",))
    monkeypatch.setenv("PATH", str(tmp_path))
    return (tmp_path / "cpuinfo").write_text


def test_cpu_flags_lists_arithmetic_flags_of_the_first_processor(
    cpu_info: Says,
) -> None:
    cpu_info(TWO_CORES)
    assert processor.flags() == ["amx_bf16", "avx2", "avx512_bf16", "avx512f", "sse4_2"]
    assert processor.model() == "Some CPU"
    cpu_info(ARM.format("bf16 "))
    assert processor.flags() == ["asimd", "bf16"]
    assert processor.model()
    cpu_info("")
    assert processor.flags() == []


@pytest.mark.usefixtures("cpu_info")
def test_an_unknown_processor_counts_as_lacking_bfloat16() -> None:
    assert processor.flags() == []
    assert processor.model()
    assert machine.is_slow_in_bfloat16()


@pytest.mark.parametrize("text", [OLDER, ARM.format("")])
def test_presets_start_in_float32_on_a_processor_without_bfloat16(
    cpu_info: Says, text: str
) -> None:
    cpu_info(text)
    for name in ("quick", "showers", "karman"):
        assert machine.is_preset_changed(name)
        assert machine.preset_values(name) == {**preset(name).values, "precision": "float32"}
        RunSpec.parse(machine.preset_values(name))


@pytest.mark.parametrize(
    "text", [TWO_CORES, ARM.format("bf16 "), "flags : avx2 avx512f\n", "flags : avx_ne_convert\n"]
)
def test_presets_are_unchanged_on_a_processor_with_bfloat16(cpu_info: Says, text: str) -> None:
    cpu_info(text)
    assert not any(machine.is_preset_changed(name) for name in PRESETS)
    assert all(machine.preset_values(name) == preset(name).values for name in PRESETS)


def test_the_paper_preset_keeps_its_precision(cpu_info: Says) -> None:
    cpu_info(OLDER)
    assert machine.preset_values("paper") == preset("paper").values
    assert preset("paper").values["precision"] == "mixed_bfloat16"


@pytest.mark.parametrize("device", ["nvidia-smi", "accel0"])
def test_a_host_with_a_gpu_or_tpu_is_not_slow_in_bfloat16(
    cpu_info: Says, tmp_path: Path, device: str
) -> None:
    cpu_info(OLDER)
    (tmp_path / device).touch(mode=0o755)
    assert not machine.is_slow_in_bfloat16()


def test_precision_warning_applies_only_to_slow_settings(cpu_info: Says) -> None:
    slow = {
        "accelerator": "cpu",
        "engine": "tensorflow",
        "xla": "off",
        "precision": "mixed_bfloat16",
    }
    cpu_info(OLDER)
    assert machine.precision_warning(RunSpec.parse(slow)) == machine.SLOW_BFLOAT16
    assert (
        machine.precision_warning(RunSpec.parse({**slow, "accelerator": "auto", "engine": "auto"}))
        == machine.SLOW_BFLOAT16
    )
    for other in (
        {"engine": "jax"},
        {"xla": "jit"},
        {"precision": "float32"},
        {"accelerator": "tpu"},
    ):
        assert not machine.precision_warning(RunSpec.parse({**slow, **other})), other
    cpu_info(TWO_CORES)
    assert not machine.precision_warning(RunSpec.parse(slow))


@pytest.mark.parametrize(
    ("name", "batches", "problem"),
    [
        ("paper", [256, 512], "gave strokes instead of digits"),
        ("modern", [256, 512], "six ignored the classes"),
    ],
)
def test_a_preset_warns_of_batch_sizes_that_yield_no_digits(
    name: str, batches: list[int], problem: str
) -> None:
    values = preset(name).values

    def cautions(**changed: Any) -> list[Caution]:
        return machine.preset_cautions(name, [RunSpec.parse({**values, **changed})])

    offered = preset(name).suggestions["batch_size_global"]
    assert [batch for batch in offered if cautions(batch_size_global=batch)] == batches
    for batch in batches:
        [caution] = cautions(batch_size_global=batch, epochs=60)
        assert cautions(batch_size_global=batch, **caution.repair) == []
    [caution] = cautions(batch_size_global=512)
    assert problem in caution.text
    assert machine.preset_cautions("quick", [RunSpec.parse(preset("quick").values)]) == []


def test_the_problems_of_several_runs_are_told_once() -> None:
    sizes = (64, 256, 256, 512, 512)
    specs = [
        RunSpec.parse({**preset("modern").values, "batch_size_global": size}) for size in sizes
    ]
    assert machine.preset_cautions("modern", specs) == [*preset("modern").cautions]


def test_a_preset_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SpecError, match="did you mean quick"):
        machine.preset_values("quik")
