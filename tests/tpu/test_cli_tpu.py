"""The command `tpu-check`, on stored answers; tests/full/tpu/test_check.py compiles."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from gan_runtime.cli.app import app
from gan_runtime.records.home import Home
from gan_runtime.tpu import check as checks
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.plan import CheckPlan
from tests.tpu.examples import estimate, keep_all

PAPER_512 = ["--topology", "v3:2x2", "--set", "batch_size_global=512"]


def call(home: Home, *words: str) -> Result:
    return CliRunner().invoke(app, ["tpu-check", *words, "--home", str(home.path)])


@pytest.fixture
def plan() -> CheckPlan:
    """The preset `paper` with batch 512."""
    return planning.make({"dataset": "mnist", "batch_size_global": 512}, "v3:2x2")


def test_json_output_is_one_document_with_labeled_numbers(home: Home, plan: CheckPlan) -> None:
    keep_all(home, plan)
    result = call(home, *PAPER_512, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["label"] == "the compiler's estimate, not a measurement"
    assert document["images"] == 60_000
    assert [answer["point"]["batch_size_global"] for answer in document["answers"]] == [
        512,
        512,
        64,
        128,
        256,
        512,
        512,
        512,
    ]
    first = document["answers"][0]
    assert (first["step_s"], first["share_of_peak"], first["host_transfers"]) == (
        pytest.approx(1e-3),
        pytest.approx(0.25),
        [],
    )
    assert first["epoch_s"] == pytest.approx(
        117 * 1.0975e-3 + 12 * document["answers"][0]["assumed_overhead_per_call_s"]
    )


def test_the_answer_is_printed_in_tables(home: Home, plan: CheckPlan) -> None:
    keep_all(home, plan)
    result = call(home, *PAPER_512, "--no-sweep")
    assert result.exit_code == 0, result.output
    for text in (
        (
            "TPU v3 (v3:2x2), batch 512 on 8 cores, mixed_bfloat16: the compiler's estimate, not a"
            " measurement"
        ),
        "120, all on the device",
        "1.000 ms (940,000 cycles at 0.94 GHz)",
        "generator up_1, backward",
        "rng-bit-generator",
    ):
        assert text in result.stdout
    assert "1 of 1: batch 512 on 8 cores, mixed_bfloat16: 1.00 ms a step" in result.stderr


def test_refused_step_exits_with_1_and_the_compilers_message(home: Home, plan: CheckPlan) -> None:
    keep_all(home, plan)
    refused = estimate(
        plan.point,
        refused="XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm.",
    )
    checks.store(home.path / checks.FOLDER, planning.key(plan, plan.point), refused)
    result = call(home, *PAPER_512, "--no-sweep")
    assert result.exit_code == 1
    assert "the compiler refuses it: XlaRuntimeError: RESOURCE_EXHAUSTED" in result.stdout


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--topology", "v9"], "topology is 'v9'"),
        (["--set", "batch_size_global=100"], "batch_size_global"),
        (["--set", "precision=mixed_float16"], "float16"),
    ],
)
def test_invalid_request_exits_with_2_and_a_one_line_message(
    home: Home, words: list[str], named: str
) -> None:
    result = call(home, *words)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert named in result.stderr


def test_missing_compiler_exits_with_2(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "missing_library", lambda: "libtpu is not installed here.")
    result = call(home, *PAPER_512)
    assert (result.exit_code, result.stderr.strip()) == (2, "libtpu is not installed here.")
