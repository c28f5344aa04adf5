"""The tables of the Physics page, as frames of words."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dashboard import words
from gan_runtime.domains.showers.published import CONVERGENCE, PUBLISHED, SUBMISSIONS
from gan_runtime.domains.showers.score_metrics import SCORES, Score, value_words
from gan_runtime.store.queries import RunRow

SCALING_WORDS = (
    f"Source: {PUBLISHED.source}; the errors are of the authors' networks on held-out showers. Another machine, another size of the "
    "networks or of the grid: compare how the time falls with the devices, and the error that comes with it."
)
BEST = "sampling_fraction"  # the score that stands beside the speed


Measured = dict[str, dict[str, Any]]  # score → value, error, floor, floor_error, …


def measured(frame: pd.DataFrame, run_id: str, epoch: int) -> Measured:
    """The scores of one measurement, by name. `frame` as `queries.physics_scores` gives it."""
    own = frame[(frame["run_id"] == run_id) & (frame["epoch"] == epoch)]
    return {
        str(name): {str(key): number for key, number in row.items()}
        for name, row in own.set_index("score").to_dict("index").items()
    }


def scores(frame: pd.DataFrame, names: dict[str, str], epochs: dict[str, int]) -> pd.DataFrame:
    """One row a score, one column a run; the floor is that of the first run. `names`: run → name."""
    own = {name: measured(frame, run_id, epochs[name]) for run_id, name in names.items()}
    columns = {"Score": [score.title for score in SCORES]}
    columns |= {
        name: [_words(score, rows, "value", "error") for score in SCORES] for name, rows in own.items()
    }
    first = next(iter(own.values()))
    columns["Real ones among themselves"] = [_words(score, first, "floor", "floor_error") for score in SCORES]
    return pd.DataFrame(columns)


def _words(score: Score, rows: Measured, value: str, error: str) -> str:
    own = rows.get(score.name)
    return "–" if own is None else value_words(score, own[value], own[error], own["showers"], own["layers"])


def published() -> pd.DataFrame:
    """The CaloChallenge's results on data set 2."""
    rows = [
        (
            one.name,
            one.kind,
            "–" if one.parameters is None else f"{one.parameters / 1e6:.3g} M",
            f"{one.fpd:,.1f} ± {one.fpd_error:.1f}".replace(",", "\u2009"),
            f"{one.kpd:.2f}",
            _ms(one.cpu_single_ms),
            _ms(one.cpu_batch_ms),
            _ms(one.gpu_batch_ms),
        )
        for one in SUBMISSIONS
    ]
    return pd.DataFrame(
        rows,
        columns=[
            *("Model", "Kind", "Parameters", "FPD × 10³", "KPD × 10³"),
            *("CPU, one at a time (ms)", "CPU, 100 at a time (ms)", "GPU, 100 at a time (ms)"),
        ],
    )


def _ms(milliseconds: float | None) -> str:
    return (
        "–"
        if milliseconds is None
        else words.count(milliseconds)
        if milliseconds > 100
        else f"{milliseconds:.3g}"
    )


def speed(
    frame: pd.DataFrame, rows: dict[str, RunRow], epochs: dict[str, int], losses: dict[str, str]
) -> pd.DataFrame:
    """Training speed of each run, and its losses and its first score at the epoch that is looked at. `rows`, `epochs`, `losses` (in
    words): by the name of a run."""
    score = next(one for one in SCORES if one.name == BEST)
    found = []
    for name, row in rows.items():
        own = measured(frame, row.run_id, epochs[name])
        at = next(iter(own.values()), {})  # the speed is the same beside every score
        found.append(
            (
                name,
                row.accelerator.upper(),
                row.replicas,
                row.batch_size_global,
                "–" if pd.isna(at.get("images_per_s")) else words.count(at["images_per_s"]),
                epochs[name],
                losses[name],
                _words(score, own, "value", "error"),
            )
        )
    columns = (
        "Run",
        "Device",
        "Replicas",
        "Global batch",
        "Showers/s in training",
        "Epoch",
        "Losses",
        score.title,
    )
    return pd.DataFrame(found, columns=list(columns))


def losses(named: list[tuple[str, float | None]]) -> str:
    """Of one epoch: "G 7.801, D 3.129"; a dash where none is stored."""
    return ", ".join(f"{name} {words.loss(value)}" for name, value in named if value is not None) or "–"


def published_scaling() -> pd.DataFrame:
    """The authors' times on GPUs and TPUs, and how much faster each is than the fewest of its kind."""
    fewest = {one.system: one for one in reversed(PUBLISHED.speeds)}
    rows = [
        (
            one.system,
            one.devices,
            one.batch_size_per_replica,
            f"{one.seconds:,.1f}".replace(",", "\u2009"),
            words.count(PUBLISHED.images_per_s(one)),
            f"{fewest[one.system].seconds / one.seconds:.1f} of {one.devices / fewest[one.system].devices:.0f}",
        )
        for one in PUBLISHED.speeds
    ]
    return pd.DataFrame(
        rows, columns=["System", "Devices", "Batch each", "Epoch (s)", "Showers/s", "Speed-up"]
    )


def convergence() -> pd.DataFrame:
    """The authors' errors with a small and with a large global batch."""
    rows = [
        (
            one.run,
            words.count(one.batch_size_global),
            one.epoch,
            f"{one.energy_percent:.3g} %",
            f"{one.angle_rad:.3f}",
            f"{one.deposit_percent:.3g} %",
        )
        for one in CONVERGENCE
    ]
    return pd.DataFrame(
        rows,
        columns=["Run", "Global batch", "Epoch", "Energy", "Angle (rad)", "Deposit"],
    )
