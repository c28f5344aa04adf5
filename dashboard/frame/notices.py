"""Above every page: the user's role, why the stored runs cannot be opened or changed, and disks
that are nearly full. In the sidebar: the button for browser notifications.

Signing in and out is here too, if sign-in is set up. A user on this machine sees none of it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import streamlit as st

from dashboard import words
from dashboard.frame import access, session, sign_in
from gan_runtime.base import formats
from gan_runtime.base.errors import GanRuntimeError, HomeInUseError
from gan_runtime.base.web_access import MOST_LENGTH
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.home import Home
from gan_runtime.supervision import owner
from gan_runtime.supervision.maintenance import Space
from gan_runtime.supervision.owner import HomeOwner

NOT_LISTED = (
    "is signed in, but is not on the list of operators, or the provider has not verified the"
    " address."
)


def show_role() -> None:
    """The user's role, on every page.

    While another process owns the home, `show_home_state` says why changes are refused instead.
    """
    actor, settings = access.actor(), access.sign_in_settings()
    if access.home_access().refusal or (actor.may_change and not actor.person):
        return
    with st.container(horizontal=True, vertical_alignment="center", key="who"):
        if actor.may_change:
            st.markdown(f":material/key: **Operator** {words.plain(actor.person)}")
            _sign_out_button()
        elif st.user.get("is_logged_in"):
            user = words.plain(str(st.user.get("email") or "This account")[:80])
            st.markdown(
                f":material/visibility: **View only.** {user} {NOT_LISTED}"
                f" {words.plain(actor.refusal)}"
            )
            _sign_out_button()
        else:
            st.markdown(f":material/visibility: **View only.** {words.plain(actor.refusal)}")
            if settings.providers or settings.password:
                with st.popover("Sign in", icon=":material/login:", width="content"):
                    _sign_in_form(settings)


def _sign_out_button() -> None:
    st.button("Sign out", key="sign.out", icon=":material/logout:", on_click=access.sign_out)


def _sign_in_form(settings: sign_in.SignInSettings) -> None:
    for provider in settings.providers:
        label = f"Sign in with {words.plain(provider)}" if provider else "Sign in with your account"
        st.button(
            label,
            key=f"sign.in.{provider}",
            icon=":material/login:",
            on_click=st.login,
            args=(provider or None,),
        )
    if settings.password:
        _password()


def _password() -> None:
    with st.form("sign.in", clear_on_submit=True, border=False):
        password = st.text_input(
            "Operator password",
            type="password",
            max_chars=MOST_LENGTH,
            autocomplete="current-password",
        )
        is_submitted = st.form_submit_button("Enter", icon=":material/key:")
    if is_submitted:
        with st.spinner("Checking the password …"):
            refusal = access.sign_in_by_password(password)
        if not refusal:
            st.rerun()
        st.error(refusal)


BELL = """
<button type="button" class="browser-notices" title="Notifies when a run ends, fails or collapses,
while a page of the dashboard is open. E-mail and webhook: docs/notifications.md.">
<span class="off">Notify me when a run ends</span>
<span class="on">Notifications are on: turn off</span>
<span class="denied">This browser blocks notifications</span>
<span class="impossible">Notifications need https or localhost</span>
</button>"""


def offer_browser_notices() -> None:
    """The button below the navigation; browser_notices.js handles its clicks."""
    st.sidebar.html(BELL)


CHECK_S = 3.0
SILENT = (
    "That host has been silent for {} and still holds the lock of the home folder. If it is down,"
    " this page takes over when the file server releases the lock."
)
READING = "store.reading"
DISMISSED = "store.seen"  # how many recovery reports this session has dismissed


def take_over() -> None:
    """Takes over a home whose owner has ended, at each load of a page: otherwise nothing would
    start its waiting runs.
    """
    with contextlib.suppress(GanRuntimeError):  # reported by `show_home_state`
        session.shared_runtime()
        access.home_access().try_to_own()


def show_home_state() -> None:
    """The state of the home, on every page.

    Replaces the page if the home cannot be opened; a reload tries again.
    """
    try:
        runtime = session.shared_runtime()
    except GanRuntimeError as error:
        st.title("The stored runs cannot be opened")
        st.error(words.plain(str(error)), icon=":material/error:")
        st.button("Try again", type="primary")
        st.stop()
    if runtime.ownership_error is not None:
        _view_only(runtime)
    if runtime.trouble:
        st.error(
            f"The dashboard cannot follow the runs: {words.plain(runtime.trouble)}",
            icon=":material/error:",
        )
    if len(runtime.recovered) > st.session_state.get(DISMISSED, 0):
        _recoveries(runtime)
    elif runtime.ownership_error is None and runtime.is_reading:
        _rebuilt(runtime)


def redraw_if_rebuilt(was_reading: bool) -> None:
    """Redraws a page if a rebuild began meanwhile: it may lack runs, and a notice then says so."""
    with contextlib.suppress(GanRuntimeError):
        if session.shared_runtime().is_reading and not was_reading:
            st.rerun()


def is_reading() -> bool:
    """Whether the page says that runs may be missing."""
    with contextlib.suppress(GanRuntimeError):
        return session.shared_runtime().is_reading
    return False


@st.fragment(run_every=CHECK_S)
def _rebuilt(runtime: Runtime) -> None:
    """The notice while a removed database file is rebuilt; nothing was quarantined."""
    with st.container(border=True, key="store_found"):
        st.markdown(
            ":material/healing: **The database is being rebuilt from the journals of all runs.**"
        )
        _reading(runtime)


@st.fragment(run_every=CHECK_S)
def _view_only(runtime: Runtime) -> None:
    """The notice for viewers; redraws alone, so that it shows when the home is free."""
    home_access, refusal = access.home_access(), runtime.ownership_error
    is_held = home_access.is_held
    with st.container(border=True, key="only_looking"):
        st.markdown(
            ":material/visibility: **View only: these pages show all runs and change nothing.**"
        )
        st.markdown(words.plain(str(refusal)))
        _reading(runtime)
        if is_held and home_access.silent_seconds() > owner.SILENCE_SECONDS:
            st.markdown(SILENT.format(formats.duration(home_access.silent_seconds())))
        if is_held:
            _owner_link(owner.holder(runtime.home))
        else:
            label = "Take over the home" if isinstance(refusal, HomeInUseError) else "Try again"
            if st.button(label, type="primary", key="store.take_over"):
                st.rerun()


def _owner_link(holder: HomeOwner | None) -> None:
    """A link to the owner's dashboard. The entry is a file, so only web addresses are accepted."""
    if holder is not None and holder.url.startswith(("http://", "https://")):
        st.link_button("Open the dashboard that owns it", holder.url, icon=":material/open_in_new:")


def _reading(runtime: Runtime) -> None:
    """A notice while journals are read; the page is redrawn when they are complete."""
    was_reading, st.session_state[READING] = (
        st.session_state.get(READING, False),
        runtime.is_reading,
    )
    if runtime.is_reading:
        st.caption(":material/hourglass: Reading journals: some runs are not listed yet.")
    elif was_reading:
        st.rerun()


@st.fragment(run_every=CHECK_S)
def _recoveries(runtime: Runtime) -> None:
    """The reports of recoveries; redraws alone while the journals are read."""
    new = runtime.recovered[st.session_state.get(DISMISSED, 0) :]
    if not new:
        return
    with st.container(border=True, key="store_found"):
        state = "is being" if runtime.is_reading else "was"
        st.markdown(
            f":material/healing: **The database {state} rebuilt from the journals of all runs.**"
        )
        if access.actor().may_change:  # only operators see file paths
            for recovery in new:
                st.markdown(words.plain(recovery.report))
                st.code(recovery.removal, language=None, wrap_lines=True)
        _reading(runtime)
        if st.button("Got it", key="store.got_it"):
            st.session_state[DISMISSED] = len(runtime.recovered)
            st.rerun()


def show_disk() -> None:
    """A warning for each disk that is nearly full, if the home can be opened."""
    with contextlib.suppress(GanRuntimeError):
        runtime = session.shared_runtime()
        space = runtime.maintenance.space
        if space is None:
            return
        for folder, free in _low(space, runtime.home):
            st.warning(
                f"The disk of {words.plain(str(folder))} has {formats.size(free)} left. A training"
                " run saves and stops before it is full. The trash holds"
                f" {formats.size(space.bin)}: empty it on the Runs page, or delete runs there.",
                icon=":material/hard_drive:",
            )


def _low(space: Space, home: Home) -> list[tuple[Path, int]]:
    """The folders on nearly full disks, with the free space of each."""
    low = [(home.path, space.free)] if space.is_low else []
    if space.runs_disk is not None and space.runs_disk.is_low:
        low.append((home.runs, space.runs_disk.free))
    return low
