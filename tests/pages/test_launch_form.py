"""The Launch form: the fields of each setting, and the labels of closed groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from dashboard import option_words
from dashboard.frame import places
from dashboard.option_words import SHOWN_WHEN, has_effect, requirement
from gan_runtime import catalog
from gan_runtime.base.fields import IMAGES, pictures
from gan_runtime.base.options import GROUPS, OF_WORKLOAD, OneOf, OptionRecord, option
from gan_runtime.data import loading, preparations
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec
from tests.pages import whole_page
from tests.pages.launch_fields import choice_field, of, presets, text_field
from tests.pages.reading import opened, shown_commands, texts, titles

Show = Callable[..., AppTest]

OPTIONS = RunSpec.options("dcgan_mnist")
DEFAULTS = option_words.defaults("dcgan_mnist")
# The setting under which each option has an effect.
EFFECTIVE: dict[str, dict[str, Any]] = {
    "loop": {"engine": "tensorflow"},
    "tpu_address": {"accelerator": "tpu"},
    "adam_beta_1": {"optimizer": "adam"},
    "adam_beta_2": {"optimizer": "adam"},
    "rmsprop_epsilon": {"optimizer": "rmsprop"},
    "momentum": {"optimizer": "sgd"},
    "restart_epochs": {"learning_rate_schedule": "cosine_restarts"},
    "reference_batch": {"learning_rate_scaling": "sqrt"},
    "generator_loss": {"loss": "cross_entropy"},
    "label_smoothing": {"loss": "cross_entropy"},
    "discriminator_steps": {"updates": "in_turn"},
    "penalty_end": {"r2_weight": "2"},
    "samples_from": {"ema_decay": "0.99"},
    "batch_norm": {"replicas": 2},
    "all_reduce_type": {"replicas": 2},
    "sync_every_steps": {"workers": 2},
    "all_reduce_pack_mb": {"workers": 2},
    "count_kernels": {"xla": "jit"},
}


def expanders(app: AppTest) -> dict[str, bool]:
    """The label of each expander, and whether it is open."""
    return {element.label: bool(element.proto.expanded) for element in app.expander}


def field_names(app: AppTest) -> set[str]:
    """The options that have a field on the page."""
    widgets = [*app.selectbox, *app.text_input]
    return {of(widget.key) for widget in widgets}


# ---- requirements --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option", [name for name, option in OPTIONS.items() if requirement(option)]
)
def test_an_option_is_shown_once_its_requirement_is_met(option: str) -> None:
    assert has_effect(OPTIONS[option], {**DEFAULTS, **EFFECTIVE[option]})
    by_default = ("adam_beta_1", "adam_beta_2", "loop", "generator_loss", "label_smoothing")
    assert has_effect(OPTIONS[option], DEFAULTS) == (option in by_default)


def test_sgd_has_momentum_and_no_beta() -> None:
    form = {**DEFAULTS, "optimizer": "sgd"}
    assert (has_effect(OPTIONS["momentum"], form), has_effect(OPTIONS["adam_beta_1"], form)) == (
        True,
        False,
    )


def test_requirements_name_existing_options_and_choices() -> None:
    assert set(SHOWN_WHEN) <= set(RunSpec.options())
    for need in filter(None, map(requirement, OPTIONS.values())):
        if isinstance(need, OneOf):
            assert set(need.values) <= set(OPTIONS[need.option].choices)
        else:
            assert set(need.options) <= set(OPTIONS)


def test_an_invalid_number_hides_no_option() -> None:
    assert has_effect(OPTIONS["samples_from"], {**DEFAULTS, "ema_decay": "much"})


# ---- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "changed", "line"),
    [
        (OF_WORKLOAD, {}, "rates 1e-4 / 1e-4"),
        (
            OF_WORKLOAD,
            {"learning_rate_generator": "3e-4", "label_smoothing": "0.1", "discriminator_steps": 2},
            "rates 3e-4 / 1e-4 · label smoothing 0.1",
        ),
        (
            OF_WORKLOAD,
            {"updates": "in_turn", "discriminator_steps": 2, "generator_loss": "minimax"},
            "rates 1e-4 / 1e-4 · minimax loss · updates in turn: D, then G · 2 steps of D",
        ),
        ("Optimizer", {}, "Adam"),
        ("Optimizer", {"adam_beta_1": "0.5"}, "Adam · beta 1 = 0.5"),
        (
            "Optimizer",
            {
                "optimizer": "sgd",
                "momentum": "0.9",
                "learning_rate_schedule": "cosine_restarts",
                "restart_epochs": 5,
            },
            "SGD · momentum 0.9 · cosine with restarts · cycle 5 epochs",
        ),
        ("Optimizer", {"restart_epochs": 5}, "Adam"),
        ("Numbers", {"precision": "float32"}, "float32 · XLA off"),
        ("Moving average", {}, "none"),
        ("Moving average", {"ema_decay": "0.99"}, "moving average 0.99"),
        ("Distribution", {}, "default"),
        (
            "Distribution",
            {"replicas": 2, "sync_every_steps": 5},
            "local SGD, weights averaged every 5 steps",
        ),
        ("Run", {"name": "mine"}, "mine"),
    ],
)
def test_group_label_summarizes_its_settings(
    group: str, changed: dict[str, Any], line: str
) -> None:
    assert option_words.group_line(group, {**DEFAULTS, **changed}) == line


def test_a_shared_choice_is_labeled_per_option() -> None:
    rates, norm = (
        RunSpec.options("dcgan")[name] for name in ("learning_rate_scaling", "discriminator_norm")
    )
    assert [option_words.value(option, "none") for option in (rates, norm)] == ["as given", "none"]


@pytest.mark.parametrize(
    ("rate", "text"),
    [(3e-4, "3e-4"), (0.00025, "2.5e-4"), (0.5, "0.5"), (0.0, "0"), (10.0, "10"), ("fast", "fast")],
)
def test_learning_rates_are_formatted_briefly(rate: Any, text: str) -> None:
    assert option_words.number(rate) == text


# ---- page ----------------------------------------------------------------------------------------


def test_advanced_groups_are_closed_by_default(show: Show) -> None:
    app = show("launch")
    assert not any(expanders(app).values())
    assert [label.partition("**")[2].partition("**")[0] for label in expanders(app)] == [
        option_words.group_title(group, "dcgan")
        for group in GROUPS
        if group not in ("Model and data", "Accelerator", "Schedule")
    ]


def test_an_option_without_effect_is_listed_with_its_requirement(show: Show) -> None:
    app = opened(show("launch"))
    assert "momentum" not in field_names(app)
    assert "Only with SGD: Momentum (SGD)" in texts(app)
    choice_field(app, "optimizer").set_value("sgd").run()
    assert "momentum" in field_names(app)
    assert "adam_beta_1" not in field_names(app)


def test_a_closed_group_has_no_fields_and_keeps_its_values(show: Show) -> None:
    app = show("launch")
    assert "momentum" not in field_names(app)
    assert "adam_beta_1" not in field_names(app)
    text_field(opened(app, "Optimizer"), "adam_beta_1").set_value("0.25").run()
    app.session_state["group.Optimizer"] = False
    app.run().run()
    assert "adam_beta_1" not in field_names(app)
    assert "--set adam_beta_1=0.25" in shown_commands(app)[0]
    assert "**Optimizer** · Adam · beta 1 = 0.25" in expanders(app)
    assert text_field(opened(app, "Optimizer"), "adam_beta_1").value == "0.25"


def test_an_invalid_hidden_value_is_shown_and_opens_its_group(show: Show) -> None:
    app = opened(show("launch"), "Optimizer")
    choice_field(app, "optimizer").set_value("sgd").run()
    text_field(app, "momentum").set_value("0.9").run()
    app.session_state["group.Optimizer"] = False
    choice_field(app, "optimizer").set_value("adam").run()
    assert "momentum" in field_names(app)
    assert expanders(app)["**Optimizer** · :red[1 value to correct]"]
    text_field(app, "momentum").set_value("0").run()
    assert "momentum" not in field_names(app)
    assert expanders(app)["**Optimizer** · Adam · beta 1 = 0.5"], (
        "it must not close under the hand that has just corrected it"
    )


def test_learning_rate_schedule_is_drawn_before_the_run(show: Show) -> None:
    app = opened(show("launch"))
    assert titles(app) == []
    choice_field(app, "learning_rate_schedule").set_value("cosine_restarts").run()
    assert not app.exception
    assert titles(app) == ["Learning rates over the epochs"]


def test_local_sgd_is_indicated_before_the_run(show: Show) -> None:
    app = opened(show("launch"))
    text_field(app, "replicas").set_value("2").run()
    assert "Another algorithm" not in texts(app)
    text_field(app, "sync_every_steps").set_value("5").run()
    assert "local SGD, weights averaged every 5 steps" in texts(app)


# ---- workload options ----------------------------------------------------------------------------


class PainterOptions(OptionRecord):
    """Options of another workload: one new, one that pairs also have, one with other choices."""

    strokes: int = option(7, label="Strokes", help="s.", error="use 7.", ge=1, le=9)
    label_smoothing: float = option(
        0.2, label="Smoothing", help="s.", error="use 0.2.", ge=0, le=0.5
    )
    updates: Literal["boldly", "shyly"] = option(
        "shyly", label="Updates", help="u.", error="use shyly.", choices=("boldly", "shyly")
    )
    learning_rate_generator: float = option(
        0.01, label="Rate", help="r.", error="use 0.01.", gt=0, le=1
    )
    learning_rate_discriminator: float = option(
        0.01, label="Rate 2", help="r.", error="use 0.01.", gt=0, le=1
    )


@pytest.fixture
def painter(monkeypatch: pytest.MonkeyPatch) -> str:
    """A second kind of workload in the catalog."""
    entry = replace(
        catalog.WORKLOADS["mlp_gan"], title="A painter", options=PainterOptions, rules=()
    )
    monkeypatch.setitem(catalog.WORKLOADS, "painter", replace(entry, batches=lambda _: 2))
    return "painter"


def test_only_options_of_the_selected_workload_are_shown(show: Show, painter: str) -> None:
    app = opened(show("launch"))
    assert {"r1_weight", "base_channels"} <= field_names(app)
    assert "strokes" not in field_names(app)
    text_field(app, "r1_weight").set_value("much").run()
    assert expanders(app)["**DCGAN for any images** · :red[1 value to correct]"]
    choice_field(app, "workload").set_value(painter).run()
    assert not app.exception
    assert {"strokes", "label_smoothing"} <= field_names(app)
    assert "r1_weight" not in field_names(app)
    assert not app.error, "what is wrong with an option that is gone is gone too"
    assert any(label.startswith("**A painter** · rates 0.01 / 0.01") for label in expanders(app))
    assert "--set workload=painter" in shown_commands(app)[0]
    text_field(app, "strokes").set_value("10").run()
    assert app.error[0].value == "strokes is 10, but allowed is a whole number from 1 to 9: use 7."


def test_typed_values_survive_a_switch_to_a_workload_with_that_option(
    show: Show, painter: str
) -> None:
    app = opened(show("launch"))
    choice_field(app, "workload").set_value("dcgan_mnist").run()
    text_field(app, "label_smoothing").set_value("0.1").run()
    choice_field(app, "workload").set_value(painter).run()
    assert text_field(app, "label_smoothing").value == "0.1"
    assert choice_field(app, "updates").value == "shyly", "it has no such choice"
    assert text_field(app, "strokes").value == "7"
    assert "--set painter.label_smoothing=0.1" in shown_commands(app)[0]
    choice_field(app, "workload").set_value("dcgan_mnist").run()
    assert choice_field(app, "updates").value == "together"


def test_unchanged_fields_follow_the_defaults_of_each_workload(show: Show, painter: str) -> None:
    app = opened(show("launch"), OF_WORKLOAD)
    choice_field(app, "workload").set_value(painter).run()
    assert text_field(app, "label_smoothing").value == "0.2"
    choice_field(app, "workload").set_value("mlp_gan").run()
    assert text_field(app, "label_smoothing").value == "0"


def test_a_preset_keeps_the_defaults_of_other_workloads(show: Show, painter: str) -> None:
    app = opened(show("launch"))
    text_field(app, "learning_rate_discriminator").set_value("3e-4").run()
    choice_field(app, "workload").set_value(painter).run()
    assert text_field(app, "learning_rate_generator").value == "0.01"
    assert text_field(app, "learning_rate_discriminator").value == "3e-4", "this was typed"
    assert text_field(app, "batch_size_global").value == "32", (
        "of this it has no default of its own"
    )
    choice_field(app, "workload").set_value("dcgan").run()
    assert text_field(app, "learning_rate_generator").value == "1e-3", "the preset is for this one"
    assert text_field(app, "learning_rate_discriminator").value == "3e-4"


def test_a_workload_default_of_a_shared_option_beats_the_preset(
    show: Show, painter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example, Wasserstein GANs use an Adam beta 1 of 0, but the preset has 0.5."""
    entry = replace(catalog.WORKLOADS[painter], defaults={"adam_beta_1": 0.0})
    monkeypatch.setitem(catalog.WORKLOADS, "wasserstein_painter", entry)
    app = opened(show("launch"))
    choice_field(app, "workload").set_value("wasserstein_painter").run()
    assert text_field(app, "adam_beta_1").value == "0"
    choice_field(app, "workload").set_value("dcgan_mnist").run()
    assert text_field(app, "adam_beta_1").value == "0.5"


def test_a_workload_default_is_undone_when_the_workload_changes(
    show: Show,
) -> None:
    app = opened(show("launch"))
    choice_field(app, "workload").set_value("shower_3dgan").run()
    assert choice_field(app, "optimizer").value == "rmsprop"
    assert (
        "data set digits does not fit workload shower_3dgan: it has no showers"
        in app.error[0].value
    )
    choice_field(app, "workload").set_value("mlp_gan").run()
    assert choice_field(app, "optimizer").value == "adam"


def test_a_preset_with_simulated_data_can_start_before_it_exists(show: Show, home: Home) -> None:
    app = show("launch")
    presets(app).set_value("showers").run()
    assert not app.exception
    assert not app.error
    assert choice_field(app, "workload").value == "shower_3dgan"
    assert any(loading.PREPARED_BY_THE_RUN in caption.value for caption in app.caption)
    assert not next(button for button in app.button if button.label == "Start run").disabled
    assert not home.data.exists()


def test_stale_widget_values_do_not_undo_a_preset(
    show: Show,
) -> None:
    """A browser sends all widget values with each request until it has drawn the preset."""
    app = show("launch")
    presets(app).set_value("karman")
    before_it_is_drawn = whole_page.tree(app).get_widget_states()
    app.run()
    command = shown_commands(app)[0]
    assert command.endswith("train --preset karman")
    whole_page.rerun_with(app, before_it_is_drawn)
    assert shown_commands(app) == [command]


def test_a_rerun_overwrites_no_typed_value(show: Show) -> None:
    """A script run that began before the user typed writes to no field."""
    app = show("launch")
    text_field(app, "epochs").set_value("7").run()
    written = [
        element.label for element in (*app.text_input, *app.selectbox) if element.proto.set_value
    ]
    assert written == []


def test_workload_option_values_survive_a_visit_to_another_page(show: Show) -> None:
    app = opened(show("launch"))
    text_field(app, "r1_weight").set_value("0.1").run()
    app.switch_page(str(places.RUNS)).run()
    app.switch_page(str(places.LAUNCH)).run()
    assert text_field(opened(app), "r1_weight").value == "0.1"


def test_a_value_typed_while_leaving_the_page_survives(show: Show) -> None:
    app = show("launch")
    text_field(app, "epochs").set_value("77")
    app.switch_page(str(places.RUNS)).run()
    app.switch_page(str(places.LAUNCH)).run()
    assert text_field(app, "epochs").value == "77"


def test_a_dataset_that_does_not_fit_disables_the_start(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = replace(catalog.DATASETS["digits"], fields={IMAGES: pictures(30, 30, 3)})
    monkeypatch.setitem(catalog.DATASETS, "digits", large)
    app = show("launch")
    assert not app.exception
    assert (
        "data set digits does not fit workload dcgan: its images are 30 × 30 × 3"
        in app.error[0].value
    )
    assert next(button for button in app.button if button.label == "Start run").disabled


def test_dataset_summary_is_shown_before_training(show: Show, home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "scans"
    folder.mkdir()
    for number in range(5):
        Image.fromarray(np.full((28, 28), 600 + 100 * number, np.uint16)).save(
            folder / f"{number}.png"
        )
    (folder / "readme.txt").write_text("five scans")
    options = {"pixels": "28", "color": "gray", "held_out_percent": "20"}
    preparations.prepare(
        home, PreparationRequest("pictures", "scans", folder, options), lambda *_: None
    )
    app = show("launch")
    choice_field(app, "dataset").set_value("scans").run()
    assert "4 to train on, 1 held out · 1 file skipped · converted: 10 bits in 16 to 8" in texts(
        app
    )
    assert [warning.value for warning in app.warning if "16-bit" in warning.value] == [
        "No value of the 16-bit images is above 1,000. They are read as 10 bits, with white at"
        " 1,023."
    ]
    assert "1 file skipped: no image 1 (readme.txt)." in texts(app)


def test_the_command_is_escaped_plain_text_without_a_highlighter(show: Show) -> None:
    app = show("launch")
    assert (len(app.code), len(shown_commands(app))) == (0, 1)

    def hostile() -> None:
        from dashboard import widgets as dashboard_widgets

        dashboard_widgets.command_line(
            "train --set name='</pre><img src=http://127.0.0.1:9/x.png>' && echo \"$HOME\""
        )

    page = AppTest.from_function(hostile).run()
    (body,) = [element.proto.body for element in page.get("html")]
    assert body.count("<") == 2, "the box alone"
    assert shown_commands(page) == [
        "train --set name='</pre><img src=http://127.0.0.1:9/x.png>' && echo \"$HOME\""
    ]
