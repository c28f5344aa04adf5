"""A trainer's log without what TensorFlow, XLA and CUDA say at each start."""

from __future__ import annotations

import re

# Information and warnings in their own formats, sentences without one, and the errors that they print on every machine
# without a GPU or in every run. Any other error stays.
NOISE = re.compile(
    r"^(?:[IW]0000 00:00:|WARNING: All log messages before absl|To enable the following instructions"
    r"|E0000 00:00:.*(?:cuInit|oneDNN|remapper failed|Unable to register)"
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IW] (?:tensorflow|external|xla)/|(?:INFO|WARNING):tensorflow:)"
)


def without_noise(lines: list[str]) -> list[str]:
    """The lines that a person looks for."""
    return [line for line in lines if not NOISE.match(line)]
