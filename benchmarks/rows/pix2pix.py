"""KIT's Pix2Pix, cut down to 16 channels and tiles of 64 pixels: our trainer against the same
networks in plain Keras.

Both precisions are in one rotation. As in the row `training`, ours is a whole run; it streams whole
frames of 80 × 192 pixels from memory-mapped files and cuts its tiles out of them on the device. The
peer (benchmarks/keras_pix2pix.py) only trains, on tiles that stay in memory.
The default rounds cover three epochs with their probes and checkpoints. In the first one the frames
come from the disk, later from the system's cache; the figure of the first epoch alone is reported
separately.
"""

from __future__ import annotations

from benchmarks.effort import Effort
from benchmarks.results import Report
from benchmarks.rows import conditional
from benchmarks.run_options import FRAMES
from benchmarks.step_timer import PRECISIONS


def commands(effort: Effort) -> dict[str, list[str]]:
    """What follows `python` to start each side. A host call of ours is as long as a turn."""
    sides = {}
    for precision in PRECISIONS:
        sides[f"keras {precision}"] = effort.peer_command("keras_pix2pix", precision)
        calls = f"steps_per_loop={effort.steps}"
        sides[f"ours {precision}"] = effort.trainer_command(
            "trainer_side", precision, calls, data=FRAMES
        )
    return sides


def measure(report: Report, effort: Effort) -> None:
    """Rates of all sides, and how many times as fast ours is in each precision."""
    turns = effort.turns(commands(effort), report.turn)
    report.rates(turns, effort.batch)
    conditional.compare(report, turns)
    first_epoch = {
        side: of_side[: effort.images // (effort.steps * effort.batch)]
        for side, of_side in turns.items()
    }
    conditional.compare(report, first_epoch, "_first_epoch")
