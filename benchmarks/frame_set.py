"""Random frames in the fields of a flow, 80 × 192 pixels, as a prepared set, which the row
`pix2pix` streams.
"""

from __future__ import annotations

from benchmarks import picture_set
from gan_runtime.domains.flows.fields import flow_fields
from gan_runtime.records.home import Home

NAME = "random-frames"
HEIGHT, WIDTH = 80, 192


def write(home: Home, rows: int) -> None:
    """Prepares the set in the home; the system's cache holds no part of it."""
    picture_set.write_random(home, NAME, flow_fields(HEIGHT, WIDTH), rows)
