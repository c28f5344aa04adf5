"""The tab Run of the Launch page: the form, and on the right what the run will take, and the start
button.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import partial

import streamlit as st

from dashboard import actions, queue_view, widgets, words
from dashboard.launch import fields, target_form
from dashboard.launch import form as launch_form
from dashboard.launch.form import FormState
from gan_runtime import device_locks
from gan_runtime.base import formats
from gan_runtime.base.errors import SpecError, TargetSettingError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.data.contract import Availability
from gan_runtime.device_locks import host_devices
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec
from gan_runtime.spec.run_options import HERE
from gan_runtime.store import queries
from gan_runtime.store.store import Store
from gan_runtime.supervision.admission import TOO_LITTLE_MEMORY, Admission, admit
from gan_runtime.targets.target import Offer
from gan_runtime.training import watch

PAGE = "launch"
TITLES = {"run": "Run", "study": "Study", "paper": "Reproduce the paper"}


def show(runtime: Runtime) -> None:
    """The form on the left; what the run takes stays in sight on the right, and on a phone its
    button (style.css).
    """
    form, side = st.columns([2, 1], gap="large")
    with form:
        preset = launch_form.pick_preset()
        state = launch_form.read(runtime.home)
        state = replace(
            state,
            offer_of=partial(_offer, runtime),
            add_target=lambda: target_form.link(runtime),
        )
    summary = side.container(key="launch_summary")
    with summary:
        host = queue_view.known_host(runtime)
    with form:
        launch_form.show(preset, host, runtime.host_probe.again, state)
    with summary:
        _start(runtime, preset, state, host)
    runtime.expect_a_run()


def _offer(runtime: Runtime, target: str) -> Offer | None:
    """What a target has, as far as it has answered. The page does not wait."""
    if runtime.targets is None:
        return Offer(refusal="another process owns this home: it asks its targets.")
    try:
        return runtime.targets.offer(target)
    except TargetSettingError as error:
        return Offer(refusal=str(error))


def _start(runtime: Runtime, preset: str, state: FormState, host: Host | None) -> None:
    spec = state.spec
    if spec is None:
        show_problems(state.problems)
        return
    if host is None:
        return
    admission = show_requirements(runtime, spec, host)
    waits = accelerator_is_busy(runtime.store, spec, admission)
    queue_view.show_occupied(runtime)
    after = queue_view.after_choice(runtime, queue_view.AFTER_AT_LAUNCH)
    label = "Add to the queue" if waits or after else "Start run"
    if start_button(label if spec.target == HERE else f"Submit to {spec.target}"):
        queue_view.fill_after(queue_view.AFTER_AT_LAUNCH, None)
        actions.start(runtime, spec, preset, after)
        queue_view.fill_after(queue_view.AFTER_AT_LAUNCH, after)  # the run was refused
    widgets.command_line(fields.command(preset, spec))
    if admission is not None and spec.target != HERE:
        _show_script(runtime, admission.spec)


def _show_script(runtime: Runtime, spec: RunSpec) -> None:
    """What the target will run; the run has it in its folder."""
    if runtime.targets is None:
        return
    with contextlib.suppress(TargetSettingError), st.expander("Script of the job"):
        st.code(runtime.targets.script(spec), language="bash", wrap_lines=True)


def show_requirements(runtime: Runtime, spec: RunSpec, host: Host) -> Admission | None:
    """Steps, batch, memory and time of the run in the form.

    None if this host cannot train it; the reasons are shown.
    """
    st.header("This run")
    admission = _admission(spec, host, runtime.home)
    if admission is not None and admission.data is not None:
        _figures(runtime, admission, admission.data, host)
    is_on_cpu = admission is not None and admission.accelerator == "cpu"
    if is_on_cpu and spec.target == HERE and spec.replicas_in_all > host.cores:
        st.caption(
            f"{spec.replicas_in_all} {'processes' if spec.workers > 1 else 'simulated cores'} share"
            f" this host's {host.cores} physical cores. This tests the distribution; it is not"
            " faster."
        )
    widgets.local_sgd(spec.sync_every_steps)
    return admission


def show_problems(problems: dict[str, str]) -> None:
    """Every wrong option in one place, for a user who has scrolled away from its field."""
    st.header("This run")
    for message in problems.values():
        st.error(words.plain(message), icon=":material/error:")
    start_button("Start run", refusal="Correct the fields marked in red.")


def start_button(label: str, refusal: str = "") -> bool:
    """The primary button of the page, disabled with the reason while the form has errors."""
    with st.container(key="launch_start"):
        pressed = actions.button(
            label,
            type="primary",
            icon=":material/play_arrow:",
            width="stretch",
            disabled=bool(refusal),
        )
        if refusal:
            st.caption(refusal)
    return pressed


def accelerator_is_busy(store: Store, spec: RunSpec, admission: Admission | None) -> bool:
    """Whether a new run would have to wait for a run of this home or for training of another."""
    if spec.target != HERE:
        return False
    accelerator = spec.accelerator if admission is None else admission.accelerator
    live = [row for row in queries.runs(store) if row.is_live and row.accelerator == accelerator]
    devices, count = host_devices.of_run(accelerator, spec)
    if (len(devices) == 1 and live) or any(row.status == "queued" for row in live):
        return True
    return sum(not device_locks.is_free(device) for device in devices) > len(devices) - count


def _admission(spec: RunSpec, host: Host, home: Home) -> Admission | None:
    """Checks the run, except weights to start from: another run may still produce them."""
    try:
        return admit(spec.model_copy(update={"start_from": ""}), host, home)
    except SpecError as error:
        for wrong in error.errors:
            st.error(words.plain(wrong.message), icon=":material/error:")
        return None


def _figures(runtime: Runtime, admission: Admission, data: Availability, host: Host) -> None:
    spec, memory_bytes = admission.spec, admission.memory_bytes or 0.0
    is_here = spec.target == HERE
    columns = st.columns(2)
    columns[0].metric("Steps per epoch", formats.count(spec.steps_per_epoch(data.images)))
    columns[1].metric(
        "Images per replica",
        formats.count(spec.batch_size_per_replica),
        help="Images that one replica sees in each step.",
    )
    columns[0].metric(
        "Memory, est.",
        formats.size(memory_bytes),
        help=(
            "Framework, weights, gradients, optimizer and activations of all replicas, estimated"
            " from measured CPU trainers."
            f"{f' This host has {formats.size(host.memory_bytes)}.' if is_here else ''}"
        ),
    )
    rate = queries.typical_images_per_s(runtime.store, spec, admission.accelerator, host.cpu_model)
    columns[1].metric(
        "Time, est.",
        (
            f"≈ {formats.duration(watch.estimated_seconds(spec, data.images, rate))}"
            if rate
            else "unknown"
        ),
        help=(
            f"From the speed of similar runs on {'this host' if is_here else spec.target}."
            " Unknown before the first one."
        ),
    )
    where = data.note or data.origin
    st.caption(f"{spec.dataset}: {formats.count(data.images)} images, {words.plain(where)}")
    if is_here and memory_bytes > host.memory_bytes:
        st.warning(TOO_LITTLE_MEMORY, icon=":material/memory:")
