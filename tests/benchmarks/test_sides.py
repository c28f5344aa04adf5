"""Commands and run options of the benchmark rows, and what the rows compare.

tests/full/benchmarks/test_sides.py trains.
"""

from __future__ import annotations

import argparse
import io
import threading
from itertools import pairwise
from pathlib import Path

from benchmarks import bench, pages
from benchmarks.effort import Effort
from benchmarks.results import Report
from benchmarks.rows import conditional, iterate, pix2pix, showers, streaming
from benchmarks.run_options import (
    FRAMES,
    PICTURES,
    SHOWERS,
    SHOWERS_FULL,
    spec_of,
)
from benchmarks.targets import TARGETS
from benchmarks.trainer_side import Gate, GatedRunDir
from benchmarks.turns import Turn
from dashboard.frame import places

SMALL = Effort(rounds=1, steps=1, batch=4, images=12)


def options(*settings: str) -> argparse.Namespace:
    return argparse.Namespace(precision="float32", batch=SMALL.batch, set=list(settings))


def test_the_conditional_row_trains_labeled_64_pixel_rgb_on_both_sides() -> None:
    sides = conditional.commands(SMALL)
    assert list(sides) == [
        "keras mixed_bfloat16",
        "ours mixed_bfloat16",
        "keras float32",
        "ours float32",
    ]
    for name, command in sides.items():
        module = (
            "benchmarks.trainer_side" if name.startswith("ours") else "benchmarks.keras_conditional"
        )
        assert command[:3] == ["-m", module, "--serve"]
        assert command[command.index("--precision") + 1] == name.split()[1]
        assert command[command.index("--batch") + 1] == "4"
    spec = spec_of(options(), epochs=1, data=PICTURES)
    assert (spec.workload, spec.value("labels"), spec.value("base_channels")) == (
        "dcgan",
        "used",
        64,
    )
    assert (spec.optimizer, spec.value("learning_rate_generator"), spec.adam_beta_1) == (
        "adam",
        1e-4,
        0.9,
    )


def test_the_shower_row_has_both_sides_both_precisions_and_8_replicas() -> None:
    sides = showers.commands(SMALL)
    peers = ["keras mixed_bfloat16", "ours mixed_bfloat16", "keras float32", "ours float32"]
    assert list(sides) == [*peers, "replicas 8"]
    for name, command in sides.items():
        module = (
            "benchmarks.keras_showers" if name.startswith("keras") else "benchmarks.trainer_side"
        )
        precision = name.split()[1] if name in peers else "mixed_bfloat16"
        assert command[:3] == ["-m", module, "--serve"]
        assert command[command.index("--precision") + 1] == precision
        assert name.startswith("keras") or command[command.index("--data") + 1] == SHOWERS
    assert "replicas=8" in sides["replicas 8"]
    spec = spec_of(options(), epochs=1, data=SHOWERS)
    assert (spec.workload, spec.value("size"), spec.optimizer) == (
        "shower_3dgan",
        "tiny",
        "rmsprop",
    )


def test_pix2pix_row_streams_whole_frames_with_a_peer_per_precision() -> None:
    sides = pix2pix.commands(SMALL)
    assert list(sides) == [
        "keras mixed_bfloat16",
        "ours mixed_bfloat16",
        "keras float32",
        "ours float32",
    ]
    for name, command in sides.items():
        module = (
            "benchmarks.keras_pix2pix" if name.startswith("keras") else "benchmarks.trainer_side"
        )
        assert command[:3] == ["-m", module, "--serve"]
        assert command[command.index("--precision") + 1] == name.split()[1]
        assert name.startswith("keras") or command[command.index("--data") + 1] == FRAMES
    spec = spec_of(options(), epochs=1, data=FRAMES)
    assert (spec.workload, spec.value("size"), spec.value("tile"), spec.adam_beta_1) == (
        "pix2pix",
        "small",
        64,
        0.5,
    )


def test_rollout_row_compares_whole_frame_with_two_core_tiles_per_engine() -> None:
    sides = iterate.commands(SMALL)
    assert list(sides) == [
        "whole tensorflow",
        "map_reduce tensorflow",
        "whole jax",
        "map_reduce jax",
    ]
    for name, command in sides.items():
        way, engine = name.split()
        assert command[:3] == ["-m", "benchmarks.iterate_side", "--serve"]
        assert command[-6:] == ["--engine", engine, "--way", way, "--cores", "2"]


def test_the_shower_row_runs_the_full_networks_one_shower_at_a_time() -> None:
    command = showers.full_run()
    assert command[:2] == ["-m", "benchmarks.whole_run"]
    assert command[command.index("--data") + 1] == SHOWERS_FULL
    settings = [after for before, after in pairwise(command) if before == "--set"]
    spec = spec_of(options(*settings, "batch_size_global=8"), epochs=1, data=SHOWERS_FULL)
    assert (spec.value("size"), spec.batch_size_global, spec.accumulation_steps) == ("full", 8, 8)


def test_the_conditional_row_compares_each_precision_with_its_own_peer() -> None:
    report = Report("conditional")
    steps_s = {
        **{"ours mixed_bfloat16": 1.0, "keras mixed_bfloat16": 1.5},
        **{"ours float32": 2.0, "keras float32": 2.2},
    }
    conditional.compare(
        report, {name: [Turn(10, 10 * step_s)] * 3 for name, step_s in steps_s.items()}
    )
    assert [
        (record["name"], record["value"], record["of_totals"]) for record in report.records
    ] == [
        ("over_keras_mixed_bfloat16", 1.5, 1.5),
        ("over_keras_float32", 1.1, 1.1),
    ]


def test_streaming_overhead_is_the_extra_time_of_a_streamed_step() -> None:
    report = Report("streaming")
    resident = [Turn(10, 10.0)] * 4
    streaming.compare(
        report, resident, [Turn(10, 10.1), Turn(10, 10.1), Turn(10, 10.1), Turn(10, 11.7)]
    )
    (figure,) = report.records
    assert (figure["name"], figure["value"], figure["of_totals"]) == (
        "streaming_overhead",
        0.01,
        0.05,
    )


def test_every_target_belongs_to_a_selectable_row() -> None:
    assert {target.row for target in TARGETS} <= set(bench.ROWS)


def test_peer_turns_include_an_epoch_end_and_streaming_turns_do_not() -> None:
    def epochs(name: str) -> float:
        row = bench.ROWS[name]
        return row.rounds * row.steps * row.batch / row.images

    assert min(epochs("training"), epochs("conditional")) >= 1.0
    assert epochs("streaming") < 0.9


def test_every_page_of_the_dashboard_is_timed() -> None:
    assert {pages.page_of(name) for name in pages.visits(runs=8)} == {
        path.stem for path in places.PAGES
    }


def test_a_stop_file_check_in_another_thread_takes_no_turn(
    tmp_path: Path,
) -> None:
    requests = io.StringIO('{"steps": 1}\n')
    folder = GatedRunDir(tmp_path, Gate(requests, io.StringIO(), lambda: 0))
    watch = threading.Thread(target=lambda: folder.stop_file.exists())
    watch.start()
    watch.join()
    assert requests.tell() == 0
    assert not folder.stop_file.exists()
    assert requests.tell() > 0
