"""Keeps what people drop into the browser on the disk: Streamlit would hold all of it in memory.

A file comes as one part of a multipart body. Its content goes to the home while it arrives (gan_runtime/jobs/uploads.py), and
Streamlit gets the same body with an empty content. It asks for the body after it has checked session, token and size, so a
request that it refuses writes nothing. What a page gets of Streamlit is then the name and the id of the file.
"""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

UPLOAD = re.compile(r".*/_stcore/upload_file/[^/]+/([A-Za-z0-9-]{1,100})")


class UploadSpool:
    """The middleware: app.py puts it behind the guard and before Streamlit's own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes everything on, uploads without their content."""
        file = UPLOAD.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if file is None or scope["method"] not in ("PUT", "DELETE"):
            await self._app(scope, receive, send)
        else:
            await self._spool(file[1], scope, receive, send)

    async def _spool(self, file_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        from dashboard.frame.upload_body import (
            Upload,  # takes a moment, which the start of the server has not
        )

        upload, statuses = Upload(file_id, scope, receive), []

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
