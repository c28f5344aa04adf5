"""The Live page of stored runs: numbers, charts, reasons, profiles."""

from __future__ import annotations

import json
from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from gan_runtime.records import journal
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir, latest_status
from tests.pages.reading import charts, texts, titles

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


def test_live_shows_every_stored_series_of_a_run(show: Show, trained: Make) -> None:
    trained("quick-0001", losses=(0.875, 1.125))
    app = show("run", run="quick-0001")
    assert not app.exception
    assert {metric.label: metric.value for metric in app.metric}["Loss G / D"] == "0.875 / 1.125"
    assert titles(app) == [
        "Generator and discriminator loss",
        "Scores of the discriminator",
        "Distribution of the scores",
        "How long does an epoch take?",
        "How often is the discriminator right?",
        "Do the generated images vary?",
        "How large are the gradients?",
        "How large is one update?",
    ]


def test_only_the_open_tab_of_a_run_is_drawn(show: Show, trained: Make) -> None:
    """The page is redrawn every second, so hidden tabs are not drawn."""
    trained("quick-0001")
    app = show("run", run="quick-0001")
    assert (list(app.code), list(app.dataframe)) == ([], [])
    overview = set(titles(app))
    histograms = show("run", tab="histograms", run="quick-0001")
    assert not histograms.exception
    assert titles(histograms) == [
        "Scores of real images",
        "Scores of generated images",
        "Generator weights",
        "Generator gradients",
        "Discriminator weights",
        "Discriminator gradients",
    ]
    assert overview.isdisjoint(titles(histograms))
    log = show("run", tab="log", run="quick-0001")
    assert (titles(log), len(log.dataframe)) == ([], 1)
    assert "all 2 epochs done" in "".join(str(code.value) for code in log.code)
    options = show("run", tab="options", run="quick-0001")
    assert (titles(options), list(options.code)) == ([], [])
    batch = ["Global batch (images per step)", "32", "", "batch_size_global"]
    assert batch in options.dataframe[0].value.to_numpy().tolist()


def test_live_explains_how_to_get_a_profile(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("run", run="quick-0001")
    assert "'Profile steps' on Launch" in texts(app)
    assert "Memory, peak" not in {metric.label for metric in app.metric}


def test_live_offers_no_profile_or_worker_times_for_jax(show: Show, trained: Make) -> None:
    trained("quick-0001", engine="jax", workers=2)
    text = texts(show("run", run="quick-0001"))
    assert "Profile steps" not in text
    assert "JAX does not report how long each worker computes and waits" in text


def test_live_shows_time_and_memory_usage(show: Show, trained: Make) -> None:
    run = trained("quick-0001")
    shares = [
        journal.TimeShare(network=name, category="backward", seconds=0.5, share=0.5)
        for name in ("generator", "")
    ]
    sizes = {
        "process_bytes": 10**9,
        "process_peak_bytes": 1_100_000_000,
        "device_bytes": None,
        "device_peak_bytes": None,
    }
    journal.append(
        run.trainer_journal(),
        1,
        journal.Profile(step=18, steps=5, seconds=1.0, shares=shares),
        journal.MemoryUse(epoch=1, step=10, **sizes),  # type: ignore[arg-type]
        *(
            journal.PhaseSeconds(phase=f"step_{name}", seconds=seconds)
            for name, seconds in {"p05": 0.04, "p95": 0.05, "max": 0.2}.items()
        ),
    )
    app = show("run", run="quick-0001")
    assert not app.exception
    assert "Where does a step's time go?" in [chart["title"] for chart in charts(app)]
    assert "Measured once, over 5 training steps" in texts(app)
    assert "'Profile steps' on Launch" not in texts(app)
    assert {metric.label: metric.value for metric in app.metric}["Memory, peak"] == "1.1 GB"
    assert "nine of ten steps 40 ms to 50 ms, slowest 0.20 s" in texts(app)


def test_the_spec_of_a_chart_contains_no_data(show: Show, trained: Make) -> None:
    """A spec that changes with the data re-embeds the chart, which flickers and loses its zoom."""
    trained("quick-0001", losses=(0.5, 0.5))
    trained("quick-0002", losses=(2.5, 3.5), seconds=10)
    first, second = (charts(show("run", run=run)) for run in ("quick-0001", "quick-0002"))
    assert [_without_data_names(spec) for spec in first[:8]] == [
        _without_data_names(spec) for spec in second[:8]
    ]


def _without_data_names(spec: dict[str, object]) -> dict[str, object]:
    text = json.dumps({key: value for key, value in spec.items() if key != "datasets"})
    names = {layer["data"]["name"] for layer in [spec, *spec.get("layer", [])] if "data" in layer}  # type: ignore[union-attr, operator, attr-defined]
    for name in names:
        text = text.replace(str(name), "data")
    return dict(json.loads(text))


def test_live_shows_why_a_run_failed_and_resumes_it_with_new_options(
    show: Show, trained: Make
) -> None:
    run = trained("quick-0001")
    journal.append(
        run.trainer_journal(),
        1,
        StatusChange(status="failed", reason="loss_generator became NaN at step 7 (epoch 1)"),
    )
    app = show("run", run="quick-0001")
    assert "Loss_generator became NaN at step 7" in texts(app)
    (resume,) = [button for button in app.button if button.label == "Resume"]
    assert resume.disabled
    assert "has no checkpoint to resume from" in resume.help.replace("\\", "")
    run.checkpoints.mkdir()
    (run.checkpoints / "step-00000020.safetensors").touch()
    app = show("run", run="quick-0001")
    assert [button.disabled for button in app.button if button.label == "Resume"] == [False]

    (rate,) = [field for field in app.text_input if field.label == "Learning rate, generator"]
    assert rate.value == "0.0001"
    rate.set_value("-1")
    next(button for button in app.button if button.label == "Resume with these").click().run()
    assert (
        "Learning rate, generator (learning_rate_generator) is '-1', but allowed is"
        in app.error[0].value
    )
    next(field for field in app.text_input if field.label == "Learning rate, generator").set_value(
        "5e-5"
    )
    next(button for button in app.button if button.label == "Resume with these").click().run()
    assert run.spec().learning_rate("generator") == 5e-5
    assert latest_status(run).reason.startswith(
        "resumed with learning_rate_generator 5e-05 instead of 0.0001"
    )


def test_live_names_the_step_where_a_loss_became_nan(show: Show, trained: Make) -> None:
    run = trained("quick-0001")
    broken = journal.Scalars(
        epoch=3, first_step=21, wall_s=[21.0], values={"loss_generator": [float("nan")]}
    )
    journal.append(run.trainer_journal(), 1, broken)
    assert "Generator loss became nan at step 21" in texts(show("run", run="quick-0001"))


def test_a_run_with_only_nan_losses_names_the_step(show: Show, new_run: Make) -> None:
    nan = [float("nan")] * 2
    for run_id in ("quick-0001", "quick-0002"):
        journal.append(
            new_run(run_id).trainer_journal(),
            1,
            journal.Scalars(
                epoch=1,
                first_step=1,
                wall_s=[1.0, 2.0],
                values={"loss_generator": nan, "loss_discriminator": nan},
            ),
            StatusChange(status="stopped", reason="stopped on request"),
        )
    app = show("run", run="quick-0001")
    assert "loss became nan at step 1" in texts(app)
    assert "There is no finite loss to draw." in texts(app)
    compared = texts(show("compare", tab="curves", runs="quick-0001,quick-0002"))
    assert "Generator loss: no value is finite." in compared
    assert "No run has finished a step yet." not in compared


def test_live_formats_large_losses_briefly(show: Show, trained: Make) -> None:
    trained("quick-0001", losses=(123.45678, 0.6931))
    assert "123.5 / 0.693" in [metric.value for metric in show("run", run="quick-0001").metric]


def test_live_falls_back_when_the_address_names_an_unknown_run(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("run", run="quick-0099")
    assert not app.exception
    assert "'quick-0099' is not stored here" in texts(app)


def test_live_explains_when_health_charts_appear(show: Show, running: RunDir) -> None:
    app = show("run", run=running.run_id)
    assert not app.exception
    assert "appears here after the first epoch." in texts(app)
    assert titles(app) == []


def test_live_draws_rates_scales_and_penalties_only_when_in_use(show: Show, trained: Make) -> None:
    moving = {
        f"{kind}_{network}": [1.0, 2.0]
        for kind in ("learning_rate", "loss_scale")
        for network in ("generator", "discriminator")
    }
    penalty = {"r1_penalty": [0.5, 0.25]}  # recorded only if it is in the loss
    plain = trained("quick-0001")
    changing = trained(
        "quick-0002", seconds=10, warmup_epochs=1, precision="mixed_float16", r1_weight=10.0
    )
    for run, values in ((plain, moving), (changing, moving | penalty)):
        numbers = journal.Scalars(epoch=1, first_step=1, wall_s=[1.0, 2.0], values=values)
        journal.append(run.trainer_journal(), 1, numbers)
    headings = {"How large are the learning rates?", "How far are float16 gradients scaled up?"}
    headings.add("How steep is the discriminator?")
    assert headings & set(titles(show("run", run="quick-0001"))) == set()
    assert headings <= set(titles(show("run", run="quick-0002")))
