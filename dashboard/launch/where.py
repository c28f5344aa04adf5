"""Where a run trains, on the Launch form: what each target has, and the accelerator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from dashboard import actions, option_words, words
from dashboard.frame import places
from dashboard.launch import fields
from gan_runtime.hardware.hosts import ACCELERATORS, Host
from gan_runtime.spec.run_options import HERE
from gan_runtime.targets import configuration
from gan_runtime.targets.configuration import AnyTarget
from gan_runtime.targets.target import Offer

CHECKS = {"gpu": places.GPU, "tpu": places.TPU}  # pages of compile checks
ASK_SECONDS = 1.0


def offers(targets: Mapping[str, AnyTarget], offer_of: Callable[[str], Offer | None]) -> None:
    """What each target has, or why it cannot be used; redrawn until all have answered."""
    have_answered = all(offer_of(name) is not None for name in targets)

    @st.fragment(run_every=None if have_answered else ASK_SECONDS)
    def lines() -> None:
        known = {name: offer_of(name) for name in targets}
        if not have_answered and None not in known.values():
            st.rerun()
        st.caption("  \n".join(_line(name, offer) for name, offer in known.items()))

    lines()


def _line(name: str, offer: Offer | None) -> str:
    if offer is None:
        return f"**{name}** · asking it what it has …"
    if offer.refusal:
        return f"**{name}** · :red[{words.plain(offer.refusal)}]"
    return f"**{name}** · {words.plain(' · '.join(offer.lines))}"


def accelerators(
    host: Host | None,
    detect_again: Callable[[], None],
    target: str,
    targets: Mapping[str, AnyTarget],
) -> None:
    """A card for each accelerator; one that this host lacks is disabled, with the reason and what
    to do. What a target has, it says itself.
    """
    selected = fields.kept()["accelerator"]
    columns = st.columns(4)
    for column, name in zip(columns, ("auto", *reversed(ACCELERATORS)), strict=True):
        device = host.devices.get(name) if host else None
        with column.container(border=True, height="stretch"):
            available = device is None or device.available
            if target != HERE:
                available = _can_have(targets.get(target), name)
            st.button(
                option_words.choice(name),
                key=f"accelerator.{name}",
                icon=(
                    ":material/check_circle:"
                    if name == selected
                    else ":material/radio_button_unchecked:"
                ),
                disabled=not available,
                on_click=fields.put,
                args=({"accelerator": name},),
                width="stretch",
            )
            st.caption(
                _card_text(name, host) if target == HERE else _on_target(name, target, targets)
            )
            if name in CHECKS:
                st.page_link(CHECKS[name], label=f"{name.upper()} check", icon=":material/memory:")
    actions.button(
        "Detect hardware again",
        on_click=detect_again,
        type="tertiary",
        icon=":material/refresh:",
        help="Checks again which accelerators this host has.",
    )


def _on_target(name: str, target: str, targets: Mapping[str, AnyTarget]) -> str:
    known = targets.get(target)
    if name == "auto" and known is not None:
        return f"{option_words.choice(known.accelerator)}, by the settings of {target}."
    if not _can_have(known, name):
        return "Not on this kind of target."
    if known is not None and known.kind == "ssh":
        return "If that host has one." if name != "cpu" else "Of that host."
    return "Its scheduler says whether it has one."


def is_slurm(target: AnyTarget | None) -> bool:
    """Whether a job there has options of `sbatch`."""
    return target is not None and target.kind == "slurm"


def _can_have(target: AnyTarget | None, accelerator: str) -> bool:
    return (
        accelerator == "auto"
        or target is None
        or accelerator in configuration.accelerators(target.kind)
    )


def _card_text(name: str, host: Host | None) -> str:
    if host is None:
        return "Detecting hardware …"
    if name == "auto":
        best = next(kind for kind in ACCELERATORS if host.devices[kind].available)
        return f"Best available: {option_words.choice(best)}."
    device = host.devices[name]
    if not device.available:
        return f"Not here: {words.plain(device.reason)}"
    if name == "cpu":
        return f"{device.name}, {device.count} cores. Any number of replicas as simulated cores."
    return f"{device.count} × {device.name}"
