"""What showers add to the page of their evaluation: tabs, main scores and texts, and the tab Speed
and literature.

That tab shows training speed next to published speeds, published scores, and the cost of a large
batch.
"""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from dashboard import tables
from dashboard.domains.showers import any_energy, distributions, side_by_side
from dashboard.domains.showers import words as shower_words
from dashboard.evaluation.answers import DomainPage, DomainTab, Selection, number
from gan_runtime.base import formats
from gan_runtime.base.metrics import NOT_DRAWN, Metric
from gan_runtime.catalog import declarations
from gan_runtime.commands.runtime import Runtime
from gan_runtime.domains.showers.domain import CONVERGENCE, SUBMISSIONS
from gan_runtime.domains.showers.entry import PUBLISHED
from gan_runtime.domains.showers.score_metrics import SCORES, fewest_showers, layer_features
from gan_runtime.records.answer import Score
from gan_runtime.store import queries
from gan_runtime.store.queries import EvaluationRow, RunRow
from gan_runtime.store.store import Store

SCALING_WORDS = (
    f"Source: {PUBLISHED.source}; errors of the authors' networks on held-out showers. Machine,"
    " networks and grid differ: compare how the time falls with more devices, and the error at"
    " that speed."
)
BEST = "sampling_fraction"  # the score next to the speed


def draw(runtime: Runtime, selection: Selection) -> None:
    """The tab."""
    st.markdown("**Training speed and error**")
    tables.show(speed(runtime.store, selection), hide_index=True, key="showers.speed")
    st.markdown("**Published scores**")
    tables.show(published(), hide_index=True, key="showers.published")
    st.caption(shower_words.OTHER_DATA)
    left, right = st.columns(2)
    with left:
        st.markdown("**Published: seconds of an epoch of 124,987 showers**")
        tables.show(
            published_scaling(), hide_index=True, key="showers.published_scaling", height="content"
        )
    with right:
        st.markdown("**Published: cost of a large batch**")
        tables.show(convergence(), hide_index=True, key="showers.convergence")
        st.caption(SCALING_WORDS)


def speed(store: Store, selection: Selection) -> pd.DataFrame:
    """Training speed of each run, with its losses and its first score at the selected epoch."""
    metric = selection.metric(BEST)
    speeds = (
        queries.epoch_times(store, list(selection.runs)).groupby("run_id")["images_per_s"].median()
    )
    rows = []
    for name, answer in selection.answers.items():
        row, score = selection.run_of(name), selection.scores_of(name).get(BEST)
        per_s = speeds.get(row.run_id)
        rows.append(
            (
                name,
                row.accelerator.upper(),
                row.replicas,
                row.batch_size_global,
                "–" if pd.isna(per_s) else formats.count(per_s),
                answer.epoch,
                _losses(store, row, answer.epoch),
                "–" if score is None else number(metric, score.value, score.error),
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
        metric.title,
    )
    return pd.DataFrame(rows, columns=list(columns))


def _losses(store: Store, row: RunRow, epoch: int) -> str:
    """The mean losses of an epoch: "G 7.801, D 3.129"; a dash if none is stored."""
    losses = declarations.of(row.workload).losses
    means = queries.means_of_epoch(store, row.run_id, epoch, [loss.name for loss in losses])
    values = [(loss.legend, means.get(loss.name)) for loss in losses]
    return (
        ", ".join(f"{name} {formats.loss(value)}" for name, value in values if value is not None)
        or "–"
    )


def published() -> pd.DataFrame:
    """The CaloChallenge's results on data set 2."""
    rows = [
        (
            submission.name,
            submission.kind,
            "–" if submission.parameters is None else f"{submission.parameters / 1e6:.3g} M",
            f"{submission.fpd:,.1f} ± {submission.fpd_error:.1f}",
            f"{submission.kpd:.2f}",
            _ms(submission.cpu_single_ms),
            _ms(submission.cpu_batch_ms),
            _ms(submission.gpu_batch_ms),
        )
        for submission in SUBMISSIONS
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
        else formats.count(milliseconds)
        if milliseconds > 100
        else f"{milliseconds:.3g}"
    )


def published_scaling() -> pd.DataFrame:
    """The authors' times on GPUs and TPUs, with speed-ups over each system's fewest devices."""
    fewest = {
        published_speed.system: published_speed for published_speed in reversed(PUBLISHED.speeds)
    }
    rows = [
        (
            published_speed.system,
            published_speed.devices,
            published_speed.batch_size_per_replica,
            f"{published_speed.seconds:,.1f}",
            formats.count(PUBLISHED.images_per_s(published_speed)),
            (
                f"{fewest[published_speed.system].seconds / published_speed.seconds:.1f} of"
                f" {published_speed.devices / fewest[published_speed.system].devices:.0f}"
            ),
        )
        for published_speed in PUBLISHED.speeds
    ]
    return pd.DataFrame(
        rows, columns=["System", "Devices", "Batch each", "Epoch (s)", "Showers/s", "Speed-up"]
    )


def convergence() -> pd.DataFrame:
    """The authors' errors with a small and a large global batch."""
    rows = [
        (
            row.run,
            formats.count(row.batch_size_global),
            row.epoch,
            f"{row.energy_percent:.3g}%",
            f"{row.angle_rad:.3f}",
            f"{row.deposit_percent:.3g}%",
        )
        for row in CONVERGENCE
    ]
    return pd.DataFrame(
        rows,
        columns=["Run", "Global batch", "Epoch", "Energy", "Angle (rad)", "Deposit"],
    )


def _subject(row: EvaluationRow) -> str:
    count = formats.count(row.facts["showers"])
    return (
        f"epoch {row.epoch}: {count} generated showers, compared with {count}"
        f" {shower_words.SIMULATED}"
    )


def _value(metric: Metric, score: Score, row: EvaluationRow) -> str:
    """The value of a score; how many showers it needs, if too few were compared."""
    fewest = fewest_showers(layer_features(row.facts["grid"][2]))
    if metric.name == "fpd" and math.isnan(score.value) and (score.samples or 0) < fewest:
        return f"needs at least {formats.count(fewest)} showers"
    return number(metric, score.value, score.error)


METRICS = tuple(
    Metric(
        score.name,
        score.title,
        score.title,
        NOT_DRAWN,
        log=score.log,
        better=score.better,
        format=score.format,
    )
    for score in SCORES
)
PAGE = DomainPage(
    tabs=(
        DomainTab("Distributions", distributions.draw),
        DomainTab("Showers", side_by_side.draw),
        DomainTab("Any energy", any_energy.draw),
    ),
    scores=METRICS,
    headline=("sampling_fraction", "profile_z", "challenge_fpd", "auc_high", "ms_batch"),
    over_epochs=("sampling_fraction", "profile_z", "challenge_fpd"),
    substitutes={"challenge_fpd": ("fpd",)},  # of older measurements
    real=shower_words.SIMULATED,
    subject=_subject,
    texts={score.name: score.text for score in SCORES},
    value_words=_value,
    literature=draw,
    no_answer=shower_words.NOT_EVALUATED,
    best_rule=shower_words.BEST_EPOCH,
)
