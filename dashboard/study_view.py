"""The report of a study: how far it is, what its variants took and learnt, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import actions, palette, places, players, study_charts, widgets, words
from gan_runtime.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow, StudyRow
from gan_runtime.store.store import Store
from gan_runtime.studies.questions import QUESTIONS
from gan_runtime.studies.statistics import Difference, Interval, difference, median_interval


@dataclass(frozen=True)
class Measure:
    """A column of `queries.study_results`. `scale`: times it as shown; `less`: how a smaller number reads, empty when neither is better."""

    title: str
    unit: str
    form: str = ".3g"
    scale: float = 1.0
    help: str = ""


MEASURES = {
    "epoch_seconds": Measure("Time per epoch", "s", help="Median of a run's epochs after the first, which holds the compiling."),
    "steady_step": Measure("Steady step", "ms", scale=1000.0, help="Median time of a training step, compiling left out."),
    "images_per_s": Measure("Images/s", "images/s", ",.0f", help="Steady rate, all replicas together."),
    "compile": Measure("Compile", "s", help="What the first step took beyond a steady one."),
    "memory_bytes": Measure("Memory, peak", "GB", ".2f", 1e-9, "Highest resident memory of the trainer's process."),
    "loss_generator": Measure(
        "Loss G", "nats", ".3f", help="Mean over the last epoch. A loss of a GAN is no measure of its images."
    ),
    "loss_discriminator": Measure(
        "Loss D", "nats", ".3f", help="Mean over the last epoch. A loss of a GAN is no measure of its images."
    ),
    "spread_ratio": Measure(
        "Spread of images",
        "of the real ones",
        ".2f",
        help="How much the generated images differ, over how much the real ones do. Near 0: they are all alike.",
    ),
}
COMPARED = ("epoch_seconds", "steady_step", "images_per_s", "memory_bytes", "spread_ratio")


def picker(store: Store) -> StudyRow | None:
    """One study, from `?study=…` or the newest; the choice goes into the address. None: there is none."""
    rows = {row.study_id: row for row in queries.studies(store)}
    if not rows:
        return None
    asked = st.query_params.get("study", "")
    if asked and asked not in rows:
        st.warning(f"Study {asked!r} is not stored here; showing the newest instead.")
    chosen = asked if asked in rows else next(iter(rows))
    picked = st.selectbox(
        "Study",
        list(rows),
        index=list(rows).index(chosen),
        format_func=lambda study_id: f"{rows[study_id].title} ({study_id})",
        label_visibility="collapsed",
    )
    if picked != asked:
        st.query_params["study"] = picked
    return rows[picked]


def progress(runtime: Runtime, study: StudyRow, runs: list[RunRow]) -> None:
    """State, bar, time left, and the buttons that fit the state."""
    now = queries.study_progress(runtime.store, study.study_id)
    question = QUESTIONS.get(study.question)
    widgets.state(study.status, question.asks if question else study.title)
    left = f" · about {words.duration(now.seconds_left)} left" if study.is_live and now.seconds_left is not None else ""
    st.progress(min(1.0, now.share), text=f"{study.finished} of {study.runs} runs are finished{left}")
    run_ids = [row.run_id for row in runs]
    with st.container(horizontal=True, vertical_alignment="center"):
        training = next((row for row in runs if row.is_live and row.status != "queued"), None)
        if training is not None:
            st.page_link(
                places.LIVE, label=f"Watch {training.name}", icon=":material/monitoring:", query_params={"run": training.run_id}
            )
        if study.is_live and st.button("Stop study", icon=":material/stop_circle:", key="study.stop"):
            _do(partial(runtime.stop_all, run_ids))
        if (
            not study.is_live
            and study.finished < study.runs
            and st.button("Go on", icon=":material/play_arrow:", key="study.resume")
        ):
            _do(partial(runtime.resume_all, run_ids))
        st.page_link(
            places.COMPARE,
            label=f"Compare {len(runs)} runs",
            icon=":material/stacked_line_chart:",
            query_params={"runs": ",".join(run_ids)},
        )


def _do(action: Callable[[], None]) -> None:
    if actions.succeeded(action):
        st.rerun()


def report(store: Store, study: StudyRow, runs: list[RunRow]) -> None:
    """Sentences, two charts, one table; a sentence instead while there is nothing to say."""
    results = queries.study_results(store, study.study_id)
    if results["seconds"].isna().all():
        st.info("The report appears here as soon as the first run has finished its second epoch.")
        return
    for sentence in sentences(results):
        st.markdown(f"- {sentence}")
    for column, measure in zip(st.columns(2, gap="medium"), ("epoch_seconds", "spread_ratio"), strict=True):
        frame = points(results, measure)
        with column:
            if frame.empty:
                st.caption(f"{MEASURES[measure].title}: not measured yet.")
                continue
            unit = MEASURES[measure].unit
            st.altair_chart(study_charts.variant_points(frame, unit, MEASURES[measure].title), key=f"study.{measure}")
    st.subheader("Medians and how sure they are")
    st.dataframe(table(results), hide_index=True, key="study.table", column_config=_help())
    st.caption(
        "Median over the repeats; in brackets the 95 % bootstrap interval of the median, or with fewer than three repeats the range. "
        "“Against” compares repeat by repeat with the first variant."
    )
    st.subheader("Images of the first repeat")
    players.sample_player(store, [row for row in runs if row.repeat == 1], key="study.samples")


def points(results: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The rows of `study_charts.variant_points` for one measure; runs that have not measured it are left out."""
    shown = results.dropna(subset=[measure]).assign(value=lambda frame: frame[measure] * MEASURES[measure].scale)
    medians = {variant: median_interval(list(rows["value"])) for variant, rows in shown.groupby("variant")}
    return shown.assign(
        color=shown["variant_index"].map(palette.run_color),
        **{
            part: shown["variant"].map(lambda name, part=part: getattr(medians[name], part)) for part in ("median", "low", "high")
        },
    )


def table(results: pd.DataFrame) -> pd.DataFrame:
    """One row a variant: runs, medians with intervals, and time per epoch against the first variant."""
    rows = []
    for variant, runs in results.groupby("variant", sort=False):
        found = difference(_by_repeat(runs, "epoch_seconds"), _by_repeat(_reference(results), "epoch_seconds"))
        against = (
            "–"
            if found is None or variant == results["variant"].iloc[0]
            else f"× {_spread(found.ratio, '.2f')}, {found.sureness}"
        )
        cells = {measure.title + f" ({measure.unit})": _cell(runs, name) for name, measure in MEASURES.items()}
        rows.append({"Variant": variant, "Runs": int(runs["seconds"].notna().sum()), "Time per epoch, against": against, **cells})
    return pd.DataFrame(rows)


def sentences(results: pd.DataFrame) -> list[str]:
    """What each variant does to the time per epoch, against the first one, and how sure that is."""
    reference = _reference(results)
    first = results["variant"].iloc[0]
    found = []
    for variant, runs in results.groupby("variant", sort=False):
        effect = difference(_by_repeat(runs, "epoch_seconds"), _by_repeat(reference, "epoch_seconds"))
        if variant != first and effect is not None:
            found.append(sentence(str(variant), str(first), effect))
    return found


def sentence(variant: str, reference: str, effect: Difference) -> str:
    """Such as: **batch 512** takes 38 % less time per epoch than batch 64 (× 0.62, 0.60 to 0.64): clear."""
    ratio, low, high = effect.ratio.median, effect.ratio.low, effect.ratio.high
    amount = f"{abs(1.0 - ratio) * 100:.0f} % {'less' if ratio < 1.0 else 'more'} time per epoch than"
    effect_words = amount if abs(1.0 - ratio) >= 0.005 else "the same time per epoch as"
    return f"**{variant}** takes {effect_words} {reference} (× {ratio:.2f}, {low:.2f} to {high:.2f}): {effect.sureness}."


def _reference(results: pd.DataFrame) -> pd.DataFrame:
    return results[results["variant_index"] == results["variant_index"].min()]


def _by_repeat(runs: pd.DataFrame, measure: str) -> dict[int, float]:
    known = runs.dropna(subset=[measure])
    return dict(zip(known["repeat"].astype(int), known[measure].astype(float), strict=True))


def _cell(runs: pd.DataFrame, measure: str) -> str:
    shown = MEASURES[measure]
    found = median_interval([value * shown.scale for value in runs[measure].dropna()])
    return "–" if found is None else _spread(found, shown.form)


def _spread(interval: Interval, form: str) -> str:
    if interval.count == 1:
        return f"{interval.median:{form}}"
    return f"{interval.median:{form}} ({interval.low:{form}} to {interval.high:{form}})"


def _help() -> dict[str, Any]:
    return {f"{one.title} ({one.unit})": st.column_config.TextColumn(help=one.help or None) for one in MEASURES.values()}
