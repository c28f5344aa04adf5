"""Where notices go: a webhook (JSON by POST) and e-mail (SMTP), their settings, and how each sends.

    # notifications.toml in the home folder
    url = "https://lab.example/dashboard"   # of the pages, for links
    events = ["ended", "failed", "collapsed"]
    [webhook]
    url = "https://hooks.example/T1/B2"
    token = "…"                             # Authorization: Bearer
    [email]
    to = ["anna@lab.example"]
    sender = "gan@lab.example"
    host = "smtp.lab.example"
    security = "starttls"                   # or "tls", "none"
    user = "gan"
    password = "…"

A variable counts before the file: GAN_RUNTIME_NOTIFY_WEBHOOK_TOKEN is `token` of [webhook]; lists
have commas. Secrets are in no message, record or bundle: the text of another program or library,
which may quote an address or a token, is in none of ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import smtplib
import socket
import ssl
import threading
import time
import tomllib
from abc import abstractmethod
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    SecretStr,
    TypeAdapter,
    ValidationError,
    field_validator,
)

from gan_runtime.base.errors import NotifyError
from gan_runtime.base.framework_settings import NOTIFY_VARIABLE

FILE = "notifications.toml"
TIMEOUT_S = 10.0  # of a whole try
MOST_BYTES = 100_000  # of the file
Event = Literal["ended", "failed", "collapsed"]
EVENTS: tuple[Event, ...] = ("ended", "failed", "collapsed")
_Address = Annotated[str, Field(pattern=r"^[^@\s,<>]+@[^@\s,<>]+$", max_length=254)]
_Text = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=1_000)]


@dataclass(frozen=True)
class Notice:
    """`key`: the same for each try, so that a receiver recognizes a repetition. `title`, `text`: a
    line each. `document`: JSON for programs.
    """

    key: str
    title: str
    text: str
    document: Mapping[str, Any]


class _Table(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, str_strip_whitespace=True
    )


class Channel(_Table):
    """A way to send notices."""

    name: str

    @property
    @abstractmethod
    def target(self) -> str:
        """The destination, without secrets."""

    @property
    @abstractmethod
    def failure(self) -> str:
        """The sentence of a try that failed, to which the reason is added."""

    @abstractmethod
    def _deliver(self, notice: Notice, timeout_s: float) -> None:
        """Raises anything when the notice was not accepted."""

    def send(self, notice: Notice, timeout_s: float = TIMEOUT_S) -> None:
        """Raises NotifyError when the notice was not accepted within the time, whatever failed."""
        try:
            self._deliver(notice, timeout_s)
        except NotifyError:
            raise
        except Exception as error:  # libraries raise more than they document
            raise NotifyError(f"{self.failure} ({_reason(error)}).") from None


class Webhook(Channel):
    """The address is a secret too: who knows it can post to many services."""

    name: Literal["webhook"] = "webhook"
    url: SecretStr
    token: SecretStr | None = None

    @field_validator("url")
    @classmethod
    def _is_web_address(cls, url: SecretStr) -> SecretStr:
        try:
            return SecretStr(str(TypeAdapter(HttpUrl).validate_python(url.get_secret_value())))
        except ValidationError as error:
            raise ValueError(
                "use an address that begins with https:// or http://"
                f" ({error.errors(include_input=False)[0]['msg']})"
            ) from None

    @field_validator("token")
    @classmethod
    def _is_header(cls, token: SecretStr | None) -> SecretStr | None:
        return _ascii(token, "the token", spaces=False)

    @property
    def target(self) -> str:
        """The host of the server."""
        return urlsplit(self.url.get_secret_value()).hostname or ""

    @property
    def failure(self) -> str:
        """The server, and that a try failed."""
        return f"{self.target} cannot be reached"

    def _deliver(self, notice: Notice, timeout_s: float) -> None:
        # In a notebook, this thread already runs an event loop.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, self._post(notice, timeout_s)).result()

    async def _post(self, notice: Notice, timeout_s: float) -> None:
        """Sends one POST. Redirects are refused, since they would send the token to
        another server.
        """
        import httpx  # 8 MB that a home without a webhook does not need

        for name in ("httpx", "httpcore"):  # they log the address and the answer
            logging.getLogger(name).setLevel(logging.WARNING)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "gan-dashboard",
            "Idempotency-Key": notice.key,
        }
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token.get_secret_value()}"
        url, body = self.url.get_secret_value(), json.dumps(notice.document).encode()
        # httpx's own limits count again from each byte. The certificates are the system's.
        async with (
            asyncio.timeout(timeout_s),
            httpx.AsyncClient(timeout=None, verify=ssl.create_default_context()) as client,
            client.stream("POST", url, content=body, headers=headers) as answer,
        ):
            if not answer.is_success:
                raise NotifyError(f"{self.target} answers {answer.status_code}.")


class Email(Channel):
    """A channel that sends one message to all addresses of `to`."""

    name: Literal["email"] = "email"
    to: Annotated[list[_Address], Field(min_length=1, max_length=20)]
    sender: _Address
    host: _Text
    port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: _Text | None = None
    password: SecretStr | None = None

    @field_validator("host")
    @classmethod
    def _is_host(cls, host: str) -> str:
        try:
            host.encode("idna")
        except UnicodeError:
            raise ValueError("it is not the name of a host") from None
        return host

    @field_validator("password")
    @classmethod
    def _is_sendable(cls, password: SecretStr | None) -> SecretStr | None:
        return _ascii(password, "the password", spaces=True)

    @property
    def target(self) -> str:
        """The addresses."""
        return ", ".join(self.to)

    @property
    def failure(self) -> str:
        """The server, and that a try failed."""
        return f"{self.host} sends no e-mail"

    def _deliver(self, notice: Notice, timeout_s: float) -> None:
        """The message has the same Message-ID at each try."""
        context = ssl.create_default_context()
        port = self.port or {"starttls": 587, "tls": 465, "none": 25}[self.security]
        with (
            _LimitedTlsServer(self.host, port, timeout=timeout_s, context=context)
            if self.security == "tls"
            else _LimitedServer(self.host, port, timeout=timeout_s)
        ) as server:
            if self.security == "starttls":
                server.starttls(context=context)
            if self.user is not None and self.password is not None:
                server.login(self.user, self.password.get_secret_value())
            server.send_message(self._message(notice))

    def _message(self, notice: Notice) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = notice.title
        message["From"], message["To"] = self.sender, ", ".join(self.to)
        message["Date"] = formatdate(localtime=False)
        message["Message-ID"] = f"<{notice.key.replace('/', '.')}@gan-dashboard>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(f"{notice.text}\n")
        return message


class _LimitedServer(smtplib.SMTP):
    """An SMTP server whose replies together end within `timeout`, which smtplib counts again
    from each byte.
    """

    _ends_s, _is_over = 0.0, False

    def getreply(self) -> tuple[int, bytes]:
        """A reply; the connection is cut at the end of the time."""
        self._ends_s = self._ends_s or time.monotonic() + self.timeout
        timer = threading.Timer(self._ends_s - time.monotonic(), self._cut)
        timer.daemon = True
        timer.start()
        try:
            reply = super().getreply()
        except smtplib.SMTPServerDisconnected:
            if not self._is_over:
                raise
        finally:
            timer.cancel()
        if self._is_over:  # what was read may be half a line
            raise smtplib.SMTPServerDisconnected from TimeoutError()
        return reply

    def _cut(self) -> None:
        self._is_over = True
        with contextlib.suppress(OSError):
            if self.sock is not None:
                self.sock.shutdown(socket.SHUT_RDWR)


class _LimitedTlsServer(_LimitedServer, smtplib.SMTP_SSL):
    """The same with TLS from the first byte."""


_REASONS = {
    "RemoteProtocolError": "it does not answer in HTTP",
    "SMTPServerDisconnected": "it closes the connection",
    "SMTPAuthenticationError": "it refuses the user or the password",
    "SMTPRecipientsRefused": "it refuses the recipients",
    "SMTPSenderRefused": "it refuses the sender",
    "SMTPNotSupportedError": "it does not support the security or the addresses of the settings",
}


def _reason(error: BaseException) -> str:
    """Why a try failed, in our words or the operating system's."""
    cause: BaseException | None = error
    while cause is not None:  # the first cause is the most precise
        if isinstance(cause, BaseExceptionGroup):  # one for each address of a host
            cause = cause.exceptions[0]
        if isinstance(cause, ssl.SSLError):
            return getattr(cause, "verify_message", "") or cause.reason or "TLS failed"
        if isinstance(cause, socket.gaierror):
            return str(cause.strerror)
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno)
        if isinstance(cause, TimeoutError):
            return "no complete answer in time"
        cause = cause.__cause__ or cause.__context__
    reason = _REASONS.get(type(error).__name__, type(error).__name__)
    code = getattr(error, "smtp_code", None)
    return reason if code is None else f"{reason}, code {code}"


def _ascii(secret: SecretStr | None, what: str, *, spaces: bool) -> SecretStr | None:
    """The secret without space around it: HTTP and SMTP send only printable ASCII."""
    if secret is None:
        return None
    text = secret.get_secret_value().strip("\r\n" if spaces else None)
    if not text or not text.isascii() or not text.isprintable() or (" " in text and not spaces):
        raise ValueError(f"{what} must be one line of printable ASCII characters")
    return SecretStr(text)


class NoticeSettings(_Table):
    """The settings of notices. `url`: URL of the pages."""

    url: _Text | None = None
    events: tuple[Event, ...] = EVENTS
    webhook: Webhook | None = None
    email: Email | None = None

    @property
    def channels(self) -> list[Channel]:
        """The channels that are set up."""
        both: tuple[Channel | None, ...] = (self.webhook, self.email)
        return [channel for channel in both if channel is not None]


def settings(home: Path, environment: Mapping[str, str] = os.environ) -> NoticeSettings:
    """The settings of a home; without file and variables there is no channel.

    Raises:
        NotifyError: the file or a variable is wrong; the message holds no value of it.
    """
    tables = _with_variables(_file(home / FILE), environment)
    try:
        return NoticeSettings.model_validate(tables)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise NotifyError(
            f"{FILE}: {place}: {first['msg'].removeprefix('Value error, ')}. See the page"
            " docs/notifications.md."
        ) from None


def _file(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file() and path.exists():  # opening a pipe would block
            raise NotifyError(f"{path} is not a file: replace it with one.")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise NotifyError(f"{path} has more than {MOST_BYTES:,} bytes: shorten it.")
        return tomllib.loads(content.decode())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise NotifyError(f"{path} cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError):
        # Without the parser's message, which quotes the line and its secrets.
        raise NotifyError(f"{path} is not TOML: check quotes and brackets.") from None


def _with_variables(tables: dict[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    fields: dict[str, type[BaseModel]] = {"webhook": Webhook, "email": Email}
    for name in ("url", "events"):
        if value := environment.get(f"{NOTIFY_VARIABLE}{name.upper()}"):
            tables[name] = _parts(value) if name == "events" else value
    for table, model in fields.items():
        for name in set(model.model_fields) - {"name"}:
            if value := environment.get(f"{NOTIFY_VARIABLE}{table.upper()}_{name.upper()}"):
                values = tables.setdefault(table, {})
                if isinstance(values, dict):
                    values[name] = _parts(value) if name == "to" else value
    return tables


def _parts(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]
