"""What may be asked of runs, on real folders."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gan_runtime import commands, journal
from gan_runtime.errors import SpecError
from gan_runtime.journal import Renamed
from gan_runtime.rundir import RunDir

NewRun = Callable[..., RunDir]


def names(run: RunDir) -> list[str]:
    return [record.name for record in journal.read_all(run.supervisor_journal) if isinstance(record, Renamed)]


def test_a_run_is_renamed_as_often_as_one_likes(new_run: NewRun) -> None:
    run = new_run("quick-0001")
    commands.rename(run, "first try")
    commands.rename(run, "v1.2_b-3")
    assert names(run) == ["first try", "v1.2_b-3"]


@pytest.mark.parametrize("name", ["", " ", "   ", "two\n", "\n", "a/b", "über", "x" * 61])
def test_a_name_that_no_list_could_show_is_refused(new_run: NewRun, name: str) -> None:
    run = new_run("quick-0001")
    with pytest.raises(SpecError) as refused:
        commands.rename(run, name)
    assert refused.value.by_field()["name"].startswith(f"name is {name!r}, but allowed is text of up to 60 letters")
    assert names(run) == []
