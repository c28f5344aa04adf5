"""A viewer's forged messages in Streamlit's protocol, which no page sends, affect no one else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from google.protobuf.message import Message
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest, BackMsg
from websockets.exceptions import ConnectionClosed

from dashboard.frame import access, web_guard
from gan_runtime.base.web_access import hash_of
from gan_runtime.records.home import Home
from tests.browser import forged
from tests.browser.dashboard_process import Dashboard
from tests.browser.stored_runs import queued, stored

PASSWORD = "correct horse battery staple"
ANYBODY = {"heartbeat_ack", "session_status_changed"}  # messages that follow a drawn page


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A dashboard behind a proxy's host name, with a run and an operator password."""
    folder = tmp_path_factory.mktemp("shared")
    stored(queued(Home(folder / "home")), 1.0)
    file = folder / "secrets.toml"
    file.write_text(f'[operators]\npassword = "{hash_of(PASSWORD)}"')
    started = Dashboard(
        folder / "home",
        folder / "dashboard.log",
        *("--secrets.files", str(file)),
        STREAMLIT_SERVER_ALLOWED_HOSTS="lab.example 127.0.0.1",
    )
    yield started
    started.stop()


def refused_messages(session_id: str) -> dict[str, bytes]:
    """Returns one message of each kind in the protocol that no dashboard page sends, including
    kinds that a later Streamlit adds.
    """
    messages = {"": b""}
    for field in BackMsg.DESCRIPTOR.fields:
        message = BackMsg()
        if field.name not in (*web_guard.PASSED, "backend_operation_request"):
            fill(message, field.name)
            messages[field.name] = message.SerializeToString()
    for field in BackendOperationRequest.DESCRIPTOR.oneofs_by_name["payload"].fields:
        message = BackMsg()
        message.backend_operation_request.session_id = session_id
        if field.name not in web_guard.OPERATIONS_PASSED:
            fill(message.backend_operation_request, field.name)
            messages[field.name] = message.SerializeToString()
    return messages


def fill(message: Message, field: str) -> None:
    """Sets the field, whatever its type."""
    value = getattr(message, field)
    if isinstance(value, Message):
        value.SetInParent()
    else:
        setattr(message, field, True)


def test_viewer_messages_affect_no_operator_home_or_memory(
    shared: Dashboard,
) -> None:
    with (
        forged.open_session(shared.address) as operator,
        forged.open_session(shared.address) as viewer,
    ):
        page = forged.rerun(operator)
        forged.rerun(
            operator, page.page, page.ids["Enter"], **{page.ids["Operator password"]: PASSWORD}
        )
        assert "Sign out" in forged.rerun(operator, page.page).ids
        session = forged.rerun(viewer)
        messages = refused_messages(session.session_id)
        messages.pop("")
        assert {"clear_cache", "load_git_info", "debug_shutdown_runtime", "install_skills"} <= set(
            messages
        )
        process = psutil.Process(shared.process.pid)
        before, databases = process.num_threads(), open_databases(process)
        for _ in range(3):
            for message in messages.values():
                viewer.send(message)
                assert set(forged.answer_to_a_heartbeat(viewer)) <= ANYBODY, (
                    "nothing else was answered"
                )
            assert access.SIGN_IN in forged.rerun(viewer).text
        again = forged.rerun(operator, page.page)
        assert "Sign out" in again.ids, "the operator is signed in"
        assert "in use by process" not in again.text, "the home has no second owner"
        # Clearing a cache three times would leave thirty threads; a few more draw pages and serve
        # files.
        assert process.num_threads() <= before + 8
        assert open_databases(process) == databases
    assert "Traceback" not in (printed := shared.printed()), printed
    assert shared.printed().count("clear_cache") == 1, "the log says it once a connection"


def open_databases(process: psutil.Process) -> int:
    """Returns how many times the process has the home's database open."""
    return sum(Path(file.path).name == "results.duckdb" for file in process.open_files())


def test_invalid_message_ends_only_its_connection(shared: Dashboard) -> None:
    for rubbish in (
        "text",
        b"\xff" * 40,
        b"",
        BackMsg().SerializeToString(),
        os.urandom(3) + b"\xff",
    ):
        with forged.open_session(shared.address) as session:
            session.send(rubbish)
            with pytest.raises(ConnectionClosed):
                forged.answer_to_a_heartbeat(session)
    assert "Traceback" not in (printed := shared.printed()), printed
    with forged.open_session(shared.address) as session:
        assert forged.rerun(session).ids


def test_download_needs_the_button_id_and_own_session(
    shared: Dashboard,
) -> None:
    with forged.open_session(shared.address) as session:
        real_id = forged.rerun(session).session_id
        for session_id, error in (
            ("another", "Invalid session ID"),
            (real_id, "Failed to generate file"),
        ):
            message = BackMsg()
            message.backend_operation_request.session_id = session_id
            message.backend_operation_request.deferred_file.file_id = "guessed"
            session.send(message.SerializeToString())
            while (answer := forged.received(session)).WhichOneof(
                "type"
            ) != "backend_operation_response":
                pass
            assert error in answer.backend_operation_response.error_msg


def test_session_is_resumed_only_with_its_exact_id(shared: Dashboard) -> None:
    """The operator keeps their session; a request with a similar id gets a new, view-only one."""
    with forged.open_session(shared.address) as operator:
        page = forged.rerun(operator)
        forged.rerun(
            operator, page.page, page.ids["Enter"], **{page.ids["Operator password"]: PASSWORD}
        )
        near = f"{page.session_id[:-1]}{'0' if page.session_id[-1] != '0' else '1'}"
        with forged.open_session(shared.address, near) as stranger:
            session = forged.rerun(stranger)
            assert session.session_id not in (near, page.session_id)
            assert access.SIGN_IN in session.text


def test_wrong_type_in_a_field_logs_one_traceback(shared: Dashboard) -> None:
    before = len(shared.printed())
    with forged.open_session(shared.address) as session:
        page = forged.rerun(session)
        field = page.ids["Operator password"]
        for number in range(20):
            forged.rerun(session, page.page, page.ids["Enter"], **{field: number + 0.5})
    printed = shared.printed()[before:]
    assert printed.count("Traceback") == 1
    assert printed.count(" again: ") == 19
    assert printed.count("\n") < 80
