"""The role of a browser session: viewer or operator.

With sign-in, a listed user who has signed in is an operator; all others are viewers. Without it,
every user is an operator if only this machine reaches the server, else a viewer. A process that
does not own the home has only viewers, and waits for the home to be free.
"""

from __future__ import annotations

import logging
import platform
import threading
import time
from collections.abc import Callable

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dashboard.frame import sign_in
from dashboard.frame.sign_in import SignedInUsers, SignInSettings
from gan_runtime.base import web_access
from gan_runtime.base.errors import GanRuntimeError, SignInError
from gan_runtime.base.web_access import PasswordCheck, is_loopback
from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware.hosts import HostProbe
from gan_runtime.records.home import Home
from gan_runtime.records.record import DASHBOARD, Actor, Role, operator
from gan_runtime.supervision import owner
from gan_runtime.supervision.owner import HomeOwner
from gan_runtime.supervision.standby import Standby

log = logging.getLogger("gan_runtime")


class HomeAccess:
    """This process and its home: owner or viewer. One for each process.

    `url`: of its pages; `look`: the hardware check of this host, started by the first request.
    """

    def __init__(
        self, url: Callable[[], str], look: Callable[[], HostProbe], standby: Standby | None = None
    ) -> None:
        self._url, self._host_probe, self._standby = url, look, standby
        self._turn = threading.Lock()
        self._runtime: Runtime | None = None
        self._last_holder: HomeOwner | None = None
        self._last_holder_s = 0.0

    @property
    def refusal(self) -> str:
        """Why nothing can be changed here; empty for the owner."""
        refusal = self._runtime.ownership_error if self._runtime is not None else None
        return str(refusal) if refusal is not None else ""

    @property
    def is_held(self) -> bool:
        """Whether another process owns the home now, on this host or by its entry on another."""
        return owner.is_owned(Home.choose()) or 0.0 < self.silent_seconds() < owner.SILENCE_SECONDS

    def silent_seconds(self) -> float:
        """Seconds since an owner on another host was last heard of here; 0 without one."""
        holder = owner.holder(Home.choose())
        if holder is None or holder.is_here:
            return 0.0
        if holder != self._last_holder:
            self._last_holder, self._last_holder_s = holder, time.monotonic()
        return max(time.monotonic() - self._last_holder_s, 0.001)

    def runtime(self) -> Runtime:
        """The runtime, opened by the first request.

        Raises GanRuntimeError while the home can be neither opened nor read.
        """
        with self._turn:
            if self._runtime is None:
                self._runtime = (
                    self._open_as_owner() if not Home.choose().runs.is_dir() else self._open()
                )
            return self._runtime

    def try_to_own(self) -> None:
        """Becomes the owner if the home is free now.

        Pages in progress finish with the previous runtime.
        """
        with self._turn:
            before = self._runtime
            if before is None or before.ownership_error is None or self.is_held:
                return
            try:
                self._runtime = self._open_as_owner()
            except GanRuntimeError as error:
                before.ownership_error = error
                return
        # Waits for a running import of all journals; no page waits for that.
        before.close()

    def close(self) -> None:
        """Closes the runtime at the end of the process."""
        with self._turn:
            if self._runtime is not None:
                self._runtime.close()
                self._runtime = None

    def _open_as_owner(self) -> Runtime:
        return Runtime.open(
            Home.choose(), host_probe=self._host_probe(), standby=self._standby, url=self._url()
        )

    def _open(self) -> Runtime:
        try:
            return self._open_as_owner()
        except GanRuntimeError as error:
            log.warning("these pages are view only: %s", error)
            try:
                return Runtime.view(Home.choose(), error, self._host_probe())
            except (GanRuntimeError, OSError):  # no space for temporary files either
                raise error from None


VIEW_ONLY = (
    "Others can reach this dashboard, so it is view only. Start and stop runs on the command line"
    " of its machine, or set up sign-in (docs/sharing.md)."
)
SIGN_IN = "Everyone can view. Sign in as an operator to start, stop, change or delete."
SETTINGS_REMOVED = (
    f"{sign_in.INVALID} its settings were removed from the secrets file. Restart the dashboard to"
    " run without sign-in."
)
PASSWORD_USER = "the operator who knows the password"


def is_shared() -> bool:
    """Whether the server listens on more than loopback, or allows host names of a proxy."""
    names = [st.get_option("server.address") or "::", *(st.get_option("server.allowedHosts") or ())]
    return not all(is_loopback(str(name)) for name in names)


def url() -> str:
    """The address of this process's pages."""
    address, port = st.get_option("server.address") or "::", int(st.get_option("server.port"))
    return web_access.url(
        str(address), port, bool(st.get_option("server.sslCertFile")), wildcard=platform.node()
    )


class Guards:
    """What guards the home: signed-in sessions, password attempts, and the role of this process.

    Not in `st.cache_resource`, which any browser may ask Streamlit to clear.
    """

    def __init__(self) -> None:
        self.users = SignedInUsers()
        self.password_check = PasswordCheck()
        self.host_probe = HostProbe()
        self.standby = Standby()
        self.home_access = HomeAccess(url, lambda: self.host_probe, self.standby)
        self._is_set_up = sign_in.settings().are_set_up

    def sign_in_settings(self) -> SignInSettings:
        """The ways to sign in.

        A secrets file that is empty or missing for a moment, as while it is saved, does not turn
        sign-in off.
        """
        settings = sign_in.settings()
        self._is_set_up |= settings.are_set_up
        return (
            settings
            if settings.are_set_up or not self._is_set_up
            else SignInSettings(problem=SETTINGS_REMOVED)
        )


guards = Guards()


def home_access() -> HomeAccess:
    """The role of this process for its home."""
    return guards.home_access


def sign_in_settings() -> SignInSettings:
    """The ways to sign in."""
    return guards.sign_in_settings()


def host_probe() -> HostProbe:
    """The hardware check of this host, started by the first request: it takes seconds of a core."""
    return guards.host_probe


def actor() -> Actor:
    """The user of the page that is being drawn."""
    settings, session_id = sign_in_settings(), _session_id()
    if settings.providers and st.user.get("is_logged_in") and settings.is_operator(st.user):
        guards.users.add(session_id, settings, str(st.user.get("email") or st.user.get("sub")))
    elif not settings.password:
        guards.users.remove(session_id)
    return _actor(settings, session_id)


def of_session(session_id: str) -> Actor:
    """The user who uploads a file. The server receives it outside of any page, with the session's
    id.
    """
    return _actor(sign_in_settings(), session_id)


def sign_in_by_password(password: str) -> str:
    """Signs this session in; returns the refusal, or nothing."""
    settings = sign_in_settings()
    if not settings.password:
        return "This dashboard has no operator password. Ask its operator how to sign in."
    try:
        guards.password_check.check(settings.password, password, st.context.ip_address or "")
    except SignInError as error:
        return str(error)
    guards.users.add(_session_id(), settings, PASSWORD_USER)
    return ""


def sign_out() -> None:
    """Signs this session out."""
    guards.users.remove(_session_id())
    if st.user.get("is_logged_in"):
        st.logout()


def _actor(settings: SignInSettings, session_id: str) -> Actor:
    if home_access().refusal:
        return _viewer(home_access().refusal)
    if not settings.are_set_up:
        return _viewer(VIEW_ONLY) if is_shared() else operator(DASHBOARD)
    user = guards.users.user(session_id, settings)
    return operator(DASHBOARD, user) if user else _viewer(settings.problem or SIGN_IN)


def _viewer(refusal: str) -> Actor:
    return Actor(DASHBOARD, Role.VIEWER, refusal=refusal)


def _session_id() -> str:
    """The session of the page that is being drawn; empty outside of a page."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context is not None else ""
