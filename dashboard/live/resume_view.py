"""Going on with an ended run: as it was, or with other learning rates, which is what helps after a NaN."""

from __future__ import annotations

import json

import streamlit as st

from dashboard import actions, change_buttons, words
from gan_runtime.commands.other_rates import changeable
from gan_runtime.spec import RunSpec
from gan_runtime.store.queries import RunRow
from gan_runtime.supervision.runtime import Runtime

LABEL, HELP = "Other rates", "Resume with other learning rates"  # the button is too narrow for all of it


def buttons(runtime: Runtime, row: RunRow) -> None:
    """Two buttons below each other; the second opens a form. Runs of a study have the first one only."""
    refusal = runtime.why_not_resumed(row.run_id)
    asked = change_buttons.button(
        "Resume",
        icon=":material/resume:",
        width="stretch",
        disabled=bool(refusal),
        help=words.plain(refusal) or None,
    )
    if asked and actions.succeeded(lambda: runtime.resume(row.run_id)):
        st.rerun()
    if not refusal and row.study_id is None:
        with st.popover(LABEL, icon=":material/tune:", width="stretch", help=HELP):
            _form(runtime, row)


def _form(runtime: Runtime, row: RunRow) -> None:
    """The options as they are now; what is changed holds from the next attempt on."""
    st.caption(
        "The run goes on from its newest checkpoint and keeps its numbers. Lower rates help after a NaN."
    )
    options, spec = RunSpec.options(row.workload), json.loads(row.spec)
    now = {name: f"{spec.get(name, options[name].default):g}" for name in changeable(row.workload)}
    with st.form(f"resume.{row.run_id}.{row.attempt}", border=False):
        given = {name: st.text_input(options[name].label, now[name], help=options[name].help) for name in now}
        asked = change_buttons.form_button("Resume with these", icon=":material/resume:", type="primary")
    changes = {name: value for name, value in given.items() if value != now[name]}
    if asked and actions.succeeded(lambda: runtime.resume(row.run_id, changes)):
        st.rerun()
