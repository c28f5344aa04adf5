"""Who a browser session is for the door.

Where sign-in is set up, whoever has signed in and is on the list is an operator, and everyone else may look. Where it is not,
everyone is an operator if only this machine reaches the server, and nobody if others do. While another process owns the home, nobody is.
"""

from __future__ import annotations

import platform

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dashboard.frame import sign_in
from dashboard.frame.post import Post
from dashboard.frame.sign_in import Seats, Ways
from gan_runtime.base import addresses
from gan_runtime.base.addresses import is_loopback
from gan_runtime.base.errors import SignInError
from gan_runtime.base.operator_password import PasswordDoor
from gan_runtime.hardware.hardware_probe import HostLook
from gan_runtime.records.actors import DASHBOARD, Actor, Role, operator

VIEW_ONLY = "Others can reach this dashboard, so its pages only show. Runs are started and stopped with the command line of its machine."
SIGN_IN = "Everyone can look. To start, stop, change or delete something, sign in as an operator."
GONE = (
    f"{sign_in.WRONG} the secrets file held it and does not any more. Restart the dashboard to go without it."
)
OF_THE_PASSWORD = "whoever knows the password"


def others_reach_it() -> bool:
    """Whether the server listens on more than loopback, or answers to the name of a proxy before it."""
    names = [st.get_option("server.address") or "::", *(st.get_option("server.allowedHosts") or ())]
    return not all(is_loopback(str(name)) for name in names)


def url() -> str:
    """Where the pages of this process are."""
    address, port = st.get_option("server.address") or "::", int(st.get_option("server.port"))
    return addresses.url(
        str(address), port, bool(st.get_option("server.sslCertFile")), wildcard=platform.node()
    )


class Guards:
    """What guards the home: who has signed in, wrong passwords, and what this process is for its home.

    In the process, not in `st.cache_resource`: any browser may ask Streamlit to clear that.
    """

    def __init__(self) -> None:
        self.seats = Seats()
        self.password_door = PasswordDoor()
        self.host_look = HostLook()
        self.post = Post(url, lambda: self.host_look)
        self._is_set_up = sign_in.ways().are_set_up

    def ways(self) -> Ways:
        """How to sign in. A file that is emptied or gone while the dashboard runs, as for a moment when it is saved, opens nothing."""
        known = sign_in.ways()
        self._is_set_up |= known.are_set_up
        return known if known.are_set_up or not self._is_set_up else Ways(trouble=GONE)


guards = Guards()


def post() -> Post:
    """What this process is for its home."""
    return guards.post


def ways() -> Ways:
    """How to sign in."""
    return guards.ways()


def host_look() -> HostLook:
    """The look at this host, begun by whoever asks first: it takes seconds of a core."""
    return guards.host_look


def asker() -> Actor:
    """Whoever sits before the page that is being drawn."""
    known, session_id = ways(), _session_id()
    if known.providers and st.user.get("is_logged_in") and known.is_operator(st.user):
        guards.seats.take(session_id, known, str(st.user.get("email") or st.user.get("sub")))
    elif not known.password:
        guards.seats.leave(session_id)
    return _asker(known, session_id)


def of_session(session_id: str) -> Actor:
    """Whoever a file comes from: the server receives it outside of any page, under the id of the session."""
    return _asker(ways(), session_id)


def enter(password: str) -> str:
    """Takes a seat for this session; why not, or nothing when it is taken."""
    known = ways()
    if not known.password:
        return "There is no operator password."
    try:
        guards.password_door.check(known.password, password, st.context.ip_address or "")
    except SignInError as error:
        return str(error)
    guards.seats.take(_session_id(), known, OF_THE_PASSWORD)
    return ""


def leave() -> None:
    """Signs this session out."""
    guards.seats.leave(_session_id())
    if st.user.get("is_logged_in"):
        st.logout()


def _asker(ways: Ways, session_id: str) -> Actor:
    if post().why_not:
        return _viewer(post().why_not)
    if not ways.are_set_up:
        return _viewer(VIEW_ONLY) if others_reach_it() else operator(DASHBOARD)
    person = guards.seats.person(session_id, ways)
    return operator(DASHBOARD, person) if person else _viewer(ways.trouble or SIGN_IN)


def _viewer(why_not: str) -> Actor:
    return Actor(DASHBOARD, Role.VIEWER, why_not=why_not)


def _session_id() -> str:
    """Of the page that is being drawn; empty outside of any, which no seat has."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context is not None else ""
