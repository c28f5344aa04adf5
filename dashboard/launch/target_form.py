"""The dialog that adds another place where runs train; Launch then shows what it offers."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dashboard import actions
from dashboard.launch import fields
from gan_runtime.commands.runtime import Runtime
from gan_runtime.targets import configuration

KINDS = {"ssh": "A host that ssh reaches", "slurm": "A Slurm cluster"}
HINTS = {
    "ssh": (
        "The host needs a clone of this project in the same version, set up with `make setup`. Your"
        " login must need no password."
    ),
    "slurm": (
        "Its nodes see the home of this dashboard under the same path. If not, its login node needs"
        " a clone of this project."
    ),
}
# Fields of both kinds, then of each: name → label and help.
_BOTH = {"name": ("Name", "How this dashboard calls it: a to z, 0 to 9 and '-'.")}
_OF = {
    "ssh": {
        "host": (
            "Host",
            "As `ssh HOST` names it: a name from your ssh configuration, or USER@HOST.",
        ),
        "project": ("Folder of the clone", "Empty: gan-dashboard in the user's folder there."),
    },
    "slurm": {
        "host": ("Login node", "As `ssh HOST` names it. Empty: this host has Slurm's commands."),
        "partition": ("Partition", "As sbatch --partition. Empty: the cluster's default."),
        "account": ("Account", "As sbatch --account."),
        "time_limit": ("Time limit", "As sbatch --time, such as 08:00:00."),
    },
}


def link(runtime: Runtime) -> None:
    """A button that opens the dialog."""
    if actions.button(
        "Train on another machine …",
        type="tertiary",
        icon=":material/dns:",
        help="Adds a Slurm cluster, or a host that ssh reaches.",
    ):
        _add(runtime)


@st.dialog("Train on another machine")
def _add(runtime: Runtime) -> None:
    kind = st.segmented_control(
        "What is it?", list(KINDS), default="ssh", format_func=KINDS.__getitem__, required=True
    )
    st.caption(HINTS[kind])
    with st.form("target", border=False):
        values = {
            name: st.text_input(label, key=f"target.{kind}.{name}", help=text).strip()
            for name, (label, text) in {**_BOTH, **_OF[kind]}.items()
        }
        values["accelerator"] = st.selectbox(
            "Accelerator",
            configuration.accelerators(kind),
            format_func=str.upper,
            key=f"target.{kind}.device",
        )
        is_apart = kind == "slurm" and st.checkbox(
            "It does not see the home of this dashboard",
            help="Runs then train in a folder there, and what they write is copied to here.",
        )
        pressed = actions.form_button("Add", type="primary")
    name = values.pop("name")
    settings = {"kind": kind, **{key: value for key, value in values.items() if value}}
    add = partial(runtime.commands.add_target, name, settings, is_apart=is_apart)
    if pressed and actions.succeeded(add):
        fields.put({"target": name})
        st.rerun()
