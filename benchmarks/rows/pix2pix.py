"""KIT's Pix2Pix, reduced to 16 channels and tiles of 64 pixels: our trainer against the same
networks in plain Keras.

Both precisions are in one rotation. As in the row `training`, ours is a whole run; it streams
frames of 80 × 192 pixels from memory-mapped files and cuts tiles on the device. The peer
(benchmarks/keras_pix2pix.py) only trains, on tiles that stay in memory.
The default rounds cover three epochs with their probes and checkpoints. In the first epoch frames
come from the disk, later from the page cache; the first epoch also has its own figure.
"""

from __future__ import annotations

from benchmarks.effort import Effort
from benchmarks.results import Report
from benchmarks.rows import conditional
from benchmarks.run_options import FRAMES
from benchmarks.step_timer import PRECISIONS


def commands(effort: Effort) -> dict[str, list[str]]:
    """The arguments of `python` for each side. Our host calls are as long as a turn."""
    sides = {}
    for precision in PRECISIONS:
        sides[f"keras {precision}"] = effort.peer_command("keras_pix2pix", precision)
        calls = f"steps_per_loop={effort.steps}"
        sides[f"ours {precision}"] = effort.trainer_command(
            "trainer_side", precision, calls, data=FRAMES
        )
    return sides


def measure(report: Report, effort: Effort) -> None:
    """Adds the rates of all sides, and our speed relative to the peer in each precision."""
    turns = effort.turns(commands(effort), report.turn)
    report.rates(turns, effort.batch)
    conditional.compare(report, turns)
    first_epoch = {
        side: of_side[: effort.images // (effort.steps * effort.batch)]
        for side, of_side in turns.items()
    }
    conditional.compare(report, first_epoch, "_first_epoch")
