"""Notices to real receivers on this machine: one per event, with retries, and without secrets."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.header import decode_header, make_header
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gan_runtime import bundles
from gan_runtime.base import channels, framework_settings
from gan_runtime.base.errors import NotifyError
from gan_runtime.cli.app import app
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records import journal
from gan_runtime.records.answer import Score
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.states import Reason, cause
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision import notifications
from gan_runtime.supervision.notifications import LEDGER, Notifier
from tests.support import receivers
from tests.support.local_server import free_port
from tests.support.measured_images import answer
from tests.support.receivers import Received

NewRun = Callable[..., RunDir]
FINE = {"spread_real": 0.2, "spread_fake": 0.15, "probe_score_real": 0.6, "probe_score_fake": 0.4}
ALIKE = {**FINE, "spread_fake": 0.001}


@pytest.fixture
def hook() -> Iterator[Received]:
    with receivers.webhook() as received:
        yield received


class Owner:
    """Sends notices like the owner of a home, with a clock that the test advances."""

    def __init__(self, home: Home, **environment: str) -> None:
        self.now_s, self._store = 0.0, Store()
        self._ingestor = Ingestor(home, self._store)
        self.notifier = Notifier(home, self._store, lambda: True, lambda: self.now_s, environment)

    def after(self, seconds: float) -> None:
        self.now_s += seconds
        self._ingestor.catch_up()
        self.notifier.run_round(timeout_s=5.0)


def write(home: Home, received: Received, rest: str = "") -> None:
    """Writes settings with a webhook."""
    hook = f'[webhook]\nurl = "http://127.0.0.1:{received.port}/T1"\ntoken = "t0ken"\n'
    (home.path / channels.FILE).write_text(f"{rest}\n{hook}", encoding="utf-8")


def webhook(port: int) -> channels.Webhook:
    return channels.Webhook.model_validate({"url": f"http://127.0.0.1:{port}/T1", "token": "t0ken"})


def by_email(post: Received) -> dict[str, str]:
    """The variables that set up e-mail to this server."""
    return {
        "GAN_RUNTIME_NOTIFY_EMAIL_TO": "anna@lab.example",
        "GAN_RUNTIME_NOTIFY_EMAIL_SENDER": "gan@lab.example",
        "GAN_RUNTIME_NOTIFY_EMAIL_HOST": "127.0.0.1",
        "GAN_RUNTIME_NOTIFY_EMAIL_PORT": str(post.port),
        "GAN_RUNTIME_NOTIFY_EMAIL_SECURITY": "none",
    }


def trains(run: RunDir, *scores: dict[str, float], first: int = 1) -> None:
    """Records that the run trains and has these epoch scores."""
    journal.append(
        run.trainer_journal(),
        1,
        StatusChange(status="running", reason="training"),
        *(
            record
            for epoch, values in enumerate(scores, first)
            for record in (
                journal.EpochScores(epoch=epoch, step=10 * epoch, wall_s=1.0, values=values),
                journal.EpochDone(
                    epoch=epoch, step=10 * epoch, seconds=1.0, images=1, images_per_s=1.0
                ),
            )
        ),
    )


def ends(run: RunDir, status: journal.Status = "finished", attempt: int = 1) -> None:
    why = cause(Reason.EPOCHS_DONE, epochs=3)
    journal.append(run.trainer_journal(), attempt, StatusChange.of(status, why))


def test_each_event_is_sent_once_even_by_later_owners(
    home: Home, new_run: NewRun, hook: Received
) -> None:
    before, first = new_run("quick-0001"), new_run("quick-0002", seconds=1)
    ends(before)
    write(home, hook)
    owner = Owner(home)
    owner.after(0.0)
    assert hook.ids == [], "it ended before anybody wanted to know"
    trains(first, FINE, FINE)
    ends(first)
    for _ in range(3):
        owner.after(5.0)
    second = new_run("quick-0003", seconds=2)
    trains(second)
    ends(second, "lost")  # while the home has no owner
    for _ in range(2):
        Owner(home).after(0.0)
    assert hook.ids == ["quick-0002/1/ended", "quick-0003/1/failed"]
    document = hook.documents[0]
    assert document["text"] == document["content"]
    assert document["text"] == (
        "quick-0002 finished. All 3 epochs done. No alarm: D scores real 0.60, generated 0.40 in"
        " epoch 2; quality is not measured yet."
    )
    assert (document["status"], document["reason"], document["finding"]) == (
        "finished",
        "epochs_done",
        "no_alarm",
    )
    assert hook.headers[0]["Authorization"] == "Bearer t0ken"
    assert hook.headers[0]["Idempotency-Key"] == "quick-0002/1/ended"


def test_resumed_run_reports_its_next_end(home: Home, new_run: NewRun, hook: Received) -> None:
    run = new_run("quick-0001")
    write(home, hook)
    owner = Owner(home)
    owner.after(0.0)
    ends(run, "failed")
    owner.after(5.0)
    journal.append(run.supervisor_journal, 2, StatusChange(status="queued", reason="resumed"))
    owner.after(5.0)
    ends(run, attempt=2)
    owner.after(5.0)
    assert hook.ids == ["quick-0001/1/failed", "quick-0001/2/ended"]


def test_collapse_is_reported_once_while_the_run_trains(
    home: Home, new_run: NewRun, hook: Received
) -> None:
    run = new_run("quick-0001")
    write(home, hook, 'url = "https://lab.example/gan/"')
    owner = Owner(home)
    trains(run, FINE, FINE, ALIKE, ALIKE)
    owner.after(0.0)
    assert hook.ids == [], "two epochs of three are no verdict"
    trains(run, ALIKE, first=5)
    owner.after(5.0)
    trains(run, ALIKE, first=6)
    owner.after(5.0)
    assert hook.ids == ["quick-0001/1/collapsed"]
    assert hook.documents[0]["text"] == (
        "quick-0001 collapsed. Collapsed: generated images vary 0.5% as much as real images in"
        " epochs 3 to 5. https://lab.example/gan/run?run=quick-0001"
    )


def test_collapse_that_is_measured_after_the_end_is_reported_once(
    home: Home, new_run: NewRun, hook: Received
) -> None:
    """The quality of a short run is measured only when it has ended."""
    run = new_run("quick-0001")
    write(home, hook)
    owner = Owner(home)
    trains(run, FINE, FINE, FINE)
    owner.after(0.0)
    ends(run)
    owner.after(5.0)
    few = Score(name="class_distance", value=0.85, low=0.8, high=0.9)
    measured = answer(3).model_copy(update={"scores": [few]})
    journal.append(run.evaluations_journal, 1, measured)
    for _ in range(2):
        owner.after(5.0)
    Owner(home).after(0.0)
    assert hook.ids == ["quick-0001/1/ended", "quick-0001/1/collapsed"]
    assert "Collapsed after epoch 3: few classes, class distance 85%" in str(
        hook.documents[1]["text"]
    )


def test_failed_notice_is_retried_with_growing_pauses(
    home: Home, new_run: NewRun, hook: Received
) -> None:
    run = new_run("quick-0001")
    write(home, hook)
    owner = Owner(home)
    owner.after(0.0)
    ends(run)
    hook.answers = [500, 503, 302]
    tries = []
    for second in range(200):
        owner.after(1.0)
        if len(tries) != 3 - len(hook.answers):
            tries.append(second)
        if not hook.answers:
            break
    assert [later - sooner for sooner, later in pairwise(tries)] == [5, 30]
    assert "127.0.0.1 answers 302" in owner.notifier.trouble, "a redirect would get the token"
    owner.after(119.0)
    assert hook.ids == []
    owner.after(1.0)
    assert hook.ids == ["quick-0001/1/ended"]
    assert owner.notifier.trouble == ""


def test_notice_is_abandoned_after_a_day_of_retries(
    home: Home, new_run: NewRun, hook: Received
) -> None:
    run = new_run("quick-0001")
    write(home, hook)
    owner = Owner(home)
    owner.after(0.0)
    ends(run)
    hook.answers = [500] * 100
    for _ in range(2 * notifications.MOST_TRIES):
        owner.after(notifications.PAUSES_SECONDS[-1])
    assert len(hook.answers) == 100 - notifications.MOST_TRIES
    assert '"given_up"' in (home.path / LEDGER).read_text(encoding="utf-8")


def test_only_chosen_events_are_sent_and_later_choices_send_no_old_ones(
    home: Home, new_run: NewRun, hook: Received
) -> None:
    runs = [new_run(f"quick-000{number}", seconds=number) for number in (1, 2)]
    write(home, hook, 'events = ["failed"]')
    owner = Owner(home)
    owner.after(0.0)
    ends(runs[0])
    ends(runs[1], "failed")
    owner.after(5.0)
    write(home, hook)
    owner.after(5.0)
    assert hook.ids == ["quick-0002/1/failed"]


def test_imported_runs_send_no_notices(home: Home, hook: Received) -> None:
    write(home, hook)
    owner = Owner(home)
    owner.after(0.0)
    example = min(bundles.examples(), key=lambda path: path.stat().st_size)
    assert bundles.unpack(example, home)
    owner.after(5.0)
    assert hook.ids == []


def test_email_subject_is_one_line_whatever_the_run_name(home: Home, new_run: NewRun) -> None:
    with receivers.mail_server() as post:
        owner = Owner(
            home,
            GAN_RUNTIME_NOTIFY_EMAIL_TO="anna@lab.example, ben@lab.example",
            GAN_RUNTIME_NOTIFY_EMAIL_SENDER="gan@lab.example",
            GAN_RUNTIME_NOTIFY_EMAIL_HOST="127.0.0.1",
            GAN_RUNTIME_NOTIFY_EMAIL_PORT=str(post.port),
            GAN_RUNTIME_NOTIFY_EMAIL_SECURITY="none",
            GAN_RUNTIME_NOTIFY_EMAIL_USER="gan",
            GAN_RUNTIME_NOTIFY_EMAIL_PASSWORD="s3cret",
        )
        owner.after(0.0)
        run = new_run("quick-0001")
        name = "größe\r\nBcc: all@lab.example"
        journal.append(run.supervisor_journal, 1, journal.Renamed(name=name))
        ends(run)
        owner.after(5.0)
        owner.after(5.0)
    [mail] = post.mails
    subject = str(make_header(decode_header(mail["Subject"])))
    assert subject == "größe Bcc: all@lab.example (quick-0001) finished"
    assert mail["Bcc"] is None
    assert mail["To"] == "anna@lab.example, ben@lab.example"
    assert mail["Message-ID"] == "<quick-0001.1.ended@gan-dashboard>"
    assert any(line.startswith("AUTH PLAIN") for line in post.commands)
    assert [line for line in post.commands if line.startswith("rcpt")] == [
        "rcpt TO:<anna@lab.example>",
        "rcpt TO:<ben@lab.example>",
    ]


def test_failing_channel_does_not_block_the_other(
    home: Home, new_run: NewRun, hook: Received
) -> None:
    write(home, hook)
    with receivers.mail_server() as post:
        owner = Owner(home, **by_email(post))
        owner.after(0.0)
        ends(new_run("quick-0001"))
        hook.answers = [500]
        owner.after(5.0)
        assert (len(post.mails), hook.ids) == (1, [])
        owner.after(5.0)
        assert (len(post.mails), hook.ids) == (1, ["quick-0001/1/ended"])


NOT_HTTP = {
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "status that is no number": b"HTTP/1.1 fine s3cret\r\n\r\n",
    "header without an end": b"HTTP/1.1 204 No Content\r\nX: " + b"s3cret" * 50_000,
    "line break in a header": b"HTTP/1.1 204 No Content\r\n s3cret\r\n\r\n",
}


@pytest.mark.parametrize("answer", NOT_HTTP.values(), ids=NOT_HTTP)
def test_webhook_that_does_not_answer_in_http_delays_itself_but_no_email(
    home: Home, new_run: NewRun, answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with (
        receivers.other_server(lambda: iter([answer])) as port,
        receivers.mail_server() as post,
    ):
        write(home, Received(port=port))
        owner = Owner(home, **by_email(post))
        owner.after(0.0)
        ends(new_run("quick-0001"))
        owner.after(5.0)
        owner.after(1.0)
    assert len(post.mails) == 1
    assert [line for line in caplog.messages if "not sent" in line] == [
        "quick-0001/1/ended by webhook was not sent (try 1): 127.0.0.1 cannot be reached (it does"
        " not answer in HTTP)."
    ]
    assert not any(secret in caplog.text for secret in ("/T1", "t0ken", "s3cret"))


def test_answer_to_a_webhook_logs_no_address(
    hook: Received, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    webhook(hook.port).send(notifications.trial_notice())
    assert len(hook.documents) == 1
    assert "T1" not in caplog.text


def slow(start: bytes, end: bytes) -> Callable[[], Iterator[bytes]]:
    """A valid answer, with a start that arrives byte by byte during six seconds."""
    return lambda: iter([*(start[place : place + 1] for place in range(60)), start[60:] + end])


ENDLESS = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.parametrize(
    ("pieces", "pause_s"),
    [
        (slow(b"HTTP/1.1 204 No Content\r\nX: " + b"x" * 40, b"\r\n\r\n"), 0.1),
        (lambda: itertools.repeat(ENDLESS * 100), 0.0),
        (lambda: itertools.repeat(b""), 0.1),
    ],
    ids=["byte by byte", "to be continued", "nothing"],
)
def test_try_of_a_webhook_ends_in_time(
    pieces: Callable[[], Iterator[bytes]], pause_s: float
) -> None:
    with (
        receivers.other_server(pieces, pause_s) as port,
        pytest.raises(
            NotifyError, match=r"127.0.0.1 cannot be reached \(no complete answer in time"
        ),
    ):
        webhook(port).send(notifications.trial_notice(), timeout_s=0.3)


@pytest.mark.parametrize(
    ("pieces", "pause_s"),
    [
        (slow(b"220 " + b"x" * 60, b"\r\n"), 0.1),
        (lambda: itertools.repeat(b"220-wait\r\n" * 100), 0.0),
        (lambda: itertools.repeat(b""), 0.1),
    ],
    ids=["byte by byte", "to be continued", "nothing"],
)
def test_try_of_an_email_ends_in_time(
    pieces: Callable[[], Iterator[bytes]], pause_s: float
) -> None:
    with receivers.other_server(pieces, pause_s) as port:
        email = channels.Email(
            to=["anna@lab.example"],
            sender="gan@lab.example",
            host="127.0.0.1",
            port=port,
            security="none",
        )
        with pytest.raises(NotifyError, match=r"127.0.0.1 sends no e-mail \(no complete answer"):
            email.send(notifications.trial_notice(), timeout_s=0.3)


def test_torn_ledger_line_does_not_repeat_a_notice(
    home: Home, new_run: NewRun, hook: Received
) -> None:
    write(home, hook)
    run = new_run("quick-0001")
    owner = Owner(home)
    owner.after(0.0)
    ends(run)
    owner.after(5.0)
    with (home.path / LEDGER).open("a", encoding="utf-8") as file:
        file.write('{"channel": 3}\n[]\n{"channel": "webhook", "ke')
    Owner(home).after(0.0)
    assert hook.ids == ["quick-0001/1/ended"]


# ---- owner process -------------------------------------------------------------------------------


def test_owner_sends_notices_and_closing_keeps_the_last_event(
    home: Home, new_run: NewRun, hook: Received, wait_until: Callable[..., Any]
) -> None:
    write(home, hook)
    runtime = Runtime.open(home)
    try:
        wait_until((home.path / LEDGER).exists, "the channel is noted")
        ends(new_run("quick-0001"))
        runtime.refresh()
    finally:
        runtime.close()
    assert hook.ids == ["quick-0001/1/ended"]


def test_unresponsive_server_does_not_block_runs(
    home: Home, new_run: NewRun, hook: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[float] = []

    def hang(*_: object, **__: object) -> None:
        held.append(time.monotonic())
        time.sleep(0.5)
        raise NotifyError("no answer.")

    monkeypatch.setattr(channels.Webhook, "send", hang)
    monkeypatch.setattr(notifications, "ROUND_SECONDS", 0.01)
    write(home, hook)
    runtime = Runtime.open(home)
    try:
        while not (home.path / LEDGER).exists():
            time.sleep(0.01)
        run = new_run("quick-0001")
        ends(run)
        while not held:
            runtime.refresh()
            time.sleep(0.01)
        begin = time.monotonic()
        for _ in range(5):
            runtime.refresh()
        assert time.monotonic() - begin < 0.4
    finally:
        runtime.close()


# ---- settings ------------------------------------------------------------------------------------


EXAMPLE = """
url = "https://lab.example/dashboard"  # for links
events = ["ended", "failed", "collapsed"]

[webhook]  # JSON by POST: Slack, Mattermost, Discord, a script
url = "https://hooks.example/T1"

[email]
to = ["anna@lab.example"]
sender = "gan@lab.example"
host = "smtp.lab.example"
user = "gan"
"""


def test_documented_example_is_valid(home: Home) -> None:
    (home.path / channels.FILE).write_text(EXAMPLE, encoding="utf-8")
    settings = channels.settings(home.path, {})
    assert [channel.target for channel in settings.channels] == [
        "hooks.example",
        "anna@lab.example",
    ]
    assert settings.events == channels.EVENTS


MAIL = '[email]\nto = ["a@b.example"]\nsender = "a@b.example"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[webhook]\nurl = "ftp://user:s3cret@h/"', "webhook.url: use an address"),
        ('[webhook]\nurl = "https://h/s3cret"\ntokn = "s3cret"', "webhook.tokn: Extra inputs"),
        ('[webhook]\nurl = "https://h/s3cret', "is not TOML"),
        ('[email]\nto = ["a b"]\nsender = "a@b"\nhost = "h"\npassword = "s3cret"', "email.to.0"),
        ('events = ["s3cret"]', "events.0"),
        ('[webhook]\nurl = "https://h:s3cret/T1"', "webhook.url: use an address"),
        ('[webhook]\nurl = "https://[s3cret/T1"', "webhook.url: use an address"),
        ('[webhook]\nurl = "https://h/"\ntoken = "s3cret\\nX: 1"', "webhook.token: the token must"),
        ('[webhook]\nurl = "https://h/"\ntoken = "s3crët"', "webhook.token: the token must"),
        (f'{MAIL}host = "h..x"\npassword = "s3cret"', "email.host: it is not the name"),
        (f'{MAIL}host = "h"\npassword = "s3cret\\u0000"', "email.password: the password must"),
        (f"s3cret = {'[' * 20_000}", "is not TOML"),
        (f"s3cret = '{'x' * 100_000}'", "more than 100,000 bytes"),
    ],
)
def test_invalid_settings_are_named_without_their_values(
    home: Home, text: str, message: str
) -> None:
    (home.path / channels.FILE).write_text(text, encoding="utf-8")
    with pytest.raises(NotifyError) as refused:
        channels.settings(home.path, {})
    assert message in str(refused.value)
    assert "s3cret" not in str(refused.value)
    settings = channels.NoticeSettings(
        webhook=channels.Webhook(url="https://h/s3cret", token="s3cret")  # type: ignore[arg-type]
    )
    assert "s3cret" not in repr(settings)


def test_a_webhook_is_sent_from_a_notebook_with_its_running_event_loop(
    home: Home, hook: Received
) -> None:
    (home.path / channels.FILE).write_text(
        f'[webhook]\nurl = "http://127.0.0.1:{hook.port}/"', encoding="utf-8"
    )
    [channel] = channels.settings(home.path, {}).channels

    async def cell() -> None:
        channel.send(notifications.trial_notice())

    with ThreadPoolExecutor(1) as thread:  # a browser test leaves a loop in this one
        thread.submit(asyncio.run, cell()).result()
    assert len(hook.documents) == 1


def test_space_around_an_address_or_a_token_does_not_count(home: Home, hook: Received) -> None:
    (home.path / channels.FILE).write_text(
        f'[webhook]\nurl = " http://127.0.0.1:{hook.port}/T 1\\n"\ntoken = "t0ken\\n"',
        encoding="utf-8",
    )
    [channel] = channels.settings(home.path, {}).channels
    channel.send(notifications.trial_notice())
    assert hook.headers[0]["Authorization"] == "Bearer t0ken"


def test_pipe_in_place_of_the_settings_is_refused(home: Home) -> None:
    os.mkfifo(home.path / channels.FILE)
    with pytest.raises(NotifyError, match="is not a file"):
        channels.settings(home.path, {})


def test_environment_variable_overrides_the_file(home: Home, hook: Received) -> None:
    write(home, hook, 'events = ["failed"]')
    environment = {
        "GAN_RUNTIME_NOTIFY_EVENTS": "ended, collapsed",
        "GAN_RUNTIME_NOTIFY_WEBHOOK_TOKEN": "other",
    }
    settings = channels.settings(home.path, environment)
    assert settings.events == ("ended", "collapsed")
    assert settings.webhook is not None
    assert settings.webhook.token is not None
    assert settings.webhook.token.get_secret_value() == "other"


def test_trainers_and_bundles_get_no_secret(
    home: Home, new_run: NewRun, hook: Received, tmp_path: Path
) -> None:
    environment = {"GAN_RUNTIME_NOTIFY_EMAIL_PASSWORD": "s3cret", "PATH": "/bin"}
    assert "s3cret" not in str(framework_settings.clean_environment(environment))
    write(home, hook)
    run = new_run("quick-0001")
    ends(run)
    owner = Owner(home)
    owner.after(0.0)
    bundle = tmp_path / "runs.zip"
    bundles.pack([run], bundle)
    assert b"t0ken" not in bundle.read_bytes()
    assert "t0ken" not in (home.path / LEDGER).read_text(encoding="utf-8")


def test_notify_command_tests_each_channel_and_shows_no_secret(home: Home, hook: Received) -> None:
    write(home, hook)
    where = ["--home", str(home.path)]
    shown = CliRunner().invoke(app, ["notify", *where])
    assert "127.0.0.1" in shown.output
    assert "T1" not in shown.output
    assert hook.documents == []
    tried = CliRunner().invoke(app, ["notify", "--test", "--json", *where])
    assert json.loads(tried.stdout)["channels"] == [
        {"channel": "webhook", "to": "127.0.0.1", "test": "accepted"}
    ]
    assert [document["event"] for document in hook.documents] == ["test"]


def test_failed_test_notice_explains_why(home: Home, hook: Received) -> None:
    hook.port = free_port()
    write(home, hook)
    tried = CliRunner().invoke(app, ["notify", "--test", "--home", str(home.path)])
    assert tried.exit_code == 2
    assert "127.0.0.1 cannot be reached (Connection refused)" in tried.output
    assert "t0ken" not in tried.output
