"""In which ways a picture is given to a network, and into which stages the time of that is divided.

| way | |
|---|---|
| naive | one core, round by round (engines/tiles.py): one call of the device for each |
| map_reduce | the rounds shared out among the cores, ONE program over all of them, one call for the picture |
| whole | the picture at once, on one core, filled up at its lower and right end to what the network takes |
"""

from __future__ import annotations

from typing import Literal

Way = Literal["naive", "map_reduce", "whole"]
Blend = Literal["none", "hann"]
WAYS: tuple[Way, ...] = ("naive", "map_reduce", "whole")
BLENDS: tuple[Blend, ...] = ("none", "hann")

PREPARATION = "preparation"  # dividing, grouping, filling up
TRANSFER_IN, TRANSFER_OUT = "transfer_in", "transfer_out"  # host to devices, and back
TRACE, COMPILE = "trace", "compile"  # once a program
EXECUTE = "execute"
MERGE = "merge"
STAGES = (PREPARATION, TRANSFER_IN, TRACE, COMPILE, EXECUTE, TRANSFER_OUT, MERGE)
ONCE = (TRACE, COMPILE)
