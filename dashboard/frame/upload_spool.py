"""Keeps what people drop into the browser on the disk: Streamlit would hold all of it in memory.

A file comes as one part of a multipart body. Its content goes to the home while it arrives
(gan_runtime/data/uploads.py), and Streamlit gets the same body with an empty content. It asks for
the body after it has checked session, token and size, so a request that it refuses writes nothing;
nor does one of a viewer's session. What a page gets of Streamlit is then the name and the id of the
file.
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
    """The middleware: app.py puts it behind the guard and before Streamlit's own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes everything on, uploads without their content, and those of viewers not at all."""
        if (
            scope["type"] != "http"
            or PLACE not in scope["path"]
            or scope["method"] not in ("PUT", "DELETE")
        ):
            await self._app(scope, receive, send)
            return
        file = UPLOAD.fullmatch(scope["path"])
        if file is None:  # Streamlit would take it, and hold all of it in memory
            await PlainTextResponse("Not here.\n", status_code=404)(scope, receive, send)
            return
        from dashboard.frame import (
            access,
        )  # loads the runtime, which the start of the server does not wait for

        asker = access.of_session(file[1])
        if asker.may_change:
            await self._spool(asker, file[2], scope, receive, send)
        else:
            await PlainTextResponse(f"{asker.why_not}\n", status_code=403)(scope, receive, send)

    async def _spool(
        self, asker: Actor, file_id: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        from dashboard.frame.upload_body import (
            Upload,  # takes a moment, which the start of the server has not
        )

        upload, statuses = Upload(asker, file_id, scope, receive), []

        async def send_noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(int(message["status"]))
            await send(message)

        is_put = scope["method"] == "PUT"
        try:
            await self._app(scope, upload.message if is_put else receive, send_noting)
        finally:
            done = bool(statuses) and statuses[0] < 400
            if done != is_put:  # taken back, or not taken in
                await upload.forget()
