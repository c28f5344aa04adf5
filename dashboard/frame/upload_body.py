"""Writes the content of an upload to disk and passes the rest of its body on (upload_spool.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import streamlit as st
from anyio import to_thread
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope

from gan_runtime.base.errors import HomeError
from gan_runtime.commands import Commands
from gan_runtime.data import uploads
from gan_runtime.records.home import Home
from gan_runtime.records.record import Actor

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MEGABYTE = 1 << 20  # as Streamlit counts its limit


class Upload:
    """A file on its way to the disk."""

    def __init__(self, actor: Actor, file_id: str, scope: Scope, receive: Receive) -> None:
        home = Home.choose()
        self._commands, self._file_id = Commands(home, actor), file_id
        self._path = uploads.place(home, file_id)
        self._headers, self._receive = Headers(scope=scope), receive
        self._is_done = False

    async def forget(self) -> None:
        """Removes it from the disk."""
        await to_thread.run_sync(self._forget)

    async def message(self) -> Message:
        """The message for Streamlit: the body at once, then everything after it."""
        kind, options = parse_options_header(self._headers.get("content-type"))
        if self._is_done or kind != b"multipart/form-data" or b"boundary" not in options:
            return await self._receive()
        self._is_done = True
        size = int(self._headers.get("content-length") or 0)
        try:
            await to_thread.run_sync(self._make_room, size)
            with self._path.open("wb") as file:
                return await self._spool(file, options[b"boundary"])
        except HomeError as error:
            raise HTTPException(507, str(error)) from None
        except OSError as error:
            raise HTTPException(507, str(HomeError.not_written(self._path, error))) from None
        except FormParserError:
            raise HTTPException(400, "The body is not a multipart form.") from None

    def _make_room(self, size: int) -> None:
        self._commands.receive_upload(self._file_id, size)

    def _forget(self) -> None:
        self._commands.forget_upload(self._file_id)

    async def _spool(self, file: BinaryIO, boundary: bytes) -> Message:
        parts = _Parts(boundary, file)
        limit, received = int(st.get_option("server.maxUploadSize")) * MEGABYTE + MEGABYTE, 0
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                return message  # the browser disconnected
            body = message.get("body", b"")
            received += len(body)
            if received > limit:
                raise HTTPException(413, "File too large")
            await to_thread.run_sync(parts.take, body)
            if not message.get("more_body", False):
                return {"type": "http.request", "body": parts.without_content(), "more_body": False}


class _Parts:
    """Parses a multipart body in chunks: the content of the first part goes to `file`, the headers
    of all parts are stored.
    """

    def __init__(self, boundary: bytes, file: BinaryIO) -> None:
        self._boundary, self._file = boundary, file
        self._headers: list[bytes] = []
        self._name = self._value = b""
        callbacks: MultipartCallbacks = {
            "on_part_begin": lambda: self._headers.append(b""),
            "on_header_field": self._add_name,
            "on_header_value": self._add_value,
            "on_header_end": self._end_header,
            "on_part_data": self._write,
        }
        self._parser = MultipartParser(boundary, callbacks)

    def take(self, body: bytes) -> None:
        """Parses the next bytes of the body. Raises FormParserError, OSError."""
        self._parser.write(body)

    def without_content(self) -> bytes:
        """The body with empty contents.

        Raises FormParserError if it ended too early.
        """
        self._parser.finalize()
        parts = [
            b"--" + self._boundary + b"\r\n" + headers + b"\r\n\r\n" for headers in self._headers
        ]
        return b"".join(parts) + b"--" + self._boundary + b"--\r\n"

    def _add_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _add_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        self._headers[-1] += self._name + b": " + self._value + b"\r\n"
        self._name = self._value = b""

    def _write(self, data: bytes, start: int, end: int) -> None:
        if len(self._headers) == 1:
            self._file.write(data[start:end])
