"""The learning rates that a run will have, drawn on the Launch page before it starts."""

from __future__ import annotations

import pandas as pd

from dashboard import widgets
from dashboard.live import health_charts
from gan_runtime import catalog
from gan_runtime.engines import rates
from gan_runtime.spec import RunSpec


def show(spec: RunSpec) -> None:
    """Both rates over the epochs; nothing for constant rates, and none can be drawn for a run without a step."""
    steps_per_epoch = spec.steps_per_epoch(catalog.DATASETS[spec.dataset].rows)
    if not steps_per_epoch or rates.rate_plan(spec, "generator", steps_per_epoch).is_constant:
        return
    frame = pd.DataFrame(rates.planned(spec, steps_per_epoch)).melt(
        "epoch", var_name="network", value_name="rate"
    )
    widgets.chart(health_charts.planned_rates(frame), key="launch.rates")
