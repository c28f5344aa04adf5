"""Two features that Streamlit's test runner keeps private."""

from __future__ import annotations

from typing import Any

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import ElementTree


def tree(app: AppTest) -> ElementTree:
    """The whole element tree of a page.

    AppTest only lists elements by kind, but tests of forbidden content read all of them.
    """
    return app._tree


def rerun_with(app: AppTest, states: Any) -> None:
    """Reruns with earlier widget states of a browser, from `tree(app).get_widget_states()`."""
    app._run(states)
