"""The sections of the Paper page: what the paper says, what the stored runs say, and the chart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pandas as pd
import streamlit as st

from dashboard import listed, palette, plots, words
from dashboard.histograms import charts as histogram_charts
from dashboard.paper import charts as paper_charts
from dashboard.paper import descent_view, loss_words, time_words, verdicts
from dashboard.paper import figure as paper_figure
from gan_runtime.runtime.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.queries import StudyRow
from gan_runtime.store.store import Store
from gan_runtime.studies import references

LOSSES = ("loss_generator", "loss_discriminator")
BASE_VARIANTS = 2  # how many ridgelines stand beside each other: the smallest and the largest batch


@dataclass(frozen=True)
class Batches:
    """A batch-size study as its figures need it. `first`: the runs of the first repeat; `colors`: variant → colour."""

    study: StudyRow
    results: pd.DataFrame
    first: dict[str, str]
    colors: dict[str, str]

    @property
    def run_ids(self) -> list[str]:
        """Of all repeats."""
        return list(self.results["run_id"])

    def named(self, frame: pd.DataFrame) -> pd.DataFrame:
        """With the column `variant` beside `run_id`."""
        return frame.assign(variant=frame["run_id"].map(self.results.set_index("run_id")["variant"]))


@dataclass(frozen=True)
class Picked:
    """The studies that the figures are drawn from, each with a finished run; None where there is none."""

    batches: Batches | None
    schedule: Batches | None
    compiled: StudyRow | None
    devices: StudyRow | None


def pick_studies(store: Store) -> Picked:
    """The newest of each question; of several batch-size studies a person picks one."""
    studies = [row for row in listed.studies(store) if row.finished]
    newest = {row.question: row for row in reversed(studies)}
    of_batches = {row.study_id: row for row in studies if row.question == "batch_size"}
    picked = next(iter(of_batches), None)
    if len(of_batches) > 1:
        picked = st.selectbox(
            "Figures 5 to 8 and 10 from",
            list(of_batches),
            format_func=lambda key: f"{of_batches[key].title} ({key})",
            key="paper.study",
        )
    return Picked(
        _batches(store, of_batches[picked]) if picked else None,
        _batches(store, newest["schedule"]) if "schedule" in newest else None,
        newest.get("xla"),
        newest.get("devices"),
    )


def _batches(store: Store, study: StudyRow) -> Batches:
    results = queries.study_results(store, study.study_id)
    done = results[results["status"] == "finished"]
    ordered = done.sort_values("repeat").drop_duplicates("variant").sort_values("variant_index")
    first = {str(row.variant): str(row.run_id) for row in ordered.itertuples()}
    colors = {
        str(row.variant): palette.run_color(index)
        for row, index in zip(ordered.itertuples(), ordered["variant_index"].astype(int), strict=True)
    }
    return Batches(study, done, first, colors)


def batch_figures(store: Store, found: Batches) -> None:
    """Figures 5 to 8, all from one study."""
    paper_figure.source(store, found.study, found.run_ids)
    _times(store, found)
    generator, discriminator = (
        found.named(queries.loss_quartiles(store, found.run_ids, loss)) for loss in LOSSES
    )
    says = (
        f"Both losses of every batch size over {references.PAPER_EPOCHS} epochs; the generator improves as the discriminator stops "
        "winning."
    )
    with paper_figure.box("7", "Losses of generator and discriminator", says):
        paper_figure.verdict(loss_words.generator_improves(generator, discriminator))
        st.markdown(loss_words.losses(found.results))
        _loss_curves(store, found, LOSSES, "paper.7")
    says = "Histograms of the losses of each epoch, concentrated differently for each batch size."
    with paper_figure.box("8", "Where the losses gather", says):
        paper_figure.verdict(loss_words.concentrated_differently(discriminator, found.results))
        st.markdown(loss_words.concentration(discriminator))
        _ridges(store, found)


def _times(store: Store, found: Batches) -> None:
    """Figures 5 and 6."""
    smallest, largest = references.PAPER_BATCHES[0], references.PAPER_BATCHES[-1]
    says = f"{words.share(references.PAPER_TIME_SAVED)} less training time with batch {largest} than with batch {smallest}."
    accelerators = {one.accelerator for one in queries.conditions(store, found.run_ids)}
    with paper_figure.box("5", "Training time by batch size", says):
        paper_figure.verdict(time_words.time_by_batch(found.results, accelerators))
        paper_figure.points(found.results, "epoch_seconds")
    epochs = found.named(queries.epoch_times(store, found.run_ids))
    says = "Larger batches have shorter epochs, about the same from epoch to epoch."
    with paper_figure.box("6", "Training time of each epoch", says):
        paper_figure.verdict(time_words.time_by_epoch(epochs, found.results))
        plots.steady_chart(lambda frame: paper_charts.epoch_lines(frame, found.colors), epochs, "paper.6")


def rate_figure(store: Store, found: Batches | None) -> None:
    """Figure 9, from a study of the rate's schedule."""
    says = f"Dips and abrupt rises at the start of each cycle for batch {references.PAPER_RESTARTS_BATCH}; Table 1 says Adam with 1e-4."
    with paper_figure.box("9", "Learning rate by iteration", says):
        if found is None:
            paper_figure.verdict(verdicts.NO_SCHEDULE)
            return
        rows = [
            row for row in queries.study_runs(store, found.study.study_id) if row.run_id in set(found.run_ids)
        ]
        curves = found.named(
            queries.curves(store, list(found.first.values()), ("learning_rate_generator",), "epoch")
        )
        paper_figure.source(store, found.study, found.run_ids)
        paper_figure.verdict(loss_words.rate_cycles(curves, {row.batch_size_global for row in rows}))
        st.markdown(loss_words.rates(curves))
        _smooth_lines(found, curves, "Learning rate of the generator", "Learning rate", "paper.9", smoothed=1)


def optimization_figure(found: Batches) -> None:
    """Figure 10."""
    best = " and ".join(str(batch) for batch in references.PAPER_BEST_BATCHES)
    with paper_figure.box("10", "Loss optimization", f"The losses are optimized best with batch {best}."):
        paper_figure.verdict(loss_words.optimized_best(found.results))
        st.markdown(loss_words.lowest(found.results))
        paper_figure.points(found.results, *LOSSES)


def descent_figure(runtime: Runtime) -> None:
    """Figure 11."""
    says = "The generator minimizes and the discriminator maximizes along a path on the loss surface."
    with paper_figure.box("11", "Descent path", says):
        descent_view.descent(runtime)


def xla_figure(store: Store, study: StudyRow | None) -> None:
    """Figure 12."""
    says = f"After enabling XLA, models run around {references.PAPER_XLA_SPEEDUP} times as fast."
    with paper_figure.box("12", "XLA on and off", says):
        if study is None:
            paper_figure.verdict(verdicts.NO_XLA)
            return
        results = queries.study_results(store, study.study_id)
        run_ids = list(results["run_id"])
        paper_figure.source(store, study, run_ids)
        paper_figure.verdict(time_words.xla(results, queries.conditions(store, run_ids)))
        paper_figure.points(results, "steady_step", "compile")


def _smooth_lines(
    found: Batches,
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
        lambda frame: paper_charts.smooth_lines(frame, found.colors, title, axis, smoothed), curves, key
    )


def _loss_curves(store: Store, found: Batches, metrics: tuple[str, ...], key: str) -> None:
    curves = found.named(queries.curves(store, list(found.first.values()), metrics, "epoch"))
    titles = {"loss_generator": "Generator", "loss_discriminator": "Discriminator"}
    for column, metric in zip(st.columns(len(metrics), gap="medium"), metrics, strict=True):
        with column:
            _smooth_lines(
                found, curves[curves["metric"] == metric], titles[metric], "Loss (nats)", f"{key}.{metric}"
            )


def _ridges(store: Store, found: Batches) -> None:
    """The losses of D of the smallest and the largest batch."""
    ends = list(found.first.items())
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
