"""The learning rates that a run will have, drawn on the Launch page before it starts."""

from __future__ import annotations

import pandas as pd

from dashboard import health_charts, panels, plots
from gan_runtime.catalog import declared
from gan_runtime.engines import rates
from gan_runtime.spec import RunSpec


def show(spec: RunSpec, rows: int) -> None:
    """The rates of all networks over the epochs, on a data set of so many rows.

    Nothing for constant rates, and none can be drawn for a run without a step.
    """
    steps_per_epoch = spec.steps_per_epoch(rows)
    known = declared.of(spec.workload)
    # Warm-up and schedule are the same for all networks.
    if not steps_per_epoch or rates.rate_plan(spec, known.networks[0].name, steps_per_epoch).is_constant:
        return
    titles = {network.name: network.title for network in known.networks}
    colors = {title: panels.network_color(known, name) for name, title in titles.items()}
    planned = pd.DataFrame(rates.planned(spec, steps_per_epoch)).rename(columns=titles)
    frame = planned.melt("epoch", var_name="series", value_name="rate")
    plots.chart(health_charts.planned_rates(frame, colors), key="launch.rates")
