"""Above every page: who may only look, and why; signing in and out where that is set up. Nothing for who works on this machine."""

from __future__ import annotations

import streamlit as st

from dashboard import words
from dashboard.frame import access, sign_in
from gan_runtime.base.operator_password import MOST_LENGTH

NOT_LISTED = (
    "is signed in, but is not on the list of operators, or the provider has not verified the address."
)


def show() -> None:
    """On every page, the same. While somebody else has the home, store_view.py says why nobody may change anything."""
    asker, ways = access.asker(), access.ways()
    if access.post().why_not or (asker.may_change and not asker.person):
        return
    with st.container(horizontal=True, vertical_alignment="center", key="who"):
        if asker.may_change:
            st.markdown(f":material/key: **Operator** {words.plain(asker.person)}")
            _way_out()
        elif st.user.get("is_logged_in"):
            person = words.plain(str(st.user.get("email") or "Somebody")[:80])
            st.markdown(
                f":material/visibility: **View only.** {person} {NOT_LISTED} {words.plain(asker.why_not)}"
            )
            _way_out()
        else:
            st.markdown(f":material/visibility: **View only.** {words.plain(asker.why_not)}")
            if ways.providers or ways.password:
                with st.popover("Sign in", icon=":material/login:", width="content"):
                    _ways_in(ways)


def _way_out() -> None:
    st.button("Sign out", key="sign.out", icon=":material/logout:", on_click=access.leave)


def _ways_in(ways: sign_in.Ways) -> None:
    for provider in ways.providers:
        label = f"Sign in with {words.plain(provider)}" if provider else "Sign in with your account"
        st.button(label, key=f"sign.in.{provider}", icon=":material/login:", on_click=st.login, args=(provider or None,))  # fmt: skip
    if ways.password:
        _password()


def _password() -> None:
    with st.form("sign.in", clear_on_submit=True, border=False):
        password = st.text_input(
            "Operator password",
            type="password",
            max_chars=MOST_LENGTH,
            autocomplete="current-password",
        )
        asked = st.form_submit_button("Enter", icon=":material/key:")
    if asked:
        with st.spinner("Checking the password …"):
            refusal = access.enter(password)
        if not refusal:
            st.rerun()
        st.error(refusal)
