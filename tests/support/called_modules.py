"""The walks of docs/architecture.md, and the modules of the program that call each other."""

from __future__ import annotations

import itertools
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

from tests.support.sources import ROOT

WALKED = re.compile(r"║|[a-z_]+(?:/[a-z_0-9]*)+|\bworker\b")
# A part of a walk with one of these runs in a trainer.
OF_TRAINERS = ("worker", "training/loop", "engines/jax/step")
PROGRAM = ("gan_runtime.", "dashboard.")
Pairs = set[tuple[str, str]]


def walks() -> list[str]:
    """The text of each walk."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    block = page.partition("## Four walks")[2].partition("```\n")[2].partition("```")[0]
    return re.split(r"\n (?=\S)", "\n" + block)[1:]


def parts() -> list[list[str]]:
    """The files of each part of a walk within a process, such as "store/ingest"."""
    return [part.split() for walk in walks() for part in " ".join(WALKED.findall(walk)).split("║")]


def not_called(chosen: Iterable[list[str]], pairs: Pairs) -> list[str]:
    """The neighbors in these parts of which neither calls the other without another module of the
    program between them.
    """
    return [
        f"{first} → {second}"
        for part in chosen
        for first, second in itertools.pairwise(part)
        if not any(
            (_is(caller, first) and _is(called, second))
            or (_is(caller, second) and _is(called, first))
            for caller, called in tuple(pairs)
        )
    ]


def _is(module: str, name: str) -> bool:
    """Whether a module is this file, or in this folder."""
    path = module.removeprefix("gan_runtime.").replace(".", "/")
    return f"{path}/".startswith(name) if name.endswith("/") else path == name


@contextmanager
def calls() -> Iterator[Pairs]:
    """Pairs of modules of which the first called the second, in this thread and new ones."""
    pairs: Pairs = set()
    has_ended = threading.Event()  # threads that began meanwhile go on

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or has_ended.is_set() or (called := _module(frame)) is None:
            return
        caller = frame.f_back
        while caller is not None and _module(caller) is None:
            if caller.f_code.co_name == "<module>":  # an import
                return
            caller = caller.f_back
        if caller is not None and (name := _module(caller)) != called:
            pairs.add((str(name), called))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield pairs
    finally:
        has_ended.set()
        sys.setprofile(None)
        threading.setprofile(None)


def _module(frame: FrameType) -> str | None:
    """The module of the program that a frame runs, unless it is being imported."""
    name = frame.f_globals.get("__name__", "")
    is_program = str(name).startswith(PROGRAM) and frame.f_code.co_name != "<module>"
    return str(name) if is_program else None
