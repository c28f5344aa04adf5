"""How the command line says no."""

from __future__ import annotations

import re
import sys
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from gan_runtime.base.errors import GanRuntimeError, quoted
from gan_runtime.cli import output
from gan_runtime.records.home import command_line, is_text

MOST_CHARACTERS = 200


class OneSentence(TyperGroup):
    """Shows an error that a person can cause as its sentence instead of a traceback or a box. Exit code 2."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """As usual, with streams that take whatever is printed."""
        output.prepare()
        return super().main(*args, **kwargs)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Words that cannot be written down, such as in journals and JSON, are refused before anything is done."""
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
                "there is too little memory for this: end other programs, or let this one have more (`ulimit -v`)."
            ) from None
        except TyperException as error:
            asked = getattr(error, "ctx", None)
            raise _refused(_usage(error, _asked_for(asked) or ctx.invoked_subcommand or "")) from None


def _refused(sentence: str) -> typer.Exit:
    output.note(" ".join(sentence.splitlines()))  # a path may hold the end of a line
    return typer.Exit(2)


def _no_text(word: str) -> str:
    encoding = sys.getfilesystemencoding()
    if encoding == "utf-8":
        return f"{quoted(word)} is no UTF-8 text: rename the file or folder, or type it in UTF-8."
    return f"{quoted(word)} is no text in the encoding of this terminal ({encoding}): set LC_ALL=C.UTF-8."


def _asked_for(ctx: Any) -> str:
    """The words of a command: "train", "data prepare"."""
    words: list[str] = []
    while ctx is not None and ctx.parent is not None:
        words.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return " ".join(words)


def _usage(error: TyperException, command: str) -> str:
    """The parser's complaint in one sentence, and where to read on."""
    text = re.sub(r"[.?] (?=[A-Z])(.)", lambda part: f", {part[1].lower()}", error.format_message()).rstrip(
        ".?"
    )
    text = (
        text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
    )  # it quotes what was given
    asking = " ".join(part for part in (command_line(), command, "--help") if part)
    return f"{text[:1].lower()}{text[1:]}: see `{asking}`."
