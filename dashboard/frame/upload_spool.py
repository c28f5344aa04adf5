"""Writes uploads to disk, because Streamlit would hold them in memory.

A file is one part of a multipart body. Its content goes to the home as it arrives
(gan_runtime/data/uploads.py), and Streamlit gets the same body without the content. Streamlit asks
for the body after it has checked session, token and size, so a refused request writes nothing, nor
does a viewer's. A page then gets the name and the id of the file from Streamlit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from gan_runtime.records.record import Actor

PLACE = "/_stcore/upload_file/"
UPLOAD = re.compile(r".*/_stcore/upload_file/([^/]+)/([A-Za-z0-9-]{1,100})")


class UploadSpool:
    """The middleware, which app.py puts after the guard and before Streamlit's own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes everything on: uploads without their content, and viewers' uploads not at all."""
        if (
            scope["type"] != "http"
            or PLACE not in scope["path"]
            or scope["method"] not in ("PUT", "DELETE")
        ):
            await self._app(scope, receive, send)
            return
        file = UPLOAD.fullmatch(scope["path"])
        if file is None:  # Streamlit would accept it and hold all of it in memory
            await PlainTextResponse("Not found.\n", status_code=404)(scope, receive, send)
            return
        # Imports the runtime, for which the start of the server does not wait.
        from dashboard.frame import access

        actor = access.of_session(file[1])
        if actor.may_change:
            await self._spool(actor, file[2], scope, receive, send)
        else:
            await PlainTextResponse(f"{actor.refusal}\n", status_code=403)(scope, receive, send)

    async def _spool(
        self, actor: Actor, file_id: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        # Takes a moment, which would delay the start of the server.
        from dashboard.frame.upload_body import Upload

        upload, statuses = Upload(actor, file_id, scope, receive), []

        async def send_and_note(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(int(message["status"]))
            await send(message)

        is_put = scope["method"] == "PUT"
        try:
            await self._app(scope, upload.message if is_put else receive, send_and_note)
        finally:
            is_accepted = bool(statuses) and statuses[0] < 400
            if is_accepted != is_put:  # deleted by the user, or refused
                await upload.forget()
