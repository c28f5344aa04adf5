"""Every page on an empty store and on stored runs: what a person reads there."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Button

from dashboard.frame import session
from dashboard.runs import view as runs_view
from gan_runtime import host_presets
from gan_runtime.home import Home, command_line
from gan_runtime.options import GROUPS
from gan_runtime.records import journal
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.rundir import RunDir
from gan_runtime.runtime import commands
from gan_runtime.spec.presets import PRESETS
from gan_runtime.store import queries
from tests.pages.launch_fields import choice_field, presets, text_field
from tests.support.small_pictures import write_grid

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


def texts(app: AppTest) -> str:
    """Everything readable on the page that is not a chart."""
    kinds = (
        app.title,
        app.markdown,
        app.caption,
        app.info,
        app.error,
        app.warning,
        app.header,
        app.subheader,
    )
    pieces = [str(item.value) for kind in kinds for item in kind]
    return "\n".join([*pieces, *(str(item.proto.body) for item in app.get("html"))])


def shown_commands(app: AppTest) -> list[str]:
    """The commands of the command line that stand on the page."""
    bodies = [item.proto.body for item in app.get("html")]
    return [
        html.unescape(found)
        for body in bodies
        for found in re.findall(r"<pre class='command'>(.*)</pre>", body)
    ]


def charts(app: AppTest) -> list[dict[str, object]]:
    """The Vega-Lite specs on the page."""
    return [json.loads(item.proto.spec) for item in app.get("vega_lite_chart")]


def opened(app: AppTest, *groups: str) -> AppTest:
    """Launch with these groups open, all of them by default, as a click leaves them."""
    for group in groups or GROUPS:
        app.session_state[f"group.{group}"] = True
    return app.run()


def titles(app: AppTest) -> list[str]:
    """The titles of the charts on the page, without their subtitles; some stand under a name and have none."""
    found = [chart["title"] for chart in charts(app) if "title" in chart]
    return [str(title["text"]) if isinstance(title, dict) else str(title) for title in found]


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("home", "Nothing has been trained here yet"),
        ("live", "No run is stored yet"),
        ("runs", "No run is stored yet"),
        ("compare", "Pick two or more runs"),
        ("samples", "No run is stored yet"),
    ],
)
def test_an_empty_page_says_what_to_do(show: Show, page: str, sentence: str) -> None:
    app = show(page)
    assert not app.exception
    assert sentence in texts(app)
    assert charts(app) == []


def test_home_shows_the_last_runs_with_their_state(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("home")
    assert not app.exception
    assert "finished" in texts(app)
    assert "quick-0001" in texts(app)


def test_live_shows_every_stored_series_of_a_run(show: Show, trained: Make) -> None:
    trained("quick-0001", losses=(0.875, 1.125))
    app = show("live", run="quick-0001")
    assert not app.exception
    assert {metric.label: metric.value for metric in app.metric}["Loss G / D"] == "0.875 / 1.125"
    assert titles(app) == [
        "Generator and discriminator loss",
        "Can the discriminator tell?",
        "Where do the scores lie?",
        "How long does an epoch take?",
        "How often is the discriminator right?",
        "Do the generated images vary?",
        "How large are the gradients?",
        "How large is one update?",
    ]


def test_live_fills_what_is_closed_once_it_is_opened(show: Show, trained: Make) -> None:
    """The page is redrawn every second: nothing is drawn that nobody sees."""
    trained("quick-0001")
    app = show("live", run="quick-0001")
    assert (list(app.code), list(app.dataframe)) == ([], [])
    closed = titles(app)
    for label in ("Weights and gradients", "Log", "Events", "Options and host"):
        app.session_state[f"{label}.quick-0001"] = True
    app.run()
    assert not app.exception
    assert [title for title in titles(app) if title not in closed] == [
        "Generator weights",
        "Generator gradients",
        "Discriminator weights",
        "Discriminator gradients",
    ]
    assert "all 2 epochs done" in "".join(str(code.value) for code in app.code)
    assert ["Global batch (images per step)", "32", "batch_size_global"] in app.dataframe[
        1
    ].value.to_numpy().tolist()


def test_live_says_how_to_get_a_profile(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("live", run="quick-0001")
    assert "'Profile steps' set on Launch" in texts(app)
    assert "Memory, peak" not in {metric.label for metric in app.metric}


def test_live_offers_no_profile_and_no_times_of_workers_where_jax_has_none(show: Show, trained: Make) -> None:
    trained("quick-0001", engine="jax", workers=2)
    shown = texts(show("live", run="quick-0001"))
    assert "Profile steps" not in shown
    assert "How long each worker computes and waits is not known with JAX" in shown


def test_live_shows_where_time_and_memory_go(show: Show, trained: Make) -> None:
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
        journal.Memory(epoch=1, step=10, **sizes),  # type: ignore[arg-type]
        *(
            journal.Phase(phase=f"step_{name}", seconds=seconds)
            for name, seconds in {"p05": 0.04, "p95": 0.05, "max": 0.2}.items()
        ),
    )
    app = show("live", run="quick-0001")
    assert not app.exception
    assert "Where does a step's time go?" in [chart["title"] for chart in charts(app)]
    assert "Measured once, over 5 training steps" in texts(app)
    assert "'Profile steps' set on Launch" not in texts(app)
    assert {metric.label: metric.value for metric in app.metric}["Memory, peak"] == "1.1 GB"
    assert "nine of ten steps 40 ms to 50 ms, slowest 200 ms" in texts(app)


def test_the_spec_of_a_chart_holds_no_data(show: Show, trained: Make) -> None:
    """A spec that changes with the data is embedded anew: the chart flickers and forgets its zoom."""
    trained("quick-0001", losses=(0.5, 0.5))
    trained("quick-0002", losses=(2.5, 3.5), seconds=10)
    first, second = (charts(show("live", run=run)) for run in ("quick-0001", "quick-0002"))
    assert [_without_data_names(spec) for spec in first[:8]] == [
        _without_data_names(spec) for spec in second[:8]
    ]


def _without_data_names(spec: dict[str, object]) -> dict[str, object]:
    text = json.dumps({key: value for key, value in spec.items() if key != "datasets"})
    names = {item["data"]["name"] for item in [spec, *spec.get("layer", [])] if "data" in item}  # type: ignore[union-attr, operator, attr-defined]
    for name in names:
        text = text.replace(str(name), "data")
    return dict(json.loads(text))


def test_live_tells_the_reason_of_a_failed_run(show: Show, trained: Make) -> None:
    run = trained("quick-0001")
    journal.append(
        run.trainer_journal(),
        1,
        StatusChange(status="failed", reason="loss_generator became NaN at step 7 (epoch 1)"),
    )
    app = show("live", run="quick-0001")
    assert "Loss_generator became NaN at step 7" in texts(app)
    (resume,) = [button for button in app.button if button.label == "Resume"]
    assert resume.disabled
    assert "has no checkpoint, so there is nothing to resume from" in resume.help.replace("\\", "")
    run.checkpoints.mkdir()
    (run.checkpoints / "step-00000020.safetensors").touch()
    app = show("live", run="quick-0001")
    assert [button.disabled for button in app.button if button.label == "Resume"] == [False]

    (rate,) = [field for field in app.text_input if field.label == "Learning rate, generator"]
    assert rate.value == "0.0001"
    rate.set_value("-1")
    next(button for button in app.button if button.label == "Resume with these").click().run()
    assert "Learning rate, generator (learning_rate_generator) is '-1', but allowed is" in app.error[0].value
    next(field for field in app.text_input if field.label == "Learning rate, generator").set_value("5e-5")
    next(button for button in app.button if button.label == "Resume with these").click().run()
    assert run.spec().learning_rate("generator") == 5e-5
    assert commands.latest_status(run).reason.startswith(
        "resumed with learning_rate_generator 5e-05 instead of 0.0001"
    )


def test_live_marks_the_step_at_which_a_loss_became_nan(show: Show, trained: Make) -> None:
    run = trained("quick-0001")
    broken = journal.Scalars(epoch=3, first_step=21, wall_s=[21.0], values={"loss_generator": [float("nan")]})
    journal.append(run.trainer_journal(), 1, broken)
    assert "Generator loss became nan at step 21" in texts(show("live", run="quick-0001"))


def test_live_keeps_large_losses_as_short_as_others(show: Show, trained: Make) -> None:
    trained("quick-0001", losses=(123.45678, 0.6931))
    assert "123.5 / 0.693" in [metric.value for metric in show("live", run="quick-0001").metric]


def test_live_falls_back_when_the_address_names_an_unknown_run(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("live", run="quick-0099")
    assert not app.exception
    assert "'quick-0099' is not stored here" in texts(app)


def test_runs_names_what_cannot_be_read_and_shows_all_others(show: Show, trained: Make, home: Home) -> None:
    trained("quick-0001")
    for number in range(7):
        (home.runs / f"![x](evil) {number}").mkdir()
    app = show("runs")
    assert not app.exception
    assert len(app.dataframe[0].value) == 1
    [told] = [caption.value for caption in app.caption if "left out" in caption.value]
    lines = told.split("  \n")
    assert lines[0] == (
        "!\\[x\\](evil) 0 is no run that can be read, and is left out: its folder has a name that no run can have."
    )
    assert (len(lines), lines[5]) == (6, "2 more are left out as well.")


def test_runs_lists_every_run_and_finds_one_by_text(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("paper-0002", seconds=10, dataset="mnist")
    app = show("runs")
    assert list(app.dataframe[0].value["run_id"]) == ["paper-0002", "quick-0001"]
    app.text_input[0].set_value("mnist").run()
    # "mnist" also stands in the workload's name of both; the dataset column tells them apart.
    assert list(app.dataframe[0].value["run_id"]) == ["paper-0002", "quick-0001"]
    app.text_input[0].set_value("paper").run()
    assert list(app.dataframe[0].value["run_id"]) == ["paper-0002"]
    app.text_input[0].set_value("nothing like it").run()
    assert "No run fits this search" in texts(app)


def test_compare_shows_final_numbers_and_only_the_options_that_differ(show: Show, trained: Make) -> None:
    trained("quick-0001", losses=(0.9, 1.1), seed=1)
    trained("quick-0002", losses=(0.8, 1.2), seconds=10, seed=2)
    app = show("compare", runs="quick-0001,quick-0002")
    assert not app.exception
    numbers, _, differing = (table.value for table in app.dataframe)
    assert list(numbers["Loss G"]) == ["0.900", "0.800"]
    assert list(numbers["Images/s"]) == ["120", "120"]
    assert differing.to_dict("list") == {"Option": ["Seed"], "quick-0001": ["1"], "quick-0002": ["2"]}
    assert titles(app)[:2] == ["Generator loss", "Discriminator loss"]


def test_compare_names_options_and_values_in_words(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained(
        "quick-0002",
        seconds=10,
        learning_rate_schedule="cosine_restarts",
        learning_rate_generator=3e-4,
        warmup_epochs=2,
    )
    differing = show("compare", runs="quick-0001,quick-0002").dataframe[2].value
    assert differing.to_dict("list") == {
        "Option": ["Learning rate, generator", "Rate schedule", "Warm-up (epochs)"],
        "quick-0001": ["1e-4", "constant", "0"],
        "quick-0002": ["3e-4", "cosine with restarts", "2"],
    }


def test_compare_offers_every_recorded_number(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", runs="quick-0001,quick-0002")
    more = app.multiselect(key="compare.metrics")
    assert "Spread of generated images" in more.options
    assert "Loss scale of the generator (float16)" not in more.options, "no run has recorded one"
    more.set_value(["spread_fake", "update_ratio_generator"]).run()
    assert not app.exception
    assert titles(app)[:4] == [
        "Generator loss",
        "Discriminator loss",
        "Spread of generated images",
        "Update size of the generator",
    ]


def test_live_says_when_the_health_of_a_run_will_be_seen(show: Show, new_run: Make) -> None:
    new_run("quick-0001")
    app = show("live", run="quick-0001")
    assert not app.exception
    assert "appears here after the first epoch." in texts(app)
    assert titles(app) == []


def test_live_draws_learning_rates_and_loss_scales_only_where_they_change(show: Show, trained: Make) -> None:
    moving = {
        f"{kind}_{network}": [1.0, 2.0]
        for kind in ("learning_rate", "loss_scale")
        for network in ("generator", "discriminator")
    }
    penalty = {"r1_penalty": [0.5, 0.25]}  # recorded only where it is in the loss
    plain = trained("quick-0001")
    changing = trained("quick-0002", seconds=10, warmup_epochs=1, precision="mixed_float16", r1_weight=10.0)
    for run, values in ((plain, moving), (changing, moving | penalty)):
        numbers = journal.Scalars(epoch=1, first_step=1, wall_s=[1.0, 2.0], values=values)
        journal.append(run.trainer_journal(), 1, numbers)
    drawn = {"How large are the learning rates?", "How far are float16 gradients scaled up?"}
    drawn.add("How steep is the discriminator at real images?")
    assert drawn & set(titles(show("live", run="quick-0001"))) == set()
    assert drawn <= set(titles(show("live", run="quick-0002")))


def test_a_run_of_local_sgd_is_marked_on_every_page(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10, replicas=2, sync_every_steps=5)
    mark = "local SGD, weights averaged every 5 steps"
    assert mark in texts(show("live", run="quick-0002"))
    assert mark not in texts(show("live", run="quick-0001"))
    assert "· local SGD" in texts(show("home"))
    assert list(show("runs").dataframe[0].value["algorithm"]) == ["local SGD", "synchronous"]


def test_runs_tells_what_each_run_has_changed_from_its_preset_and_finds_it_by_that(
    show: Show, trained: Make
) -> None:
    quick = {
        name: value
        for name, value in PRESETS["quick"].values.items()
        if name not in ("epochs", "batch_size_global")
    }
    trained("quick-0001", **quick)
    trained("quick-0002", seconds=10, **{**quick, "ema_decay": 0.99, "label_smoothing": 0.1})
    app = show("runs")
    assert list(app.dataframe[0].value["options"]) == ["label smoothing 0.1 · moving average 0.99", ""]
    app.text_input[0].set_value("Smoothing").run()
    assert list(app.dataframe[0].value["run_id"]) == ["quick-0002"]


def tick(app: AppTest, *run_ids: str) -> None:
    """Ticks rows of the table as it is shown now, and no others."""
    shown = list(app.dataframe[0].value["run_id"])
    rows = [shown.index(run_id) for run_id in run_ids]
    app.session_state[runs_view.table_key(shown)] = {"selection": {"rows": rows, "columns": [], "cells": []}}
    app.run()


def offered_for_deletion(app: AppTest) -> str:
    """What the dialog says that Delete would move into the bin."""
    next(button for button in app.button if button.label == "Delete").click().run()
    assert not app.exception
    return next(text for text in texts(app).splitlines() if "kept in the bin" in text)


def test_a_tick_on_runs_stays_with_its_run_through_a_search_a_new_run_and_a_deletion(
    show: Show, trained: Make, wait_until: Callable[..., Any]
) -> None:
    for number in (1, 2, 3):
        trained(f"quick-000{number}", seconds=number)
    app = show("runs")
    tick(app, "quick-0001")
    app.text_input[0].set_value("0001").run()
    assert offered_for_deletion(app).startswith("quick-0001:")
    app.text_input[0].set_value("").run()
    assert offered_for_deletion(app).startswith("quick-0001:")
    trained("quick-0004", seconds=4)
    wait_until(lambda: len(queries.runs(session.runtime().store)) == 4, "the new run is stored")
    app.run()
    assert len(app.dataframe[0].value) == 4
    assert offered_for_deletion(app).startswith("quick-0001:")
    session.runtime().delete("quick-0002")
    app.run()
    assert len(app.dataframe[0].value) == 3
    assert offered_for_deletion(app).startswith("quick-0001:")


def test_a_ticked_run_that_a_search_hides_is_not_deleted_and_is_ticked_again_afterwards(
    show: Show, trained: Make
) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("runs")
    tick(app, "quick-0001", "quick-0002")
    app.text_input[0].set_value("0002").run()
    assert offered_for_deletion(app).startswith("quick-0002:")
    tick(app)
    app.text_input[0].set_value("").run()
    assert offered_for_deletion(app).startswith("quick-0001:")


def test_samples_shows_each_run_under_one_slider(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("samples", runs="quick-0001,quick-0002")
    assert len(app.slider) == 1
    assert texts(app).count("After epoch 2, step 20") == 2


def test_play_goes_on_by_one_epoch_and_starts_again_after_the_last(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("samples", runs="quick-0001")
    next(button for button in app.button if button.label == "Play").click().run()
    assert app.slider[0].value == 1
    app.run()
    assert app.slider[0].value == 2
    next(button for button in app.button if button.label == "Pause").click().run()
    assert app.slider[0].value == 2, "a pause stops at the epoch that is seen"
    assert "After epoch 2," in texts(app)
    app.run()
    assert app.slider[0].value == 2


def test_a_single_epoch_cannot_be_played(show: Show, new_run: Make) -> None:
    run = new_run("quick-0001", epochs=1)
    write_grid(run.samples / "epoch-00001.png")
    sample = journal.Sample(
        epoch=1, step=10, sample_kind="fixed_latents", file="samples/epoch-00001.png", meta={}
    )
    journal.append(
        run.trainer_journal(), 1, sample, StatusChange(status="finished", reason="all 1 epochs done")
    )
    app = show("samples", runs="quick-0001")
    assert not app.exception
    assert "After epoch 1, step 10" in texts(app)
    assert [button.label for button in app.button] == []


def test_launch_greys_out_what_this_host_lacks_and_says_why(show: Show) -> None:
    app = show("launch")
    assert not app.exception
    disabled = {
        button.label: button.disabled
        for button in app.button
        if button.label in ("Auto", "CPU", "GPU", "TPU")
    }
    assert disabled == {"Auto": False, "CPU": False, "GPU": True, "TPU": True}
    assert "Not here: this host has no GPU." in texts(app)


def test_launch_computes_steps_and_command_from_the_form(show: Show) -> None:
    app = show("launch")
    text_field(app, "batch_size_global").set_value("64").run()
    assert {metric.label: metric.value for metric in app.metric}["Steps per epoch"] == "28"
    assert shown_commands(app)[0] == f"{command_line()} train --preset quick --set batch_size_global=64"


def test_launch_tells_everything_that_is_wrong_at_once(show: Show) -> None:
    app = opened(show("launch"))
    text_field(app, "learning_rate_generator").set_value("fast")
    text_field(app, "name").set_value(" ")
    text_field(app, "replicas").set_value("3").run()
    beginnings = (
        "Learning rate, generator (learning_rate_generator) is 'fast'",
        "name is ' '",
        "Global batch (batch_size_global) is 32, but 3 replicas",
    )
    assert sorted(error.value.startswith(beginnings) for error in app.error) == [True] * 3
    assert all(f":red[{beginning}" in texts(app) for beginning in beginnings)


@pytest.mark.parametrize("typed", ["99999", "-1", "", "3.5", "many", "9" * 5_000])
def test_launch_starts_nothing_that_differs_from_what_stands_in_the_form(
    show: Show, home: Home, typed: str
) -> None:
    app = show("launch")
    text_field(app, "batch_size_global").set_value(typed)
    text_field(app, "epochs").set_value("100000000").run()
    assert not app.exception
    assert (text_field(app, "batch_size_global").value, text_field(app, "epochs").value) == (
        typed,
        "100000000",
    )
    assert "a whole number from 1 to" in texts(app)
    assert start_button(app).disabled
    text_field(app, "epochs").set_value("2")
    text_field(app, "batch_size_global").set_value("16").run()
    start_button(app).click().run()
    specs = [run.spec() for run in home.run_dirs()]
    assert [(spec.batch_size_global, spec.epochs) for spec in specs] == [(16, 2)]


def start_button(app: AppTest) -> Button:
    """The primary button of the Launch page."""
    return next(button for button in app.button if button.label == "Start run")


def test_launch_warns_of_batches_of_the_paper_that_showed_no_digits_and_offers_the_repair(show: Show) -> None:
    app = show("launch")
    presets(app).set_value("paper").run()
    assert [warning.value for warning in app.warning] == []
    app.button(key="suggest.batch_size_global.512").click().run()
    assert "showed strokes and no digits" in app.warning[0].value
    next(button for button in app.button if button.label == "Use the repaired setting").click().run()
    assert [warning.value for warning in app.warning] == []
    opened(app)
    assert choice_field(app, "learning_rate_scaling").value == "linear"
    assert text_field(app, "adam_beta_1").value == "0.5"
    assert shown_commands(app)[0].endswith(
        "--set adam_beta_1=0.5 --set learning_rate_scaling=linear --set batch_size_global=512"
    )


def test_launch_says_when_the_batch_is_larger_than_the_set(show: Show) -> None:
    app = show("launch")
    text_field(app, "batch_size_global").set_value("2000").run()
    [sentence] = [error.value for error in app.error]
    assert sentence.startswith("Global batch (batch_size_global) is 2000, but digits has only ")
    next(button for button in app.button if button.label == "Start run").click().run()
    assert [error.value for error in app.error] == [sentence] * 2


def test_launch_refuses_a_missing_dataset_in_one_sentence(
    show: Show, home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path_factory.mktemp("empty")))
    app = show("launch")
    choice_field(app, "dataset").set_value("mnist").run()
    assert "no mnist images are there" in texts(app)
    assert next(button for button in app.button if button.label == "Start run").disabled
    assert home.run_dirs() == []


def test_the_form_keeps_what_was_typed_while_another_page_is_open(show: Show) -> None:
    app = show("launch")
    text_field(app, "epochs").set_value("77").run()
    from dashboard.frame import places

    app.switch_page(str(places.RUNS)).run()
    app.switch_page(str(places.LAUNCH)).run()
    assert text_field(app, "epochs").value == "77"


def test_a_home_that_another_process_owns_is_told_instead_of_the_page(show: Show, home: Home) -> None:
    from filelock import FileLock

    with FileLock(home.owner_lock):
        app = show("home")
    assert not app.exception
    assert "is in use by" in texts(app)


def test_launch_starts_presets_in_float32_where_bfloat16_is_slow_and_says_so(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_presets, "is_slow_in_bfloat16", lambda: True)
    app = opened(show("launch"))
    assert choice_field(app, "precision").value == "float32"
    assert host_presets.FITTED in texts(app)
    assert shown_commands(app)[0] == f"{command_line()} train --preset quick"
    assert not [button for button in app.button if button.label == "Use float32"]

    choice_field(app, "precision").set_value("mixed_bfloat16").run()
    assert host_presets.SLOW in [warning.value for warning in app.warning]
    assert shown_commands(app)[0] == f"{command_line()} train --preset quick --set precision=mixed_bfloat16"
    next(button for button in app.button if button.label == "Use float32").click().run()
    assert choice_field(app, "precision").value == "float32"
    assert not app.warning
