"""The form of an evaluation, built from its options, disabled with the reason if it cannot run,
and the progress of its job.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from dashboard import actions, missing_checkpoint, widgets, words
from dashboard.evaluation.answers import DomainPage, OptionChoices
from gan_runtime.base import options
from gan_runtime.base.options import Option
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.commands.runtime import Runtime
from gan_runtime.evaluation import jobs
from gan_runtime.jobs.folder import JobSnapshot
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store.queries import RunRow
from gan_runtime.training import checkpoints, inference

STOP = widgets.EndButton("evaluation.stop", "Stop", "stopping …")
CHECKPOINT, EPOCH = "checkpoint", "epoch"  # options with the same meaning in every evaluation
STATES = {
    "newest": "Newest checkpoint",
    "best": "Best checkpoint",
    "every": "Each epoch, from its weights",
}
STATES_HELP = (
    "Checkpoints, or the weights stored after an epoch. Stored weights have half precision."
)
FEW = 4  # choices side by side
WIDTH, WIDE = 150, 240  # pixels of a number, and of a choice


def measure(
    runtime: Runtime, evaluation: Evaluation, page: DomainPage, rows: list[RunRow], is_first: bool
) -> None:
    """The form, the current job, or why the last one failed.

    `is_first`: nothing is measured yet, so its button is the page's primary one.
    """
    reasons = {row.run_id: reason(runtime, row, evaluation) for row in rows}
    names = {row.run_id: widgets.title(row) for row in rows if not reasons[row.run_id]}
    if not names and _lacks_weights(runtime, rows[0], evaluation):
        missing_checkpoint.show(runtime, rows[0])
        return
    if not names:
        st.button(
            evaluation.verb, disabled=True, help=reasons[rows[0].run_id], icon=":material/labs:"
        )
        st.caption(words.plain(words.capitalized(reasons[rows[0].run_id])))
        return
    snapshots = {
        run_id: jobs.newest_request(runtime.home, run_id, evaluation.name) for run_id in names
    }
    for run_id, snapshot in snapshots.items():
        if snapshot is not None and snapshot.is_live:
            widgets.job_bar(runtime, snapshot, partial(_sentence, names[run_id]), STOP)
            return
    run_id = next(iter(names))
    if len(names) > 1:
        run_id = st.selectbox(
            "Run", list(names), format_func=names.__getitem__, key="evaluation.of_run", width=WIDE
        )
    values = _fields(runtime, evaluation, page, runtime.home.run_dir(run_id))
    pressed = actions.button(
        evaluation.verb,
        key="evaluation.start",
        type="primary" if is_first else "secondary",
        icon=":material/labs:",
    )
    snapshot = snapshots[run_id]
    if (
        snapshot is not None
        and snapshot.end is not None
        and snapshot.state not in ("finished", "cancelled")
    ):
        st.warning(f"Not measured: {words.plain(snapshot.end.reason)}", icon=":material/warning:")
    if (
        pressed
        and actions.attempt(partial(_request, runtime, run_id, evaluation, values)) is not None
    ):
        st.rerun()


def _lacks_weights(runtime: Runtime, row: RunRow, evaluation: Evaluation) -> bool:
    """Whether only a checkpoint, or the weights of an epoch, are missing here."""
    run = RunDir(runtime.home.runs / row.run_id)
    has_weights = run.has_checkpoint or bool(inference.stored_epochs(run))
    return (
        evaluation.needs_checkpoint
        and not has_weights
        and run.path.is_dir()
        and not jobs.why_never(runtime.home, run, evaluation)
    )


def reason(runtime: Runtime, row: RunRow, evaluation: Evaluation) -> str:
    """Why a run cannot be evaluated now; "" if it can."""
    run = RunDir(runtime.home.runs / row.run_id)
    if not run.path.is_dir():
        return f"run {row.run_id} is no longer stored here."
    refusals = {applicable.name: why for applicable, why in jobs.evaluations_of(runtime.home, run)}
    return refusals.get(evaluation.name) or jobs.why_never(runtime.home, run, evaluation)


def _request(
    runtime: Runtime, run_id: str, evaluation: Evaluation, values: Mapping[str, Any]
) -> object:
    return runtime.commands.evaluate(run_id, evaluation.name, values)


def _sentence(name: str, snapshot: JobSnapshot) -> str:
    return f"{words.plain(name)}: {widgets.job_sentence(snapshot)}"


def _fields(
    runtime: Runtime, evaluation: Evaluation, page: DomainPage, run: RunDir
) -> dict[str, Any]:
    """A widget for each option, and the selected values; first the default values of the run."""
    declared_options = dict(options.of(evaluation.options))
    usual = {name: option.default for name, option in declared_options.items()}
    usual |= jobs.usual(runtime.home, run, evaluation)
    choices = page.choices(runtime.home, run)
    values: dict[str, Any] = {}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if CHECKPOINT in declared_options:
            values |= _weights(run, declared_options, str(usual[CHECKPOINT]))
        for name, option in declared_options.items():
            if name not in (CHECKPOINT, EPOCH):
                key = f"evaluation.option.{evaluation.name}.{name}.{run.run_id}"
                values[name] = _field(option, usual[name], choices.get(name), key)
    return values


def _weights(run: RunDir, declared_options: Mapping[str, Option], usual: str) -> dict[str, Any]:
    """The weights to measure: a checkpoint, or, with an option for epochs, those stored after one,
    newest first.
    """
    epochs = inference.stored_epochs(run)
    steps = checkpoints.steps(run.checkpoints)
    states_here: list[str] = [
        state for state in declared_options[CHECKPOINT].choices if state in steps
    ]
    if "every" in declared_options[CHECKPOINT].choices and epochs:
        states_here.append("every")
    states: dict[str, dict[str, Any]] = {state: {CHECKPOINT: state} for state in states_here}
    titles = dict(STATES)
    if EPOCH in declared_options:
        for epoch in epochs[::-1]:
            states[f"epoch {epoch}"] = {CHECKPOINT: "newest", EPOCH: epoch}
            titles[f"epoch {epoch}"] = f"Epoch {epoch}" if epoch else "Untrained (epoch 0)"
    if not states:
        return {}
    state = st.selectbox(
        "Weights",
        list(states),
        list(states).index(usual) if usual in states else 0,
        format_func=lambda state: titles.get(state, state),
        key=f"evaluation.weights.{run.run_id}",
        width=WIDE,
        help=STATES_HELP if epochs else None,
    )
    return states[state]


def _field(option: Option, usual: Any, choices: OptionChoices | None, key: str) -> Any:
    label = f"{option.label} ({option.unit})" if option.unit else option.label
    titles = (
        dict(choices.titles)
        if choices
        else {choice: words.capitalized(choice) for choice in option.choices}
    )
    common: dict[str, Any] = {
        "key": key,
        "help": f"{option.help} {words.capitalized(option.allowed)}.",
    }
    if choices and choices.several:
        return st.pills(
            label,
            list(titles),
            selection_mode="multi",
            default=list(usual),
            format_func=titles.__getitem__,
            **common,
        )
    if titles and len(titles) <= FEW and all(len(title) < 12 for title in titles.values()):
        return st.segmented_control(
            label,
            list(titles),
            default=usual,
            format_func=titles.__getitem__,
            required=True,
            **common,
        )
    if titles:
        first = list(titles).index(usual) if usual in titles else 0
        return st.selectbox(
            label, list(titles), first, format_func=titles.__getitem__, width=WIDE, **common
        )
    if option.kind in (int, float) or option.minimum is not None:
        return _number(label, option, usual, choices.most if choices else None, common)
    return st.text_input(label, "" if usual is None else str(usual), width=WIDE, **common)


def _number(
    label: str, option: Option, usual: float | None, most: float | None, common: dict[str, Any]
) -> float | None:
    kind = float if option.kind is float else int
    ends = [None if end is None else kind(end) for end in (option.minimum, most or option.maximum)]
    value: Any = None if usual is None else kind(usual)
    number: float | None = st.number_input(
        label, ends[0], ends[1], value, placeholder="default", width=WIDTH, **common
    )
    return number
