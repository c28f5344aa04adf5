"""The tables of the Compare page: numbers of each run, and the options in which the runs differ."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import option_words, run_selection, tables, words
from dashboard.compare import grouping
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store

PHASES = {"trace": "Trace", "compile": "Compile", "steady_step": "Steady step"}


def numbers(store: Store, rows: list[RunRow]) -> None:
    """Final numbers side by side."""
    st.header("Final numbers")
    known = queries.declared_of(store, [row.run_id for row in rows])
    table = queries.run_table(store).set_index("run_id").loc[[row.run_id for row in rows]]
    shown = pd.DataFrame(
        {
            "Run": list(run_selection.unique_names(rows).values()),
            "State": list(table["status"]),
            "Epochs": [
                f"{done} / {epochs}"
                for done, epochs in zip(table["epochs_done"], table["epochs"], strict=True)
            ],
            **{
                known.loss_title(loss): [words.loss(_known(value)) for value in table[loss.name]]
                for loss in known.losses
            },
            "Images/s": [words.count(_known(value)) for value in table["images_per_s"]],
            "Training time": [words.duration(_known(value)) for value in table["seconds"]],
            **{
                label: [words.duration(queries.phases(store, row.run_id).get(phase)) for row in rows]
                for phase, label in PHASES.items()
            },
        }
    )
    tables.show(shown, hide_index=True, key="compare.numbers")


def differences(rows: list[RunRow]) -> None:
    """The options in which the runs differ, one column a run."""
    st.header("What differs")
    differing = grouping.differing(rows)
    if not differing:
        st.caption("Nothing: these runs have the same options.")
        return
    names = run_selection.unique_names(rows)
    specs = {names[row.run_id]: grouping.full_spec(row) for row in rows}
    columns = {
        name: [option_words.value(option, spec[option.name]) for option in differing]
        for name, spec in specs.items()
    }
    table = pd.DataFrame({"Option": [option_words.label(option) for option in differing], **columns})
    tables.show(table, hide_index=True, key="compare.differences")


def _known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)
