"""Benchmark sides on minimal runs: a complete streamed run, and the bare engine on each kind of
rows.
"""

from __future__ import annotations

import argparse
import math

import pytest

from benchmarks import engine_side
from benchmarks.effort import Effort
from benchmarks.rows import streaming
from benchmarks.run_options import FRAMES, MNIST, STREAMED, random_rows, reading, spec_of
from benchmarks.turns import child_sides
from gan_runtime.records.home import Home
from tests.support.engines.small_engines import keep_alive

NARROW = ["base_channels=4", "steps_per_loop=1"]
SMALL = Effort(rounds=1, steps=1, batch=4, images=12)


def test_streamed_run_is_timed_turn_by_turn() -> None:
    narrow = [part for setting in NARROW for part in ("--set", setting)]
    with child_sides({"streamed": [*streaming.commands(SMALL)["streamed"], *narrow]}) as sides:
        turns = [sides["streamed"].turn(2) for _ in range(2)]
    assert [turn.steps for turn in turns] == [2, 2]
    assert all(turn.seconds > 0.0 for turn in turns)


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize("data", [MNIST, STREAMED, FRAMES])
def test_bare_engine_trains_on_each_kind_of_rows(home: Home, data: str) -> None:
    settings = {
        MNIST: ["workload=mlp_gan"],
        STREAMED: NARROW,
        FRAMES: ["tile=16", "steps_per_loop=1"],
    }[data]
    spec = spec_of(
        argparse.Namespace(precision="float32", batch=SMALL.batch, set=settings),
        epochs=1,
        data=data,
    )
    with random_rows(home, SMALL.images, data), reading(data):
        engine = keep_alive(engine_side.build(spec, home))
        turn = engine_side.run_steps(engine, spec, 3)
        numbers = engine.run(1)
    assert turn.steps == 3
    assert all(math.isfinite(value[0]) for value in numbers.values.values())
