"""The rows of a chart as a browser gets them, written once for all browsers that look at the same run."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from streamlit import dataframe_util


@dataclass(frozen=True)
class Table:
    """Several sessions hold the same one: nobody changes it. `arrow`: the frame in Arrow's IPC format."""

    frame: pd.DataFrame
    arrow: bytes

    @property
    def empty(self) -> bool:
        """Nothing to draw."""
        return self.frame.empty


def of(frame: pd.DataFrame) -> Table:
    """The frame, and what is sent of it."""
    return Table(frame, b"" if frame.empty else dataframe_util.convert_anything_to_arrow_bytes(frame))
