"""The Launch page: missing accelerators, errors, and the submitted run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Button

from gan_runtime.hardware import machine
from gan_runtime.records.home import Home, command_line
from gan_runtime.records.run_folder import RunDir
from tests.pages.launch_fields import choice_field, presets, text_field
from tests.pages.reading import opened, shown_commands, texts

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


def test_launch_disables_missing_accelerators_and_explains_why(show: Show) -> None:
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
    assert (
        shown_commands(app)[0]
        == f"{command_line()} train --preset quick --set batch_size_global=64"
    )


def test_launch_reports_all_errors_together(show: Show) -> None:
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
def test_launch_starts_only_the_values_in_the_form(show: Show, home: Home, typed: str) -> None:
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


def test_launch_warns_of_failing_paper_batches_and_offers_a_fix(
    show: Show,
) -> None:
    app = show("launch")
    presets(app).set_value("paper").run()
    assert [warning.value for warning in app.warning] == []
    app.button(key="suggest.batch_size_global.512").click().run()
    assert "gave strokes instead of digits" in app.warning[0].value
    next(
        button for button in app.button if button.label == "Use the repaired setting"
    ).click().run()
    assert [warning.value for warning in app.warning] == []
    opened(app)
    assert choice_field(app, "learning_rate_scaling").value == "linear"
    assert text_field(app, "adam_beta_1").value == "0.5"
    assert shown_commands(app)[0].endswith(
        "--set adam_beta_1=0.5 --set learning_rate_scaling=linear --set batch_size_global=512"
    )


def test_launch_rejects_a_batch_larger_than_the_dataset(show: Show) -> None:
    app = show("launch")
    text_field(app, "batch_size_global").set_value("2000").run()
    [sentence] = [error.value for error in app.error]
    assert sentence.startswith("Global batch (batch_size_global) is 2000, but digits has only ")
    next(button for button in app.button if button.label == "Start run").click().run()
    assert [error.value for error in app.error] == [sentence] * 2


def test_launch_refuses_a_missing_dataset(
    show: Show,
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path_factory.mktemp("empty")))
    app = show("launch")
    choice_field(app, "dataset").set_value("mnist").run()
    assert "has no mnist images" in texts(app)
    assert next(button for button in app.button if button.label == "Start run").disabled
    assert home.run_dirs() == []


def test_the_form_keeps_values_while_another_page_is_open(show: Show) -> None:
    app = show("launch")
    text_field(app, "epochs").set_value("77").run()
    from dashboard.frame import places

    app.switch_page(str(places.RUNS)).run()
    app.switch_page(str(places.LAUNCH)).run()
    assert text_field(app, "epochs").value == "77"


def test_launch_uses_float32_for_presets_where_bfloat16_is_slow(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "is_slow_in_bfloat16", lambda: True)
    app = opened(show("launch"))
    assert choice_field(app, "precision").value == "float32"
    assert machine.PRESET_IN_FLOAT32 in texts(app)
    assert shown_commands(app)[0] == f"{command_line()} train --preset quick"
    assert not [button for button in app.button if button.label == "Use float32"]

    choice_field(app, "precision").set_value("mixed_bfloat16").run()
    assert machine.SLOW_BFLOAT16 in [warning.value for warning in app.warning]
    assert (
        shown_commands(app)[0]
        == f"{command_line()} train --preset quick --set precision=mixed_bfloat16"
    )
    next(button for button in app.button if button.label == "Use float32").click().run()
    assert choice_field(app, "precision").value == "float32"
    assert not app.warning


def test_options_are_found_by_a_word_of_their_name_or_help(show: Show) -> None:
    app = show("launch")
    find = next(field for field in app.text_input if field.label == "Find an option")
    find.set_value("epochs rise linearly").run()
    text_field(app, "warmup_epochs").set_value("2").run()
    find.set_value("label smoothing").run()
    assert "Label smoothing" in texts(app)
    find.set_value("which gan to train").run()
    assert "See the fields above." in texts(app)
    find.set_value("nothing of the kind").run()
    assert "No option has “nothing of the kind”" in texts(app)
    assert "--set warmup_epochs=2" in "".join(shown_commands(app))
    assert not app.exception
