"""The GPU benchmark: its table, and the timing of one side."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.gpu.__main__ import RESULTS, waves
from benchmarks.gpu.cases import Case
from benchmarks.gpu.side import time_steps
from benchmarks.gpu.table import epoch, markdown
from benchmarks.gpu.variants import best, lines_of
from gan_runtime.records.home import REPOSITORY

CASE = {"kind": "case", "workload": "pix2pix", "batch": 1_024, "precision": "mixed_bfloat16"}
CARD = {"kind": "card", "flop_per_s": {"mixed_bfloat16": 2e12}}
OPERATIONS = {"kind": "operations", "workload": "pix2pix", "flop_per_image": 1e9}


def test_a_row_shows_both_speeds_their_ratio_and_share_of_card_rate() -> None:
    ours = {**CASE, "side": "jax", "images_per_s": [90.0, 100.0, 500.0], "peak_bytes": 2.5e9}
    peer = {**CASE, "side": "torch", "images_per_s": [200.0, 200.0, 200.0]}

    row = markdown([CARD, ours, peer, OPERATIONS]).splitlines()[-1]

    assert row == "| `pix2pix` | 1,024 | bfloat16 | 100 | 200 | 0.50 | 5.0% | 2.5 GB |"


def test_a_side_that_does_not_fit_is_marked_in_its_cell() -> None:
    ours = {**CASE, "side": "jax", "images_per_s": [], "failure": "does not fit into memory"}
    peer = {**CASE, "side": "torch", "images_per_s": [200.0]}

    row = markdown([CARD, ours, peer, OPERATIONS]).splitlines()[-1]

    assert row == "| `pix2pix` | 1,024 | bfloat16 | does not fit into memory | 200 |  |  |  |"


def test_a_partial_epoch_is_labeled_an_estimate() -> None:
    part = {"kind": "epoch", "batch": 64, "showers": 1_000, "of_showers": 10_000, "seconds": 5.0}

    assert "50 s (estimated from 1,000 showers)." in epoch([part])
    assert "estimated" not in epoch([{**part, "showers": 9_984}])


def test_results_without_an_epoch_have_no_sentence_about_it() -> None:
    assert epoch([CARD]) == ""


def test_a_batch_size_outside_the_waves_gets_its_own_wave() -> None:
    planned = list(waves(["dcgan_mnist"], [64, 2]))

    assert planned == [("dcgan_mnist", (64, 256, 1_024, 4_096)), ("dcgan_mnist", (2,))]


def test_the_page_shows_the_stored_results() -> None:
    stored = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]

    assert markdown(stored) in Path(REPOSITORY / "docs" / "gpu.md").read_text(encoding="utf-8")


def test_a_bolder_variant_is_kept_only_if_it_gains_in_the_same_turns() -> None:
    base = [100.0, 50.0, 100.0]  # the card was slow in the second turn
    rates = {"base": base, "written_out": [120.0, 60.0, 120.0], "even": [120.5, 60.2, 120.5]}
    assert best(rates) == "written_out"
    assert best(rates | {"even": [125.0, 62.0, 126.0]}) == "even"
    assert best({"base": [], "even": [10.0]}) == "even", "the plainest one failed"
    assert best({}) == ""


def test_variants_are_printed_next_to_compiled_pytorch() -> None:
    answers = [
        {"side": "base", "images_per_s": [90.0, 80.0], "failure": ""},
        {"side": "even", "images_per_s": [99.0], "failure": "does not fit into memory"},
        {"side": "graphs", "images_per_s": [], "failure": "no such flag"},
        {"side": "torch", "images_per_s": [100.0, 100.0], "failure": ""},
    ]
    assert lines_of(Case("pix2pix", 64, "float32"), answers) == [
        "pix2pix, batch 64, float32",
        "  base: 85 images/s, 0.85 of PyTorch",
        "  even: does not fit into memory",
        "  graphs: no such flag",
        "  torch: 100 images/s",
        "  keep: base",
    ]


class _Step:
    """Five steps per call."""

    def __init__(self) -> None:
        self.calls = 0

    def call(self) -> int:
        self.calls += 1
        return 5

    def wait(self) -> None:
        """Returns immediately."""

    def facts(self) -> dict[str, object]:
        return {}


def test_a_turn_counts_the_steps_of_whole_calls() -> None:
    step = _Step()

    turn = time_steps(step, 0.01)

    assert turn["steps"] == 5 * step.calls
    assert turn["seconds"] >= 0.01
