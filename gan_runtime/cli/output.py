"""The output of the command line: answers on stdout, everything else (progress, errors) on stderr.

JSON has no NaN: a number that is not finite becomes the text "NaN", "Infinity" or "-Infinity";
images become Base64. Names and reasons can come from other users, so control characters, which
could move the cursor or reverse text, are printed as \\x1b. A refusal is one sentence on stderr
(`OneSentence`).
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import re
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup
from typer.exceptions import TyperException

from gan_runtime.base.errors import GanRuntimeError, OutputError, quoted
from gan_runtime.records.home import command_line, is_text

PIPE_WIDTH = 10_000  # in a file or another program each row of a table is one line
# Control characters but tab and line end, marks that turn the direction of text, and halves of
# characters.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_NOT_FOR_JSON = re.compile("[\x7f-\x9f]")  # JSON escapes other control characters


def prepare() -> None:
    """Redirects closed streams to /dev/null, and escapes characters that a stream cannot encode."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  (as long as the process)
        with contextlib.suppress(AttributeError):  # a test's own stream
            getattr(sys, name).reconfigure(errors="backslashreplace")


class _Visible(Console):
    """Prints text whose control characters are escaped."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Called for each sentence and each cell of a table."""
        return super().render_str(visible(text), **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Raises OutputError when the stream cannot be written."""
        try:
            super().print(*objects, **options)
        except OSError as error:
            raise _lost(self.file, error) from None


def visible(text: str) -> str:
    """The text with its control characters escaped."""
    return _INVISIBLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def answers() -> Console:
    """Writes to stdout, without markup: reasons and SQL can contain brackets."""
    return _Visible(
        width=None if sys.stdout.isatty() else PIPE_WIDTH,
        markup=False,
        highlight=False,
        emoji=False,
    )


def notes() -> Console:
    """The console for stderr."""
    width = None if sys.stderr.isatty() else PIPE_WIDTH
    return _Visible(
        width=width, stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True
    )


def say(sentence: str) -> None:
    """Prints a sentence of the answer on one line."""
    answers().print(sentence, soft_wrap=True)


def note(sentence: str) -> None:
    """Prints a sentence on stderr, on one line; does nothing when stderr cannot be written."""
    with contextlib.suppress(OutputError):
        notes().print(sentence, soft_wrap=True)


def print_json(value: Any, indent: int | None = 2) -> None:
    """Prints one JSON document on stdout; `indent=None`: on one line."""
    text = json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(plain(value), indent=indent, allow_nan=False)
    try:
        print(_NOT_FOR_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _lost(sys.stdout, error) from None


def _lost(stream: Any, error: OSError) -> OutputError:
    """Redirects the stream to /dev/null, so that Python does not write its buffer again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return OutputError(
        f"the answer cannot be written ({error.strerror}): check where the output goes."
    )


def plain(value: Any) -> Any:
    """`value` in the types of JSON; times in ISO 8601."""
    match value:
        case dict():
            return {str(key): plain(part) for key, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case float():
            return value if math.isfinite(value) else _not_finite(value)
        case None | bool() | int() | str():
            return value
        case datetime():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return str(value)


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


# ---- tables --------------------------------------------------------------------------------------

MOST_LETTERS = 5_000  # in a cell, since the layout of longer text takes minutes; JSON has all


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table with these columns."""
    empty = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for column in columns:
        empty.add_column(column, overflow="fold")
    return empty


def pairs(rows: Mapping[str, Any], *columns: str, title: str | None = None) -> Table:
    """A table of names and values, with these two column headers or without headers."""
    filled = table(*(columns or ("", "")), title=title)
    filled.show_header = bool(columns)
    for name, value in rows.items():
        filled.add_row(name, cell(value))
    return filled


def cell(value: Any) -> str:
    """A value as the text of a cell; None is empty, times are UTC."""
    match value:
        case None:
            return ""
        case float():
            return number(value)
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case bytes():
            return f"({len(value):,} bytes)"
        case _:
            text = str(value)
            return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"


def number(value: float) -> str:
    """A number, such as 1,797 or 0.1234."""
    return f"{value:,.0f}" if 1000 <= abs(value) < math.inf else f"{value:.4g}"


def megabytes(size: float) -> str:
    """Bytes as a number of megabytes: 1,234.5."""
    return f"{size / 1e6:,.1f}"


# ---- errors --------------------------------------------------------------------------------------

MOST_CHARACTERS = 200


class OneSentence(TyperGroup):
    """Prints a refusal as one sentence instead of a traceback or a box; exit code 2."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the command line, with streams that can be written."""
        prepare()
        return super().main(*args, **kwargs)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuses words that journals and JSON cannot store."""
        if odd := next((word for word in args if not is_text(word)), None):
            raise _refused(_no_text(odd))
        return list(super().parse_args(ctx, args))

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        """Parses the words before the command, such as an unknown option."""
        try:
            return super().make_context(info_name, args, *more, **extra)
        except TyperException as error:
            if "\n" in error.format_message():  # the help, for a call without words
                raise
            raise _refused(_usage(error, "")) from None

    def invoke(self, ctx: Any) -> Any:
        """Runs a command."""
        try:
            return super().invoke(ctx)
        except GanRuntimeError as error:
            raise _refused(str(error)) from None
        except MemoryError:
            raise _refused(
                "there is too little memory for this: end other programs, or raise the limit"
                " (`ulimit -v`)."
            ) from None
        except TyperException as error:
            words = _command_of(getattr(error, "ctx", None))
            raise _refused(_usage(error, words or ctx.invoked_subcommand or "")) from None


def _refused(sentence: str) -> typer.Exit:
    note(" ".join(sentence.splitlines()))  # a path can contain a line end
    return typer.Exit(2)


def _no_text(word: str) -> str:
    encoding = sys.getfilesystemencoding()
    if encoding == "utf-8":
        return f"{quoted(word)} is not in UTF-8: rename the file or folder, or type it in UTF-8."
    return (
        f"{quoted(word)} is not in the encoding of this terminal ({encoding}): set LC_ALL=C.UTF-8."
    )


def _command_of(ctx: Any) -> str:
    """The name of a command: "train", "data prepare"."""
    words: list[str] = []
    while ctx is not None and ctx.parent is not None:
        words.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return " ".join(words)


def _usage(error: TyperException, command: str) -> str:
    """The parser's message in one sentence, and the command that prints the help."""
    text = re.sub(
        r"[.?] (?=[A-Z])(.)", lambda part: f", {part[1].lower()}", error.format_message()
    ).rstrip(".?")
    if len(text) > MOST_CHARACTERS:  # it quotes the words of the command
        text = f"{text[: MOST_CHARACTERS - 1]}…"
    help_command = " ".join(part for part in (command_line(), command, "--help") if part)
    return f"{text[:1].lower()}{text[1:]}: see `{help_command}`."
