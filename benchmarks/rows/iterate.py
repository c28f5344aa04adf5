"""A rollout: map-reduce over two simulated cores against the whole frame at once, on this machine.

Each side has its own process, set up as for the background job `iterate`; both engines are in one
rotation. The whole frame can use all threads. It is padded from 80 × 192 to 128 × 192 pixels, as
many as six tiles of 64 × 64 have.
"""

from __future__ import annotations

from benchmarks.effort import Effort
from benchmarks.ratios import speed_ratio_of_totals, speed_ratios, spread
from benchmarks.results import Report
from gan_runtime.engines.tiles import Way

ENGINES = ("tensorflow", "jax")
WAYS: tuple[Way, ...] = ("whole", "map_reduce")
CORES = 2
PRECISION = "float32"


def commands(effort: Effort) -> dict[str, list[str]]:
    """The arguments of `python` for each side."""
    return {
        f"{way} {engine}": effort.peer_command(
            "iterate_side", PRECISION, "--engine", engine, "--way", way, "--cores", str(CORES)
        )
        for engine in ENGINES
        for way in WAYS
    }


def measure(report: Report, effort: Effort) -> None:
    """Adds frames per second of all sides, and for each engine the speed of map-reduce relative to
    the whole frame.
    """
    turns = effort.turns(commands(effort), report.turn)
    report.rates(turns, 1, "frames/s")
    for engine in ENGINES:
        whole, tiled = (turns[f"{way} {engine}"] for way in WAYS)
        ratios, of_totals = speed_ratios(tiled, whole), speed_ratio_of_totals(tiled, whole)
        report.spread(
            "figure", f"map_reduce_over_whole_{engine}", spread(ratios), of_totals=of_totals
        )
