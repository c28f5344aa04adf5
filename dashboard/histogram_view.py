"""The tab Histograms of a run and of Compare: the selection, one run over its epochs, several runs
at one epoch.

Names and colors are those that the runs' workloads declare. tests/engines/test_every_series.py
fails for a stored histogram that no kind here shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import chart_panels, histogram_charts, plots, run_selection, widgets, words
from gan_runtime.base.metrics import GRADIENT, OF_PHASE, WEIGHT, histogram
from gan_runtime.catalog import declarations
from gan_runtime.catalog.declarations import Declarations
from gan_runtime.catalog.entries import Judgement
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store

KINDS = {WEIGHT: ("Weights", "Weight"), GRADIENT: ("Gradients", "Gradient")}


@dataclass(frozen=True)
class Panel:
    """A distribution.

    `series`: a histogram, or with `of_steps` a metric of the steps. `domain`: all possible values.
    """

    series: str
    title: str
    axis: str
    color: str
    of_steps: bool = False
    domain: tuple[float, float] | None = None


@dataclass(frozen=True)
class Choice:
    """A choice of the user: distributions shown together."""

    label: str
    panels: tuple[Panel, ...]


def choices(histograms: list[str], metrics: list[str], declaration: Declarations) -> list[Choice]:
    """The choices for runs with these histograms and metrics: scores, losses, then each layer."""
    all_choices = [Choice(_scores_title(declaration), _scores(histograms, declaration))]
    losses = [loss for loss in declaration.losses if loss.name in metrics]
    all_choices.append(
        Choice(
            "Losses of the steps",
            tuple(
                Panel(loss.name, loss.title, loss.axis, chart_panels.color(declaration, loss), True)
                for loss in losses
            ),
        )
    )
    parts = {_part(name) for name in histograms if _kind(name)[0] in KINDS}
    all_choices += [
        Choice(part_name(part, declaration), _values(part, histograms, declaration))
        for part in sorted(parts, key=lambda part: _order(part, declaration))
    ]
    return [choice for choice in all_choices if choice.panels]


def panel_names(histograms: list[str], metrics: list[str], declaration: Declarations) -> set[str]:
    """The series that the page shows."""
    return {
        panel.series
        for choice in choices(histograms, metrics, declaration)
        for panel in choice.panels
    }


def whole_networks(declaration: Declarations, histograms: list[str]) -> list[Panel]:
    """Weights and gradients of each whole network: those stored, or else those expected."""
    expected = [histogram(kind, network.name) for network in declaration.networks for kind in KINDS]
    stored = [name for name in histograms if _kind(name)[0] in KINDS and "/" not in _part(name)]
    names = sorted(
        stored or expected, key=lambda name: (_order(_part(name), declaration), *_kind_order(name))
    )
    return [
        _value_panel(
            name,
            f"{declaration.network(_part(name)).title} {_lower_first(_kind_title(name))}",
            declaration,
        )
        for name in names
    ]


def part_name(part: str, declaration: Declarations) -> str:
    """ "generator" → "Generator, all layers"; "generator/up_1" → "Generator, layer up 1"."""
    network, _, layer = part.partition("/")
    which = f"layer {layer.replace('_', ' ')}" if layer else "all layers"
    return f"{declaration.network(network).title}, {which}"


def _scores(histograms: list[str], declaration: Declarations) -> tuple[Panel, ...]:
    lines = [
        line
        for group in chart_panels.score_histograms(declaration, histograms)
        for line in group.lines
    ]
    return tuple(
        _score_panel(line, declaration.histograms.get(line.name))
        for line in lines
        if line.name in histograms
    )


def _score_panel(line: chart_panels.Line, judged: Judgement | None) -> Panel:
    if judged is None:
        return Panel(line.name, line.label, chart_panels.UNDECLARED_SCORE, line.color)
    return Panel(line.name, judged.title, judged.axis, line.color, domain=judged.bounds)


def _scores_title(declaration: Declarations) -> str:
    """ "Scores of the discriminator", if the workload declares which network scores."""
    score = declaration.of_role("judged_real")
    return (
        f"Scores of the {declaration.network(score.network).noun}"
        if score and score.network
        else "Scores"
    )


def _values(part: str, histograms: list[str], declaration: Declarations) -> tuple[Panel, ...]:
    names = [name for name in histograms if _part(name) == part and _kind(name)[0] in KINDS]
    part_title = _lower_first(part_name(part, declaration))
    return tuple(
        _value_panel(name, f"{_kind_title(name)}: {part_title}", declaration)
        for name in sorted(names, key=_kind_order)
    )


def _value_panel(name: str, title: str, declaration: Declarations) -> Panel:
    network = _part(name).partition("/")[0]
    return Panel(
        name, title, KINDS[_kind(name)[0]][1], chart_panels.network_color(declaration, network)
    )


def _kind(name: str) -> tuple[str, str]:
    """Kind and phase: "gradient@judge/critic" → ("gradient", "judge"); the phase can be empty."""
    kind, _, phase = name.partition("/")[0].partition(OF_PHASE)
    return kind, phase


def _kind_title(name: str) -> str:
    kind, phase = _kind(name)
    return f"{KINDS[kind][0]} of phase {phase}" if phase else KINDS[kind][0]


def _kind_order(name: str) -> tuple[int, str]:
    kind, phase = _kind(name)
    return list(KINDS).index(kind), phase


def _part(name: str) -> str:
    return name.partition("/")[2]


def _order(part: str, declaration: Declarations) -> tuple[int, str]:
    """Networks in their order, each before its layers."""
    networks = [network.name for network in declaration.networks]
    network = part.partition("/")[0]
    return (networks.index(network) if network in networks else len(networks), part)


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


ACROSS = 4
Draw = Callable[..., alt.Chart | alt.LayerChart]
VIEWS: dict[str, Draw] = {
    "Ridgelines": histogram_charts.ridgelines,
    "Heatmap": histogram_charts.heatmap,
}
BINS_HELP = (
    "Epochs and runs share the same bins. The first and last bin hold the outermost half percent."
    " Long runs show at most 30 epochs."
)


def show(store: Store, rows: list[RunRow]) -> None:
    """One run over its epochs, or several at one epoch. Redraws alone while one of them trains."""
    live = any(row.is_live for row in rows)
    st.fragment(_draw, run_every=2.0 if live else None)(store, rows)


def _draw(store: Store, rows: list[RunRow]) -> None:
    ids = [row.run_id for row in rows]
    choice_list = choices(
        queries.histogram_names(store, ids),
        queries.recorded(store, ids),
        queries.declared_of(store, ids),
    )
    if not choice_list:
        st.info(
            "These runs have no histograms yet. Losses appear after the first steps, histograms"
            " after each epoch."
        )
        return
    what, how = st.columns([3, 2], vertical_alignment="bottom")
    with what:
        choice = _pick(choice_list)
    if len(rows) == 1:
        _over_epochs(
            store,
            rows[0],
            choice,
            how.segmented_control("View", list(VIEWS), default="Ridgelines", required=True),
        )
        _after_one_epoch(store, rows[0])
    else:
        with how:
            epoch = widgets.epoch_slider(
                max(row.epochs for row in rows), _newest(store, ids), "histograms"
            )
        _over_runs(store, rows, choice, epoch)


def _after_one_epoch(store: Store, row: RunRow) -> None:
    """Weights and gradients of each whole network, side by side, under one slider."""
    newest = _newest(store, [row.run_id])
    panels = whole_networks(
        declarations.of(row.workload), queries.histogram_names(store, [row.run_id])
    )
    newest_frames = (
        queries.histogram(store, row.run_id, (panel.series,), newest) for panel in panels
    )
    if all(frame.empty for frame in newest_frames):
        return
    st.header("Weights and gradients after one epoch")
    epoch = widgets.epoch_slider(row.epochs, newest, f"histograms.{row.run_id}")
    shown = [queries.histogram(store, row.run_id, (panel.series,), epoch) for panel in panels]
    drawings = list(zip(panels, shown, strict=True))
    for begin in range(0, len(panels), ACROSS):
        for column, (panel, frame) in zip(
            st.columns(ACROSS), drawings[begin : begin + ACROSS], strict=False
        ):
            with column:
                if frame.empty:
                    st.caption(f"{panel.title}: not recorded up to epoch {epoch}.")
                else:
                    key = f"{panel.series}.{row.run_id}"
                    style = (panel.title, panel.axis, panel.color)
                    plots.cached_chart(histogram_charts.value_histogram, frame, key, *style)
    _earlier_epochs(pd.concat(shown).assign(run_id=row.run_id), {row.run_id: row.name}, epoch)


def _pick(choice_list: list[Choice]) -> Choice:
    labels = [choice.label for choice in choice_list]
    label = st.selectbox("What", labels, help=BINS_HELP, key="histograms.item")
    return choice_list[labels.index(label)]


def _newest(store: Store, run_ids: list[str]) -> int:
    epochs = queries.epoch_times(store, run_ids)["epoch"]
    return 1 if epochs.empty else int(epochs.max())


def _over_epochs(store: Store, row: RunRow, choice: Choice, view: str | None) -> None:
    draw = VIEWS[view or "Ridgelines"]
    for column, panel in zip(
        st.columns(len(choice.panels), gap="medium"), choice.panels, strict=True
    ):
        query = queries.loss_ridges if panel.of_steps else queries.histogram_ridges
        frame = query(store, row.run_id, panel.series)
        with column:
            if frame.empty:
                st.caption(f"{panel.title}: after the first epoch.")
            else:
                chart = partial(
                    draw, title=panel.title, axis=panel.axis, color=panel.color, domain=panel.domain
                )
                plots.steady_chart(chart, frame, f"{view}.{panel.series}.{row.run_id}")


def _over_runs(store: Store, rows: list[RunRow], choice: Choice, epoch: int) -> None:
    names = run_selection.unique_names(rows)
    colors = {names[run_id]: color for run_id, color in run_selection.colors(rows).items()}
    widgets.legend(colors)
    columns = st.columns(len(choice.panels), gap="medium")
    frames = [_overlay(store, list(names), panel, epoch) for panel in choice.panels]
    for column, panel, frame in zip(columns, choice.panels, frames, strict=True):
        with column:
            if frame.empty:
                st.caption(f"{panel.title}: not stored up to epoch {epoch}.")
                continue
            rows_by_run = frame.assign(run=frame["run_id"].map(names))
            chart = histogram_charts.run_overlay(
                rows_by_run, colors, panel.title, panel.axis, domain=panel.domain
            )
            plots.chart(chart, key=f"overlay.{panel.series}")
    _earlier_epochs(pd.concat(frames), names, epoch)


def _overlay(store: Store, run_ids: list[str], panel: Panel, epoch: int) -> pd.DataFrame:
    query = queries.loss_overlay if panel.of_steps else queries.histogram_overlay
    return query(store, run_ids, panel.series, epoch)


def _earlier_epochs(frame: pd.DataFrame, names: dict[str, str], epoch: int) -> None:
    """Names the runs shown at an earlier epoch than the selected one."""
    rows_by_run = frame[["run_id", "epoch"]].drop_duplicates()
    earlier = [
        f"{words.plain(names[run_id])} at epoch {at}"
        for run_id, at in rows_by_run.itertuples(index=False)
        if at < epoch
    ]
    if earlier:
        st.caption(
            f"Not stored at epoch {epoch}, shown at an earlier epoch:"
            f" {', '.join(sorted(set(earlier)))}."
        )
