"""The search of the list of runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from gan_runtime.records.run_folder import RunDir


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("", ["far-0003", "quick-0001", "quick-0002"]),
        ("QUICK", ["quick-0001", "quick-0002"]),
        ("seed>=2", ["far-0003", "quick-0002"]),
        ("seed=1", ["quick-0001"]),
        ("quick seed>1", ["quick-0002"]),
        ("seed>1 seed<3", ["quick-0002"]),
        ("precision=float32", ["far-0003"]),
        ("precision=mixed_bfloat16 seed<=1", ["quick-0001"]),
        ("dcgan_mnist.label_smoothing=0", ["far-0003", "quick-0001", "quick-0002"]),
        ("precision>float32", []),
        ("no_such_option=1", []),
        ("absent", []),
    ],
)
def test_runs_are_found_by_text_and_by_conditions_on_options(
    show: Callable[..., AppTest], trained: Callable[..., RunDir], typed: str, shown: list[str]
) -> None:
    trained("quick-0001", seed=1)
    trained("quick-0002", seconds=10, seed=2)
    trained("far-0003", seconds=20, seed=3, precision="float32")
    app = show("runs", q=typed)
    assert not app.exception
    tables = [table.value for table in app.dataframe if "run_id" in table.value]
    found = sorted(run_id for table in tables for run_id in table["run_id"])
    assert found == shown
