"""The charts of variants, as data."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dashboard.studies import variant_charts
from gan_runtime.catalog import declarations
from gan_runtime.studies.statistics import Cost

COLORS = {"XLA off": "#009E73", "XLA jit": "#CC79A7"}
OFF, JIT = Cost(1.0, 0.1), Cost(3.0, 0.05)


def rows(chart: Any, layer: int) -> list[list[object]]:
    tables = (
        chart.data,
        *(part.data for part in chart.layer[1:]),
    )  # the first layer has the data of the whole chart
    return tables[layer].to_numpy().tolist()


def test_lines_meet_at_the_break_even_step() -> None:
    chart = variant_charts.pay_back({"XLA off": OFF, "XLA jit": JIT}, COLORS, steps=100)
    assert rows(chart, 0) == [
        ["XLA off", 0.0, 1.0],
        ["XLA off", 100.0, 11.0],
        ["XLA jit", 0.0, 3.0],
        ["XLA jit", 100.0, 8.0],
    ]
    assert rows(chart, 1) == [["XLA jit", 40.0, 5.0]]


def test_lines_extend_to_a_nearby_break_even_beyond_the_runs() -> None:
    chart = variant_charts.pay_back({"XLA off": OFF, "XLA jit": JIT}, COLORS, steps=20)
    assert rows(chart, 0)[1][1] == 50.0
    far = variant_charts.pay_back({"XLA off": OFF, "XLA jit": JIT}, COLORS, steps=5)
    assert (rows(far, 0)[1][1], rows(far, 1)) == (5.0, [])


def test_no_dot_without_a_break_even() -> None:
    assert (
        rows(
            variant_charts.pay_back({"XLA off": OFF, "XLA jit": Cost(3.0, 0.2)}, COLORS, steps=100),
            1,
        )
        == []
    )


def test_equal_curves_are_distinguished_by_dashes() -> None:
    frame = pd.DataFrame({"variant": ["XLA off", "XLA jit"], "step": [1, 1], "mean": [0.5, 0.5]})
    spec = variant_charts.loss_curves(
        frame, COLORS, declarations.of("dcgan_mnist").table()["loss_generator"]
    ).to_dict()
    assert spec["layer"][1]["encoding"]["strokeDash"]["scale"] == {
        "domain": list(COLORS),
        "range": [[1, 0], [6, 3]],
    }
