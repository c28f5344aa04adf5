"""Values that users and the page set: a browser can get them with any render."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from gan_runtime.records.run_folder import RunDir

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


def form() -> None:
    """A page that fills its own form, and fills it again on request."""
    import streamlit as st

    from dashboard.kept_values import KeptValues

    kept = KeptValues("form")
    if "batch" not in kept:
        kept.put("batch", "64")
        kept.put("engine", "jax")
    st.button("Preset", on_click=lambda: kept.put("batch", "128"))
    engines = ["tensorflow", "jax"]
    st.text_input("Batch", kept["batch"], key=kept.key("batch"))
    st.selectbox("Engine", engines, engines.index(kept["engine"]), key=kept.key("engine"))
    kept.read()


@pytest.fixture
def app() -> AppTest:
    return AppTest.from_function(form).run()


def sent(app: AppTest) -> tuple[str, int]:
    """What a browser that has not mounted the widgets yet would fill them with."""
    return app.text_input[0].proto.default, app.selectbox[0].proto.default


def test_every_render_sends_the_values(app: AppTest) -> None:
    assert sent(app) == sent(app.run()) == ("64", 1)


def test_typed_values_are_kept_under_the_same_widget(app: AppTest) -> None:
    before = app.text_input[0].proto.id
    app.text_input[0].input("96").run()
    assert app.text_input[0].proto.id == before, "the cursor stays in the field"
    assert sent(app.run()) == ("96", 1)


def test_value_set_by_the_page_makes_a_new_widget(app: AppTest) -> None:
    before = app.text_input[0].proto.id
    app.button[0].click().run()
    assert app.text_input[0].proto.id != before
    assert app.text_input[0].value == "128"
    assert sent(app.run()) == ("128", 1)


def test_an_empty_widget_does_not_empty_the_value(app: AppTest) -> None:
    app.session_state["form.batch.0"] = None
    assert app.run().session_state["form.values"]["batch"] == "64"


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("run", {"run": "quick-0001"}),
        ("compare", {"runs": "quick-0001,quick-0002"}),
    ],
)
def test_every_render_sends_the_picked_runs(
    show: Show, trained: Make, page: str, query: dict[str, str]
) -> None:
    for number in (1, 2, 3):
        trained(f"quick-000{number}", seconds=float(number))
    app = show(page, **query)
    for _ in range(2):
        picker = app.multiselect[0] if page == "compare" else app.selectbox[0]
        assert picker.proto.set_value, "else a widget that is mounted now starts with another run"
        app.run()


def live_page() -> None:
    """A page that follows the newest epoch. Its buttons call what Streamlit calls if a browser
    returns the value of the slider, or still that of an earlier one.
    """
    from functools import partial

    import streamlit as st

    from dashboard import widgets
    from dashboard.kept_values import KeptValues

    newest = st.session_state.get("newest", 2)
    widgets.epoch_slider(9, newest, "run")
    ends = KeptValues("run").on_change("epoch", partial(widgets.follow, "run", newest=False))
    st.button("Earlier", on_click=st.session_state.setdefault("first", ends))
    st.button("Current", on_click=ends)
    widgets.follow_button("run", live=True)


@pytest.mark.parametrize(("moved", "follows"), [("Earlier", True), ("Current", False)])
def test_only_the_current_slider_ends_following_the_newest_epoch(moved: str, follows: bool) -> None:
    app = AppTest.from_function(live_page).run()
    assert app.slider[0].key == "run.epoch.0"
    app.session_state["newest"] = 3
    app.run()
    assert (app.slider[0].key, app.slider[0].value) == ("run.epoch.1", 3)
    next(button for button in app.button if button.label == moved).click().run()
    app.session_state["newest"] = 4
    assert app.run().slider[0].value == (4 if follows else 3)
