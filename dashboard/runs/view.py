"""The Runs page: filters, the table with checkboxes, and buttons for the selected runs."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Mapping, Sized
from functools import partial
from typing import Any
from urllib.parse import quote

import pandas as pd
import streamlit as st

from dashboard import actions, option_words, run_selection, tables, widgets, words
from dashboard.frame import places
from dashboard.runs import changes
from dashboard.runs import columns as runs_columns
from dashboard.runs.search import parsed
from gan_runtime.base import formats
from gan_runtime.catalog import declarations
from gan_runtime.catalog.declarations import Declarations
from gan_runtime.commands.runtime import Runtime
from gan_runtime.spec.run_options import HERE
from gan_runtime.store import queries
from gan_runtime.store.store import Store
from gan_runtime.supervision import trash
from gan_runtime.training.verdict import Verdict

TICKED = "runs.ticked"  # ids, not row numbers: a search, a new run or a deletion moves rows
NAME_IN_LINK = r"#(.*)"
PROGRESS_PIXELS = 108
ROW_PIXELS, FRAME_PIXELS = 35, 6  # of Streamlit's table: a row or the head, and the outer lines


def _space(number_format: str | None = None) -> Any:
    """The column of a run's bytes; `number_format`: Streamlit's, not needed for words."""
    text = "All files of the run: checkpoints, images, journals, films."
    return st.column_config.NumberColumn("Space", format=number_format, help=text)


def _submitted(zone: str | None = None) -> Any:
    """The column of the submission times in this time zone. Not ages: the table is not redrawn."""
    return st.column_config.DatetimeColumn(
        "Submitted", format="YYYY-MM-DD HH:mm", timezone=zone, help="In your time zone."
    )


COLUMNS = {
    "link": st.column_config.LinkColumn(
        "Name", display_text=NAME_IN_LINK, pinned=True, help="Opens the run in a new tab."
    ),
    "kept_first": st.column_config.TextColumn(
        "Pinned", help="Pinned: listed first, cannot be deleted."
    ),
    "status": st.column_config.TextColumn("State"),
    "verdict": st.column_config.TextColumn(
        "Verdict",
        help="What the last epochs and measured quality show. The run's page has the evidence.",
    ),
    "tags": st.column_config.ListColumn("Tags", width="medium"),
    "remark": st.column_config.TextColumn("Note", width="medium"),
    "done": st.column_config.ProgressColumn(
        "Epochs done", format="%.0f%%", min_value=0, max_value=100, width=PROGRESS_PIXELS
    ),
    "algorithm": st.column_config.TextColumn(
        "Algorithm",
        help="Local SGD: replicas train alone and average their weights from time to time.",
    ),
    "created_at": _submitted(),
    "time": st.column_config.TextColumn(
        "Training", help="Training time over all attempts, without start-up."
    ),
    "images_per_s": st.column_config.NumberColumn("Images/s", help="Median over the epochs."),
    "options": st.column_config.TextColumn(
        "Options changed",
        width="large",
        help="Options that differ from the preset of the run and have no column.",
    ),
    "space": _space(),
    "dataset": st.column_config.TextColumn("Dataset"),
    "workload": st.column_config.TextColumn("Workload"),
    "accelerator": st.column_config.TextColumn("On"),
    "replicas": st.column_config.NumberColumn("Replicas"),
    "workers": st.column_config.NumberColumn("Workers"),
    "precision": st.column_config.TextColumn("Precision"),
    "xla": st.column_config.TextColumn("XLA"),
    "batch_size_global": st.column_config.NumberColumn("Global batch"),
    "run_id": st.column_config.TextColumn("Id"),
    "note": st.column_config.TextColumn("Reason", help="Why the run is in this state."),
}
OPTIONAL_COLUMNS = ("kept_first", "verdict", "tags", "remark")
LAST_BEFORE_LOSSES = "images_per_s"

# Options that have a column, or do not change the training.
UNMENTIONED_OPTIONS = (
    *("name", "workload", "dataset", "accelerator", "replicas", "workers", "precision", "xla"),
    *("batch_size_global", "epochs", "steps_per_loop", "target"),
)
MOST_LEFT_OUT = 5
SEARCH = "q"  # in the address
SEARCH_HELP = (
    "A text of the list. Also conditions on any option: `precision=float32`,"
    " `batch_size_global>=128`."
)
SEARCHED = [
    "run_id",
    "name",
    "status",
    "verdict",
    "dataset",
    "workload",
    "precision",
    "options",
    "note",
    "tags",
    "remark",
]


def columns(declaration: Declarations, workloads: int, rows: pd.DataFrame) -> dict[str, Any]:
    """The columns of the table, with quality, and the losses that the runs' workloads declare."""
    place = list(COLUMNS).index(LAST_BEFORE_LOSSES) + 1
    items = list(COLUMNS.items())
    return {
        **dict(items[:place]),
        **runs_columns.quality_column(rows),
        **runs_columns.loss_columns(declaration, workloads),
        **runs_columns.range_column(rows),
        **dict(items[place:]),
    }


def in_words(table: pd.DataFrame, verdicts: Mapping[str, Verdict]) -> pd.DataFrame:
    """The table with columns in words: kept_first, verdict (short), accelerator (and target),
    options (changed), done (percent of epochs), link (to the run), losses (of its workload).
    """
    targets = [json.loads(spec).get("target", HERE) for spec in table["spec"]]
    return table.assign(
        verdict=[verdicts.get(run_id, widgets.NO_VERDICT).title for run_id in table["run_id"]],
        kept_first=["pinned" if pinned else "" for pinned in table["pinned"]],
        done=100 * table["epochs_done"] / table["epochs"],
        accelerator=[
            accelerator if target == HERE else f"{accelerator} on {target}"
            for accelerator, target in zip(table["accelerator"], targets, strict=True)
        ],
        precision=[option_words.choice(precision) for precision in table["precision"]],
        algorithm=[
            "local SGD" if steps > 1 else "synchronous" for steps in table["sync_every_steps"]
        ],
        options=[
            option_words.run_changes(json.loads(spec), UNMENTIONED_OPTIONS, preset)
            for spec, preset in zip(table["spec"], table["preset"], strict=True)
        ],
        time=[formats.duration(None if pd.isna(value) else value) for value in table["seconds"]],
        link=[
            f"run?run={quote(run_id)}#{quote(name)}"
            for run_id, name in zip(table["run_id"], table["name"], strict=True)
        ],
        **{
            runs_columns.LOSSES: [
                runs_columns.losses_in_words(row) for row in table.to_dict("records")
            ]
        },
    )


def show_unreadable(store: Store) -> None:
    """A line for each folder that cannot be read as a run, at most MOST_LEFT_OUT."""
    reasons = list(queries.set_aside(store).items())
    lines = [
        f"{words.plain(name)} cannot be read and is not listed: {words.plain(why)}."
        for name, why in reasons
    ]
    if len(lines) > MOST_LEFT_OUT:
        lines[MOST_LEFT_OUT:] = [f"{len(reasons) - MOST_LEFT_OUT} more cannot be read."]
    if lines:
        st.caption("  \n".join(lines))


def filtered(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that match the search text, the selected states and tags; hidden ones only if they
    are shown.
    """
    search, pills = st.columns([2, 3], vertical_alignment="bottom")
    typed = search.text_input(
        "Search",
        key=SEARCH,
        bind="query-params",
        placeholder="name, dataset, note …, or seed>=3",
        help=SEARCH_HELP,
    )
    wanted = parsed(typed)
    present = sorted(table["status"].unique())
    states = (
        pills.pills("State", present, selection_mode="multi", label_visibility="collapsed")
        or present
    )
    all_tags = sorted({tag for tags in table["tags"] for tag in tags})
    tags = (
        set(
            st.pills(
                "Tags", all_tags, selection_mode="multi", format_func=words.plain, key="runs.tags"
            )
            or ()
        )
        if all_tags
        else set()
    )
    fits = [
        state in states
        and tags <= set(row_tags)
        and wanted.fits(workload, spec, " ".join(map(str, searched)))
        for state, row_tags, workload, spec, *searched in table[
            ["status", "tags", "workload", "spec", *SEARCHED]
        ].itertuples(index=False)
    ]
    return _without_hidden(table[fits], table)


def _without_hidden(rows: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """The rows without hidden runs, unless they are shown. `rows`: rows of the table that match."""
    hidden = int(table["hidden"].sum())
    if not hidden:
        return rows
    st.session_state[run_selection.SHOW_HIDDEN] = st.toggle(
        f"Show {formats.quantity(hidden, 'hidden run')}, here and in the lists of other pages",
        value=bool(st.session_state.get(run_selection.SHOW_HIDDEN)),
    )
    return rows if st.session_state[run_selection.SHOW_HIDDEN] else rows[~rows["hidden"]]


def table(rows: pd.DataFrame, stored: Collection[str]) -> pd.DataFrame:
    """Shows the rows, sortable by column; returns the ticked rows among them.

    `stored`: the ids of all runs; a deleted run loses its tick, also after it is restored.
    """
    before = [run_id for run_id in st.session_state.get(TICKED, []) if run_id in stored]
    if rows.empty:
        st.info("No run matches. Clear the text or the states above.")
        return rows
    ids = list(rows["run_id"])
    losses = (str(json.loads(spec).get("loss", "")) for spec in rows["spec"])
    declaration = declarations.together_with_losses(zip(rows["workload"], losses, strict=True))
    configuration = columns(declaration, rows["workload"].nunique(), rows)
    configuration["created_at"] = _submitted(st.context.timezone)
    if tables.is_long(rows):
        configuration["space"] = _space("bytes")
    numbers = {
        "images_per_s": formats.count,
        "space": formats.size,
        runs_columns.QUALITY: "{:.3g}".format,
        **{loss.name: formats.loss for loss in declaration.losses if loss.name in configuration},
    }
    with st.container(
        key="runs_table", height=ROW_PIXELS * (len(ids) + 1) + FRAME_PIXELS, border=False
    ):
        picked = tables.show(
            tables.with_words(
                rows[list(configuration)],
                {name: words_of for name, words_of in numbers.items() if name in configuration},
            ),
            column_order=[name for name in configuration if _has_something(rows, name)],
            column_config=configuration,
            height="stretch",
            hide_index=True,
            on_select="rerun",
            selection_mode="multi-row",
            selection_default={
                "selection": {
                    "rows": [index for index, run_id in enumerate(ids) if run_id in before]
                }
            },
            key=table_key(ids),
            placeholder="–",
        )
    ticked = [ids[index] for index in picked.selection.rows]
    hidden = [run_id for run_id in before if run_id not in ids]
    st.session_state[TICKED] = ticked + hidden
    if hidden:
        st.caption(
            f"{formats.quantity(len(hidden), 'ticked run')} not in this search: the buttons below"
            f" skip {'it' if len(hidden) == 1 else 'them'}."
        )
    return rows[rows["run_id"].isin(ticked)]


def _has_something(rows: pd.DataFrame, column: str) -> bool:
    """Whether a column that is empty for most users has a value in any row."""
    if column == "algorithm":
        return bool((rows["sync_every_steps"] > 1).any())
    if column in (runs_columns.QUALITY, runs_columns.RANGE):
        return bool(rows[runs_columns.QUALITY].notna().any())
    return column not in OPTIONAL_COLUMNS or any(map(_is_filled, rows[column]))


def _is_filled(value: object) -> bool:
    return len(value) > 0 if isinstance(value, Sized) else bool(value)


def table_key(run_ids: list[str]) -> str:
    """The key of the table, a new one for other rows, so that a tick never moves to another run."""
    return f"runs.table.{zlib.crc32('/'.join(run_ids).encode())}"


def redraw_when_states_change(store: Store, table: pd.DataFrame) -> None:
    """Redraws the table only when a run starts, ends or appears, so that ticks stay in place."""
    before = dict(zip(table["run_id"], table["status"], strict=True))

    @st.fragment(run_every=2.0)
    def watch() -> None:
        if {row.run_id: row.status for row in queries.runs(store)} != before:
            st.rerun()

    watch()


def buttons(runtime: Runtime, table: pd.DataFrame) -> None:
    """The buttons for the ticked runs."""
    ids = list(table["run_id"])
    if not ids:
        st.caption(
            "Select one run to open, rename, tag or delete it; select several to compare them."
        )
        return
    with st.container(horizontal=True):
        if len(ids) > 1 and st.button(
            f"Compare {len(ids)} runs", type="primary", icon=":material/stacked_line_chart:"
        ):
            st.switch_page(places.COMPARE, query_params={"runs": ",".join(ids)})
        if len(ids) == 1:
            if st.button("Open", type="primary", icon=":material/monitoring:"):
                st.switch_page(places.RUN, query_params={"run": ids[0]})
            if actions.button("Rename", icon=":material/edit:"):
                _rename(runtime, ids[0], str(table["name"].iloc[0]))
            if actions.button("Tags and note", icon=":material/sell:"):
                changes.edit(runtime, ids[0])
        if st.button("Samples", icon=":material/grid_view:"):
            page, query = places.of_runs(ids, "samples")
            st.switch_page(page, query_params=query)
        changes.toggles(runtime, table)
        if actions.button("Delete", icon=":material/delete:"):
            _delete(runtime, ids)


@st.dialog("Rename run")
def _rename(runtime: Runtime, run_id: str, name: str) -> None:
    with st.form("rename", border=False):
        new_name = st.text_input("New name", value=name, max_chars=60)
        if actions.form_button("Rename", type="primary") and actions.succeeded(
            lambda: runtime.commands.rename(run_id, new_name)
        ):
            st.rerun()


@st.dialog("Move to the trash?")
def _delete(runtime: Runtime, ids: list[str]) -> None:
    names = run_selection.unique_names(queries.runs(runtime.store))
    named = words.plain(", ".join(names.get(run_id, run_id) for run_id in ids))
    st.write(
        f"{named}: removed from all lists and charts. The trash below the table holds it for"
        f" {trash.DAYS} days; it can be restored from there."
    )
    if actions.button(
        f"Delete {formats.quantity(len(ids), 'run')}", type="primary", icon=":material/delete:"
    ) and all(actions.succeeded(partial(runtime.commands.delete, run_id)) for run_id in ids):
        st.rerun()
