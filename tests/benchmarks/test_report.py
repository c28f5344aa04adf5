"""The benchmark page, from literal records."""

from __future__ import annotations

from pathlib import Path

from benchmarks import cycle_tables, report, results
from benchmarks.figure_tables import figures, referee
from benchmarks.results import Record
from benchmarks.targets import TARGETS

SPREAD = {"quartile_1": 1.2, "quartile_3": 1.3, "lowest": 1.1, "highest": 1.4, "count": 24}


def figure(row: str, name: str, value: float, **further: object) -> Record:
    return {"row": row, "kind": "figure", "name": name, "value": value, **SPREAD, **further}


def line_of(text: str, start: str) -> str:
    """The only table row that begins with `start`."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return line


def machine(row: str, load_before: float = 0.1, changed: bool = False) -> Record:
    return {
        "row": row,
        "kind": "machine",
        "load_before": load_before,
        "uncommitted_changes": changed,
    }


def test_a_figure_is_next_to_its_target() -> None:
    text = figures(
        [figure("training", "over_keras_mixed_bfloat16", 1.37, of_totals=1.36), machine("training")]
    )
    assert (
        line_of(text, "times the plain Keras loop, bfloat16")
        == "| times the plain Keras loop, bfloat16 | **1.37** | 1.20 to 1.30 | 24 |"
        " 1.36 | ≥ 1.35 |  |"
    )


def test_a_missed_target_is_marked() -> None:
    text = figures([figure("replicas", "replicas_8_over_1", 0.893)])
    assert line_of(text, "8 simulated replicas").endswith("| **≥ 0.90, missed** | – |")


def test_targets_are_checked_against_totals_not_the_median() -> None:
    text = figures([figure("replicas", "replicas_8_over_1", 0.92, of_totals=0.87)])
    assert line_of(text, "8 simulated replicas").endswith("| 24 | 0.87 | **≥ 0.90, missed** | – |")


def test_a_row_notes_machine_load_and_modified_files() -> None:
    busy = figures(
        [
            figure("replicas", "replicas_8_over_1", 0.95),
            machine("replicas", load_before=0.51, changed=True),
        ]
    )
    assert line_of(busy, "8 simulated replicas").endswith("| ≥ 0.90 | load 0.51, modified files |")
    quiet = figures(
        [figure("replicas", "replicas_8_over_1", 0.95), machine("replicas", load_before=0.5)]
    )
    assert line_of(quiet, "8 simulated replicas").endswith("| ≥ 0.90 |  |")


def test_shares_seconds_and_memory_have_units() -> None:
    once = {"kind": "figure", "count": 1}
    text = figures(
        [
            {"row": "input", "name": "input_share", "value": 0.004, **once},
            {"row": "dashboard", "name": "memory_mb", "value": 331, **once},
            {"row": "pages", "name": "slowest_first_visit_s", "value": 0.98, **once},
        ]
    )
    assert line_of(text, "share of input").endswith("| **0.4%** |  | 1 |  | ≤ 1.0% | – |")
    assert line_of(text, "resident memory").endswith(
        "| **331 MB** |  | 1 |  | **≤ 300 MB, missed** | – |"
    )
    assert line_of(text, "slowest page of a large home, first visit").endswith(
        "| **0.98 s** |  | 1 |  | ≤ 1.00 s | – |"
    )


def test_missing_figures_explain_why_they_were_not_measured() -> None:
    text = figures(
        [
            {
                "row": "training",
                "kind": "not_measured",
                "name": "over_torch_float32",
                "reason": "No PyTorch.",
            }
        ]
    )
    assert "| not measured: No PyTorch | " in line_of(text, "times PyTorch, float32")
    assert "| not measured: no result in benchmarks/results/ | " in line_of(
        text, "times PyTorch, bfloat16"
    )


def test_a_referee_is_identified_by_its_digest() -> None:
    facts: Record = {"row": "referee", "kind": "facts", "sha256": "abc"}
    text = referee([facts, figure("referee", "over referee tf float32", 1.25), machine("referee")])
    assert "SHA-256 is `abc`" in text
    assert line_of(text, "over referee tf float32").endswith("| **1.25** | 1.20 to 1.30 | 24 |  |")
    assert referee([]) == "Not measured.\n"


def test_machine_reference_rates_show_size_and_type() -> None:
    facts: Record = {
        "row": "matrix",
        "kind": "facts",
        "workload": "dcgan_mnist",
        "flop_per_image": 1000,
    }
    rate: Record = {
        "row": "matrix",
        "kind": "rate",
        "name": "matmul",
        "value": 380.0,
        "unit": "GFLOP/s",
    }
    text = report.operations(
        [facts, rate, figure("matrix", "share_of_matmul", 0.75, of_totals=0.7)]
    )
    assert "in bfloat16" in text
    assert (
        line_of(text, "matmul")
        == "| matmul, 4096 × 4096 by 4096 × 4096 | 380 GFLOP/s | 75.0% | 70.0% |"
    )


def test_a_failed_row_gives_its_reason_for_every_figure() -> None:
    text = figures(
        [{"row": "training", "kind": "not_measured", "name": "training", "reason": "a side broke."}]
    )
    assert text.count("not measured: a side broke |") == sum(
        target.row == "training" for target in TARGETS
    )


def test_growth_is_a_table_of_batches_and_replicas() -> None:
    cells = [(256, 1, 0.3), (256, 8, 0.31), (64, 1, 0.09)]
    records: list[Record] = [
        {"row": "growth", "kind": "cell", "batch": batch, "replicas": replicas, "step_s": step_s}
        for batch, replicas, step_s in cells
    ]
    assert report.growth(records).splitlines() == [
        "| Global batch | 1 replica | 8 replicas |",
        "|---|---|---|",
        "| 64 | 0.090 | not measured |",
        "| 256 | 0.300 | 0.310 |",
    ]


def test_the_machine_line_lists_bfloat16_support() -> None:
    record: Record = {
        **{
            "row": "input",
            "kind": "machine",
            "cpu_model": "Some CPU",
            "cores": 2,
            "cpu_flags": ["avx2", "avx512_bf16"],
        },
        **{
            "memory_bytes": 25_300_000_000,
            "python": "3.11.7",
            "versions": {"tensorflow": "2.21.0", "torch": ""},
        },
        **{
            "date": "2026-01-02T03:04:05+00:00",
            "commit": "abc1234",
            "command": "bench",
            "load_before": 0.1,
        },
        **{"seconds": 300, "uncommitted_changes": False},
    }
    machine = "Some CPU, 2 cores, avx512_bf16, 25 GB, Python 3.11.7, tensorflow 2.21.0"
    assert report.machines([record]) == f"- {machine}: input (2026-01-02, abc1234)\n"
    busy = {**record, "row": "matrix", "load_before": 3.0}
    assert report.machines([record, busy]).endswith(
        f"- {machine}: input (2026-01-02, abc1234); matrix (2026-01-02, abc1234, load 3.00)\n"
    )


def test_a_page_without_results_is_complete() -> None:
    text = report.text([])
    assert text.count("not measured: no result") == len(TARGETS)


def test_the_committed_page_matches_the_stored_results() -> None:
    assert report.PAGE.read_text(encoding="utf-8") == report.text(results.latest()), (
        "run python -m benchmarks.report"
    )


def test_a_new_result_replaces_only_its_own_row(tmp_path: Path) -> None:
    first, second, other = (
        [{"row": row, "kind": "facts", "n": n}]
        for row, n in (("growth", 1), ("growth", 2), ("input", 3))
    )
    for row, records in (("growth", first), ("input", other), ("growth", second)):
        assert results.store(records, row, tmp_path) == tmp_path / "latest.jsonl"
    assert results.latest(tmp_path) == [*other, *second]


def test_records_without_a_row_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "latest.jsonl").write_text('{"measure": "ours", "round": 1}\n', encoding="utf-8")
    assert results.latest(tmp_path) == []


def test_the_cycle_table_is_labeled_an_estimate_with_share_of_peak() -> None:
    row: Record = {
        "row": "cycles",
        "kind": "cycles",
        "side": "ours",
        "batch": 512,
        "precision": "mixed_bfloat16",
        "cycles": 1_278_400.0,
    }
    row |= {
        "step_ms": 1.36,
        "floor_ms": 0.3468,
        "share_of_peak": 0.255,
        "exchanges": 1.1,
        "exchange_mb": 10.1,
        "operations": 115,
    }
    facts: Record = {
        "row": "cycles",
        "kind": "facts",
        "topology": "v3:2x2",
        "versions": {"libtpu": "0.0.42.1"},
        "label": "an estimate",
    }
    text = cycle_tables.cycles([facts, row])
    assert "Every number here is an estimate (v3:2x2, libtpu 0.0.42.1)" in text
    assert (
        line_of(text, "ours")
        == "| ours | 512 | mixed_bfloat16 | 1,278,400 | 1.360 ms | 0.347 ms | 25.5% | 10.1 MB in"
        " 1.1 |"
    )
    assert cycle_tables.cycles([]) == "Not measured.\n"


def test_epochs_are_shown_next_to_the_authors_measurements() -> None:
    numbers: Record = {
        "row": "cycles",
        "kind": "epoch",
        "step_ms": 3400.0,
        "share_of_peak": 0.05,
        "share_of_memory": 0.4,
        "exchanges": 4.0,
        "exchange_mb": 11.6,
    }
    plain = numbers | {"side": "keras", "topology": "v3:2x2", "epoch_s": 420.463}
    ours = numbers | {"side": "ours", "topology": "v3:2x2", "epoch_s": 90.0}
    text = cycle_tables.epochs([plain, ours])
    assert (
        line_of(text, "3DGAN in plain Keras on JAX")
        == "| 3DGAN in plain Keras on JAX | TPU v3-8 | **420.5 s** | 416.3 s | +1.0% | 3,400 ms |"
        " 5.0% | 40.0% | 11.6 MB in 4.0 |"
    )
    assert line_of(text, "3DGAN of this project").startswith(
        "| 3DGAN of this project | TPU v3-8 | **90.0 s** |  |  |"
    )
    assert cycle_tables.epochs([]) == "Not measured.\n"
