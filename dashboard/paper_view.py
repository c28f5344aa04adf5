"""The sections of the Paper page: what the paper says, what the stored runs say, and the chart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pandas as pd
import streamlit as st

from dashboard import (
    actions,
    histogram_charts,
    host_view,
    palette,
    paper_charts,
    paper_words,
    places,
    study_points,
    surface_view,
    widgets,
    words,
)
from gan_runtime.data import loading
from gan_runtime.errors import DatasetError
from gan_runtime.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.queries import StudyRow
from gan_runtime.store.store import Store
from gan_runtime.studies import paper, references

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


def reproduce(runtime: Runtime) -> None:
    """The one button; before it acts, what it will start is told."""
    with st.popover("Reproduce the paper", icon=":material/play_arrow:", width="stretch"):
        host = host_view.known(runtime)
        if host is None:
            return
        plan = paper.plan(host, _dataset())
        st.write(f"Queues {len(plan.studies)} studies with {plan.runs} runs: {', '.join(study.title for study in plan.studies)}.")
        if plan.reduced:
            st.caption(plan.reduced)
        if st.button("Queue all of them", type="primary", key="paper.start"):
            started = [actions.attempt(partial(runtime.submit_study, study)) for study in plan.studies]
            if all(started):
                st.switch_page(places.STUDIES)


def _dataset() -> str:
    """MNIST when it is at hand, else the digits that come with the project."""
    try:
        return "mnist" if loading.availability("mnist").note == "" else "digits"
    except DatasetError:
        return "digits"


def pick_studies(store: Store) -> tuple[Batches | None, StudyRow | None]:
    """The batch-size study that the figures are drawn from, of those with a finished run, and the newest XLA study."""
    studies = [row for row in queries.studies(store) if row.finished]
    of_batches = {row.study_id: row for row in studies if row.question == "batch_size"}
    compiled = next((row for row in studies if row.question == "xla"), None)
    if not of_batches:
        return None, compiled
    picked = next(iter(of_batches))
    if len(of_batches) > 1:
        picked = st.selectbox(
            "Figures 5 to 10 from",
            list(of_batches),
            format_func=lambda key: f"{of_batches[key].title} ({key})",
            key="paper.study",
        )
    return _batches(store, of_batches[picked]), compiled


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
    """Figures 5 to 10."""
    runs = queries.study_runs(store, found.study.study_id)
    st.caption(
        f"From {words.plain(found.study.title)} ({words.plain(found.study.study_id)}): {runs[0].dataset}, {runs[0].accelerator.upper()}, {runs[0].epochs} epochs."
    )
    with _figure("5", "Training time by batch size", "79 % less training time with batch 512 than with batch 64."):
        st.markdown(paper_words.time_by_batch(found.results, runs[0].accelerator))
        _variant_points(found.results, "epoch_seconds")
    epochs = found.named(queries.epoch_times(store, found.run_ids))
    with _figure("6", "Training time of each epoch", "Larger batches have shorter epochs, about the same from epoch to epoch."):
        st.markdown(paper_words.time_by_epoch(epochs))
        widgets.steady_chart(lambda frame: paper_charts.epoch_lines(frame, found.colors), epochs, "paper.6")
    with _figure(
        "7",
        "Losses of generator and discriminator",
        "Both losses of every batch size over 30 epochs; the generator improves as D stops winning.",
    ):
        st.markdown(paper_words.losses(found.results))
        _loss_curves(store, found, ("loss_generator", "loss_discriminator"), "paper.7")
    with _figure(
        "8", "Where the losses gather", "Histograms of the losses of each epoch, concentrated differently for each batch size."
    ):
        quartiles = found.named(queries.loss_quartiles(store, list(found.first.values()), "loss_discriminator"))
        st.markdown(paper_words.concentration(quartiles))
        _ridges(store, found)
    _rate_and_optimisation(store, found)


def _rate_and_optimisation(store: Store, found: Batches) -> None:
    curves = found.named(queries.curves(store, list(found.first.values()), ("learning_rate_generator",), "epoch"))
    with _figure(
        "9",
        "Learning rate by iteration",
        "Dips and abrupt rises at the start of each cycle for batch 512; Table 1 says Adam with 1e-4.",
    ):
        st.markdown(paper_words.rates(curves))
        _smooth_lines(found, curves, "Learning rate of the generator", "Learning rate", "paper.9")
    with _figure("10", "Loss optimisation", "The losses are optimised best with batch 256 and 512."):
        st.markdown(paper_words.lowest(found.results))
        _variant_points(found.results, "loss_generator", "loss_discriminator")


def descent_figure(runtime: Runtime) -> None:
    """Figure 11."""
    with _figure(
        "11", "Descent path", "The generator minimizes and the discriminator maximizes along a path on the loss surface."
    ):
        surface_view.descent(runtime)


def xla_figure(store: Store, study: StudyRow | None) -> None:
    """Figure 12."""
    with _figure("12", "XLA on and off", "After enabling XLA, models run around 1.15 times as fast."):
        if study is None:
            st.caption("No XLA study is stored here yet; the button above queues one, or ask that question on the Studies page.")
            return
        results = queries.study_results(store, study.study_id)
        st.markdown(paper_words.xla(results))
        _variant_points(results, "steady_step", "compile")


def devices(store: Store) -> None:
    """Figure 13, and how our runs scale beside those of others."""
    rates = queries.rates_by_device(store, "dcgan_mnist")
    _accelerator_figure(rates)
    _scaling(rates)


def _accelerator_figure(rates: pd.DataFrame) -> None:
    says = ", ".join(f"{share * 100:.1f} % faster than a {name}" for name, share in references.PAPER_FASTER_THAN.items())
    with _figure("13", "CPU, GPU, TPU", f"Eight TPU cores, batch 32: {says}."):
        if rates.empty:
            st.caption("No finished run of the paper's network is stored here yet.")
            return
        st.markdown(paper_words.accelerators(sorted(rates["accelerator"].unique())))
        shown = rates.rename(
            columns={
                "accelerator": "Accelerator",
                "devices": "Devices",
                "precision": "Precision",
                "batch_size_global": "Batch",
                "runs": "Runs",
                "images_per_s": "Images/s",
            }
        )
        st.dataframe(
            shown, hide_index=True, key="paper.13", column_config={"Images/s": st.column_config.NumberColumn(format="%.0f")}
        )


def _scaling(rates: pd.DataFrame) -> None:
    """Beside the tables that CERN and KIT have published."""
    st.subheader("Scaling, beside what others have published")
    st.caption(
        f"Dashed: {references.CERN}. Those are GPUs and TPU cores; simulated CPU cores share the same processor and cannot get faster."
    )
    widgets.steady_chart(paper_charts.speed_up, _speed_ups(rates), "paper.scaling")
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**CERN, 3DGAN: seconds per epoch**")
        table = [(one.system, one.devices, one.batch_per_device, one.seconds) for one in references.CERN_EPOCHS]
        st.dataframe(
            pd.DataFrame(table, columns=["System", "Devices", "Batch per device", "Seconds per epoch"]),
            hide_index=True,
            key="paper.cern",
        )
    with right:
        st.markdown("**KIT, Pix2Pix on flow: training time in seconds by batch size**")
        kit = (
            pd.DataFrame(references.KIT_SECONDS)
            .map(lambda seconds: "–" if pd.isna(seconds) else f"{seconds:.0f}")
            .rename_axis("Batch")
            .reset_index()
        )
        st.dataframe(kit, hide_index=True, key="paper.kit")
        st.caption(f"{references.KIT}. A dash: not published.")


def _speed_ups(rates: pd.DataFrame) -> pd.DataFrame:
    """Our fastest steady rates by number of devices, and CERN's, each against its own fewest devices."""
    ours = rates.groupby(["accelerator", "devices"], as_index=False)["images_per_s"].max()
    rows = [(f"Here, {row.accelerator.upper()}", int(row.devices), float(row.images_per_s), True) for row in ours.itertuples()]
    rows += [(f"CERN, {one.system}", one.devices, 1.0 / one.seconds, False) for one in references.CERN_EPOCHS]
    frame = pd.DataFrame(rows, columns=["system", "devices", "rate", "ours"]).sort_values(["system", "devices"])
    return frame.assign(speed_up=frame["rate"] / frame.groupby("system")["rate"].transform("first"))


def _figure(number: str, title: str, says: str) -> st.delta_generator.DeltaGenerator:
    """A section with the paper's sentence on top."""
    box = st.container(border=True)
    box.subheader(f"Fig. {number} · {title}")
    box.caption(f"The paper: {says}")
    return box


def _variant_points(results: pd.DataFrame, *measures: str) -> None:
    for column, measure in zip(st.columns(len(measures), gap="medium"), measures, strict=True):
        with column:
            study_points.show(results, measure, "paper")


def _smooth_lines(found: Batches, curves: pd.DataFrame, title: str, axis: str, key: str) -> None:
    if curves.empty:
        st.caption(f"{title}: not recorded in these runs.")
        return
    widgets.steady_chart(lambda frame: paper_charts.smooth_lines(frame, found.colors, title, axis), curves, key)


def _loss_curves(store: Store, found: Batches, metrics: tuple[str, ...], key: str) -> None:
    curves = found.named(queries.curves(store, list(found.first.values()), metrics, "epoch"))
    titles = {"loss_generator": "Generator", "loss_discriminator": "Discriminator"}
    for column, metric in zip(st.columns(len(metrics), gap="medium"), metrics, strict=True):
        with column:
            _smooth_lines(found, curves[curves["metric"] == metric], titles[metric], "Loss (nats)", f"{key}.{metric}")


def _ridges(store: Store, found: Batches) -> None:
    """The losses of D of the smallest and the largest batch."""
    ends = list(found.first.items())
    for column, (variant, run_id) in zip(st.columns(BASE_VARIANTS, gap="medium"), (ends[0], ends[-1]), strict=True):
        draw = partial(
            histogram_charts.ridgelines,
            title=f"Discriminator, {variant}",
            axis="Loss (nats)",
            color=palette.DISCRIMINATOR,
            height=300,
        )
        with column:
            widgets.steady_chart(draw, queries.loss_ridges(store, run_id, "loss_discriminator"), f"paper.8.{variant}")
