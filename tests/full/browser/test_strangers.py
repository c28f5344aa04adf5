"""A shared dashboard: viewers only look; operators, signed in with a password or at a provider,
make changes.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from oidc_provider_mock import User, run_server_in_thread
from playwright.sync_api import Browser, Page, expect

from dashboard.frame import access, notices
from gan_runtime import bundles
from gan_runtime.base.web_access import hash_of
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from tests.browser import careless_proxy, forged
from tests.browser.dashboard_process import Dashboard, open_page, settled
from tests.browser.runs_page import tick
from tests.browser.stored_runs import stored
from tests.support import local_server

pytestmark = pytest.mark.timeout(600)  # 41 s of CPU time, in a browser, a server and a provider

PASSWORD = "correct horse battery staple"
CLIENT_SECRET, COOKIE_SECRET = "c4e1-client-secret", "0b9f-cookie-secret-of-this-test"
PEOPLE = (
    User(sub="anna", claims={"email": "Anna@lab.example", "email_verified": True}),
    User(sub="eve", claims={"email": "anna@lab.example", "email_verified": False}),
)
SECRETS = """
[operators]
emails = ["anna@lab.example"]
password = "{hash}"
[auth]
redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
cookie_secret = "{cookie}"
client_id = "gan-dashboard"
client_secret = "{client}"
server_metadata_url = "http://localhost:{provider}/.well-known/openid-configuration"
"""


@pytest.fixture
def shared(tmp_path: Path, new_run: Callable[..., RunDir]) -> Iterator[Dashboard]:
    """A dashboard behind a proxy's host name, with a run and both ways to sign in."""
    stored(new_run("quick-0001"), 1.0)
    port, file = local_server.free_port(), tmp_path / "secrets.toml"
    with run_server_in_thread(user_claims=PEOPLE) as provider:
        settings = {
            "port": port,
            "provider": provider.server_port,
            "cookie": COOKIE_SECRET,
            "client": CLIENT_SECRET,
        }
        file.write_text(SECRETS.format(hash=hash_of(PASSWORD), **settings))
        started = Dashboard(
            tmp_path / "home",
            tmp_path / "dashboard.log",
            *("--secrets.files", str(file)),
            port=port,
            STREAMLIT_SERVER_ALLOWED_HOSTS="lab.example 127.0.0.1",
        )
        yield started
        started.stop()


def test_anonymous_viewers_only_look_and_operators_change_runs(
    browser: Browser, shared: Dashboard
) -> None:
    # An anonymous viewer can read everything and press nothing.
    page = open_page(browser, shared.address)
    expect(page.get_by_text(access.SIGN_IN).first).to_be_visible()
    expect(page.get_by_role("button", name="Sign in")).to_be_in_viewport()
    expect(page.get_by_role("button", name="Start a quick run")).to_be_disabled()
    expect(page.get_by_text("quick-0001").first).to_be_visible()

    # Forged messages and a forged file: the first press takes effect, so the others would, too.
    with forged.open_session(shared.address) as session:
        viewer = forged.rerun(session)
        typed = {viewer.ids["Operator password"]: "wrong horse battery staple"}
        wrong = forged.rerun(session, viewer.page, viewer.ids["Enter"], **typed)
        assert wrong.boxes == ["That is not the operator password."]
        for name in ("Start a quick run", "Load example runs"):
            assert forged.rerun(session, viewer.page, viewer.ids[name]).boxes == []
        assert forged.send_file(shared.address, viewer.session_id) == 403
    assert sorted(path.name for path in (shared.home / "runs").glob("[a-z]*")) == ["quick-0001"]
    assert not list((shared.home / "jobs").glob("*"))

    # A wrong password, the right one, and signing out.
    enter(page, "wrong horse battery staple")
    expect(page.get_by_text("That is not the operator password.")).to_be_in_viewport(ratio=1)
    enter(page, PASSWORD)
    expect(page.get_by_text(access.PASSWORD_USER)).to_be_visible()
    expect(page.get_by_role("button", name="Start a quick run")).to_be_enabled()
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Runs").click()
    settled(page)
    rename_first(page, "Renamed by an operator")
    run = Home(shared.home).run_dir("quick-0001")
    assert "Renamed by an operator" in run.supervisor_journal.read_text(encoding="utf-8")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("View only")).to_be_visible()
    page.close()

    check_secrets(shared, PASSWORD, "wrong horse")


def test_login_provider_decides_who_is_an_operator(browser: Browser, shared: Dashboard) -> None:
    """A user with another user's unverified email address stays a viewer; users who are not listed
    by address or number are no operators.
    """
    for person, name, is_operator in [("eve", "anna", False), ("anna", "Anna", True)]:
        page = open_page(browser, shared.address)
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.get_by_role("button", name="Sign in with your account").click()
        page.locator(f"button[value='{person}']").first.click()
        page.wait_for_url(f"{shared.address}/**")
        settled(page)
        expect(
            page.get_by_text("Operator", exact=True).or_(page.get_by_text(notices.NOT_LISTED))
        ).to_be_visible()
        assert page.get_by_text("Operator", exact=True).is_visible() == is_operator
        expect(page.locator(".st-key-who").get_by_text(name).first).to_be_visible()
        page.close()

    check_secrets(shared)


def test_refused_websocket_is_explained_on_the_page(browser: Browser, dashboard: Dashboard) -> None:
    """Behind a proxy that does not forward the Host header; a page that connects shows no alert."""
    with careless_proxy.before(dashboard.port) as port:
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/run")
        alert = page.get_by_role("alert").filter(has_text="pass on the Host header")
        expect(alert).to_contain_text(
            f"The page is at http://127.0.0.1:{port}, but asks for the dashboard at"
            f" 127.0.0.1:{dashboard.port}."
        )
        page.close()
    refusals = [line for line in dashboard.printed().splitlines() if "WebSocket refused" in line]
    assert len(refusals) == 1
    assert f"http://127.0.0.1:{port}" in refusals[0]


def check_secrets(shared: Dashboard, *more: str) -> None:
    """Checks that home, bundle and log contain no secret, and home and bundle no user name."""
    shared.stop()
    bundle = shared.home.with_name("given-away.zip")
    bundles.pack([Home(shared.home).run_dir("quick-0001")], bundle)
    with zipfile.ZipFile(bundle) as packed:
        given_away = [packed.read(name).decode(errors="replace") for name in packed.namelist()]
    texts = [
        shared.printed(),
        *given_away,
        *(path.read_text(errors="replace") for path in shared.home.rglob("*") if path.is_file()),
    ]
    assert any("loss_generator" in text for text in given_away), "the bundle holds the run"
    assert len(texts) > 5, "this looks in the wrong place"
    for secret in (CLIENT_SECRET, COOKIE_SECRET, "$argon2id$", *more):
        assert not [text for text in texts if secret in text], "a secret was written down"
    assert not [text for text in texts[1:] if "lab.example" in text], (
        "journals and database know no person"
    )


def enter(page: Page, password: str) -> None:
    """Types the password above the page."""
    field = page.get_by_label("Operator password")
    if not field.is_visible():
        page.get_by_role("button", name="Sign in", exact=True).click()
    field.fill(password)
    page.get_by_role("button", name="Enter").click()


def rename_first(page: Page, name: str) -> None:
    """Renames the first run in the table on Runs."""
    tick(page, 1)
    page.get_by_role("button", name="Rename").click()
    page.get_by_role("textbox", name="New name").fill(name)
    page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
