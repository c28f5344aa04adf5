"""The data sets that there are, a card each: picture, what a row is, how many, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from dashboard import actions, data_summary, words
from dashboard.frame import places
from dashboard.launch import fields as launch_fields
from gan_runtime import catalog
from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import Fields
from gan_runtime.commands.runtime import Runtime
from gan_runtime.data import loading, prepared, previews
from gan_runtime.data.contract import Availability
from gan_runtime.data.loading import KnownSet
from gan_runtime.data.preparations import PREPARATIONS
from gan_runtime.hardware import host_presets
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec, nesting
from gan_runtime.spec.presets import PRESETS

COLUMNS = 3
PICTURE_WIDTH = 240
LOOK_AGAIN_SECONDS = 10  # MNIST's files may be put into their place while the page is open


def show(runtime: Runtime) -> None:
    """All sets; those that one has prepared oneself come first."""
    known = sorted(loading.known(runtime.home).values(), key=lambda known_set: not known_set.is_prepared)
    for begin in range(0, len(known), COLUMNS):
        beside = known[begin : begin + COLUMNS]
        for column, known_set in zip(st.columns(COLUMNS, gap="small"), beside, strict=False):
            with column.container(border=True, height="stretch"):
                _card(runtime, known_set)


def _card(runtime: Runtime, known_set: KnownSet) -> None:
    st.markdown(f"**{words.plain(known_set.title)}**")
    if known_set.problem:
        st.error(words.plain(known_set.problem), icon=":material/error:")
        _remove(runtime, known_set.name)
        return
    _picture(runtime.home, known_set)
    at_hand = _availability(runtime.home.path, known_set.name, known_set.is_prepared)
    rows = at_hand.images if isinstance(at_hand, Availability) else known_set.rows
    st.markdown(
        f"{words.things(rows, data_summary.noun(known_set.fields))} · {data_summary.row(known_set.fields)}"
    )
    st.caption(words.plain(known_set.summary if isinstance(at_hand, Availability) else at_hand))
    if known_set.preparation is not None:
        data_summary.folded(known_set.rows, known_set.preparation, f"data.summary.{known_set.name}")
    with st.container(horizontal=True, gap="small"):
        if isinstance(at_hand, Availability):
            _train(known_set)
        if known_set.is_prepared:
            _remove(runtime, known_set.name)
        elif isinstance(at_hand, Availability) and not at_hand.ready and known_set.name in PREPARATIONS:
            _fetch(runtime, known_set.name)


def _picture(home: Home, known_set: KnownSet) -> None:
    """The first rows, where they can be had in a moment."""
    image: bytes | Path | None = embedded_rows(known_set.name)
    if known_set.is_prepared:
        image = actions.attempt(lambda: _first_rows(home.path, known_set.name, known_set.summary))
    if image is not None:
        st.image(image, width=PICTURE_WIDTH, alt=f"The first rows of {words.plain(known_set.name)}.")


def _train(known_set: KnownSet) -> None:
    """Goes to Launch, where the data set stands with options that read it."""
    if st.button("Train on it", key=f"data.train.{known_set.name}", icon=":material/rocket_launch:"):
        preset, spec = starting_point(known_set.name, known_set.fields)
        launch_fields.fill_again(spec.flat(), preset)
        st.switch_page(places.LAUNCH)


def starting_point(dataset: str, offered: Fields) -> tuple[str, RunSpec]:
    """The first preset that reads such fields as it stands, and the options. Without one, the first workload that reads them: its own options
    at their defaults, fitted to the data, beside a preset of it that is for other data; else the first preset, as far as it has its options."""
    for name in PRESETS:
        spec = RunSpec.parse(nesting.overlaid(host_presets.values(name), {"dataset": dataset}))
        if loading.reads(spec.entry, spec.of_workload, offered):
            return name, spec
    changes: dict[str, Any] = {"dataset": dataset}
    for workload in loading.workloads_for(offered)[:1]:
        changes |= {"workload": workload, **catalog.WORKLOADS[workload].fitted(offered)}
    of_it = [name for name, preset in PRESETS.items() if preset.values["workload"] == changes.get("workload")]
    name = next(iter(of_it or PRESETS))
    lost = nesting.own_options(changes["workload"]) if of_it else {}
    kept = {option: value for option, value in host_presets.values(name).items() if option not in lost}
    return name, RunSpec.parse(nesting.overlaid(kept, changes))


def _fetch(runtime: Runtime, name: str) -> None:
    is_made = PREPARATIONS[name].makes_files
    way = "It is made here." if is_made else "Keras downloads it into its cache."
    actions.button(
        "Make" if is_made else "Download",
        key=f"data.download.{name}",
        icon=":material/build:" if is_made else ":material/download:",
        help=f"{way} A run that needs it does so by itself.",
        on_click=_after_a_click(lambda: runtime.commands.prepare_data(name)),
    )


def _remove(runtime: Runtime, name: str) -> None:
    if actions.button("Remove", key=f"data.remove.{name}", icon=":material/delete:", type="tertiary"):
        _confirm(runtime, name)


@st.dialog("Remove this data set?")
def _confirm(runtime: Runtime, name: str) -> None:
    st.markdown(
        f"The files of **{words.plain(name)}** are deleted. Runs that were trained on it stay, but cannot go on without it."
    )
    if actions.button("Remove for good", type="primary", icon=":material/delete:") and actions.succeeded(
        lambda: runtime.commands.remove_data(name)
    ):
        st.rerun()


def _after_a_click(action: Callable[[], object]) -> Callable[[], None]:
    """A button's action whose refusal is shown on the page that is drawn next."""
    return lambda: (actions.attempt(action), None)[1]


@st.cache_data(show_spinner=False, max_entries=50)
def _first_rows(home: Path, name: str, content: str) -> bytes | None:  # noqa: ARG001  (of another content it is another picture)
    known = prepared.opened(Home(home), name, resident_bytes=0)
    return previews.of_rows(known.read(np.arange(min(previews.SHOWN, known.rows))))


@st.cache_data(show_spinner=False, ttl=LOOK_AGAIN_SECONDS)
def _availability(home: Path, name: str, is_prepared: bool) -> Availability | str:  # noqa: ARG001  (made meanwhile, it is another set)
    """As `loading.availability`, or why it cannot be used: MNIST's files are looked through for that."""
    try:
        return loading.availability(name, Home(home))
    except DatasetError as error:
        return str(error)


def embedded_rows(name: str) -> Path | None:
    """The picture of a set that is inside scikit-learn, which the dashboard does not load; None for other sets."""
    path = Path(__file__).parent / f"{name}.png"
    return path if path.is_file() else None
