"""What Streamlit's test runner keeps to itself, of which these tests need two things."""

from __future__ import annotations

from typing import Any

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import ElementTree


def tree(app: AppTest) -> ElementTree:
    """Everything that is drawn.

    AppTest names kinds of elements, and tests of what no page may show read all of them.
    """
    return app._tree


def rerun_with(app: AppTest, states: Any) -> None:
    """As a browser asks that still has an earlier state of its widgets; `states`: of
    `tree(app).get_widget_states()`.
    """
    app._run(states)
