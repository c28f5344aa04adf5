"""The tab Reproduce the paper of Launch: the choices, the runs to queue, and their differences from
the paper.
"""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from dashboard import actions, queue_view, widgets, words
from dashboard.frame import places
from dashboard.studies import estimates
from gan_runtime import catalog
from gan_runtime.base import formats
from gan_runtime.base.errors import DatasetError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.data import loading
from gan_runtime.data.contract import Availability
from gan_runtime.hardware.hosts import Host
from gan_runtime.studies import paper, references
from gan_runtime.studies.paper import ReproductionPlan

DATASETS = (references.PAPER_DATASET, "digits")


def show(runtime: Runtime) -> None:
    """The tab. Nothing is queued before a press, and no data set is used without a choice."""
    host = queue_view.known_host(runtime)
    if host is None:
        return
    left, right = st.columns(2, gap="large")
    with left:
        images = _images()
    with right:
        size = st.radio(
            "Size",
            list(paper.SIZES),
            list(paper.SIZES).index(paper.usual_size(host)),
            format_func=lambda key: paper.SIZES[key].title,
            captions=[_size_text(size) for size in paper.SIZES.values()],
            key="paper.size",
        )
    if images is None:
        st.info("Pick the images above to see what is queued.")
        return
    _plan_summary(runtime, host, paper.plan(host, images[0], images[1].images, size))


def _size_text(size: paper.ReproductionSize) -> str:
    devices = (
        "one device"
        if size.replicas == 1
        else f"up to {size.replicas} devices, simulated ones on a CPU"
    )
    unjudged = (
        ""
        if size.epochs >= references.PAPER_EPOCHS
        else "; too short to be judged against the paper"
    )
    return (
        f"{size.epochs} epochs ({size.compared_epochs} where only speed is compared),"
        f" {size.repeats} runs of each variant, {devices}{unjudged}"
    )


def _images() -> tuple[str, Availability] | None:
    """The selected data set and what is available of it.

    MNIST is selected at first only if all of it is here.
    """
    answers = {name: _availability(name) for name in DATASETS}
    available = {
        name: answer for name, answer in answers.items() if isinstance(answer, Availability)
    }
    whole = references.PAPER_DATASET in available and _is_whole(available[references.PAPER_DATASET])
    name_picked = st.radio(
        "Images",
        list(available),
        0 if whole else None,
        format_func=lambda name: catalog.DATASETS[name].title,
        captions=[_image_text(name, answer) for name, answer in available.items()],
        key="paper.images",
    )
    for name, answer in answers.items():
        if isinstance(answer, str):
            st.caption(f"{catalog.DATASETS[name].title} cannot be used: {words.plain(answer)}")
    return (name_picked, available[name_picked]) if name_picked else None


def _availability(name: str) -> Availability | str:
    """What is available, or why nothing is."""
    try:
        return loading.availability(name)
    except DatasetError as error:
        return str(error)


def _is_whole(available: Availability) -> bool:
    return available.ready and available.images == references.PAPER_IMAGES


def _image_text(name: str, available: Availability) -> str:
    if not available.ready:
        return "Not on this host. Queueing downloads all of it first, which needs a network."
    of = catalog.DATASETS[name].rows
    where = words.plain(available.note or available.origin)
    text = f"{formats.count(available.images)} images, {where}"
    return (
        text
        if available.images == of
        else (
            f"Only {formats.count(available.images)} of its {formats.count(of)} images."
            f" {words.plain(available.note)}"
        )
    )


def _plan_summary(runtime: Runtime, host: Host, plan: ReproductionPlan) -> None:
    parts = ", ".join(
        f"{study.title.removeprefix('Paper - ')} {len(study.runs)}" for study in plan.studies
    )
    seconds = estimates.seconds(runtime, host, plan.studies)
    time = (
        f"about {formats.duration(seconds)} of training, by runs like these"
        if seconds
        else "duration unknown"
    )
    st.markdown(
        f"Queues {len(plan.studies)} studies with {plan.runs} runs ({parts}): {time}.",
        help=f"{estimates.TIME_HELP} Training only, without start-up, compiling and scores.",
    )
    if plan.deviations:
        st.markdown("**Differences from the paper**")
        st.table(deviation_table(plan), hide_index=True)
    for note in plan.notes:
        st.caption(note)
    widgets.cautions("paper", (planned.spec for study in plan.studies for planned in study.runs))
    if actions.button(f"Queue {plan.runs} runs", type="primary", key="paper.start"):
        started = [
            actions.attempt(partial(runtime.commands.submit_study, study)) for study in plan.studies
        ]
        if all(started):
            st.switch_page(places.STUDIES)


def deviation_table(plan: ReproductionPlan) -> pd.DataFrame:
    """A row for each difference between the runs and the paper."""
    every = len(plan.studies)
    rows = [
        (
            deviation.what,
            deviation.here,
            deviation.paper,
            "all"
            if len(deviation.studies) == every
            else ", ".join(deviation.studies).replace("Paper - ", ""),
        )
        for deviation in plan.deviations
    ]
    return pd.DataFrame(rows, columns=["What", "Here", "In the paper", "Studies"])
