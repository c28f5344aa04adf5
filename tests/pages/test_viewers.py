"""The pages of a viewer: the same, but every button that changes something is disabled with a
reason; a forced press does nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import actions
from dashboard.frame import access, session
from gan_runtime.records.home import Home
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from tests.support.sources import ROOT, python_files

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]
CHANGES = {
    "home": ["Start a quick run", "Load example runs", "Stop and save"],
    "launch": ["Add to the queue", "Detect hardware again"],
    "run": ["Stop and save"],
    "launch/study": ["Start study"],
}


@pytest.fixture
def viewing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Serves at an address that others can reach."""
    monkeypatch.setattr(access, "is_shared", lambda: True)


@pytest.mark.parametrize("page", CHANGES)
@pytest.mark.usefixtures("viewing", "running")
def test_viewers_see_changing_buttons_disabled_with_a_reason(show: Show, page: str) -> None:
    app = show(page)
    greyed = {button.label: button.help for button in app.button if button.disabled}
    assert {name: greyed.get(name) for name in CHANGES[page]} == dict.fromkeys(
        CHANGES[page], access.VIEW_ONLY
    )
    first = app.main.markdown[0].value
    assert first == f":material/visibility: **View only.** {access.VIEW_ONLY}", (
        "above everything else"
    )


@pytest.mark.usefixtures("viewing")
def test_an_enabled_button_is_still_refused_for_viewers(
    show: Show, running: RunDir, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streamlit 1.67 drops a forged press of a disabled button; `Commands` does not rely on it."""
    monkeypatch.setattr(actions, "access", SimpleNamespace(actor=lambda: operator("dashboard")))
    app = show("home")
    for name in CHANGES["home"]:
        next(button for button in app.button if button.label == name).click().run()
        messages = [box.value for box in (*app.error, *app.toast)]
        assert access.VIEW_ONLY in messages, name
    assert [row.run_id for row in queries.runs(session.runtime().store)] == [running.run_id]
    assert sorted(path.name for path in home.runs.glob("[a-z]*")) == [running.run_id]
    assert not running.stop_file.exists()


@pytest.mark.usefixtures("viewing")
def test_a_viewer_cannot_add_data(show: Show) -> None:
    app = show("data")
    assert not app.get("file_uploader")
    assert f"Only operators can add data. {access.VIEW_ONLY}" in [
        caption.value for caption in app.caption
    ]


@pytest.mark.parametrize(
    ("address", "further", "reached"),
    [
        ("127.0.0.1", [], False),
        ("::1", [], False),
        ("localhost", ["127.0.0.1"], False),
        (
            "127.0.0.1",
            ["lab.example"],
            True,
        ),  # a proxy on this machine, which forwards requests of others
        ("0.0.0.0", [], True),
        ("::", [], True),
        ("", [], True),  # Streamlit's default: all interfaces
        ("192.168.1.5", [], True),
        ("unix:///run/gan.sock", [], True),
    ],
)
def test_is_shared_depends_on_address_and_allowed_hosts(
    monkeypatch: pytest.MonkeyPatch, address: str, further: list[str], reached: bool
) -> None:
    monkeypatch.setattr(
        access.st, "get_option", {"server.address": address, "server.allowedHosts": further}.get
    )
    assert access.is_shared() == reached


# Buttons that only change the display; all others belong in dashboard/actions.py.
LOOKING = {
    "dashboard/data/sets_view.py": ["Train on it"],
    "dashboard/evaluation/form.py": ["evaluation.verb"],  # disabled, with the reason
    "dashboard/frame/notices.py": ["Try again", "label", "Got it", "Sign out", "label", "Enter"],
    "dashboard/launch/form.py": ["str(value)", "Use float32", "Use the repaired setting"],
    "dashboard/launch/where.py": ["option_words.choice(name)"],
    "dashboard/run/buttons.py": ["Present", "Run again with changes", "Stopping …"],
    "dashboard/run/stage.py": ["label", "Leave"],
    "dashboard/runs/view.py": ["f'Compare {len(ids)} runs'", "Open", "Samples"],
    "dashboard/samples/players.py": ["'Pause' if playing else 'Play'"],
    "dashboard/widgets.py": ["Follow the newest epoch"],
    "dashboard/plots.py": ["Show everything"],
    "pages/compare.py": ["runtime.store"],  # downloads the report
}


def test_every_other_button_only_changes_the_display() -> None:
    plain: dict[str, list[str]] = {}
    for path in python_files("pages", "dashboard"):
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("button", "form_submit_button", "menu_button")
                and ast.unparse(node.func.value) not in ("actions", "buttons")
            ):
                label = node.args[0]
                text = str(label.value) if isinstance(label, ast.Constant) else ast.unparse(label)
                plain.setdefault(str(path), []).append(text)
    assert plain.pop("dashboard/actions.py") == ["label", "label"]  # these two disable the others
    assert {path: sorted(labels) for path, labels in plain.items()} == {
        path: sorted(labels) for path, labels in LOOKING.items()
    }
