"""Files dropped into the browser: written to disk while they arrive, deleted when removed or
refused.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dashboard.frame import access, upload_body
from dashboard.frame.upload_spool import UploadSpool
from gan_runtime.base.errors import DatasetError
from gan_runtime.data import uploads
from gan_runtime.data.uploads import Upload
from gan_runtime.records.home import HOME_VARIABLE, Home

FILE_ID = "0b0e9a3c-1111-4222-8333-444455556666"
CONTENT = b"\r\n--not-the-boundary " * 10_000
BODY = (
    b'--xyz\r\nContent-Disposition: form-data; name="%s"; filename="photos.zip"\r\nContent-Type:'
    b" application/zip\r\n\r\n%s\r\n--xyz--\r\n"
)


async def _put(request: Request) -> Response:
    """Stands in for Streamlit's handler: checks the token first, then reads the body."""
    if request.headers.get("X-Xsrftoken") != "right":
        raise HTTPException(403, "XSRF token missing")
    form = await request.form()
    (file,) = form.values()
    assert isinstance(file, UploadFile)
    return Response(f"{file.filename} {len(await file.read())} {file.content_type}")


async def _delete(_: Request) -> Response:
    return Response(status_code=204)


ROUTE = "/_stcore/upload_file/{session_id}/{file_id}"
STREAMLIT = Starlette(
    routes=[Route(ROUTE, _put, methods=["PUT"]), Route(ROUTE, _delete, methods=["DELETE"])]
)


@pytest.fixture
def ask(home: Home, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """`ask("PUT", body)` returns the status and text of the response; the body arrives in chunks of
    1,000 bytes.
    """
    monkeypatch.setenv(HOME_VARIABLE, str(home.path))

    def request(
        method: str,
        body: bytes = b"",
        token: str = "right",
        complete: bool = True,
        file_id: str = FILE_ID,
    ) -> tuple[int, str]:
        pieces = [body[begin : begin + 1_000] for begin in range(0, len(body), 1_000)] or [b""]
        messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
        messages.append(
            {"type": "http.request", "body": b"", "more_body": False}
            if complete
            else {"type": "http.disconnect"}
        )
        sent: list[Any] = []
        scope = {
            "type": "http",
            "method": method,
            "path": f"/_stcore/upload_file/session/{file_id}",
            "query_string": b"",
            "headers": [
                (b"content-type", b"multipart/form-data; boundary=xyz"),
                (b"x-xsrftoken", token.encode()),
            ],
        }

        async def receive() -> Any:
            return messages.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        with ThreadPoolExecutor(1) as threads:
            threads.submit(asyncio.run, UploadSpool(STREAMLIT)(scope, receive, send)).result()
        return sent[0]["status"], b"".join(part.get("body", b"") for part in sent[1:]).decode()

    return request


def test_an_upload_is_stored_on_disk_and_streamlit_gets_only_its_name(
    home: Home, ask: Callable[..., tuple[int, str]]
) -> None:
    assert ask("PUT", BODY % (b"file", CONTENT)) == (200, "photos.zip 0 application/zip")
    assert uploads.place(home, FILE_ID).read_bytes() == CONTENT
    assert ask("DELETE") == (204, "")
    assert not uploads.place(home, FILE_ID).parent.exists()


def test_a_request_refused_by_streamlit_writes_nothing(
    home: Home, ask: Callable[..., tuple[int, str]]
) -> None:
    assert ask("PUT", BODY % (b"file", CONTENT), token="wrong")[0] == 403
    assert not (home.jobs / uploads.FOLDER).exists()


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_viewer_can_neither_upload_nor_delete_files(
    home: Home, ask: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(access, "is_shared", lambda: True)
    uploads.store(home, FILE_ID, b"an operator's")
    assert ask(method, BODY % (b"file", CONTENT)) == (403, f"{access.VIEW_ONLY}\n")
    assert uploads.place(home, FILE_ID).read_bytes() == b"an operator's"


@pytest.mark.parametrize("file_id", ["a_b", "a.b", "a/b", "a" * 101, "", "é", "a\0"])
def test_an_invalid_upload_id_is_refused(ask: Callable[..., tuple[int, str]], file_id: str) -> None:
    assert ask("PUT", BODY % (b"file", CONTENT), file_id=file_id) == (404, "Not found.\n")


@pytest.mark.parametrize("body", [b"--xyz\r\nno form at all", BODY[:40]])
def test_a_malformed_body_leaves_no_file(
    home: Home, ask: Callable[..., tuple[int, str]], body: bytes
) -> None:
    assert ask("PUT", body)[0] == 400
    assert list((home.jobs / uploads.FOLDER).iterdir()) == []


def test_an_upload_over_the_limit_is_refused_while_streaming(
    home: Home, ask: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_body, "MEGABYTE", 40)  # so that 2,048 of them are less than the body
    assert ask("PUT", BODY % (b"file", CONTENT)) == (413, "File too large")
    assert list((home.jobs / uploads.FOLDER).iterdir()) == []


def test_a_full_disk_is_reported(
    home: Home, ask: Callable[..., tuple[int, str]], files_end_at: Callable[[int], Any]
) -> None:
    with files_end_at(5_000):
        status, text = ask("PUT", BODY % (b"file", CONTENT))
    assert (status, "cannot be written (File too large)" in text) == (507, True)
    assert list((home.jobs / uploads.FOLDER).iterdir()) == []


# ---- from files to a source ----------------------------------------------------------------------


def dropped(home: Home, file_id: str, name: str, content: bytes = b"x") -> Upload:
    uploads.store(home, file_id, content)
    return Upload(file_id, name)


def test_a_zip_keeps_its_name_and_images_become_a_folder(home: Home) -> None:
    zipped = uploads.as_source(home, [dropped(home, "a", "holiday photos.zip")])
    assert (zipped.name, zipped.read_bytes()) == ("holiday photos.zip", b"x")
    pictures = [
        dropped(home, "b", "../../etc/cat.png", b"1"),
        dropped(home, "c", "C:\\tmp\\cat.png", b"2"),
    ]
    folder = uploads.as_source(home, pictures)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "00001-cat.png": b"1",
        "00002-cat.png": b"2",
    }
    assert uploads.as_source(home, pictures) == folder
    uploads.remove_source(home, zipped)
    assert not uploads.place(home, "a").exists()


@pytest.mark.parametrize(
    "name",
    [
        "..",
        "/",
        ".hidden",
        "a/b\\..",
        "",
        "…",
        "name\n.png",
        "x" * 500,
        "猫" * 96,
        "\U0001f408" * 99 + ".png",
    ],
)
def test_any_file_name_stays_inside_its_folder(home: Home, name: str) -> None:
    folder = uploads.as_source(home, [dropped(home, "a", name)])
    (path,) = folder.iterdir()
    assert path.read_bytes() == b"x"
    assert path.parent == folder
    assert len(os.fsencode(path.name)) <= 210
    assert not name.endswith(".png") or path.suffix == ".png"


def test_a_zip_is_recognized_by_its_contents(home: Home) -> None:
    content = b"PK\3\4 and more"
    named = dropped(home, "a", "photos.zip?download=1", content)
    assert uploads.as_source(home, [named]).read_bytes() == content
    with pytest.raises(DatasetError, match=r"upload either one \.zip or several images"):
        uploads.as_source(home, [named, dropped(home, "b", "b.png")])


def test_a_zip_among_images_and_an_expired_upload_are_reported(home: Home) -> None:
    with pytest.raises(DatasetError, match=r"upload either one \.zip or several images"):
        uploads.as_source(home, [dropped(home, "a", "a.zip"), dropped(home, "b", "b.png")])
    with pytest.raises(DatasetError, match=r"the upload gone\.zip has expired: upload it again\."):
        uploads.as_source(home, [Upload("c", "gone.zip")])


def test_stale_uploads_are_removed_and_user_folders_are_kept(home: Home, tmp_path: Path) -> None:
    for file_id in ("old", "new"):
        uploads.store(home, file_id, b"x")
    os.utime(uploads.place(home, "old").parent, (0, 0))
    uploads.remove_old(home)
    assert [path.name for path in (home.jobs / uploads.FOLDER).iterdir()] == ["new"]
    uploads.remove_source(home, tmp_path)
    assert tmp_path.exists()
    with pytest.raises(ValueError, match="is not the id of a file"):
        uploads.place(home, "../runs")
