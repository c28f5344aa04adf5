"""A prepared data set of random flow frames, 80 × 192 pixels, which the row `pix2pix` streams."""

from __future__ import annotations

from benchmarks import image_set
from gan_runtime.domains.flows.fields import flow_fields
from gan_runtime.records.home import Home

NAME = "random-frames"
HEIGHT, WIDTH = 80, 192


def write(home: Home, rows: int) -> None:
    """Writes the set into the home, and evicts it from the page cache."""
    image_set.write_random(home, NAME, flow_fields(HEIGHT, WIDTH), rows)
