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
have commas. Secrets are in no message, record or bundle. Only the standard library sends.
"""

from __future__ import annotations

import json
import os
import smtplib
import ssl
import tomllib
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from gan_runtime.base.errors import NotifyError
from gan_runtime.base.framework_settings import NOTIFY_VARIABLE

FILE = "notifications.toml"
TIMEOUT_S = 10.0  # for each answer of a server
MOST_BYTES = 100_000  # of the file
MOST_LETTERS = 300  # of a server's reason in a message
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


class Channel(Protocol):
    """A way to send notices."""

    @property
    def name(self) -> str:
        """The kind: "webhook" or "email"."""

    @property
    def target(self) -> str:
        """The destination, without secrets."""

    def send(self, notice: Notice, timeout_s: float = TIMEOUT_S) -> None:
        """Raises NotifyError when the notice was not accepted."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Webhook(_Table):
    """The address is a secret too: who knows it can post to many services."""

    name: Literal["webhook"] = "webhook"
    url: SecretStr
    token: SecretStr | None = None

    @field_validator("url")
    @classmethod
    def _is_web_address(cls, url: SecretStr) -> SecretStr:
        parts = urlsplit(url.get_secret_value())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("use an address that begins with https:// or http://")
        return url

    @property
    def target(self) -> str:
        """The host of the server."""
        return urlsplit(self.url.get_secret_value()).hostname or ""

    def send(self, notice: Notice, timeout_s: float = TIMEOUT_S) -> None:
        """Sends one POST. Redirects are refused, since they would send the token to
        another server.
        """
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "gan-dashboard",
            "Idempotency-Key": notice.key,
        }
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token.get_secret_value()}"
        body = json.dumps(notice.document).encode()
        request = urllib.request.Request(self.url.get_secret_value(), body, headers, method="POST")
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=timeout_s):
                return
        except urllib.error.HTTPError as error:
            with error:
                raise NotifyError(f"{self.target} answers {error.code}.") from None
        except (OSError, ValueError) as error:  # URLError is an OSError
            raise NotifyError(f"{self.target} cannot be reached ({_reason(error)}).") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """The redirect becomes an HTTPError."""


class Email(_Table):
    """A channel that sends one message to all addresses of `to`."""

    name: Literal["email"] = "email"
    to: Annotated[list[_Address], Field(min_length=1, max_length=20)]
    sender: _Address
    host: _Text
    port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: _Text | None = None
    password: SecretStr | None = None

    @property
    def target(self) -> str:
        """The addresses."""
        return ", ".join(self.to)

    def send(self, notice: Notice, timeout_s: float = TIMEOUT_S) -> None:
        """The message has the same Message-ID at each try."""
        context = ssl.create_default_context()
        port = self.port or {"starttls": 587, "tls": 465, "none": 25}[self.security]
        try:
            with (
                smtplib.SMTP_SSL(self.host, port, timeout=timeout_s, context=context)
                if self.security == "tls"
                else smtplib.SMTP(self.host, port, timeout=timeout_s)
            ) as server:
                if self.security == "starttls":
                    server.starttls(context=context)
                if self.user is not None and self.password is not None:
                    server.login(self.user, self.password.get_secret_value())
                server.send_message(self._message(notice))
        except (OSError, ValueError) as error:  # SMTPException is an OSError
            raise NotifyError(f"{self.host} sends no e-mail ({_reason(error)}).") from None

    def _message(self, notice: Notice) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = notice.title
        message["From"], message["To"] = self.sender, ", ".join(self.to)
        message["Date"] = formatdate(localtime=False)
        message["Message-ID"] = f"<{notice.key.replace('/', '.')}@gan-dashboard>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(f"{notice.text}\n")
        return message


def _reason(error: Exception) -> str:
    """The reason that the system or the server gives, in one line."""
    cause = getattr(error, "reason", error)
    text = getattr(cause, "strerror", None) or getattr(cause, "smtp_error", None) or str(cause)
    text = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
    return " ".join(text.split())[:MOST_LETTERS] or type(error).__name__


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
        with path.open("rb") as file:
            content = file.read(MOST_BYTES)
        return tomllib.loads(content.decode())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise NotifyError(f"{path} cannot be read ({error.strerror}).") from None
    except ValueError:
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
