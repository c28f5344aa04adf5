"""The TPU page with stored estimates, and on a host that cannot compile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.tpu import charts as tpu_charts
from gan_runtime.records.home import Home
from gan_runtime.studies import references
from gan_runtime.tpu import check as checks
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.plan import CheckPlan
from tests.pages.reading import shown_commands, texts, titles
from tests.tpu.examples import estimate, keep_all

Show = Callable[..., AppTest]


@pytest.fixture
def plan() -> CheckPlan:
    """The initial values of the form: the paper's run with batch 512 on a v3-8."""
    return planning.make(
        {"workload": "dcgan_mnist", "dataset": "mnist", "batch_size_global": 512}, "v3:2x2"
    )


@pytest.fixture
def stored_plan(home: Home, plan: CheckPlan) -> CheckPlan:
    """The same plan, with a stored estimate for each of its points."""
    keep_all(home, plan)
    return plan


def figures(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def test_an_unchecked_selection_shows_no_estimate(show: Show) -> None:
    app = show("tpu")
    assert not app.exception
    assert "Nothing is compiled for this selection yet" in texts(app)
    assert not app.metric


@pytest.mark.usefixtures("stored_plan")
def test_a_stored_estimate_is_shown_immediately(show: Show) -> None:
    app = show("tpu")
    assert not app.exception
    assert figures(app) == {
        "Compiles": "yes",
        "On the TPU": "120 of 120",
        "Step, est.": "1 ms",
        "Epoch, est.": "140 ms",  # 117 steps of 1.0975 ms, and 12 calls of 1 ms
        "Of the peak rate": "25%",
        "Memory": "0.8%",
    }
    assert "the compiler's estimate, not a measurement" in texts(app)
    assert "**The whole step runs on the TPU**: 120 operations" in texts(app)


def test_the_prediction_is_compared_with_the_papers_two_values(
    show: Show, stored_plan: CheckPlan
) -> None:
    assert titles(show("tpu"))[:2] == [
        "Time of an epoch by batch size, as predicted and as published",
        "Predicted seconds per epoch by number of cores",
    ]
    rows = tpu_charts.batch_rows(
        stored_plan, [estimate(point) for point in stored_plan.points], overhead_s=0.0
    )
    paper, ours = rows[rows["who"] == "The paper, measured"], rows[rows["who"] == "Predicted here"]
    assert dict(zip(paper["batch"], paper["relative"].round(2), strict=True)) == {
        64: 1.0,
        512: 0.21,
    }
    # A step takes equally long at any batch: 937, 468, 234 and 117 steps.
    assert dict(zip(ours["batch"], ours["relative"].round(3), strict=True)) == {
        64: 1.0,
        128: 0.499,
        256: 0.25,
        512: 0.125,
    }


def test_parts_of_an_epoch_sum_to_its_total(stored_plan: CheckPlan) -> None:
    rows = tpu_charts.device_rows(
        stored_plan, [estimate(point) for point in stored_plan.points], overhead_s=1e-3
    )
    assert list(rows["devices"].unique()) == [1, 2, 4, 8]
    assert (
        rows.groupby("devices")["seconds"].sum().round(9).to_dict()
        == rows.groupby("devices")["total"].first().round(9).to_dict()
    )
    assert rows[(rows["devices"] == 1) & (rows["part"] == "exchange")]["seconds"].item() == 0.0


@pytest.mark.usefixtures("stored_plan")
def test_the_most_expensive_operations_name_their_layer(show: Show) -> None:
    tables = [element.value for element in show("tpu").dataframe]
    most_expensive = next(frame for frame in tables if "Layer" in frame)
    assert list(most_expensive["Layer"]) == [
        "generator up_1, backward",
        "not named by the compiler",
    ]
    assert list(most_expensive["Share"].round(2)) == [0.1, 0.05]


@pytest.mark.usefixtures("stored_plan")
def test_a_larger_assumed_overhead_makes_a_longer_epoch(show: Show) -> None:
    app = show("tpu")
    app.slider(key="tpu.overhead").set_value(10.0).run()
    assert figures(app)["Epoch, est."] == "248 ms"


def test_bfloat16_is_compared_with_float32_once_both_are_estimated(
    show: Show, home: Home, stored_plan: CheckPlan
) -> None:
    folder, other = home.path / checks.FOLDER, stored_plan.points[1]
    checks.store(
        folder, planning.key(stored_plan, other), replace(estimate(other), cycles=1_880_000.0)
    )
    assert "A step takes 1 ms in mixed bfloat16 and 2 ms in float32 (50% less)" in texts(
        show("tpu")
    )


def test_a_compiler_refusal_is_shown_with_its_reason(
    show: Show, home: Home, plan: CheckPlan
) -> None:
    keep_all(home, plan)
    refused = estimate(
        plan.point,
        refused="XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm.",
    )
    checks.store(home.path / checks.FOLDER, planning.key(plan, plan.point), refused)
    app = show("tpu")
    assert not app.exception
    assert "It does not fit into the memory of a core" in texts(app)
    assert not app.metric


def test_operations_that_leave_the_tpu_are_named(
    show: Show, home: Home, stored_plan: CheckPlan
) -> None:
    leaving = estimate(stored_plan.point, host_transfers=("infeed.1", "send.7"))
    checks.store(home.path / checks.FOLDER, planning.key(stored_plan, stored_plan.point), leaving)
    app = show("tpu")
    assert "**2 operations leave the device**: infeed.1, send.7" in texts(app)
    assert figures(app)["On the TPU"] == "118 of 120"


def test_a_missing_compiler_is_reported_and_hides_the_check_button(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "missing_library", lambda: "libtpu is not installed here.")
    app = show("tpu")
    assert "libtpu is not installed here." in texts(app)
    assert not [button for button in app.button if button.label == "Check"]


def test_an_invalid_option_is_explained_and_hides_the_check_button(show: Show) -> None:
    app = show("tpu")
    app.text_input(key="tpu.batch").set_value("100").run()
    assert "Global batch (batch_size_global) is 100, but 8 replicas need a multiple of 8" in texts(
        app
    )
    app.text_input(key="tpu.batch").set_value("99999999").run()
    assert "a whole number from 1 to" in texts(app)
    assert [button.label for button in app.button if button.label == "Check"] == []


def test_the_page_shows_the_accuracy_of_earlier_estimates(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    measurements = (
        ("keras", "v2:2x2", 1164.79),
        ("keras", "v3:2x2", 413.4),
        ("ours", "v3:2x2", 90.0),
    )
    records = [dict(zip(("side", "topology", "epoch_s"), row, strict=True)) for row in measurements]
    monkeypatch.setattr(references, "stored_estimates", lambda: references.epoch_estimates(records))
    app = show("tpu")
    table = next(element.value for element in app.dataframe if "Machine" in element.value)
    assert table.to_numpy().tolist() == [
        ["TPU v2-8", "1,059", "1,165", "+10.0%", "–", "–"],
        ["TPU v3-8", "416", "413", "-0.7%", "90", "4.6"],
    ]
    assert "This project's steps have not run on a TPU" in texts(app)


def test_a_missing_comparison_shows_the_command_that_creates_it(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references, "stored_estimates", lambda: ())
    assert "This comparison is not stored. Run `make bench ONLY=cycles` to create it." in texts(
        show("tpu")
    )


def test_the_page_names_the_program_it_compiles(show: Show) -> None:
    assert "as the JAX engine (`engine=jax`) builds it" in texts(show("tpu"))


def test_runs_on_a_real_tpu_are_listed_with_the_estimate(show: Show) -> None:
    assert "No finished run on a real TPU is stored yet" in texts(show("tpu"))
    rates = pd.DataFrame(
        [("cpu", 8, "float32", 512, 1, 500.0), ("tpu", 8, "mixed_bfloat16", 512, 2, 300_000.0)],
        columns=[
            "accelerator",
            "devices",
            "precision",
            "batch_size_global",
            "runs",
            "images_per_s",
        ],
    )
    assert tpu_charts.real_runs(rates, 60_000).to_dict("records") == [
        {
            "Cores": 8,
            "Precision": "mixed bfloat16",
            "Batch": 512,
            "Runs": 2,
            "Seconds per epoch": 0.2,
        }
    ]


def test_the_equivalent_command_is_shown(show: Show) -> None:
    (command,) = shown_commands(show("tpu"))
    assert command.endswith(
        "-m gan_runtime tpu-check --topology v3:2x2 --preset paper --set workload=dcgan_mnist --set"
        " precision=mixed_bfloat16 --set batch_size_global=512"
    )
