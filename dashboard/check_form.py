"""The form of a compile check, on the pages TPU check and GPU check: a run and a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import streamlit as st

from dashboard import actions, option_words
from gan_runtime import catalog
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.home import command_line
from gan_runtime.spec import nesting
from gan_runtime.spec.presets import PRESETS, parse_assignments, preset
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store

FIRST_BATCH = 512  # the paper's largest
FIRST_PRESET = "paper"
Plan = TypeVar("Plan")


@dataclass(frozen=True)
class Devices:
    """The devices of a page: name → title, the first one, and the word before the name on the
    command line. `command`: of the check. `key`: the prefix of the widgets' keys. `precisions`: the
    allowed ones.
    """

    command: str
    option: str
    label: str
    help: str
    titles: Mapping[str, str]
    first: str
    key: str
    precisions: tuple[str, ...]


@dataclass(frozen=True)
class CheckForm:
    """The values of the form. `device`: its name. `sets`: further options as typed, key=value."""

    devices: Devices
    device: str
    preset: str
    workload: str
    precision: str
    batch_size_global: str
    sets: str

    def values(self) -> dict[str, Any]:
        """The options of the run. Raises SpecError."""
        typed = parse_assignments(self.sets.split())
        return nesting.overlaid(preset(self.preset).values, {**self._fields(), **typed})

    def command(self) -> str:
        """The command line for the same check."""
        fields = [f"{name}={value}" for name, value in self._fields().items()]
        sets = " ".join(f"--set {pair}" for pair in [*fields, *self.sets.split()])
        return (
            f"{command_line()} {self.devices.command} --{self.devices.option} {self.device}"
            f" --preset {self.preset} {sets}"
        )

    def _fields(self) -> dict[str, str]:
        return {
            "workload": self.workload,
            "precision": self.precision,
            "batch_size_global": self.batch_size_global,
        }


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


def show(
    runtime: Runtime, devices: Devices, plan_of: Callable[[dict[str, Any], str], Plan]
) -> tuple[CheckForm, Plan]:
    """The fields and their plan. They begin with workload, batch and precision of the run in the
    address.

    `plan_of(options, device)`: the plan. Ends the page after an error if the fields are invalid.
    """
    form = _fields(devices, _run_of_address(runtime.store))
    plan = actions.attempt(lambda: plan_of(form.values(), form.device))
    if plan is None:
        st.stop()
    return form, plan


def _fields(devices: Devices, run: RunRow | None) -> CheckForm:
    workloads, prefix = list(catalog.WORKLOADS), devices.key
    of_run = f"{prefix}{run.run_id}." if run else prefix  # each run fills its own fields
    workload, device, batch, precision = st.columns([2, 2, 1, 1.3])
    chosen_workload = workload.selectbox(
        "Workload",
        workloads,
        workloads.index(run.workload) if run else 0,
        format_func=option_words.choice,
        key=f"{of_run}workload",
    )
    chosen_device = device.selectbox(
        devices.label,
        list(devices.titles),
        index=list(devices.titles).index(devices.first),
        format_func=lambda name: f"{devices.titles[name]} ({name})",
        key=f"{prefix}device",
        help=devices.help,
    )
    chosen_batch = batch.text_input(
        "Global batch",
        str(run.batch_size_global if run else FIRST_BATCH),
        key=f"{of_run}batch",
        help="Images per step.",
    )
    chosen_precision = precision.selectbox(
        "Precision",
        devices.precisions,
        devices.precisions.index(run.precision)
        if run and run.precision in devices.precisions
        else 0,
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
            key=f"{prefix}preset",
            help="The preset of all other options, also of the data set.",
        )
        sets = more.text_input(
            "Further options",
            key=f"{prefix}sets",
            placeholder="such as steps_per_loop=100 batch_norm=synchronised",
            help=(
                "Options of a run as key=value, separated by spaces. `train --help` lists their"
                " names."
            ),
        )
    return CheckForm(
        devices,
        chosen_device,
        chosen_preset,
        chosen_workload,
        chosen_precision,
        chosen_batch.strip(),
        sets,
    )
