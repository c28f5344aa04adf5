"""The Launch form: what it shows in which setting, and what it says of closed groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import option_words
from dashboard.launch.shown_when import SHOWN_WHEN, OneOf, has_effect
from gan_runtime.options import GROUPS
from gan_runtime.spec import RunSpec
from tests.pages.test_pages import texts, titles

Show = Callable[..., AppTest]

# What has to be set so that an option has an effect.
EFFECTIVE: dict[str, dict[str, Any]] = {
    "tpu_address": {"accelerator": "tpu"},
    "adam_beta_1": {"optimizer": "adam"},
    "momentum": {"optimizer": "sgd"},
    "restart_epochs": {"learning_rate_schedule": "cosine_restarts"},
    "reference_batch": {"learning_rate_scaling": "sqrt"},
    "discriminator_steps": {"updates": "in_turn"},
    "samples_from": {"ema_decay": "0.99"},
    "batch_norm": {"replicas": 2},
    "all_reduce_type": {"replicas": 2},
    "sync_every_steps": {"workers": 2},
    "all_reduce_pack_mb": {"workers": 2},
    "count_kernels": {"xla": "jit"},
}


def expanders(app: AppTest) -> dict[str, bool]:
    """The closed groups by their labels, and whether they are open."""
    return {item.label: bool(item.proto.expanded) for item in app.expander}


def field_names(app: AppTest) -> set[str]:
    """The options that have a field on the page."""
    widgets = [*app.selectbox, *app.text_input]
    return {str(widget.key).removeprefix("spec.") for widget in widgets}


# ---- the table ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", list(SHOWN_WHEN))
def test_an_option_is_shown_once_what_it_needs_is_set(option: str) -> None:
    defaults = option_words.defaults()
    assert has_effect(option, {**defaults, **EFFECTIVE[option]})
    assert has_effect(option, defaults) == (option == "adam_beta_1")


def test_adam_has_no_momentum_and_sgd_no_beta() -> None:
    form = {**option_words.defaults(), "optimizer": "sgd"}
    assert (has_effect("momentum", form), has_effect("adam_beta_1", form)) == (True, False)


def test_the_table_names_options_and_choices_that_exist() -> None:
    options = RunSpec.options()
    assert set(SHOWN_WHEN) <= set(options)
    for needed in SHOWN_WHEN.values():
        if isinstance(needed, OneOf):
            assert set(needed.values) <= set(options[needed.option].choices)
        else:
            assert set(needed.options) <= set(options)


def test_a_number_that_cannot_be_read_hides_nothing() -> None:
    assert has_effect("samples_from", {**option_words.defaults(), "ema_decay": "much"})


# ---- words ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "changed", "line"),
    [
        ("Optimizer", {}, "Adam 1e-4 / 1e-4"),
        (
            "Optimizer",
            {"learning_rate_generator": "3e-4", "adam_beta_1": "0.5"},
            "Adam 3e-4 / 1e-4 · beta 1 = 0.5",
        ),
        (
            "Optimizer",
            {
                "optimizer": "sgd",
                "momentum": "0.9",
                "learning_rate_schedule": "cosine_restarts",
                "restart_epochs": 5,
            },
            "SGD 1e-4 / 1e-4 · momentum 0.9 · cosine with restarts · cycle 5 epochs",
        ),
        ("Optimizer", {"restart_epochs": 5}, "Adam 1e-4 / 1e-4"),
        ("Numbers", {"precision": "float32"}, "float32 · XLA off"),
        ("Objective", {}, "standard DCGAN"),
        (
            "Objective",
            {"label_smoothing": "0.1", "ema_decay": "0.99"},
            "label smoothing 0.1 · average of G 0.99",
        ),
        ("Distribution", {}, "default"),
        ("Distribution", {"replicas": 2, "sync_every_steps": 5}, "local SGD, weights averaged every 5 steps"),
        ("Run", {"name": "mine"}, "mine"),
    ],
)
def test_a_group_says_in_its_label_what_is_set_in_it(group: str, changed: dict[str, Any], line: str) -> None:
    assert option_words.group_line(group, {**option_words.defaults(), **changed}) == line


@pytest.mark.parametrize(
    ("given", "shown"),
    [(3e-4, "3e-4"), (0.00025, "2.5e-4"), (0.5, "0.5"), (0.0, "0"), (10.0, "10"), ("fast", "fast")],
)
def test_rates_are_short(given: Any, shown: str) -> None:
    assert option_words.number(given) == shown


# ---- the page -------------------------------------------------------------------------------------------------------------


def test_only_what_a_beginner_needs_is_open(show: Show) -> None:
    app = show("launch")
    assert not any(expanders(app).values())
    assert [label.partition("**")[2].partition("**")[0] for label in expanders(app)] == [
        group for group in GROUPS if group not in ("Model and data", "Accelerator", "Schedule")
    ]


def test_an_option_without_effect_is_named_with_what_it_needs(show: Show) -> None:
    app = show("launch")
    assert "momentum" not in field_names(app)
    assert "Only with SGD: Momentum (SGD)" in texts(app)
    app.selectbox(key="spec.optimizer").set_value("sgd").run()
    assert "momentum" in field_names(app)
    assert "adam_beta_1" not in field_names(app)


def test_a_wrong_value_without_effect_is_shown_and_its_group_opens(show: Show) -> None:
    app = show("launch")
    app.selectbox(key="spec.optimizer").set_value("sgd").run()
    app.text_input(key="spec.momentum").set_value("0.9").run()
    app.selectbox(key="spec.optimizer").set_value("adam").run()
    assert "momentum" in field_names(app)
    assert expanders(app)["**Optimizer** · :red[1 value to correct]"]
    app.text_input(key="spec.momentum").set_value("0").run()
    assert "momentum" not in field_names(app)
    assert expanders(app)["**Optimizer** · Adam 5e-4 / 5e-4 · beta 1 = 0.5"], (
        "it must not close under the hand that has just corrected it"
    )


def test_the_rates_of_a_schedule_are_drawn_before_the_run(show: Show) -> None:
    app = show("launch")
    assert titles(app) == []
    app.selectbox(key="spec.learning_rate_schedule").set_value("cosine_restarts").run()
    assert not app.exception
    assert titles(app) == ["Learning rates over the epochs"]


def test_local_sgd_is_marked_before_the_run(show: Show) -> None:
    app = show("launch")
    app.text_input(key="spec.replicas").set_value("2").run()
    assert "Another algorithm" not in texts(app)
    app.text_input(key="spec.sync_every_steps").set_value("5").run()
    assert "local SGD, weights averaged every 5 steps" in texts(app)
