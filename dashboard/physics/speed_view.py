"""How fast the runs of the Physics page trained, beside published speeds and what they cost."""

from __future__ import annotations

import streamlit as st

from dashboard import tables as page_tables
from dashboard.physics import tables
from dashboard.physics.shown import Shown
from gan_runtime.catalog import declared
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store


def scaling(store: Store, found: Shown) -> None:
    """Speed of these runs beside the authors' published tables, with how good the showers are."""
    st.header("Speed and what it costs", anchor=False)
    page_tables.show(
        tables.speed(
            found.scores,
            found.rows,
            found.epochs,
            {name: _losses(store, row, found.epochs[name]) for name, row in found.rows.items()},
        ),
        hide_index=True,
        key="physics.speed",
    )
    left, right = st.columns(2)
    with left:
        st.markdown("**Published: seconds of an epoch of 124,987 showers**")
        page_tables.show(
            tables.published_scaling(), hide_index=True, key="physics.published_scaling", height="content"
        )
    with right:
        st.markdown("**Published: what a large batch costs**")
        page_tables.show(tables.convergence(), hide_index=True, key="physics.convergence")
        st.caption(tables.SCALING_WORDS)


def _losses(store: Store, row: RunRow, epoch: int) -> str:
    """What the workload calls its losses, and their means over an epoch."""
    known = declared.of(row.workload).losses
    means = queries.means_of_epoch(store, row.run_id, epoch, [loss.name for loss in known])
    return tables.losses([(loss.legend, means.get(loss.name)) for loss in known])
