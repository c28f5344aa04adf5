"""Pix2Pix studies are planned and queued like any other, and keep the options of Pix2Pix."""

from __future__ import annotations

from pathlib import Path

import pytest

from gan_runtime.base.errors import SpecError
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.home import Home
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.studies.design import StudyDesign
from tests.support import drawn_pairs
from tests.support.asking import ask

BASE = {
    **{
        "workload": "pix2pix",
        "dataset": drawn_pairs.NAME,
        "tile": 16,
        "dropout": 0.0,
        "flip": "horizontal",
    },
    **{"batch_size_global": 4, "epochs": 3, "seed": 5},
}


@pytest.mark.parametrize(
    ("question", "option", "values", "variants"),
    [
        ("precision", "precision", ["float32", "mixed_bfloat16"], ["float32", "mixed bfloat16"]),
        ("seed", "seed", ["1", "2"], ["seed 1", "seed 2"]),
    ],
)
def test_two_queued_pix2pix_runs_differ_in_one_option(
    home: Home,
    host: Host,
    tmp_path: Path,
    question: str,
    option: str,
    values: list[str],
    variants: list[str],
) -> None:
    drawn_pairs.prepare(home, tmp_path / "drawn")
    design = StudyDesign.parse(question, BASE, values)
    runs = ask(home, host).submit_study(design)
    store = Store()
    Ingestor(home, store).catch_up()
    waiting = queries.queue(store)
    assert [(row.run_id, row.variant, row.workload) for row in waiting] == [
        (run.run_id, variant, "pix2pix") for run, variant in zip(runs, variants, strict=True)
    ]
    first, second = (run.spec().flat() for run in runs)
    assert {name for name in first if first[name] != second[name]} == {option, "name"}
    assert [str(first[option]), str(second[option])] == values
    for spec in (first, second):
        assert {name: spec[name] for name in BASE if name != option} == {
            name: value for name, value in BASE.items() if name != option
        }
    [study] = queries.studies(store)
    assert (study.question, study.runs, study.waiting) == (question, 2, 2)


def test_batch_larger_than_the_pairs_queues_nothing(home: Home, host: Host, tmp_path: Path) -> None:
    drawn_pairs.prepare(home, tmp_path / "drawn")
    design = StudyDesign.parse("batch_size", BASE, ["4", "16"])
    with pytest.raises(SpecError, match=r"\(batch_size_global\) is 16"):
        ask(home, host).submit_study(design)
    assert list(home.runs.iterdir()) == []
