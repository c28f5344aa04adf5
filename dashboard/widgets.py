"""Parts of pages: the picker of several runs, state lines, rows of figures, an epoch slider, a
command, the bar of a job.
"""

from __future__ import annotations

import contextlib
import html
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import streamlit as st

from dashboard import actions, palette, run_selection, words
from dashboard.kept_values import KeptValues
from gan_runtime.base import formats
from gan_runtime.base.errors import JobError
from gan_runtime.base.metrics import LOSSES, Metric
from gan_runtime.catalog import declarations
from gan_runtime.catalog.declarations import Declarations
from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware import machine
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobSnapshot
from gan_runtime.spec import RunSpec
from gan_runtime.store.queries import PeakMemory, RunProgress, RunRow
from gan_runtime.store.store import Store
from gan_runtime.training.verdict import Verdict

NO_VERDICT = Verdict()
EPOCH = "epoch"  # the value of an epoch slider
MOST_NAMED, MOST_LETTERS = 5, 80  # of unknown runs in an address
FIGURE_WIDTH = 138  # two side by side on a phone, five in a card of Home
LIKE_OTHERS = (
    "So many lines share colors and dashes. Point at a line to see its name, or pick fewer runs."
)
ENDED_WELL = ("finished", "stopped")  # states whose dot turns red if the verdict is trouble
MOST_IN_FIGURE = 2  # losses side by side
LOCAL_SGD_HELP = (
    "Replicas train alone for some steps; then their weights are averaged. The curves differ from"
    " those of synchronous training."
)


def cautions(preset: str, specs: Iterable[RunSpec]) -> None:
    """The known problems of a preset with any of these options."""
    for caution in machine.preset_cautions(preset, specs):
        st.warning(caution.text, icon=":material/warning:")


def state(status: str, text: str = "", verdict: Verdict = NO_VERDICT) -> None:
    """A dot and the word of a run's state, a text, and the verdict."""
    kind = "run-alarm" if verdict.is_trouble else "run-verdict"
    below = f"<div class='{kind}'>{html.escape(verdict.sentence)}</div>" if verdict.sentence else ""
    rest = f"<span style='font-weight:400'>{html.escape(text)}</span>" if text else ""
    dot = "dot-alarm" if verdict.is_trouble and status in ENDED_WELL else words.dot(status)
    st.html(f"<span class='run-state'><span class='dot {dot}'></span>{status} {rest}</span>{below}")


def legend(colors: dict[str, str]) -> None:
    """One legend for all charts of a page, which wraps for many lines; dashed where an earlier line
    has the color. `colors`: name → color.
    """
    dashed = palette.repeated(colors)
    entries = "".join(
        "<span><span style='display:inline-block;width:1.3rem;margin-right:0.4rem;"
        f"vertical-align:middle;border-top:3px {'dashed' if name in dashed else 'solid'} {color}'>"
        f"</span>{html.escape(name)}</span>"
        for name, color in colors.items()
    )
    st.html(f"<div style='display:flex;flex-wrap:wrap;gap:0.2rem 1.2rem'>{entries}</div>")
    if palette.is_ambiguous(colors):
        st.caption(LIKE_OTHERS)


def option_search(key: str, placeholder: str, width: int | Literal["stretch"] = "stretch") -> str:
    """The field for words of an option's name or help."""
    return st.text_input(
        "Find an option",
        key=key,
        icon=":material/search:",
        placeholder=placeholder,
        label_visibility="collapsed",
        width=width,
    )


def local_sgd(sync_every_steps: int) -> None:
    """A badge for local SGD, whose replicas do not exchange gradients; nothing for other runs."""
    if sync_every_steps == 1:
        return
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.badge(
            "Another algorithm", icon=":material/call_split:", color="orange", help=LOCAL_SGD_HELP
        )
        st.caption(words.local_sgd(sync_every_steps), width="content")


def title(row: RunRow) -> str:
    """The run's name for lists, with the id if a user has renamed it."""
    return row.name if row.name == row.run_id else f"{row.name} ({row.run_id})"


def address_runs(usual: tuple[str, ...] = ()) -> list[str]:
    """The ids in `?runs=a,b` or `?run=a`, each once; `usual` if the address has none. Their runs
    need not be stored.
    """
    run_ids = st.query_params.get("runs", st.query_params.get("run", ",".join(usual)))
    return [run_id for run_id in dict.fromkeys(run_ids.split(",")) if run_id]


def runs_picker(store: Store, key: str, usual: tuple[str, ...] = ()) -> list[RunRow]:
    """The runs of `?runs=a,b`, or `usual` without it; a choice goes into the address."""
    address_ids = address_runs(usual)
    rows = {
        row.run_id: row
        for row in run_selection.pinned_first(run_selection.runs(store, address_ids))
    }
    run_ids = [run_id for run_id in address_ids if run_id in rows]
    unknown = [words.plain(run_id[:MOST_LETTERS]) for run_id in address_ids if run_id not in rows]
    if unknown:
        st.warning(
            "Not stored here:"
            f" {', '.join(unknown[:MOST_NAMED])}{' …' if unknown[MOST_NAMED:] else ''}."
        )
    st.session_state[key] = run_ids  # with each render: see kept_values.py

    def picked() -> None:
        st.query_params["runs"] = ",".join(st.session_state[key])

    st.multiselect(
        "Runs",
        list(rows),
        format_func=lambda run_id: title(rows[run_id]),
        placeholder="Select runs to compare",
        key=key,
        on_change=picked,
    )
    return [rows[run_id] for run_id in run_ids]


def figures(progress: RunProgress, row: RunRow, memory: PeakMemory | None = None) -> None:
    """The row of figures of a run; memory only if it is given."""
    time_left = formats.duration(progress.seconds_left) if row.is_live else "–"
    items = [
        ("Epoch", f"{progress.epoch} / {row.epochs}", ""),
        (
            "Images/s",
            formats.count(progress.images_per_s),
            "Steady training speed over the last 50 steps, all replicas together.",
        ),
        ("Time per step", formats.duration(progress.seconds_per_step), ""),
        (
            "Time left",
            time_left,
            (
                "From the speed of the last 50 steps, and the time that samples and histograms take"
                " after each epoch."
            ),
        ),
        *_losses(progress, row),
    ]
    if memory is not None:
        device = (
            f" On its fullest device: {formats.size(memory.device_bytes)}."
            if memory.device_bytes is not None
            else ""
        )
        text = f"Highest resident memory of the trainer's process in this attempt.{device}"
        items.append(("Memory, peak", formats.size(memory.process_bytes), text))
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        for label, value, text in items:
            st.metric(label, value, help=text or None, width=FIGURE_WIDTH)


def _losses(progress: RunProgress, row: RunRow) -> list[tuple[str, str, str]]:
    """The newest losses: one figure for up to two, else one for each network; none if the workload
    declares no loss.
    """
    declaration = declarations.of(row.workload)
    together: dict[str, list[Metric]] = {}
    for loss in declaration.losses:
        place = "" if len(declaration.losses) <= MOST_IN_FIGURE else loss.network or loss.name
        together.setdefault(place, []).append(loss)
    return [_loss_figure(declaration, losses, progress) for losses in together.values()]


def _loss_figure(
    declaration: Declarations, losses: list[Metric], progress: RunProgress
) -> tuple[str, str, str]:
    """Label, value and help. The help names the losses if a network has several."""
    names = dict.fromkeys(
        declaration.network(loss.network).short if loss.network else loss.title for loss in losses
    )
    which = f"{' / '.join(loss.legend for loss in losses)}. " if len(names) < len(losses) else ""
    values = " / ".join(formats.loss(progress.newest.get(loss.name)) for loss in losses)
    return f"Loss {' / '.join(names)}", values, f"{which}{declaration.panel(LOSSES).help}"


def progress_bar(progress: RunProgress) -> None:
    """The steps done out of all steps."""
    share = progress.step / progress.last_step if progress.last_step else 0.0
    st.progress(
        min(1.0, share),
        text=f"step {formats.count(progress.step)} of {formats.count(progress.last_step)}",
    )


def epoch_slider(last_epoch: int, newest: int, key: str) -> int:
    """An epoch from 1 to `last_epoch`; the range never changes while a user drags.

    The slider follows the newest epoch until a user moves it.
    """
    if last_epoch < 2:
        return last_epoch
    kept, newest = KeptValues(key), min(max(1, newest), last_epoch)
    if EPOCH not in kept or is_following(key):
        kept.put(EPOCH, newest)
    elif kept[EPOCH] > last_epoch:
        kept.put(EPOCH, last_epoch)
    return int(
        st.slider(
            "Epoch",
            1,
            last_epoch,
            kept[EPOCH],
            key=kept.key(EPOCH),
            on_change=kept.on_change(EPOCH, partial(follow, key, newest=False)),
        )
    )


def follow_button(key: str, live: bool) -> None:
    """A button that lets the slider follow the newest epoch again, once a user has moved it."""
    if live and not is_following(key):
        st.button(
            "Follow the newest epoch",
            key=f"{key}.to_newest",
            on_click=follow,
            args=(key, True),
            type="tertiary",
            icon=":material/update:",
        )


def is_following(key: str) -> bool:
    """Whether the epoch of a player or slider is the newest one."""
    return bool(st.session_state.get(f"{key}.follow", True))


def follow(key: str, newest: bool) -> None:
    """Whether the slider follows the newest epoch from now on."""
    st.session_state[f"{key}.follow"] = newest


SAME_COMMAND = "The same from the command line"


def command_line(command: str, caption: str = SAME_COMMAND) -> None:
    """A caption and the command, whatever it contains."""
    st.caption(f"{caption} (click to select it):")
    st.html(f"<pre class='command'>{html.escape(command)}</pre>")


JOB_SECONDS = 0.5  # between two checks of a job


@dataclass(frozen=True)
class EndButton:
    """The button that ends a job. `pressed`: what replaces it until the job has ended."""

    key: str
    label: str = "Cancel"
    pressed: str = "cancelling …"


def job_bar(
    runtime: Runtime,
    snapshot: JobSnapshot,
    sentence: Callable[[JobSnapshot], str],
    button: EndButton,
) -> None:
    """A bar that redraws alone; redraws the page when the job has ended.

    `sentence`: what the job does, without a period.
    """
    st.fragment(_job_bar, run_every=JOB_SECONDS)(runtime, snapshot.job.job_id, sentence, button)


def job_sentence(snapshot: JobSnapshot) -> str:
    """The job's own sentence about what it does."""
    return words.plain(snapshot.progress.sentence) or "starting"


def _job_bar(
    runtime: Runtime, job_id: str, sentence: Callable[[JobSnapshot], str], button: EndButton
) -> None:
    snapshot = _job_snapshot(runtime, job_id)
    if snapshot is None or not snapshot.is_live:
        runtime.refresh()
        st.rerun()
        return
    bar, column = st.columns([5, 1], vertical_alignment="center")
    bar.progress(
        snapshot.progress.share, text=f"{sentence(snapshot)}. You can close the page: it continues."
    )
    if snapshot.job.stop_file.exists():
        column.caption(button.pressed)
        return
    with column:
        is_pressed = actions.button(button.label, key=button.key, icon=":material/close:")
    if is_pressed:
        actions.succeeded(lambda: runtime.commands.cancel_job(job_id))
        # The whole page: `scope="fragment"` is an error if the press arrives while the page is
        # drawn.
        st.rerun()


def _job_snapshot(runtime: Runtime, job_id: str) -> JobSnapshot | None:
    """The job; None if its folder was deleted, as for a browser tab that slept for days."""
    with contextlib.suppress(JobError):
        return job_queue.job_dir(runtime.home, job_id).snapshot()
    return None
