"""Buttons that change something: every one of them stands here, greyed with the reason for whoever may only look.

This spares a viewer a press in vain, and protects nothing: a forged press is refused at the one door (gan_runtime/records/actors.py).
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.frame import access


def button(label: str, *, disabled: bool = False, help: str | None = None, **arguments: Any) -> bool:
    """`st.button`, for operators."""
    why_not = access.asker().why_not
    return st.button(label, disabled=disabled or bool(why_not), help=why_not or help, **arguments)


def form_button(label: str, **arguments: Any) -> bool:
    """`st.form_submit_button`, for operators."""
    why_not = access.asker().why_not
    return st.form_submit_button(label, disabled=bool(why_not), help=why_not or None, **arguments)
