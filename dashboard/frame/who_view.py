"""Below the navigation: who may only look, and why; signing in and out where that is set up. Nothing for who works on this machine."""

from __future__ import annotations

import streamlit as st

from dashboard import words
from dashboard.frame import access, sign_in
from gan_runtime.askers import Asker
from gan_runtime.operator_password import MOST_LENGTH

NOT_LISTED = (
    "is signed in, but is not on the list of operators, or the provider has not verified the address."
)


def show() -> None:
    """On every page, the same."""
    asker, ways = access.asker(), sign_in.ways()
    with st.sidebar:
        if asker.person:
            _operator(asker)
        elif not asker.may_change:
            st.markdown(":material/visibility: **View only**")
            st.caption(words.plain(asker.why_not))
            if st.user.get("is_logged_in"):
                st.caption(f"{words.plain(str(st.user.get('email') or 'Somebody')[:80])} {NOT_LISTED}")
                st.button("Sign out", key="sign.out", icon=":material/logout:", on_click=access.leave)
            else:
                _ways_in(ways)


def _operator(asker: Asker) -> None:
    st.markdown(":material/key: **Operator**")
    st.caption(words.plain(asker.person))
    st.button("Sign out", key="sign.out", icon=":material/logout:", on_click=access.leave)


def _ways_in(ways: sign_in.Ways) -> None:
    for provider in ways.providers:
        label = f"Sign in with {words.plain(provider)}" if provider else "Sign in"
        st.button(label, key=f"sign.in.{provider}", icon=":material/login:", on_click=st.login, args=(provider or None,))  # fmt: skip
    if ways.password:
        with st.form("sign.in", clear_on_submit=True, border=False):
            password = st.text_input(
                "Operator password",
                type="password",
                max_chars=MOST_LENGTH,
                autocomplete="current-password",
            )
            asked = st.form_submit_button("Enter", icon=":material/key:")
        if asked:
            refusal = access.enter(password)
            if not refusal:
                st.rerun()
            st.error(refusal)
