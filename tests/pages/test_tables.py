"""What is sent of a chart's rows."""

from __future__ import annotations

import io

import pandas as pd
import pyarrow.ipc

from dashboard import tables

ROWS = 400


def frame() -> pd.DataFrame:
    numbers = [float(row) / 3.0 for row in range(ROWS)]
    return pd.DataFrame(
        {
            "run_id": "quick-0001",
            "metric": ["loss_generator", "loss_discriminator"] * (ROWS // 2),
            "x": numbers,
            "step": range(2**40, 2**40 + ROWS),
            "epoch": [row // 7 for row in range(ROWS)],
            "low": numbers,
            "mean": numbers,
            "high": numbers,
        }
    )


def sent(table: tables.Table) -> pd.DataFrame:
    return pyarrow.ipc.open_stream(io.BytesIO(table.arrow)).read_pandas()


def test_curves_are_sent_as_they_are_in_half_the_bytes() -> None:
    every = frame()
    part = every[every["metric"] == "loss_generator"]  # its rows have numbers with gaps
    table = tables.of_curves(part)
    assert len(table.arrow) < 0.5 * len(tables.of(part).arrow)
    assert table.frame is part
    exact, rounded = ["step", "epoch", "x"], ["low", "mean", "high"]
    pd.testing.assert_frame_equal(sent(table)[exact], part[exact].reset_index(drop=True), check_dtype=False)
    # Single precision: 2^-24 of the value, and a chart has 400 pixels.
    pd.testing.assert_frame_equal(
        sent(table)[rounded], part[rounded].reset_index(drop=True), check_dtype=False, rtol=2**-24, atol=0.0
    )
    assert list(sent(table)["metric"]) == ["loss_generator"] * (ROWS // 2)
    assert list(sent(table).columns) == list(every.columns), "and no column of row numbers"


def test_of_nothing_nothing_is_sent() -> None:
    assert tables.of_curves(frame().iloc[:0]).arrow == b""
    assert tables.of_curves(frame().iloc[:0]).empty
