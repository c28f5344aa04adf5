"""Flow evaluation of rollouts: empty states, summary, film, errors by step, wake, times, form."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.domains.flows import charts as flow_charts
from dashboard.domains.flows import movie, rollouts
from gan_runtime.engines.tiles import Way
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import End, JobDir, JobRequest
from gan_runtime.records import image_files, journal
from gan_runtime.records.earlier_records import rollout_key
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.tpu import plan as planning
from gan_runtime.training import checkpoints
from tests.pages.reading import evaluation, open_tab, texts
from tests.pages.test_physics_page import charts
from tests.support.measured_flows import frames, iteration
from tests.support.stored_films import stored_flows
from tests.tpu.examples import keep_all

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]
STEPS = 20
WAYS: tuple[Way, ...] = ("map_reduce", "naive", "whole")


def iterated(run: RunDir, way: Way = "map_reduce", number: int = 1, error: float = 0.02) -> None:
    """Writes a rollout to the journal of a run and its film next to it, as a job does."""
    record = iteration(2, way, STEPS, number, error)
    file = image_files.write_film(run, f"{record.iteration}-{way}", frames(STEPS))
    journal.append(run.earlier_journal("flow"), 1, record.model_copy(update={"frames": file}))


def film(app: AppTest) -> dict[str, object]:
    """The data sent to the player."""
    (mounted,) = app.get("bidi_component")
    return dict(json.loads(mounted.proto.json))  # type: ignore[union-attr]


def test_the_summary_compares_with_replay_copied_frame_and_solver(
    show: Show, trained: Make
) -> None:
    run = trained("quick-0001")
    for way in WAYS:
        iterated(run, way)
    app = evaluation(show, "quick-0001", "gone", "", "quick-0001")
    assert not app.exception
    assert {metric.label: (metric.value, metric.delta) for metric in app.metric} == {
        "RMSE over a period": ("0.0500", "replay 0.1500"),
        "Error of the spectrum": ("0.500", "replay 0.150"),
        "Divergence (U/D)": ("0.0800", "true flow 0.0100"),
        "Error of the Strouhal number": ("5.9%", ""),
        "Time of a frame (ms)": ("5.00", "solver 18.00"),
    }
    assert app.metric[0].label == "RMSE over a period", "what is read first"
    assert (
        "**Partly like the data after epoch 2**: RMSE over a period 0.0500, below that of the"
        " copied start frame (0.2500), below that of the replay (0.1500); Error of the spectrum"
        " 0.500, not below that of the replay (0.150). **Against the replay: better in RMSE over a"
        " period; worse in Error of the spectrum. Against the copied frame: better in RMSE over a"
        " period; worse in Error of the spectrum.** RMSE over a period: 0.0500, replay 0.1500,"
        " copied frame 0.2500. Error of the spectrum: 0.500, replay 0.150, copied frame 0.100."
    ) in texts(app)
    assert charts(app) == ["How far is each score from the replay?"], "only the open tab draws"
    assert not app.get("bidi_component")


def test_each_tab_draws_only_its_own_charts(show: Show, home: Home, trained: Make) -> None:
    run = trained("quick-0001")
    for way in WAYS:
        iterated(run, way)
    plan = planning.make({"batch_size_global": 32, "epochs": 2}, "v3:2x2", sweep=False, home=home)
    keep_all(home, plan)
    app = evaluation(show, view="Errors")
    expected = [
        "Root mean square error",
        "Error of the spectrum",
        "Enstrophy",
        "Divergence",
        "Seams",
    ]
    assert charts(app) == expected
    assert "Replay: Re 100 from frame 7 of the training films" in texts(app)
    assert charts(open_tab(app, "Wake")) == [
        "Velocity across, at the probe",
        "Spectrum at the probe",
    ]
    assert "Flow 0.1700, quick-0001 0.1600" in texts(app)
    assert charts(open_tab(app, "Time")) == ["Time of all steps", "Time of a frame"]
    bars = json.loads(app.get("vega_lite_chart")[0].proto.spec)["layer"][0]["encoding"]["y"]["sort"]
    assert sorted(bars) == ["map-reduce on 2 cores", "one core, in turn", "whole image"]
    assert charts(open_tab(app, "Speed and literature")) == ["Training time by batch, as published"]
    training_times(app.dataframe[-1].value)
    assert "are not compiled for a TPU yet" not in texts(app)
    assert "Only one epoch of these runs is measured" in texts(open_tab(app, "Epochs"))
    assert "This run is not an image-to-image model" in texts(open_tab(app, "Measure again"))
    assert not app.exception


def test_the_film_shows_another_quantity_at_the_same_steps(show: Show, trained: Make) -> None:
    iterated(trained("quick-0001"))
    app = evaluation(show, view="Film")
    vorticity = film(app)
    assert [panel["title"] for panel in vorticity["panels"]] == [
        "Flow",
        "Prediction",
        "Prediction − flow",
    ]
    assert len(vorticity["steps"]) == STEPS + 1
    app = app.segmented_control(key="flow.quantity").set_value("speed").run()
    assert not app.exception
    speed = film(app)
    assert speed["film"] != vorticity["film"]
    assert speed["steps"] == vorticity["steps"]
    assert speed["panels"][0]["ticks"] == ["0", "|u| / U", "2"]


def test_a_rollout_of_version_0_2_0_is_compared_with_the_copied_frame(
    show: Show, trained: Make
) -> None:
    run, record = trained("quick-0001"), iteration(2, steps=STEPS, error=0.02, is_replayed=False)
    journal.append(run.earlier_journal("flow"), 1, record)
    app = evaluation(show)
    assert not app.exception
    measures = {metric.label: (metric.value, metric.delta) for metric in app.metric}
    assert measures["RMSE over a period"] == ("0.0500", "copied frame 0.2500")
    assert measures["Error of the spectrum"] == ("0.500", "copied frame 0.100")
    assert "Re 110 from frame 4" in texts(app)
    assert charts(app) == ["How far is each score from the copied frame?"]
    assert flow_charts.REPLAYED not in legend(open_tab(app, "Errors"), 0)
    assert "Replay:" not in texts(app)


def test_an_unmeasured_score_is_shown_as_a_dash(show: Show, trained: Make) -> None:
    """The rollout has too few steps to measure a frequency."""
    record = iteration(2, steps=STEPS)
    scores = [
        (
            score.model_copy(update={"value": math.nan, "reference": math.nan, "replay": math.nan})
            if score.name in ("strouhal_error", "rmse_period")
            else score
        )
        for score in record.scores
    ]
    journal.append(
        trained("quick-0001").earlier_journal("flow"),
        1,
        record.model_copy(update={"scores": scores}),
    )
    app = evaluation(show)
    assert not app.exception
    measures = {metric.label: (metric.value, metric.delta) for metric in app.metric}
    assert measures["Error of the Strouhal number"] == ("–", "")
    assert measures["RMSE over a period"] == ("–", ""), "of less than a period"


def test_mp4_button_is_disabled_and_explains_a_missing_encoder(
    show: Show, trained: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine has no ffmpeg."""
    monkeypatch.setattr(movie, "missing_encoder", lambda: movie.NO_ENCODER)
    iterated(trained("quick-0001"))
    gif, mp4 = (button.proto for button in evaluation(show, view="Film").get("download_button"))
    assert (gif.disabled, mp4.disabled) == (False, True)
    assert mp4.help == movie.NO_ENCODER


def training_times(table: pd.DataFrame) -> None:
    """Checks that each training time names its source."""
    (row,) = table[table["How known"] == rollouts.HERE].to_dict("records")
    assert (row["What"], row["Batch"], row["Time"]) == ("quick-0001, an epoch", "32", "3 s")
    (estimated,) = table[table["How known"] == rollouts.ESTIMATED].to_dict("records")
    assert (estimated["What"], estimated["Device"], estimated["Batch"]) == (
        "quick-0001, an epoch",
        "TPU v3",
        "32",
    )
    elsewhere = table[table["How known"] == rollouts.ELSEWHERE]
    assert len(elsewhere) == 12
    assert elsewhere["Time"].tolist()[0] == "3,451 s"


def test_rollouts_of_two_runs_share_charts_even_without_films(show: Show, trained: Make) -> None:
    iterated(trained("quick-0001"), error=0.02)
    newest = trained("quick-0002", seconds=10)
    iterated(newest, error=0.01)
    for file in newest.films.iterdir():
        file.write_bytes(b"torn")
    app = evaluation(show, "quick-0002", "quick-0001", view="Errors")
    assert not app.exception
    assert sorted(legend(app, 0)) == sorted(
        ["quick-0001", "quick-0002", flow_charts.COPIED, flow_charts.REPLAYED]
    )
    assert rollouts.NO_FRAMES in texts(open_tab(app, "Film"))
    assert not app.get("bidi_component")
    image_files.write_film(newest, next(newest.films.iterdir()).stem, frames(STEPS, height=10))
    app.run()
    assert not app.exception
    assert rollouts.NO_FRAMES in texts(app), "a film of another grid than the record's"
    assert rollouts.NOT_ESTIMATED in texts(open_tab(app, "Speed and literature")), (
        "no compiler was asked"
    )


def test_charts_add_run_ids_only_to_duplicate_run_names(show: Show, trained: Make) -> None:
    for run_id, name in (
        ("quick-0001", "seed 1"),
        ("quick-0002", "seed 2"),
        ("quick-0003", "seed 2"),
    ):
        iterated(trained(run_id, name=name))
    two = evaluation(show, "quick-0001", "quick-0002", view="Errors")
    assert not two.exception
    assert {"seed 1", "seed 2"} < set(legend(two, 0))
    assert {"seed 1, an epoch", "seed 2, an epoch"} < set(
        open_tab(two, "Speed and literature").dataframe[-1].value["What"]
    )
    three = evaluation(show, "quick-0001", "quick-0002", "quick-0003", view="Errors")
    assert {"seed 1", "seed 2 (quick-0002)", "seed 2 (quick-0003)"} < set(legend(three, 0))


def legend(app: AppTest, number: int) -> list[str]:
    """The names of a chart's curves."""
    spec = json.loads(app.get("vega_lite_chart")[number].proto.spec)
    return list(spec["layer"][-1]["encoding"]["color"]["scale"]["domain"])


def test_a_run_whose_folder_was_deleted_has_no_evaluation(
    show: Show, home: Home, trained: Make
) -> None:
    stored_flows(home)
    trained("flow-0001", workload="pix2pix", dataset="street", **{"pix2pix.tile": 16})
    app = evaluation(show)
    assert rollouts.NO_ROLLOUT in texts(app)
    shutil.rmtree(home.run_dir("flow-0001").path)
    app.run()
    assert not app.exception
    assert rollouts.NO_ROLLOUT not in texts(app)


def test_each_run_is_checked_for_reading_the_dataset_by_its_own_options(
    show: Show, home: Home, trained: Make
) -> None:
    """The second run's tile does not fit into the frames."""
    stored_flows(home)
    trained("flow-0001", workload="pix2pix", dataset="street", **{"pix2pix.tile": 16})
    trained("flow-0002", seconds=10, workload="pix2pix", dataset="street", **{"pix2pix.tile": 64})
    assert rollouts.NO_ROLLOUT in texts(evaluation(show, "flow-0001"))
    other = evaluation(show, "flow-0002")
    assert not other.exception
    assert rollouts.NO_ROLLOUT not in texts(other)


@pytest.mark.usefixtures("stalled_jobs")
def test_the_form_offers_held_out_flows_and_starts_a_rollout(
    show: Show, home: Home, trained: Make
) -> None:
    stored_flows(home)
    run = trained("flow-0001", workload="pix2pix", dataset="street", **{"pix2pix.tile": 16})
    checkpoints.save(
        run.checkpoints, {"weights": np.zeros(3, np.float32)}, 20, wall_s=1.0, retained=3
    )
    job = JobDir(home.jobs / "iterate-0001")
    job.path.mkdir(parents=True)
    job.write_request(
        JobRequest(kind="iterate", options={"run_id": "flow-0001", "steps": 100}, asker="a test")
    )
    job.write_end(End(state="failed", reason="the disk is full."))
    app = evaluation(show)
    assert not app.exception
    assert rollouts.NO_ROLLOUT in texts(app)
    assert "Not measured: the disk is full." in texts(app)
    (flow,) = [element for element in app.segmented_control if element.label == "Film"]
    (steps,) = [element for element in app.number_input if element.label == "Steps (frames)"]
    assert flow.options == ["Re 120", "Re 200"]
    assert (steps.value, steps.max) == (
        None,
        40,
    ), "as many as a flow has, where nobody says how many"
    (overlap,) = [element for element in app.number_input if element.label == "Overlap (pixels)"]
    assert (overlap.value, overlap.max) == (12, 15), "less than a tile"
    app = flow.set_value(1).run()
    app = app.button(key="evaluation.start").click().run()
    assert not app.exception
    (options,) = [
        look.request.options for look in job_queue.snapshots(home, "rollout") if look.is_live
    ]
    expected = {
        "trajectory": 1,
        "overlap": 12,
        "blend": "hann",
        "ways": ["map_reduce"],
        "steps": None,
    }
    assert {name: options[name] for name in expected} == expected
    assert "flow-0001: " in app.get("progress")[0].proto.text


@pytest.mark.usefixtures("stalled_jobs")
def test_the_form_offers_the_epochs_whose_weights_are_stored(
    show: Show, home: Home, trained: Make
) -> None:
    stored_flows(home)
    run = trained("flow-0001", workload="pix2pix", dataset="street", **{"pix2pix.tile": 16})
    checkpoints.save(
        run.checkpoints, {"weights": np.zeros(3, np.float32)}, 20, wall_s=1.0, retained=3
    )
    for epoch in (0, 1, 2):
        checkpoints.save_snapshot(run.snapshots, {"weights": np.zeros(3, np.float32)}, epoch)
    app = evaluation(show)
    (state,) = [element for element in app.selectbox if element.label == "Weights"]
    assert state.options == ["Newest checkpoint", "Epoch 2", "Epoch 1", "Untrained (epoch 0)"]
    app = state.select("epoch 1").run()
    app = app.button(key="evaluation.start").click().run()
    assert not app.exception
    (options,) = [look.request.options for look in job_queue.snapshots(home, "rollout")]
    assert (options["checkpoint"], options["epoch"]) == ("newest", 1)


def test_a_rollout_names_the_weights_it_used(show: Show, trained: Make) -> None:
    run = trained("quick-0001")
    iterated(run)
    record_of_weights = iteration(1, steps=STEPS, number=2).model_copy(
        update={"checkpoint": "epoch 1"}
    )
    file = image_files.write_film(run, "iterate-0002-map_reduce", frames(STEPS))
    journal.append(
        run.earlier_journal("flow"), 1, record_of_weights.model_copy(update={"frames": file})
    )
    app = evaluation(show, view="Film")
    assert not app.exception
    picker = app.multiselect(key="evaluation.answers.quick-0001")
    assert any("· epoch 1 · stored weights ·" in option for option in picker.options)
    assert any("· epoch 2 · Re" in option for option in picker.options)
    states = {"checkpoint": "(best checkpoint, epoch 2)", "kept": "(weights stored after epoch 1)"}
    keys = [
        f"quick-0001.{rollout_key(record)}"
        for record in (iteration(2, steps=STEPS), record_of_weights)
    ]
    pages = [texts(picker.set_value([key]).run()) for key in keys]
    for text, state in zip(pages, states.values(), strict=True):
        assert f"Film of quick-0001 {state}." in text
