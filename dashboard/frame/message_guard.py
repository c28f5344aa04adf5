"""Which messages of a browser reach Streamlit: those that our pages send.

Streamlit takes every message of its protocol (streamlit/proto/BackMsg.proto) from whoever has opened a page. What each of them could do
here, and what stops it, is listed in docs/threat-model.md.
"""

from __future__ import annotations

import logging

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from starlette.types import Message, Receive
from streamlit.proto.BackMsg_pb2 import BackMsg

log = logging.getLogger("gan_runtime")
PASSED = frozenset({"rerun_script", "stop_script", "app_heartbeat", "file_urls_request"})
OPERATIONS_PASSED = frozenset({"deferred_file"})  # the content of a download button, made when it is pressed
MOST_FILES = 10_000  # of one drop into the browser: Streamlit makes two addresses for each name before anybody has sent a file
POLICY_VIOLATION = 1008


def guarded(receive: Receive, browser: str) -> Receive:
    """What the browser sends, without the messages that no page of ours sends. What is no message of the protocol ends the connection."""
    logged: set[str] = set()

    def refused(message: Message) -> bool:
        refusal = why_refused(message.get("bytes"))
        if refusal and refusal not in logged:  # once a connection, however often it is sent
            logged.add(refusal)
            log.warning("A message from %s is refused: %s", browser, refusal)
        return bool(refusal)

    async def receive_passed() -> Message:
        while True:
            message = await receive()
            if message["type"] != "websocket.receive" or not refused(message):
                return message
            if not _parsed(message.get("bytes")):
                return {"type": "websocket.disconnect", "code": POLICY_VIOLATION}

    return receive_passed


def why_refused(data: bytes | None) -> str:
    """Why Streamlit does not get this message; empty where it does."""
    message = _parsed(data)
    if message is None:
        return "it is no message of Streamlit's protocol"
    kind = message.WhichOneof("type")
    if kind == "backend_operation_request":
        operation = message.backend_operation_request.WhichOneof("payload")
        return "" if operation in OPERATIONS_PASSED else f"no page of this dashboard asks for {operation}"
    if kind not in PASSED:
        return f"no page of this dashboard sends {kind}"
    files = len(message.file_urls_request.file_names)
    return f"{files} files at once, but allowed are {MOST_FILES}" if files > MOST_FILES else ""


def _parsed(data: bytes | None) -> BackMsg | None:
    """None for text, for bytes that are no message, and for a message of no kind that this Streamlit knows."""
    try:
        message = BackMsg.FromString(data or b"")
    except DecodeError:
        return None
    return message if message.WhichOneof("type") else None
