"""Rule 8 of docs/architecture.md: whatever changes something is a function of `commands` that is told who asks.

Read from syntax trees: pages, dashboard, command line and the runtime that pages hold name no other function that changes
something, and write no file of a home themselves.
"""

from __future__ import annotations

import ast
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gan_runtime.base.errors import HomeError, RoleError
from gan_runtime.commands import commands
from gan_runtime.records.actors import Asker, for_operators, operator
from tests.support.sources import file_of, nodes, python_files, tree

DOOR = Path("gan_runtime/commands/commands.py")
ACCESS = Path("dashboard/frame/access.py")  # the one place that says who is an operator
QUESTIONS = {"check", "latest_status", "why_not_resumed", "with_engine"}  # that the door answers besides
# What lies behind the door: functions that write into a home, start a process or signal one.
BEHIND = {
    "gan_runtime.bundles": {"unpack"},
    "gan_runtime.bundles.unpacking": {"unpack"},
    "gan_runtime.data.prepared": {"remove"},
    "gan_runtime.data.preparing": {"prepare"},
    "gan_runtime.jobs.job_queue": {"ask", "cancel", "signal_group", "start"},
    "gan_runtime.jobs.uploads": {"as_source", "done_with", "forget", "forget_old", "keep"},
    "gan_runtime.records.numbering": {"keep_count", "next_number", "next_rank"},
    "gan_runtime.records.journal": {"JournalWriter", "SideJournalWriter", "append"},
    "gan_runtime.records.run_folder": {"write_json", "write_whole"},
    "gan_runtime.supervision.bin": {"discard", "put", "remove", "remove_old", "take_out"},
    "gan_runtime.supervision.rebuild": {"rebuild"},
    "gan_runtime.supervision.slow_clock": {"advance"},
    "gan_runtime.tpu.check": {"keep"},
}
WRITING_METHODS = {
    *("announce", "introduce", "request_stop", "write_asked", "write_end", "write_process"),
    *("mkdir", "rmtree", "symlink_to", "touch", "unlink", "write_bytes", "write_text"),
}
BEFORE_THE_DOOR = [
    *python_files("app.py", "pages", "dashboard", "gan_runtime/cli"),
    Path("gan_runtime/supervision/retention.py"),
    Path("gan_runtime/supervision/runtime.py"),
]


def offered() -> dict[str, str]:
    """Name of each function of the door → the module that defines it."""
    imports = (node for node in tree(DOOR).body if isinstance(node, ast.ImportFrom))
    return {alias.name: str(node.module) for node in imports for alias in node.names}


CHANGES = sorted(offered().keys() - QUESTIONS)


def named(path: Path) -> Iterator[str]:
    """Dotted names of everything of ours that a file imports or takes from a module: "gan_runtime.jobs.job_queue.ask"."""
    known = {}
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    yield from known.values()
    for node in nodes(path):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            yield f"{known[node.value.id]}.{node.attr}"


def forbidden() -> set[str]:
    """Dotted names that nobody before the door may use, those of the changes' own modules with them."""
    behind = {f"{module}.{name}" for module, names in BEHIND.items() for name in names}
    return behind | {f"{offered()[name]}.{name}" for name in CHANGES}


def test_pages_and_commands_change_nothing_but_through_the_door() -> None:
    assert len(BEFORE_THE_DOOR) > 80, "this rule looks in the wrong place"
    through = {str(path): sorted(set(named(path)) & forbidden()) for path in BEFORE_THE_DOOR}
    assert {path: names for path, names in through.items() if names} == {}


def test_pages_and_commands_write_no_file_themselves() -> None:
    written = {
        f"{path}:{node.lineno} {node.func.attr}"
        for path in BEFORE_THE_DOOR
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in WRITING_METHODS
    }
    assert sorted(written) == []


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_told_who_asks(name: str) -> None:
    path = file_of(offered()[name])
    assert path is not None
    [function] = [node for node in tree(path).body if isinstance(node, ast.FunctionDef) and node.name == name]
    asker = {
        argument.arg: default
        for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    }
    assert "asker" in asker, "who asks must be said by name"
    assert asker["asker"] is None, "nobody asks by default"


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_refused_for_a_viewer_whatever_it_is_asked(name: str) -> None:
    """Before anything else is looked at, so that nothing else of what is asked matters."""
    with pytest.raises(RoleError, match="only operators"):
        getattr(commands, name)(asker=Asker("dashboard"))


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.EROFS, "/home/a-file cannot be used (Read-only file system): change its rights"),
        (errno.EACCES, "/home/a-file cannot be used (Permission denied): change its rights"),
        (errno.ENOSPC, "the disk of /home/a-file is full: make space on it"),
        (errno.EIO, "/home/a-file cannot be written (Input/output error): look after its disk"),
    ],
)
def test_what_the_system_refuses_a_change_is_a_sentence(number: int, sentence: str) -> None:
    @for_operators
    def change(*, asker: Asker) -> None:
        raise OSError(number, os.strerror(number), f"/home/{asker.name}")

    with pytest.raises(HomeError) as refused:
        change(asker=operator("a-file"))
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EIO, "Input/output error", 5), "Input/output error"),
        (shutil.Error("two files"), "two files"),
    ],
)
def test_what_the_system_refuses_without_a_name_is_a_sentence_too(error: OSError, reason: str) -> None:
    refused = str(HomeError.refused(error))
    assert refused.startswith(f"the home cannot be written ({reason}): look after its disk")


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_behind_that_door(name: str) -> None:
    assert getattr(commands, name).__wrapped__.__name__ == name


@pytest.mark.parametrize("asker", ["dashboard", None, {"role": "operator"}])
def test_who_asks_is_no_text(asker: object) -> None:
    with pytest.raises(TypeError, match="delete must be told who asks"):
        commands.delete(asker=asker)


def test_pages_tell_the_door_of_whoever_sits_before_them() -> None:
    """Never of an operator that they have made up."""
    made_up = {"gan_runtime.records.actors.operator", "gan_runtime.records.actors.Role.OPERATOR"}
    files = [path for path in python_files("app.py", "pages", "dashboard") if path != ACCESS]
    assert {str(path): names for path in files if (names := made_up & set(named(path)))} == {}
    assert "gan_runtime.records.actors.operator" in set(named(ACCESS)), "this rule looks in the wrong place"


def test_the_lists_of_this_test_name_what_exists() -> None:
    """Else a renamed function would pass unseen."""
    assert offered().keys() >= QUESTIONS
    assert {"submit", "stop", "delete", "remove_data", "cancel_job", "import_bundle"} <= set(CHANGES)
    for module, names in BEHIND.items():
        path = file_of(module)
        assert path is not None, module
        defined = {node.name for node in tree(path).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        imported = {name.rpartition(".")[2] for name in named(path)}
        assert names <= defined | imported, module
