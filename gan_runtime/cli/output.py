"""Where the command line writes: answers to stdout, everything else (progress, errors) to stderr.

JSON knows no NaN: a number that is not finite becomes the text "NaN", "Infinity" or "-Infinity";
pictures become Base64. Names and reasons may come from other people: what would move the cursor,
ring or turn text round is shown as \\x1b. What is refused is one sentence on stderr
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
from datetime import datetime
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup
from typer.exceptions import TyperException

from gan_runtime.base.errors import GanRuntimeError, OutputError, quoted
from gan_runtime.records.home import command_line, is_text

PIPE_WIDTH = 200  # columns of a table that goes into a file or another program
# Control characters but tab and line end, marks that turn the direction of text, and halves of
# characters.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_NOT_FOR_JSON = re.compile("[\x7f-\x9f]")  # JSON escapes the others


def prepare() -> None:
    """Before anything is printed: streams that someone closed go nowhere, and no character is
    one too many for them.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  (as long as the process)
        with contextlib.suppress(AttributeError):  # a test's own stream
            getattr(sys, name).reconfigure(errors="backslashreplace")


class _Visible(Console):
    """Prints text that does nothing to the terminal but stand there."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Every text on its way to the screen, in a sentence or in a table's cell."""
        return super().render_str(visible(text), **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Raises OutputError when the stream takes no more."""
        try:
            super().print(*objects, **options)
        except OSError as error:
            raise _lost(self.file, error) from None


def visible(text: str) -> str:
    """The text with everything that would act on a terminal written out."""
    return _INVISIBLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def answers() -> Console:
    """Writes to stdout; no markup, because reasons and SQL may hold brackets."""
    return _Visible(
        width=None if sys.stdout.isatty() else PIPE_WIDTH,
        markup=False,
        highlight=False,
        emoji=False,
    )


def notes() -> Console:
    """Writes to stderr."""
    width = None if sys.stderr.isatty() else PIPE_WIDTH
    return _Visible(
        width=width, stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True
    )


def say(sentence: str) -> None:
    """One sentence of an answer, in one line however long."""
    answers().print(sentence, soft_wrap=True)


def note(sentence: str) -> None:
    """One sentence beside the answer, in one line however long.

    Nobody is told when stderr takes nothing either.
    """
    with contextlib.suppress(OutputError):
        notes().print(sentence, soft_wrap=True)


def print_json(value: Any, indent: int | None = 2) -> None:
    """One JSON document on stdout; `indent=None` keeps it on one line."""
    text = json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(plain(value), indent=indent, allow_nan=False)
    try:
        print(_NOT_FOR_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _lost(sys.stdout, error) from None


def _lost(stream: Any, error: OSError) -> OutputError:
    """What is left in the stream goes nowhere, so that Python does not try again at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return OutputError(
        f"the answer cannot be written ({error.strerror}): look after where the output goes."
    )


def plain(value: Any) -> Any:
    """`value` in what JSON has: objects, lists, text, numbers, true, false, null.

    Times in ISO 8601.
    """
    match value:
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
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


MOST_CHARACTERS = 200


class OneSentence(TyperGroup):
    """Shows an error that a person can cause as its sentence instead of a traceback or a box.

    Exit code 2.
    """

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """As usual, with streams that take whatever is printed."""
        prepare()
        return super().main(*args, **kwargs)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Words that cannot be written down, such as in journals and JSON, are refused before
        anything is done.
        """
        if odd := next((word for word in args if not is_text(word)), None):
            raise _refused(_no_text(odd))
        return list(super().parse_args(ctx, args))

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        """Words before the command, such as an unknown option."""
        try:
            return super().make_context(info_name, args, *more, **extra)
        except TyperException as error:
            if "\n" in error.format_message():  # the help, for a call without words
                raise
            raise _refused(_usage(error, "")) from None

    def invoke(self, ctx: Any) -> Any:
        """The command and its words."""
        try:
            return super().invoke(ctx)
        except GanRuntimeError as error:
            raise _refused(str(error)) from None
        except MemoryError:
            raise _refused(
                "there is too little memory for this: end other programs, or let this one have more"
                " (`ulimit -v`)."
            ) from None
        except TyperException as error:
            asked = getattr(error, "ctx", None)
            raise _refused(
                _usage(error, _asked_for(asked) or ctx.invoked_subcommand or "")
            ) from None


def _refused(sentence: str) -> typer.Exit:
    note(" ".join(sentence.splitlines()))  # a path may hold the end of a line
    return typer.Exit(2)


def _no_text(word: str) -> str:
    encoding = sys.getfilesystemencoding()
    if encoding == "utf-8":
        return f"{quoted(word)} is no UTF-8 text: rename the file or folder, or type it in UTF-8."
    return (
        f"{quoted(word)} is no text in the encoding of this terminal ({encoding}): set"
        " LC_ALL=C.UTF-8."
    )


def _asked_for(ctx: Any) -> str:
    """The words of a command: "train", "data prepare"."""
    words: list[str] = []
    while ctx is not None and ctx.parent is not None:
        words.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return " ".join(words)


def _usage(error: TyperException, command: str) -> str:
    """The parser's complaint in one sentence, and where to read on."""
    text = re.sub(
        r"[.?] (?=[A-Z])(.)", lambda part: f", {part[1].lower()}", error.format_message()
    ).rstrip(".?")
    text = (
        text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
    )  # it quotes what was given
    asking = " ".join(part for part in (command_line(), command, "--help") if part)
    return f"{text[:1].lower()}{text[1:]}: see `{asking}`."
