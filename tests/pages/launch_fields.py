"""Fields of the Launch form by option name: their keys change when the form writes into them."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import ButtonGroup, Selectbox, TextInput

from dashboard.launch.fields import FORM, PRESET


def text_field(app: AppTest, option: str) -> TextInput:
    (field,) = [element for element in app.text_input if of(element.key) == option]
    return field


def choice_field(app: AppTest, option: str) -> Selectbox:
    (field,) = [element for element in app.selectbox if of(element.key) == option]
    return field


def presets(app: AppTest) -> ButtonGroup[str]:
    (field,) = [element for element in app.button_group if of(element.key) == PRESET]
    return field


def filled_in(app: AppTest, option: str) -> str:
    """Returns the value of a field, drawn or not."""
    return str(app.session_state[f"{FORM}.values"][option])


def of(key: str | None) -> str:
    """Returns the option of a widget; empty for widgets without one."""
    name, _, turn = (key or "").removeprefix(f"{FORM}.").rpartition(".")
    return name if turn.isdigit() else ""
