"""The rows of tables and charts as sent to the browser."""

from __future__ import annotations

import ast
import io

import pandas as pd
import pyarrow.ipc
import pytest

from dashboard import tables, words
from tests.support.sources import ROOT, python_files

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


def test_curves_are_sent_in_half_the_bytes_at_single_precision() -> None:
    every = frame()
    part = every[every["metric"] == "loss_generator"]  # its index has gaps
    table = tables.from_curves(part)
    assert len(table.arrow) < 0.5 * len(tables.from_frame(part).arrow)
    assert table.frame is part
    exact, rounded = ["step", "epoch", "x"], ["low", "mean", "high"]
    pd.testing.assert_frame_equal(
        sent(table)[exact], part[exact].reset_index(drop=True), check_dtype=False
    )
    # Single precision has an error of 2^-24 of the value, and a chart has 400 pixels.
    pd.testing.assert_frame_equal(
        sent(table)[rounded],
        part[rounded].reset_index(drop=True),
        check_dtype=False,
        rtol=2**-24,
        atol=0.0,
    )
    assert list(sent(table)["metric"]) == ["loss_generator"] * (ROWS // 2)
    assert list(sent(table).columns) == list(every.columns), "and no column of row numbers"


def test_an_empty_table_sends_no_bytes() -> None:
    assert tables.from_curves(frame().iloc[:0]).arrow == b""
    assert tables.from_curves(frame().iloc[:0]).empty


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+cmd|' /C calc'!A0",
        "-2+3",
        "-2 %+3",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "＝1+1",
        "+1 (555) 0",
        "-",
    ],
)
def test_formula_like_text_is_prefixed_with_an_invisible_character(
    text: str,
) -> None:
    frame = pd.DataFrame(
        {text: [text, "a = b", None], "tags": [[text, "b"], (), None], "n": [-1, 2, 3]}
    )
    frame["kind"] = pd.Categorical([text, "b", "b"])
    table = tables.harmless(frame)
    guarded = f"\u2060{text}"
    assert list(table.columns) == [guarded, "tags", "n", "kind"]
    assert list(table[guarded].dropna()) == [guarded, "a = b"]
    assert table["tags"][0] == [guarded, "b"]
    assert list(table["n"]) == [-1, 2, 3]
    assert list(table["kind"]) == [guarded, "b", "b"]
    assert next(iter(frame.columns)) == text, "the rows themselves stay as they are"


@pytest.mark.parametrize(
    "text", ["-1", "+0.5", "-1e-05", "-1,024.5", "+10.0%", "-1,024", "1 = 1", "", "a-b", "–"]
)
def test_numbers_and_plain_text_stay_unchanged(text: str) -> None:
    assert words.cell(text) == text


def test_pages_show_tables_only_through_the_tables_module() -> None:
    """`tables.show` of dashboard/tables.py, unlike `st.dataframe`, turns no text into a formula."""
    files = [
        path
        for path in python_files("pages", "dashboard")
        if path.name != "tables.py" or path.parent.name != "dashboard"
    ]
    calls = [
        f"{path}:{node.lineno}"
        for path in files
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("dataframe", "data_editor")
    ]
    assert calls == []
