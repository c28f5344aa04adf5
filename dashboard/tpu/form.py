"""The form of the TPU page: a run and a TPU."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from dashboard import actions, option_words
from gan_runtime import catalog
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.home import Home, command_line
from gan_runtime.spec import nesting
from gan_runtime.spec.presets import PRESETS, parse_assignments, preset
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.estimates import TOPOLOGIES
from gan_runtime.tpu.plan import CheckPlan

PREFIX = "tpu."
FIRST_BATCH = 512  # the paper's largest
FIRST_PRESET, FIRST_TOPOLOGY = "paper", "v3:2x2"  # the paper's


@dataclass(frozen=True)
class CheckForm:
    """The values of the form. `sets`: further options as typed, key=value."""

    preset: str
    workload: str
    precision: str
    batch_size_global: str
    topology: str
    sets: str

    def plan(self, home: Home) -> CheckPlan:
        """The check of these values. Raises as `planning.make`."""
        typed = parse_assignments(self.sets.split())
        fields = {
            "workload": self.workload,
            "precision": self.precision,
            "batch_size_global": self.batch_size_global,
        }
        values = nesting.overlaid(preset(self.preset).values, {**fields, **typed})
        return planning.make(values, self.topology, home=home)

    def command(self) -> str:
        """The command line for the same check."""
        fields = [
            f"workload={self.workload}",
            f"precision={self.precision}",
            f"batch_size_global={self.batch_size_global}",
        ]
        sets = " ".join(f"--set {pair}" for pair in [*fields, *self.sets.split()])
        return (
            f"{command_line()} tpu-check --topology {self.topology} --preset {self.preset} {sets}"
        )


def _run_of_address(store: Store) -> RunRow | None:
    run_id = st.query_params.get("run", "")
    return next(
        (
            row
            for row in queries.runs(store)
            if row.run_id == run_id and row.workload in catalog.WORKLOADS
        ),
        None,
    )


def show(runtime: Runtime) -> tuple[CheckForm, CheckPlan]:
    """The fields and their plan. They begin with workload, batch and precision of the run in the
    address.

    Ends the page after an error if the fields are invalid.
    """
    form = _fields(_run_of_address(runtime.store))
    plan = actions.attempt(lambda: form.plan(runtime.home))
    if plan is None:
        st.stop()
    return form, plan


def _fields(run: RunRow | None) -> CheckForm:
    workloads, precisions = list(catalog.WORKLOADS), list(planning.PRECISIONS)
    of_run = f"{PREFIX}{run.run_id}." if run else PREFIX  # each run fills its own fields
    workload, topology, batch, precision = st.columns([2, 2, 1, 1.3])
    chosen_workload = workload.selectbox(
        "Workload",
        workloads,
        workloads.index(run.workload) if run else 0,
        format_func=option_words.choice,
        key=f"{of_run}workload",
    )
    chosen_topology = topology.selectbox(
        "TPU",
        list(TOPOLOGIES),
        index=list(TOPOLOGIES).index(FIRST_TOPOLOGY),
        format_func=lambda name: (
            f"{TOPOLOGIES[name].chip.title}, {TOPOLOGIES[name].devices} cores ({name})"
        ),
        key=f"{PREFIX}topology",
        help="All its cores share the batch. The name in brackets is the compiler's.",
    )
    chosen_batch = batch.text_input(
        "Global batch",
        str(run.batch_size_global if run else FIRST_BATCH),
        key=f"{of_run}batch",
        help="Images per step.",
    )
    chosen_precision = precision.selectbox(
        "Precision",
        precisions,
        precisions.index(run.precision) if run and run.precision in precisions else 0,
        format_func=option_words.choice,
        key=f"{of_run}precision",
    )
    with st.expander("More options"):
        base, more = st.columns([1, 2])
        chosen_preset = base.selectbox(
            "Starting from",
            list(PRESETS),
            index=list(PRESETS).index(FIRST_PRESET),
            format_func=lambda name: PRESETS[name].title,
            key=f"{PREFIX}preset",
            help="The preset of all other options, also of the data set.",
        )
        sets = more.text_input(
            "Further options",
            key=f"{PREFIX}sets",
            placeholder="such as steps_per_loop=100 batch_norm=synchronised",
            help=(
                "Options of a run as key=value, separated by spaces. `train --help` lists their"
                " names."
            ),
        )
    return CheckForm(
        chosen_preset,
        chosen_workload,
        chosen_precision,
        chosen_batch.strip(),
        chosen_topology,
        sets,
    )
