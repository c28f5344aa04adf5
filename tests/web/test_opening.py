"""How app.py opens the dashboard."""

from __future__ import annotations

import gc
from contextlib import nullcontext

import pytest

import app
from dashboard.frame import session
from gan_runtime.base.errors import GanRuntimeError


@pytest.mark.parametrize("error", [None, GanRuntimeError("the home is in use")])
def test_garbage_collection_is_off_while_libraries_load_and_on_afterwards(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    states: list[bool] = []

    def open_early() -> None:
        states.append(gc.isenabled())
        if error:
            raise error

    monkeypatch.setattr(session, "open_early", open_early)
    with pytest.raises(GanRuntimeError) if error else nullcontext():
        app.open_dashboard()
    assert states == [False]
    assert gc.isenabled()
