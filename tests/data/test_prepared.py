"""Prepared data sets: reading rows from files larger than memory, errors for damaged files, and
lookup by name.
"""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib import format as npy

from gan_runtime import catalog
from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import Field, labels
from gan_runtime.data import builtin_sets, loading, prepared
from gan_runtime.data.prepared import FieldRecord, Manifest
from gan_runtime.data.sharded import FieldWriter, ShardedSet
from gan_runtime.domains.flows.fields import flow_fields
from gan_runtime.domains.showers.entry import shower_fields
from gan_runtime.records.home import Home
from gan_runtime.records.record import now
from gan_runtime.supervision import recovery
from tests.support.plain_user import without_rights

ENERGY = Field((3,), "float32", unit="GeV")
KIND = labels(("a", "b"))


def written(folder: Path, rows: int = 10) -> ShardedSet:
    """Row i has i in its three energies, and the class i mod 2. Each energy file has three rows."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        FieldWriter(folder, "energy", ENERGY, shard_bytes=36) as energy,
        FieldWriter(folder, "labels", KIND) as kind,
    ):
        for row in range(rows):
            energy.append(np.full((1, 3), row))
        kind.append(np.arange(rows) % 2)
    shards = {"energy": tuple(energy.shards), "labels": tuple(kind.shards)}
    return ShardedSet("showers", folder, {"energy": ENERGY, "labels": KIND}, shards, 2, "test")


def stored(home: Home, name: str = "showers", **changes: Any) -> Manifest:
    """Stores a prepared data set of ten rows in the home."""
    data = written(prepared.folder(home, name))
    manifest = Manifest(
        name=name,
        preparation="test",
        source="showers.h5",
        options={},
        content="0123456789abcdef01",
        fields={field: FieldRecord.of(record) for field, record in data.fields.items()},
        shards=data.shards,
        held_out=2,
        prepared_at=now(),
    )
    prepared.write_manifest(prepared.folder(home, name), manifest)
    if changes:
        path = prepared.folder(home, name) / prepared.MANIFEST
        path.write_text(json.dumps({**manifest.model_dump(mode="json"), **changes}))
    return manifest


def sentence(act: Any, *arguments: Any) -> str:
    with pytest.raises(DatasetError) as refused:
        act(*arguments)
    return str(refused.value)


# ---- rows from files -----------------------------------------------------------------------------


def test_rows_are_read_across_several_files(tmp_path: Path) -> None:
    data = written(tmp_path)
    assert data.shards == {"energy": (3, 3, 3, 1), "labels": (10,)}
    assert (data.rows, data.held_out, data.resident) == (8, 2, None)
    rows = data.read(np.array([7, 0, 3, 3]))
    assert rows["energy"][:, 0].tolist() == [7.0, 0.0, 3.0, 3.0]
    assert rows["energy"].dtype == np.float32
    assert rows["labels"].tolist() == [1, 0, 1, 1]


def large_rows(folder: Path) -> tuple[ShardedSet, np.ndarray]:
    """Seven rows of 64 KB, two per file, and the same rows as one array."""
    field = Field((128, 64, 4), "float16")
    rows = np.random.RandomState(0).standard_normal((7, *field.shape)).astype(np.float16)
    with FieldWriter(folder, "images", field, shard_bytes=2 * rows[0].nbytes) as images:
        images.append(rows)
    assert images.shards == [2, 2, 2, 1]
    return (
        ShardedSet(
            "frames", folder, {"images": field}, {"images": tuple(images.shards)}, 0, "test"
        ),
        rows,
    )


def test_large_rows_are_read_by_index(tmp_path: Path) -> None:
    data, rows = large_rows(tmp_path)
    for places in ([6, 0, 3, 3, 1], [5], [], list(range(7))):
        indices = np.array(places, dtype=np.int64)
        np.testing.assert_array_equal(data.read(indices)["images"], rows[indices])


def test_a_file_truncated_while_being_read_is_named(tmp_path: Path) -> None:
    data, rows = large_rows(tmp_path)
    data.read(np.array([0]))
    path = tmp_path / "images-00001.npy"
    os.truncate(path, path.stat().st_size - 1)
    np.testing.assert_array_equal(data.read(np.array([2]))["images"], rows[[2]])
    assert (
        sentence(data.read, np.array([3]))
        == f"{path} of a prepared data set cannot be used (it became shorter while it was read):"
        " remove the data set and prepare it again."
    )


def test_the_last_rows_are_held_out(tmp_path: Path) -> None:
    data = written(tmp_path)
    for rows in (data, data.in_memory()):
        assert rows.read_held_out(5)["energy"][:, 0].tolist() == [8.0, 9.0]
        assert rows.read_held_out(5, first=1)["energy"][:, 0].tolist() == [9.0]


def test_the_files_are_plain_numpy(tmp_path: Path) -> None:
    written(tmp_path)
    assert np.load(tmp_path / "energy-00003.npy").tolist() == [[9.0, 9.0, 9.0]]


def test_an_in_memory_data_set_has_the_same_rows(tmp_path: Path) -> None:
    streamed = written(tmp_path)
    resident = streamed.in_memory()
    assert (resident.rows, resident.held_out) == (8, 2)
    for name in streamed.fields:
        assert np.array_equal(resident.read(np.arange(8))[name], streamed.read(np.arange(8))[name])
        assert np.array_equal(resident.read_held_out(2)[name], streamed.read_held_out(2)[name])


def test_only_requested_rows_of_a_huge_data_set_are_read(tmp_path: Path) -> None:
    """Uses a sparse file of 3 TB."""
    shower, rows = Field((50, 50, 25, 1), "float32"), 12_000_000
    with (tmp_path / "shower-00000.npy").open("wb") as file:
        shape = (rows, *shower.shape)
        npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})  # type: ignore[arg-type]
        start = file.tell()
        row_bytes = 4 * 62_500
        file.seek(start + 9_876_543 * row_bytes)
        file.write(np.float32(7).tobytes())
        file.truncate(start + rows * row_bytes)
    data = ShardedSet("showers", tmp_path, {"shower": shower}, {"shower": (rows,)}, 0, "test")
    tracemalloc.start()
    read = data.read(np.array([9_876_543, rows - 1]))["shower"]
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    assert read[:, 0, 0, 0, 0].tolist() == [7.0, 0.0]


# ---- prepared data sets of a home ----------------------------------------------------------------


def test_a_manifest_round_trips_every_field_property() -> None:
    for fields in (
        flow_fields(8, 16, later=2),
        shower_fields((4, 4, 4, 1), periodic=(0,)),
        {"kind": KIND},
    ):
        for field in fields.values():
            assert (
                FieldRecord.model_validate_json(FieldRecord.of(field).model_dump_json()).field
                == field
            )


def test_small_data_sets_stay_in_memory_and_large_ones_are_streamed(home: Home) -> None:
    manifest = stored(home)
    assert manifest.bytes == 10 * 16
    assert prepared.open_set(home, "showers", resident_bytes=160).resident is not None
    assert prepared.open_set(home, "showers", resident_bytes=159).resident is None


def test_a_loaded_data_set_reports_its_content_hash(home: Home) -> None:
    stored(home)
    assert loading.load("showers", home).origin == "showers.h5, fingerprint 0123456789abcdef"
    assert loading.availability("showers", home).images == 8


def test_all_data_sets_are_listed_and_damaged_ones_with_a_reason(home: Home) -> None:
    stored(home)
    stored(home, "torn")
    (prepared.folder(home, "torn") / prepared.MANIFEST).write_text("{")
    (home.data / ".new-x").mkdir()
    (home.data / "no_manifest").mkdir()
    sets = loading.data_sets(home)
    assert list(sets) == [
        *catalog.DATASETS,
        "showers_tiny",
        "karman",
        "karman_small",
        "showers",
        "torn",
    ]
    assert (sets["showers"].rows, sets["showers"].is_prepared, sets["showers"].problem) == (
        8,
        True,
        "",
    )
    assert (
        "is not a manifest of a data set, or is damaged: remove the data set"
        in sets["torn"].problem
    )
    assert "is not a manifest" in sentence(loading.load, "torn", home)


def test_an_unreadable_data_set_is_listed_with_the_reason(home: Home) -> None:
    stored(home)
    denied = "cannot be read (Permission denied): give this user read permission."
    with without_rights(prepared.folder(home, "showers")):
        assert (
            loading.data_sets(home)["showers"].problem
            == f"{home.data}/showers/manifest.json {denied}"
        )
    with without_rights(home.data):
        assert loading.data_sets(home)["data"].problem == f"{home.data} {denied}"
    assert "data" not in loading.data_sets(home)


def test_an_unknown_data_set_is_refused_with_the_available_ones(home: Home) -> None:
    stored(home)
    assert (
        sentence(loading.load, "shower", home)
        == "there is no data set 'shower', only digits, stacked_digits, mnist, fashion_mnist,"
        " showers_tiny, karman, karman_small, showers: did you mean showers?"
    )
    assert sentence(loading.fields_of, "../x", home).endswith(
        "prepare it first, on the Data page or with `data prepare`."
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 2}, "is from a newer version of this program"),
        ({"shards": {"energy": (3, 3, 3, 1)}}, "is inconsistent"),
        ({"held_out": 10}, "is inconsistent"),
        (
            {"fields": {"energy": {"shape": [3], "dtype": "object"}}},
            "is not a manifest of a data set",
        ),
        (
            {"fields": {"energy": {"shape": [0], "dtype": "uint8"}}},
            "is not a manifest of a data set",
        ),
    ],
)
def test_an_invalid_manifest_is_refused(home: Home, changes: dict[str, Any], said: str) -> None:
    stored(home, **changes)
    assert said in sentence(loading.load, "showers", home)


def test_a_missing_truncated_or_mismatched_file_is_named(home: Home) -> None:
    stored(home)
    path = prepared.folder(home, "showers") / "energy-00001.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert sentence(loading.load, "showers", home).startswith(
        f"{path} of a prepared data set cannot be used (mmap length"
    )
    np.save(path, np.zeros((2, 3), np.float32))
    assert "it has float32 (2, 3), not float32 (3, 3)" in sentence(loading.load, "showers", home)
    path.write_bytes(b"")
    assert "cannot be used" in sentence(loading.load, "showers", home)
    path.unlink()
    assert (
        sentence(loading.load, "showers", home)
        == f"{path} of a prepared data set cannot be used (No such file or directory): remove the"
        " data set and prepare it again."
    )


def test_a_removed_data_set_is_gone(home: Home) -> None:
    stored(home)
    prepared.remove(home, "showers")
    assert not list(home.data.iterdir())
    assert (
        sentence(prepared.remove, home, "showers")
        == f"{home.data} has no data set 'showers': prepare it first."
    )
    assert "has no data set" in sentence(prepared.remove, home, "..")
    refusal = "digits is a built-in data set, which cannot be removed."
    assert sentence(prepared.remove, home, "digits") == refusal


def test_the_next_owner_cleans_up_after_a_killed_preparation(home: Home) -> None:
    stored(home)
    (home.data / ".deleted-old").mkdir()
    (home.data / ".new-young").mkdir()
    recovery.clean_home(home)
    assert sorted(path.name for path in home.data.iterdir()) == [".new-young", "showers"]


# ---- stacked digits ------------------------------------------------------------------------------


def test_stacked_digits_use_three_digits_as_rgb_channels() -> None:
    data = loading.load("stacked_digits")
    assert (data.rows, data.held_out) == (20_000, 2_000)
    assert data.fields == catalog.DATASETS["stacked_digits"].fields
    single = loading.load("digits").resident
    assert single is not None
    row = data.read(np.array([4]))
    name = data.fields["labels"].classes[row["labels"][0]]
    for channel, digit in enumerate(name):
        same = (single["images"][..., 0] == row["images"][0, ..., channel]).all(axis=(1, 2))
        assert str(single["labels"][same][0]) == digit


def test_stacked_digits_have_1000_modes_and_are_reproducible() -> None:
    data, again = builtin_sets.load_stacked_digits(), builtin_sets.load_stacked_digits()
    assert len(set(data.resident["labels"])) == 1_000
    assert np.array_equal(data.resident["images"], again.resident["images"])
