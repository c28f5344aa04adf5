"""What a page shows if its code fails: one sentence. Streamlit writes the traceback to the log; of
further errors at the same place, such as from forged values of a field, one line.
"""

from __future__ import annotations

import logging
import traceback

import streamlit as st

SENTENCE = (
    "A part of this page could not be drawn. Reload the page. If that does not help, report the"
    " last error in the dashboard's log."
)
MOST_CHARACTERS = 200  # of an error that is logged again


def show(_: Exception) -> bool:
    """Replaces Streamlit's red box, where the failing part of the page was."""
    st.error(SENTENCE, icon=":material/error:")
    return True


class FullTracebackOnce(logging.Filter):
    """Replaces a traceback that ends where an earlier one did by one line."""

    def __init__(self) -> None:
        super().__init__()
        self._places: set[tuple[str, int | None]] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Always True: each error is logged."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None or error.__traceback__ is None:
            return True
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = (last.filename, last.lineno)
        if place in self._places:
            text = ascii(str(error)[:MOST_CHARACTERS])
            record.msg, record.args, record.exc_info = (
                "%s again: %s %s (%s, line %s)",
                (record.getMessage(), type(error).__name__, text, *place),
                None,
            )
        self._places.add(place)
        return True


_ONCE = FullTracebackOnce()


def log_tracebacks_once() -> None:
    """For the errors of pages. Calling it again has no effect."""
    logging.getLogger("streamlit.error_util").addFilter(_ONCE)
