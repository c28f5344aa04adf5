"""A GPU check before and after its job; tests/full/gpu/test_check.py compiles."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gan_runtime.base.errors import AcceleratorError, JobError
from gan_runtime.cli.app import app
from gan_runtime.cli.gpu_checks import report
from gan_runtime.gpu import cards
from gan_runtime.gpu import check as checks
from gan_runtime.gpu.check import Compiler, GpuPlan
from gan_runtime.hardware import machine
from gan_runtime.records.home import Home
from gan_runtime.spec.presets import PRESETS, preset
from tests.gpu.examples import STEP, WIDE, keep
from tests.support.asking import ask

SMALL = {"workload": "mlp_gan", "dataset": "digits", "batch_size_global": 64}
WORDS = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]


def call(home: Home, *words: str) -> Result:
    return CliRunner().invoke(
        app, ["gpu-check", "--preset", "paper", *WORDS, *words, "--home", str(home.path)]
    )


def stored_plan() -> GpuPlan:
    """The plan of `call`."""
    return checks.make({**preset("paper").values, **SMALL}, "h100")


@pytest.fixture
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "compiler", lambda: None)


def test_an_unknown_card_is_refused_with_the_known_ones() -> None:
    with pytest.raises(AcceleratorError, match="card is 'rtx1', but allowed is v100, a100"):
        checks.make(SMALL, "rtx1")


def test_a_card_without_bfloat16_refuses_it_and_names_the_alternatives() -> None:
    narrow = SMALL | {"precision": "mixed_bfloat16"}
    with pytest.raises(AcceleratorError, match=r"V100.* does not compute in bfloat16: use"):
        checks.make(narrow, "v100")
    assert checks.make(narrow, "a100").spec.precision == "mixed_bfloat16"
    assert checks.make(SMALL | {"precision": "mixed_float16"}, "v100").card.title.startswith(
        "NVIDIA V100"
    )


def test_the_answer_depends_on_card_and_batch_but_not_on_the_seed() -> None:
    def key(card: str = "h100", **changed: object) -> str:
        return checks.make(SMALL | changed, card).key

    assert key() == key(seed=7) == key(epochs=3)
    assert len({key(), key("a100"), key(batch_size_global=128), key(precision="float32")}) == 4


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_checked_in_their_precision_whatever_this_hosts_processor_lacks(
    name: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "is_slow_in_bfloat16", lambda: True)
    keep(home, checks.make(preset(name).values, "h100"))
    words = ["gpu-check", "--preset", name, "--home", str(home.path)]
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, "mixed_bfloat16" in result.output) == (0, True)


def test_every_card_is_described_by_its_own_sizes() -> None:
    for card in cards.CARDS.values():
        text = cards.description(card)
        assert f"core_count: {card.multiprocessors}\n" in text
        assert f"device_memory_size: {card.memory_bytes}\n" in text
        assert f"cuda_compute_capability {{ major: {card.capability[0]} " in text


@pytest.mark.usefixtures("without_compiler")
def test_a_check_without_the_compiler_says_how_to_install_it(home: Home) -> None:
    with pytest.raises(AcceleratorError, match="run `make gpu-compiler`"):
        ask(home).check_on_gpu(checks.make(SMALL, "h100"))
    result = call(home)
    assert (result.exit_code, "make gpu-compiler" in result.output) == (2, True)


def test_a_compiler_of_another_version_than_jax_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "compiler", lambda: Compiler("jax-cuda13-pjrt", "0.0.1"))
    with pytest.raises(AcceleratorError, match=r"has version 0\.0\.1, and JAX .*: install both"):
        ask(home).check_on_gpu(checks.make(SMALL, "h100"))


def test_an_installed_compiler_comes_before_the_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gpu-compiler"
    info = folder / "jax_cuda12_pjrt-1.2.3.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: jax-cuda12-pjrt\nVersion: 1.2.3\n")
    monkeypatch.setattr(checks, "COMPILER", folder)
    assert checks.compiler() == Compiler("jax-cuda12-pjrt", "1.2.3", folder)
    monkeypatch.syspath_prepend(str(folder))
    assert checks.compiler() == Compiler("jax-cuda12-pjrt", "1.2.3", None)


def test_a_second_check_of_the_same_step_is_refused_while_the_first_lives(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "missing_compiler", lambda: "")
    plan = checks.make(SMALL, "h100")
    job = ask(home).check_on_gpu(plan)
    try:
        with pytest.raises(JobError, match="this step is being compiled already"):
            ask(home).check_on_gpu(plan)
    finally:
        ask(home).cancel_job(job.job_id)


@pytest.mark.usefixtures("without_compiler")
def test_a_stored_answer_needs_no_compiler(home: Home) -> None:
    plan = stored_plan()
    keep(home, plan)
    assert checks.answer(checks.newest(home, plan)) == STEP
    result = call(home, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["kernels"], document["memory_total"]) == (100, 200_000_000)
    assert document["title"] == "NVIDIA H100 SXM5, 80 GB"


def test_the_answer_is_printed_with_its_wide_convolutions(home: Home) -> None:
    keep(home, stored_plan(), wide=(WIDE,))
    output = call(home).output
    assert "compiled, not timed" in output
    assert "generator up_3, backward: 28 × 28 taps, its kernel has 5 × 5" in output
    assert "800 MB" in output


def test_a_refusal_is_reported_with_its_reason() -> None:
    (_, reason) = report(stored_plan(), replace(STEP, refused="it is too large"))
    assert reason == "the compiler refuses it: it is too large"
