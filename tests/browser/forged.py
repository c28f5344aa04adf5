"""Forged messages to the dashboard, which no page sends, in the dashboard's own protocol."""

from __future__ import annotations

import urllib.error
import urllib.request
from dataclasses import dataclass

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

MOST_BYTES = 1 << 26
SECONDS = 60.0


@dataclass(frozen=True)
class Rerun:
    """The output of one page rerun: ids of buttons and fields by label, the texts of alert boxes,
    and all other text.
    """

    session_id: str
    page: str
    ids: dict[str, str]
    boxes: list[str]
    text: str


def open_session(address: str, session_id: str = "") -> ClientConnection:
    """Opens a session as a page does; `session_id` reconnects to an earlier one."""
    return connect(
        f"{address.replace('http', 'ws')}/_stcore/stream",
        origin=address,  # type: ignore[arg-type]
        subprotocols=["streamlit", "token", session_id] if session_id else ["streamlit"],  # type: ignore[list-item]
        max_size=MOST_BYTES,
    )


def rerun(
    session: ClientConnection, page: str = "", pressed: str = "", **typed: str | float
) -> Rerun:
    """Requests a page (by default Home), with a button pressed and fields filled by their ids, and
    reads it to the end.

    A rerun that is replaced by another, as after a sign-in, is not the end: its output is dropped.
    """
    message_to_server = BackMsg()
    message_to_server.rerun_script.page_script_hash = page
    if pressed:
        message_to_server.rerun_script.widget_states.widgets.add(id=pressed, trigger_value=True)
    for field, value in typed.items():
        widget = message_to_server.rerun_script.widget_states.widgets.add(id=field)
        setattr(widget, "string_value" if isinstance(value, str) else "double_value", value)
    session.send(message_to_server.SerializeToString())
    session_id, ids, boxes, texts = "", {}, [], []
    while True:
        message = received(session)
        kind, element = message.WhichOneof("type"), message.delta.new_element
        if kind == "new_session":
            session_id, ids, boxes, texts = message.new_session.initialize.session_id, {}, [], []
        elif kind == "navigation":
            page = message.navigation.page_script_hash
        elif (
            kind == "script_finished"
            and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
        ):
            return Rerun(session_id, page, ids, boxes, "\n".join(texts))
        match element.WhichOneof("type"):
            case "button":
                ids[element.button.label] = element.button.id
            case "text_input":
                ids[element.text_input.label] = element.text_input.id
            case "alert":
                boxes.append(element.alert.body)
            case "markdown":
                texts.append(element.markdown.body)


def received(session: ClientConnection) -> ForwardMsg:
    """The next message from the server."""
    message = ForwardMsg()
    message.ParseFromString(bytes(session.recv(SECONDS)))  # type: ignore[arg-type]
    return message


def answer_to_a_heartbeat(session: ClientConnection) -> list[str]:
    """The kinds of messages received until a heartbeat is answered; earlier requests have been
    answered by then.
    """
    message_to_server = BackMsg()
    message_to_server.app_heartbeat = True
    session.send(message_to_server.SerializeToString())
    kinds: list[str] = []
    while "heartbeat_ack" not in kinds:
        kinds.append(received(session).WhichOneof("type") or "")
    return kinds


def send_file(address: str, session_id: str) -> int:
    """Uploads a file and returns the HTTP status."""
    request = urllib.request.Request(
        f"{address}/_stcore/upload_file/{session_id}/0b0e9a3c-1111-4222-8333-444455556666",
        data=b"x" * 1_000,
        method="PUT",
    )
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
