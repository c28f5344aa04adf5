"""A slider and a play button for the output of several runs over epochs: images, histograms, a
film.
"""

from __future__ import annotations

import html
from functools import partial

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import chart_panels, charts, plots, run_selection, widgets, words
from dashboard.chart_panels import Group
from dashboard.kept_values import KeptValues
from dashboard.samples import sample_images, timelapse
from dashboard.samples.timelapse import Strip
from gan_runtime.catalog import declarations
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store


def score_bars(frame: pd.DataFrame, group: Group, height: int = 180) -> alt.LayerChart:
    """The scores of one run at one epoch.

    `frame`: the rows of one run of `queries.score_histograms`.

    The axis ends at the largest share of all runs and epochs, so that charts are comparable and do
    not jump while epochs play. That value is an invisible point: in the spec it would make a new
    chart each time. After a first epoch all scores can be in one bin; the root scale leaves room
    for the others.
    """
    y = alt.Y(
        "share:Q",
        title="Share (root scale)",
        axis=alt.Axis(format="%", values=[0, 0.05, 0.2, 0.5, 1]),
        scale=alt.Scale(type="sqrt"),
    )
    x = alt.X(
        "left:Q",
        title=group.axis,
        scale=(
            alt.Scale(domain=list(group.panel.domain))
            if group.panel.domain
            else alt.Scale(zero=False)
        ),
        axis=alt.Axis(grid=False, tickCount=5),
    )
    tooltip = [
        alt.Tooltip("series:N", title=group.panel.series),
        alt.Tooltip("left:Q", title="Score from", format=".3f"),
        alt.Tooltip("share:Q", title="Share", format=".1%"),
        alt.Tooltip("epoch:Q", title="Epoch", format="d"),
    ]
    colors = alt.Scale(domain=list(group.colors), range=list(group.colors.values()))
    base = alt.Chart()
    bars = base.mark_bar(opacity=0.65, binSpacing=0).encode(
        x=x,
        x2=alt.X2("right:Q"),
        y=y.stack(None),
        y2=alt.Y2Datum(0),
        color=alt.Color("series:N", legend=None, scale=colors),
        tooltip=tooltip,
    )
    top = base.mark_point(opacity=0).encode(y=alt.Y("top:Q"))
    description = (
        "Shares of the rows of this epoch by their value, on a root scale. Where the histograms"
        " overlap, generated rows look like real ones."
    )
    rows = frame.assign(series=frame["name"].map(group.labels))
    return charts.layered(rows, bars, top, height=height, description=description)


PLAY_SECONDS = 0.6
ACROSS = 3
SAME_INPUTS = "All runs got the same inputs: compare these grids image by image."
OTHER_INPUTS = (
    "These grids have different inputs (latents, labels or frames), or come from an earlier"
    " version or another program. Compare whole grids, not single images."
)


def sample_player(
    store: Store,
    rows: list[RunRow],
    key: str,
    histograms: bool = False,
    colors: dict[str, str] | None = None,
) -> None:
    """The images of several runs at one epoch, one kind at a time, and optionally D's scores below,
    under ONE slider with a play button.

    `colors`: run_id → color; by default as `run_selection.colors`.
    """
    playing = is_playing(key)
    live = any(row.is_live for row in rows)
    run_every = PLAY_SECONDS if playing else 2.0 if live else None
    colors = colors or run_selection.colors(rows)
    st.fragment(_player, run_every=run_every)(store, rows, key, histograms, colors, playing)


def _player(
    store: Store,
    rows: list[RunRow],
    key: str,
    histograms: bool,
    colors: dict[str, str],
    timed: bool,
) -> None:
    """`timed`: whether the fragment's timer is the player's."""
    if is_playing(key) != timed:
        st.rerun()  # the page sets the timer first
    run_ids = [row.run_id for row in rows]
    stored = queries.sample_kinds(store, run_ids)
    if not stored:
        st.info("No samples yet. Each run stores its first images after epoch 1.")
        return
    kind = sample_images.choice(stored, rows, key)
    epochs = queries.sample_epochs(store, run_ids, kind)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if max(epochs) > 1:
            play_button(key, max(epochs))
        epoch = widgets.epoch_slider(max(row.epochs for row in rows), max(epochs), key)
        _film_button(store, rows, epochs, kind, colors, key)
    if len(rows) > 1:
        st.caption(SAME_INPUTS if queries.same_inputs(store, run_ids) else OTHER_INPUTS)
    bars = queries.score_histograms(store, run_ids, epoch) if histograms else pd.DataFrame()
    if len(bars):
        st.html(
            _scores_line(
                chart_panels.score_histograms(
                    queries.declared_of(store, run_ids), bars["name"].unique()
                )
            )
        )
    for begin in range(0, len(rows), ACROSS):
        for column, row in zip(
            st.columns(min(ACROSS, len(rows))), rows[begin : begin + ACROSS], strict=False
        ):
            with column:
                _run_column(store, row, colors[row.run_id], epoch, kind, bars, key)


def is_playing(key: str) -> bool:
    """Whether the epochs of a player pass by themselves."""
    return bool(st.session_state.setdefault(f"{key}.playing", False))


def play_button(key: str, newest: int, shortcut: str | None = None) -> None:
    """Plays or pauses; while it plays, each render shows the next epoch. `shortcut`: its key."""
    playing = is_playing(key)
    if playing:
        step(key, 1, newest)
    icon = ":material/pause:" if playing else ":material/play_arrow:"
    st.button(
        "Pause" if playing else "Play",
        key=f"{key}.play",
        icon=icon,
        on_click=_toggle,
        args=(key,),
        shortcut=shortcut,
    )


def _toggle(key: str) -> None:
    """Runs before the page is drawn, so that a pause stops at the shown epoch, not at the next."""
    st.session_state[f"{key}.playing"] = not is_playing(key)
    widgets.follow(key, newest=False)


def step(key: str, by: int, newest: int) -> None:
    """Moves by this many epochs, and from the newest to the first or back."""
    kept = KeptValues(key)
    now = min(kept.get(widgets.EPOCH, newest), newest)
    kept.put(widgets.EPOCH, (now - 1 + by) % newest + 1)
    widgets.follow(key, newest=False)


def epoch_without_slider(key: str, newest: int) -> int:
    """The epoch of a player that only keys and buttons move; until then the newest."""
    kept = KeptValues(key)
    if widgets.is_following(key):
        kept.put(widgets.EPOCH, newest)
    return int(kept.get(widgets.EPOCH, newest))


def _run_column(
    store: Store, row: RunRow, color: str, epoch: int, kind: str, bars: pd.DataFrame, key: str
) -> None:
    """Name, images, and D's scores if `bars` has some of this run."""
    st.markdown(f":color[■]{{foreground='{color}'}} {words.plain(row.name)}")
    sample_images.show(store, row, epoch, kind)
    points = bars[bars["run_id"] == row.run_id] if len(bars) else bars
    groups = (
        chart_panels.score_histograms(declarations.of(row.workload), points["name"].unique())
        if len(points)
        else []
    )
    for place, group in enumerate(groups):
        scores = points[points["name"].isin(group.names)]
        if len(scores):
            draw = partial(score_bars, group=group)
            plots.steady_chart(draw, scores, f"{key}.scores.{place}.{row.run_id}")


def _scores_line(groups: list[Group]) -> str:
    """A line that explains the bars below the grids, in their colors."""
    lines = [line for group in groups for line in group.lines]
    legend = [
        f"<b style='color:{line.color}'>■</b>&nbsp;{html.escape(line.label.lower())}"
        for line in lines
    ]
    return f"Below each grid: distribution of the scores of {' and '.join(legend)}."


def _film_button(
    store: Store,
    rows: list[RunRow],
    epochs: list[int],
    kind: str,
    colors: dict[str, str],
    key: str,
) -> None:
    """A download button; the film is made when it is pressed."""
    st.download_button(
        "Time-lapse",
        data=lambda: film(store, rows, epochs, kind, colors),
        file_name=f"time-lapse-{kind}-{'-'.join(row.run_id for row in rows)[:80]}.gif",
        mime="image/gif",
        on_click="ignore",
        key=f"{key}.film",
        icon=":material/movie:",
        help="A GIF of the grids side by side, one frame per epoch, at most 100.",
    )


def film(
    store: Store, rows: list[RunRow], epochs: list[int], kind: str, colors: dict[str, str]
) -> bytes:
    """The images of one kind of the runs side by side, over the epochs, as an animated GIF."""
    film_epochs = timelapse.shown_epochs(epochs)
    strips = []
    for row in rows:
        grids = [
            grid
            for epoch in film_epochs
            if (grid := queries.sample(store, row.run_id, epoch, kind)) is not None
        ]
        whole = {grid.epoch: grid.png for grid in grids if sample_images.is_image(grid.png)}
        strips.append(Strip(row.name, colors[row.run_id], whole))
    return timelapse.gif(strips, film_epochs)
