"""Values that users and the page both set, such as the fields of a form, stored for a window.

Streamlit sends a value in `st.session_state` to the browser only with the render that sets it. If
the next render replaces the widget before the browser has mounted it, the widget starts empty, and
the browser returns that. So a widget gets its value as its default, with every render. A mounted
widget ignores a new default, so its key changes when the page sets the value. What a slow browser
still returns under an earlier key is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st


class KeptValues:
    """The values of one form by name. `form`: begins the keys of its widgets."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._values: dict[str, Any] = st.session_state.setdefault(f"{form}.values", {})
        self._turns: dict[str, int] = st.session_state.setdefault(f"{form}.turns", {})

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __getitem__(self, name: str) -> Any:
        """The value: the user's if the browser has sent one, else the page's."""
        sent = st.session_state.get(self.key(name))
        if type(sent) is type(self._values[name]):  # None from a widget without a value
            self._values[name] = sent
        return self._values[name]

    def get(self, name: str, default: Any) -> Any:
        """The value, or `default` before the first `put`."""
        return self[name] if name in self._values else default

    def key(self, name: str) -> str:
        """The key of the widget that gets this value as its default."""
        return f"{self._form}.{name}.{self._turns.get(name, 0)}"

    def on_change(self, name: str, act: Callable[[], None]) -> Callable[[], None]:
        """The callback of the widget of this value. A slow browser still returns values under an
        earlier key; Streamlit has dropped that widget, takes its value for new and would call it.
        """
        key = self.key(name)

        def changed() -> None:
            if self.key(name) == key:
                act()

        return changed

    def put(self, name: str, value: Any) -> None:
        """Sets a value for the user."""
        if name in self._values:
            if self[name] == value:
                return
            self._turns[name] = self._turns.get(name, 0) + 1
        self._values[name] = value

    def read(self) -> dict[str, Any]:
        """All values. Each render of the form calls this: Streamlit drops values of widgets that
        are not drawn, in a closed group or on another page.
        """
        return {name: self[name] for name in self._values}
