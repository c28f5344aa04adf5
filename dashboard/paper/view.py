"""The report on the paper: its claims, what stored runs show, and charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd
import streamlit as st

from dashboard import actions, histogram_charts, palette, plots, run_selection
from dashboard.frame import places
from dashboard.paper import charts as paper_charts
from dashboard.paper import descent_view, verdicts
from dashboard.paper import devices as paper_devices
from dashboard.paper import figure as paper_figure
from dashboard.paper import words as paper_words
from dashboard.paper.verdicts import Batches, Candidate
from dashboard.studies import words as study_words
from gan_runtime.base import formats
from gan_runtime.commands.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.queries import StudyRow
from gan_runtime.store.store import Store
from gan_runtime.studies import references
from gan_runtime.studies.statistics import LEVEL

LOSSES = ("loss_generator", "loss_discriminator")
BASE_VARIANTS = 2  # ridgelines side by side: the smallest and the largest batch


@dataclass(frozen=True)
class FigureStudies:
    """The studies of the figures, each with a finished run; None where there is none."""

    batches: Batches | None
    schedule: Batches | None
    compiled: Batches | None
    devices: Batches | None


WHAT = (
    "Ravikumar and Sriraman 2023 trained a DCGAN on MNIST, data-parallel on the"
    f" {references.PAPER_REPLICAS} cores of a {references.PAPER_MACHINE}. They used bfloat16, XLA,"
    f" {references.PAPER_EPOCHS} epochs, and batches of {references.PAPER_BATCHES[0]} to"
    f" {references.PAPER_BATCHES[-1]}. Each sentence of the paper about a figure is quoted and"
    " compared with stored runs. Only runs with the paper's data and at least as many epochs and"
    " repeats get a verdict. Intervals in brackets are of ratios; those of a study hold together at"
    f" {formats.percent(LEVEL)}. {study_words.UNCORRECTED} {study_words.CUT_OFF}"
)
NO_STUDY = (
    "No batch-size study is stored yet. Reproduce the paper from Launch, or load the example runs."
)


def show(runtime: Runtime) -> None:
    """The figures of the paper, each with its claims and drawn from stored runs."""
    store = runtime.store
    st.caption(WHAT)
    studies = pick_studies(store)
    if studies.batches is None:
        st.info(NO_STUDY)
        st.page_link(
            places.LAUNCH,
            label="Reproduce the paper",
            icon=":material/play_arrow:",
            query_params={"tab": "paper"},
        )
        actions.offer_examples(runtime, "paper")
    else:
        batch_figures(store, studies.batches)
    rate_figure(store, studies.schedule)
    if studies.batches is not None:
        optimization_figure(studies.batches)
    descent_figure(runtime, studies.batches)
    xla_figure(store, studies.compiled)
    paper_devices.show(store, studies.devices)


def pick_studies(store: Store) -> FigureStudies:
    """The most comparable study of each question; the user can pick another batch-size study."""
    studies = run_selection.studies(store)
    ranked = {
        question: verdicts.candidates(store, studies, question) for question in verdicts.MINIMUMS
    }
    batches, schedule, compiled, devices = (
        _batches(store, _pick_study(ranked[question]), ranked[question])
        if ranked[question]
        else None
        for question in ("batch_size", "schedule", "xla", "devices")
    )
    return FigureStudies(batches, schedule, compiled, devices)


def _pick_study(ranked: Sequence[Candidate]) -> StudyRow:
    """The first, unless the user picks another batch-size study."""
    by_id = {candidate.study.study_id: candidate.study for candidate in ranked}
    if ranked[0].study.question != "batch_size" or len(by_id) == 1:
        return ranked[0].study
    study_id = st.selectbox(
        "Figures 5 to 8, 10 and 11 from",
        list(by_id),
        format_func=lambda key: f"{by_id[key].title} ({key})",
        key="paper.study",
    )
    return by_id[study_id]


def _batches(store: Store, study: StudyRow, ranked: Sequence[Candidate]) -> Batches:
    results = queries.study_results(store, study.study_id)
    done = results[results["status"] == "finished"]
    ordered = done.sort_values("repeat").drop_duplicates("variant").sort_values("variant_index")
    first = {str(row.variant): str(row.run_id) for row in ordered.itertuples()}
    colors = {
        str(row.variant): palette.run_color(index)
        for row, index in zip(
            ordered.itertuples(), ordered["variant_index"].astype(int), strict=True
        )
    }
    return Batches(study, done, first, colors, ranked)


def batch_figures(store: Store, batches: Batches) -> None:
    """Figures 5 to 8, all from one study."""
    paper_figure.source(store, batches.ranked, batches.study, batches.run_ids)
    _times(store, batches)
    with paper_figure.box("7", "Losses of generator and discriminator"):
        paper_figure.without_claim(references.LOSSES_SHOWN)
        st.markdown(paper_words.losses(batches.results))
        _loss_curves(store, batches, LOSSES, "paper.7")
    with paper_figure.box("8", "Where the losses gather"):
        paper_figure.without_claim(references.HISTOGRAMS_SHOWN)
        st.markdown(
            paper_words.concentration(
                batches.with_variants(queries.loss_quartiles(store, batches.run_ids, LOSSES[1]))
            )
        )
        _ridges(store, batches)


def _times(store: Store, batches: Batches) -> None:
    """Figures 5 and 6."""
    accelerators = {
        conditions.accelerator for conditions in queries.conditions(store, batches.run_ids)
    }
    with paper_figure.box("5", "Training time by batch size"):
        paper_figure.claim(
            references.TIME_FELL,
            batches.judge(paper_words.time_by_batch(batches.results, accelerators)),
        )
        paper_figure.claim(
            references.TIME_ROSE, batches.judge(paper_words.time_grows(batches.results))
        )
        st.markdown("The two sentences contradict each other, so no run can agree with both.")
        paper_figure.points(batches.results, "epoch_seconds")
    epochs = batches.with_variants(queries.epoch_times(store, batches.run_ids))
    with paper_figure.box("6", "Training time of each epoch"):
        paper_figure.claim(
            references.TIME_ROSE, batches.judge(paper_words.time_by_epoch(epochs, batches.results))
        )
        plots.steady_chart(
            lambda frame: paper_charts.epoch_lines(frame, batches.colors), epochs, "paper.6"
        )


def rate_figure(store: Store, batches: Batches | None) -> None:
    """Figure 9, from a study of the learning-rate schedule."""
    with paper_figure.box("9", "Learning rate by iteration"):
        if batches is None:
            paper_figure.claim(references.RATE_DIPS, verdicts.NO_SCHEDULE)
            return
        paper_figure.source(store, batches.ranked, batches.study, batches.run_ids)
        rows = [
            row
            for row in queries.study_runs(store, batches.study.study_id)
            if row.run_id in set(batches.run_ids)
        ]
        curves = batches.with_variants(
            queries.curves(
                store, list(batches.first.values()), ("learning_rate_generator",), "epoch"
            )
        )
        cycles = paper_words.rate_cycles(curves, {row.batch_size_global for row in rows})
        paper_figure.quote(references.RATE_OF_TABLE)
        paper_figure.claim(references.RATE_DIPS, batches.judge(cycles))
        st.markdown(paper_words.rates(curves))
        _smooth_lines(
            batches,
            curves,
            "Learning rate of the generator",
            "Learning rate",
            "paper.9",
            smoothed=1,
        )


def optimization_figure(batches: Batches) -> None:
    """Figure 10."""
    with paper_figure.box("10", "Loss optimization"):
        paper_figure.claim(
            references.OPTIMIZED, batches.judge(paper_words.optimized_best(batches.results))
        )
        st.caption(
            "“The loss” is read as the generator's: under Fig. 11 the text says that the"
            " discriminator's grows with the batch."
        )
        st.markdown(paper_words.lowest(batches.results))
        paper_figure.points(batches.results, *LOSSES)


def descent_figure(runtime: Runtime, batches: Batches | None) -> None:
    """Figure 11: the text's claims about batches, and the path of one run."""
    with paper_figure.box("11", "Descent path"):
        if batches is not None:
            paper_figure.claim(
                references.LEAST_AT_512, batches.judge(paper_words.least_at_512(batches.results))
            )
            paper_figure.claim(
                references.RISES_IN_D, batches.judge(paper_words.rises_in_d(batches.results))
            )
        descent_view.descent(runtime)


def xla_figure(store: Store, batches: Batches | None) -> None:
    """Figure 12."""
    with paper_figure.box("12", "XLA on and off"):
        if batches is None:
            paper_figure.claim(references.XLA, verdicts.NO_XLA)
            return
        paper_figure.source(store, batches.ranked, batches.study, batches.run_ids)
        compared = paper_words.xla(batches.results, queries.conditions(store, batches.run_ids))
        paper_figure.claim(references.XLA, batches.judge(compared))
        paper_figure.points(batches.results, "steady_step", "compile")


def _smooth_lines(
    batches: Batches,
    curves: pd.DataFrame,
    title: str,
    axis: str,
    key: str,
    smoothed: int = paper_charts.SMOOTHED,
) -> None:
    if curves.empty:
        st.caption(f"{title}: not recorded in these runs.")
        return
    plots.steady_chart(
        lambda frame: paper_charts.smooth_lines(frame, batches.colors, title, axis, smoothed),
        curves,
        key,
    )


def _loss_curves(store: Store, batches: Batches, metrics: tuple[str, ...], key: str) -> None:
    curves = batches.with_variants(
        queries.curves(store, list(batches.first.values()), metrics, "epoch")
    )
    titles = {"loss_generator": "Generator", "loss_discriminator": "Discriminator"}
    for column, metric in zip(st.columns(len(metrics), gap="medium"), metrics, strict=True):
        with column:
            _smooth_lines(
                batches,
                curves[curves["metric"] == metric],
                titles[metric],
                "Loss (nats)",
                f"{key}.{metric}",
            )


def _ridges(store: Store, batches: Batches) -> None:
    """D's losses with the smallest and the largest batch."""
    ends = list(batches.first.items())
    for column, (variant, run_id) in zip(
        st.columns(BASE_VARIANTS, gap="medium"), (ends[0], ends[-1]), strict=True
    ):
        draw = partial(
            histogram_charts.ridgelines,
            title=f"Discriminator, {variant}",
            axis="Loss (nats)",
            color=palette.DISCRIMINATOR,
            height=300,
        )
        with column:
            plots.steady_chart(
                draw, queries.loss_ridges(store, run_id, "loss_discriminator"), f"paper.8.{variant}"
            )
