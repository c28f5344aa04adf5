"""Workloads and data sets of installed packages."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import pytest

from gan_runtime import catalog
from gan_runtime.base.errors import DatasetError, PackageError
from gan_runtime.catalog.entries import DatasetEntry, WorkloadEntry
from gan_runtime.catalog.table import Table
from gan_runtime.data import loading
from tests.support import python_page

GROUP = "gan_runtime.workloads"
BUILT_IN = {"mlp_gan": catalog.WORKLOADS["mlp_gan"]}


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules with the package of docs/python.md, which is unloaded afterwards."""
    monkeypatch.syspath_prepend(str(python_page.install(tmp_path)))
    for name in ("PYTHONPATH", "GAN_RUNTIME_WORKLOADS", "GAN_RUNTIME_DATA_SETS"):
        monkeypatch.setenv(name, "")
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("spots_gan"):
            del sys.modules[name]


def table() -> Table[WorkloadEntry]:
    return Table(BUILT_IN, GROUP, WorkloadEntry)


@pytest.mark.usefixtures("packages")
def test_a_package_workload_is_listed_after_built_in_ones() -> None:
    workloads = table()
    assert list(workloads) == ["mlp_gan", "spots_gan"]
    assert workloads["spots_gan"].title == "Spots GAN"
    assert "keras" not in sys.modules["spots_gan.entry"].__dict__


def test_packages_are_loaded_at_the_first_access(packages: Path) -> None:
    (packages / "spots_gan" / "entry.py").write_text(
        "raise SystemError('loaded')", encoding="utf-8"
    )
    workloads = table()
    assert "spots_gan.entry" not in sys.modules
    assert list(workloads) == ["mlp_gan"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("raise ValueError('no luck')", "ValueError: no luck"),
        ("ENTRY = 3", "is a int: declare a WorkloadEntry"),
        ("import no_such_module", "no_such_module"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("class Odd(BaseException): pass\nraise Odd('no luck')", "Odd: no luck"),
    ],
)
def test_unusable_rows_are_skipped_and_logged(
    packages: Path, caplog: pytest.LogCaptureFixture, line: str, reason: str
) -> None:
    (packages / "spots_gan" / "entry.py").write_text(line, encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert list(table()) == ["mlp_gan"]
    assert "spots_gan of gan_runtime.workloads in package spots-gan is skipped" in caplog.text
    assert reason in caplog.text


def test_ctrl_c_while_a_package_loads_ends_the_command(packages: Path) -> None:
    (packages / "spots_gan" / "entry.py").write_text("raise KeyboardInterrupt", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        list(table())


def test_no_package_replaces_a_built_in_workload(
    packages: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (points,) = packages.glob("*.dist-info/entry_points.txt")
    points.write_text(
        points.read_text(encoding="utf-8").replace("spots_gan =", "mlp_gan ="), encoding="utf-8"
    )
    assert table()["mlp_gan"] == BUILT_IN["mlp_gan"]
    assert "the name 'mlp_gan' is taken" in caplog.text


def test_registered_rows_are_inherited_by_child_processes(packages: Path) -> None:
    (entry,) = packages.glob("*.dist-info")
    (entry / "entry_points.txt").unlink()
    first = table()
    first.register("spots_gan", "spots_gan.entry:ENTRY")
    assert list(first) == ["mlp_gan", "spots_gan"]
    assert list(table()) == ["mlp_gan", "spots_gan"], "by its environment"
    assert os.environ["PYTHONPATH"] == str(packages)


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(
    ("name", "place", "sentence"),
    [
        ("mlp_gan", "spots_gan.entry:ENTRY", "is taken: use another one"),
        ("My GAN", "spots_gan.entry:ENTRY", "is not a valid name: use up to 40 small letters"),
        ("spots_gan", "spots_gan.entry:SPOTS", "is a DatasetEntry: declare a WorkloadEntry"),
        ("spots_gan", "spots_gan.nothing:ENTRY", "cannot be loaded (ModuleNotFoundError"),
        ("spots_gan", "spots_gan.entry", "is a module"),
        ("spots_gan", "", "cannot be loaded"),
    ],
)
def test_invalid_rows_are_refused_with_the_reason(name: str, place: str, sentence: str) -> None:
    with pytest.raises(PackageError) as refused:
        Table(BUILT_IN, "gan_runtime.none_of_these", WorkloadEntry).register(name, place)
    assert sentence in str(refused.value)


@pytest.fixture
def spots(packages: Path, monkeypatch: pytest.MonkeyPatch) -> DatasetEntry:  # noqa: ARG001
    entry = Table({}, "gan_runtime.data_sets", DatasetEntry)["spots"]
    monkeypatch.setitem(catalog.DATASETS, "spots", entry)
    return entry


def test_a_package_dataset_is_read_as_declared(spots: DatasetEntry) -> None:
    data = loading.load("spots")
    assert (data.rows, data.fields, data.resident["images"].shape) == (
        1_024,
        spots.fields,
        (1_024, 28, 28, 1),
    )
    assert loading.availability("spots").ready
    assert loading.fields_of("spots") == spots.fields


@pytest.mark.usefixtures("spots")
def test_a_dataset_that_differs_from_its_declaration_is_refused(packages: Path) -> None:
    rows = packages / "spots_gan" / "rows.py"
    rows.write_text(
        rows.read_text(encoding="utf-8").replace("(1024, 1, 1)", "(1000, 1, 1)"), encoding="utf-8"
    )
    with pytest.raises(DatasetError, match=r"returns 1,000 rows of images .* declares 1,024 rows"):
        loading.load("spots")
