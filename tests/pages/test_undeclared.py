"""Undeclared metrics, and runs of workloads unknown to this version, are shown too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from gan_runtime.bundles import event_files, tensorboard
from gan_runtime.bundles.event_files import StepEvent
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from tests.pages.reading import charts, texts, titles

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


def with_new_numbers(run: RunDir) -> None:
    """Adds two undeclared metrics to a run: one per step, one per epoch."""
    energy = journal.Scalars(
        epoch=1,
        first_step=1,
        wall_s=[float(step) for step in range(1, 21)],
        values={"cell_energy": [0.25] * 20},
    )
    quality = [
        journal.EpochScores(
            epoch=epoch, step=10 * epoch, wall_s=10.0 * epoch, values={"mode_count": 9.0}
        )
        for epoch in (1, 2)
    ]
    journal.append(run.trainer_journal(), 1, energy, *quality)


def test_an_undeclared_metric_appears_on_live_and_compare(show: Show, trained: Make) -> None:
    with_new_numbers(trained("quick-0001"))
    trained("quick-0002", seconds=10)
    app = show("run", run="quick-0001")
    assert not app.exception
    assert "Further numbers" in [header.value for header in app.header]
    assert titles(app)[-2:] == ["Mode count", "Cell energy"]
    axes = [chart["layer"][0]["encoding"]["x"]["title"] for chart in charts(app)[-2:]]  # type: ignore[index]
    assert axes == ["Epoch", "Step"]
    assert "Further numbers" not in [
        header.value for header in show("run", run="quick-0002").header
    ]
    compare = show("compare", tab="curves", runs="quick-0001,quick-0002")
    more = compare.multiselect(key="compare.metrics")
    assert more.options[-2:] == ["Cell energy", "Mode count"]
    more.set_value(["cell_energy", "mode_count"]).run()
    assert not compare.exception
    assert titles(compare)[2:4] == ["Cell energy", "Mode count"]


@pytest.fixture
def foreign(trained: Make) -> RunDir:
    """A finished run of a workload that this version does not have."""
    run = trained("quick-0001")
    lines = run.supervisor_journal.read_text(encoding="utf-8").splitlines()
    created = json.loads(lines[0])
    created["spec"]["workload"] = "removed_gan"
    run.supervisor_journal.write_text(
        "\n".join([json.dumps(created), *lines[1:], ""]), encoding="utf-8"
    )
    return run


@pytest.mark.usefixtures("foreign")
def test_a_run_of_an_unknown_workload_is_shown_with_metric_names(show: Show, trained: Make) -> None:
    trained("quick-0002", seconds=10)
    app = show("run", run="quick-0001")
    assert not app.exception
    assert "does not know which numbers of this run are losses" in texts(app)
    assert titles(app)[0] == "How long does an epoch take?"
    assert {"Loss generator", "D fake", "Spread real"} <= set(titles(app))
    assert not [metric for metric in app.metric if metric.label.startswith("Loss")]
    assert "Run again with changes" not in [button.label for button in app.button]
    for page in ("home", "runs"):
        assert not show(page).exception
    compare = show("compare", tab="curves", runs="quick-0001,quick-0002")
    assert not compare.exception
    assert titles(compare)[:2] == [
        "Generator loss",
        "Discriminator loss",
    ], "those of the run that is known"
    histograms = show("run", tab="histograms", run="quick-0001")
    assert not histograms.exception
    assert titles(histograms)[:2] == ["Score fake", "Score real"]


def test_unknown_choices_and_categories_of_a_newer_version_are_shown(
    show: Show, trained: Make
) -> None:
    of_newer, _ = trained("quick-0001"), trained("quick-0002", seconds=10)
    created, *lines = of_newer.supervisor_journal.read_text(encoding="utf-8").splitlines()
    record = json.loads(created)
    record["spec"]["precision"] = "float8"
    of_newer.supervisor_journal.write_text(
        "\n".join([json.dumps(record), *lines, ""]), encoding="utf-8"
    )
    shares = [
        journal.TimeShare(
            network="sculptor", category="teleport", phase="sculpt", seconds=1.0, share=1.0
        )
    ]
    journal.append(
        of_newer.trainer_journal(), 1, journal.Profile(step=20, steps=1, seconds=1, shares=shares)
    )
    live = show("run", run="quick-0001")
    assert not live.exception
    assert "Unattributed 100.0" in texts(live)
    compare = show("compare", runs="quick-0001,quick-0002")
    assert not compare.exception
    axes = next(
        element for element in compare.multiselect if str(element.key).startswith("compare.axes")
    )
    assert "Precision" in axes.options
    axes.set_value(["precision", axes.value[-1]]).run()
    assert not compare.exception


def test_runs_imported_from_event_files_have_pages(
    show: Show, home: Home, trained: Make, tmp_path: Path
) -> None:
    trained("quick-0001")
    path = tmp_path / "logs" / "sweep" / "events.out.tfevents.1.host"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        events = (StepEvent(1.7e9 + step, step, {"Loss/g": step / 8}) for step in range(1, 20))
        event_files.write(file, events)
    (run_id,) = tensorboard.import_folder(tmp_path / "logs", home)
    app = show("run", run=run_id)
    assert not app.exception
    assert "Loss/g" in titles(app)
    for tab in ("log", "options"):
        assert not show(f"run/{tab}", run=run_id).exception
    assert not show("runs").exception
    for tab in ("results", "curves"):
        compare = show("compare", tab=tab, runs=f"{run_id},quick-0001")
        assert not compare.exception
    assert "Loss/g" in compare.multiselect(key="compare.metrics").options


def test_imported_run_has_as_many_epochs_as_its_files(
    show: Show, home: Home, trained: Make, tmp_path: Path
) -> None:
    trained("quick-0001")
    (tmp_path / "logs").mkdir()
    with (tmp_path / "logs" / "events.out.tfevents.1.host").open("wb") as file:
        event_files.write(
            file,
            (
                StepEvent(1.7e9 + step, step, {"loss": 1.0, "epoch": float(step)})
                for step in range(1, 6)
            ),
        )
    (run_id,) = tensorboard.import_folder(tmp_path / "logs", home)
    compare = show("compare/histograms", runs=f"{run_id},quick-0001")
    assert not compare.exception
    app = show("run", run=run_id)
    assert not app.exception
    assert (app.metric[0].label, app.metric[0].value) == ("Epoch", "5 / 5")
    assert [(slider.min, slider.max) for slider in [*compare.slider, *app.slider]] == [(1, 5)] * 2
