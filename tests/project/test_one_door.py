"""Rule 8 of docs/architecture.md: every change is a method of `Commands`, which is bound to an
actor.

Checked in syntax trees: pages, dashboard, command line and the runtime of the pages name no other
function that changes something, and write no file of a home themselves.
"""

from __future__ import annotations

import ast
import errno
import inspect
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gan_runtime.base.errors import HomeError, RoleError
from gan_runtime.commands import Commands
from gan_runtime.commands.base import CommandGroup, change
from gan_runtime.records.home import Home
from gan_runtime.records.record import Actor, operator
from tests.support.sources import file_of, nodes, python_files, tree

ACCESS = Path("dashboard/frame/access.py")  # the only place that decides who is an operator
UPLOAD = Path(
    "dashboard/frame/upload_body.py"
)  # uploads bypass the pages; access decides whose they are
# Functions reserved for `Commands`: they write into a home, start a process or signal one.
BEHIND = {
    "gan_runtime.bundles": {"unpack"},
    "gan_runtime.bundles.unpacking": {"unpack"},
    "gan_runtime.data.prepared": {"remove"},
    "gan_runtime.data.preparations": {"prepare"},
    "gan_runtime.evaluation.jobs": {"request", "store"},
    "gan_runtime.jobs.core_jobs": {"job_for", "request_preparation"},
    "gan_runtime.jobs.job_queue": {"cancel", "enqueue", "request", "signal_group", "start"},
    "gan_runtime.data.uploads": {"as_source", "remove_source", "remove", "remove_old", "store"},
    "gan_runtime.records.home": {"keep_count", "next_number", "next_rank"},
    "gan_runtime.records.journal": {"JournalWriter", "SideJournalWriter", "append"},
    "gan_runtime.records.run_folder": {"write_json", "write_whole"},
    "gan_runtime.supervision.trash": {
        "discard",
        "put",
        "remove",
        "remove_old",
        "restore",
    },
    "gan_runtime.supervision.queue": {"resume"},
    "gan_runtime.supervision.store_recovery": {"rebuild"},
    "gan_runtime.tpu.check": {"store"},
}
WRITING_METHODS = {
    *("announce", "request_stop", "write_request", "write_end", "write_process"),
    *("mkdir", "rmtree", "symlink_to", "touch", "unlink", "write_bytes", "write_text"),
}
BEFORE_THE_DOOR = [
    *python_files("app.py", "pages", "dashboard", "gan_runtime/cli"),
    Path("gan_runtime/commands/runtime.py"),
]


def offered() -> dict[str, object]:
    """Every public method of `Commands` by its name."""
    methods = inspect.getmembers(Commands, inspect.isfunction)
    return {name: method for name, method in methods if not name.startswith("_")}


CHANGES = sorted(offered())


def named(path: Path) -> Iterator[str]:
    """Dotted names of all project objects that a file imports or takes from a module:
    "gan_runtime.jobs.job_queue.enqueue".
    """
    names_of_modules = {}
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            names_of_modules |= {
                alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names
            }
    yield from names_of_modules.values()
    for node in nodes(path):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in names_of_modules
        ):
            yield f"{names_of_modules[node.value.id]}.{node.attr}"


def forbidden() -> set[str]:
    """Dotted names reserved for `Commands`."""
    return {f"{module}.{name}" for module, names in BEHIND.items() for name in names}


def test_pages_and_cli_make_changes_only_through_commands() -> None:
    assert len(BEFORE_THE_DOOR) > 80, "this rule looks in the wrong place"
    through = {str(path): sorted(set(named(path)) & forbidden()) for path in BEFORE_THE_DOOR}
    assert {path: names for path, names in through.items() if names} == {}


def test_pages_and_cli_write_no_files_directly() -> None:
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
def test_every_change_is_refused_for_a_viewer(name: str, tmp_path: Path) -> None:
    """The role is checked before anything else, so missing arguments do not matter."""
    with pytest.raises(RoleError, match="only operators"):
        getattr(Commands(Home(tmp_path / "none"), Actor("dashboard")), name)()
    assert not (tmp_path / "none").exists()


def test_commands_require_an_explicit_home_and_actor() -> None:
    for parameter in ("home", "actor"):
        assert inspect.signature(Commands).parameters[parameter].default is inspect.Parameter.empty
    assert not Actor("dashboard").may_change


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (
            errno.EROFS,
            "/home/a-file cannot be used (Read-only file system): change its permissions",
        ),
        (errno.EACCES, "/home/a-file cannot be used (Permission denied): change its permissions"),
        (errno.ENOSPC, "the disk of /home/a-file is full: free space on it"),
        (errno.EIO, "/home/a-file cannot be written (Input/output error): check the disk"),
    ],
)
def test_an_os_error_during_a_change_becomes_a_readable_message(number: int, sentence: str) -> None:
    class Refused(CommandGroup):
        @change
        def write(self) -> None:
            raise OSError(number, os.strerror(number), f"/home/{self.actor.name}")

    with pytest.raises(HomeError) as refused:
        Refused(Home(Path("/none")), operator("a-file")).write()
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EIO, "Input/output error", 5), "Input/output error"),
        (shutil.Error("two files"), "two files"),
    ],
)
def test_an_os_error_without_a_file_name_becomes_a_readable_message(
    error: OSError, reason: str
) -> None:
    refused = str(HomeError.refused(error))
    assert refused.startswith(f"the home cannot be written ({reason}): check the disk")


def test_the_owner_refreshes_after_a_change_but_not_after_a_refusal(tmp_path: Path) -> None:
    acted: list[str] = []

    class Counted(CommandGroup):
        @change
        def write(self) -> str:
            return "written"

    changes = Counted(Home(tmp_path), operator("a test"), refresh=lambda: acted.append("refreshed"))
    assert (changes.write(), acted) == ("written", ["refreshed"])
    viewer = Counted(Home(tmp_path), Actor("a viewer"), refresh=lambda: acted.append("refreshed"))
    with pytest.raises(RoleError):
        viewer.write()
    assert acted == ["refreshed"]


def test_pages_never_create_an_operator_or_bind_commands() -> None:
    made_up = {
        "gan_runtime.records.record.operator",
        "gan_runtime.records.record.Role.OPERATOR",
        "gan_runtime.commands.Commands",
    }
    files = [
        path
        for path in python_files("app.py", "pages", "dashboard")
        if path not in (ACCESS, UPLOAD)
    ]
    assert {str(path): names for path in files if (names := made_up & set(named(path)))} == {}
    assert "gan_runtime.records.record.operator" in set(named(ACCESS)), (
        "this rule looks in the wrong place"
    )


def test_the_lists_of_this_test_name_existing_functions() -> None:
    """Otherwise a renamed function would go unnoticed."""
    assert {"submit", "stop", "delete", "remove_data", "cancel_job", "import_bundle"} <= set(
        CHANGES
    )
    assert len(CHANGES) > 25
    for module, names in BEHIND.items():
        path = file_of(module)
        assert path is not None, module
        defined = {
            node.name
            for node in tree(path).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        imported = {name.rpartition(".")[2] for name in named(path)}
        assert names <= defined | imported, module
