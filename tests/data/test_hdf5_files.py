"""HDF5 files that cannot be opened or read: each error names the real cause and a remedy."""

from __future__ import annotations

import fcntl
import gzip
import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from gan_runtime.base.errors import DatasetError
from gan_runtime.data import hdf5_files


def written(path: Path) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "energy", data=np.random.default_rng(0).random(5_000), chunks=(500,), compression="gzip"
        )
    return path


def refusal(path: Path) -> str:
    with pytest.raises(DatasetError) as refused:
        energies(path)
    return str(refused.value)


def energies(path: Path) -> np.ndarray:
    with hdf5_files.open_file(path) as file:
        column = hdf5_files.column(file, "energy", ())
        return hdf5_files.read(file, column, 0, len(column))


@pytest.mark.parametrize(
    ("content", "cause", "remedy"),
    [
        (b"", "empty", "download it again"),
        (
            b"\n <!DOCTYPE HTML><title>Sign in</title>",
            "not an HDF5 file but a web page",
            "download the file itself",
        ),
        (b'{"status": 404}', "not an HDF5 file but JSON text", "download the file itself"),
        (
            gzip.compress(b"whatever", mtime=0),
            "not an HDF5 file but packed with gzip",
            "unpack it first",
        ),
        (b"PK\x03\x04....", "not an HDF5 file but a zip", "unpack it first"),
        (b"CDF\x01....", "not an HDF5 file but a NetCDF 3 file", "nccopy -k nc4"),
        (
            b"\x93NUMPY\x01\x00",
            "not an HDF5 file but a NumPy array",
            "write its arrays into an HDF5 file with h5py",
        ),
        (
            b"\0\x05\x16\x07\0\x02\0\0Mac OS X",
            "not an HDF5 file but metadata of macOS about another file",
            "without ._",
        ),
        (
            b"version https://git-lfs.github.com/spec/v1\n",
            "not an HDF5 file but a pointer of Git LFS",
            "git lfs pull",
        ),
        (bytes(4_096), "not an HDF5 file but a file of zeros", "download it again"),
        (b"energy,angle\n1,2\n", "not an HDF5 file", "give the right one"),
    ],
)
def test_a_file_of_another_format_is_identified(
    tmp_path: Path, content: bytes, cause: str, remedy: str
) -> None:
    path = tmp_path / "run.h5"
    path.write_bytes(content)
    said = refusal(path)
    assert said.startswith(f"run.h5 is {cause}")
    assert remedy in said


def test_an_incomplete_download_reports_its_size(tmp_path: Path) -> None:
    path = written(tmp_path / "run.h5")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert (
        refusal(path)
        == f"run.h5 is incomplete, {len(whole) // 2:,} of {len(whole):,} bytes: download it again."
    )


def test_a_file_being_written_is_not_reported_as_damaged(tmp_path: Path) -> None:
    path = written(tmp_path / "run.h5")
    with path.open("rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)  # as HDF5 locks it for a writer
        assert (
            refusal(path)
            == "run.h5 is open for writing in another program: close it there, or wait."
        )


def test_an_unclosed_file_error_names_h5clear(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["energy"] = np.ones(3)
        file.flush()
        content = path.read_bytes()  # marked as an open file
    path.write_bytes(content)
    assert "is marked as open for writing" in refusal(path)
    assert "h5clear -s" in refusal(path)


def test_system_errors_are_quoted(tmp_path: Path) -> None:
    assert refusal(tmp_path / "gone.h5") == "gone.h5 cannot be read (No such file or directory)."
    assert refusal(tmp_path) == f"{tmp_path.name} cannot be read (Is a directory)."


@pytest.mark.parametrize(
    ("code", "named"), [(32_001, "blosc (32001)"), (32_015, "zstd (32015)"), (32_999, "32999")]
)
def test_a_missing_filter_is_named(tmp_path: Path, code: int, named: str) -> None:
    path = tmp_path / "run.h5"
    with h5py.File(path, "w") as file:
        packed = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        packed.set_chunk((8,))
        packed.set_filter(code, h5py.h5z.FLAG_OPTIONAL, (1,))
        space = h5py.h5s.create_simple((8,))
        h5py.h5d.create(file.id, b"energy", h5py.h5t.IEEE_F64LE, space, packed)
    said = refusal(path)
    assert said.startswith(
        f"run.h5: its energy needs the filter {named}, which is not installed here"
    )
    assert "h5repack -f GZIP=4" in said
    assert "HDF5_PLUGIN_PATH" in said


def test_a_damaged_chunk_error_gives_position_and_cause(tmp_path: Path) -> None:
    path = written(tmp_path / "run.h5")
    with h5py.File(path) as file:
        block = file["energy"].id.get_chunk_info(3)
    content = bytearray(path.read_bytes())
    content[block.byte_offset : block.byte_offset + block.size] = bytes(block.size)
    path.write_bytes(content)
    assert (
        refusal(path)
        == "run.h5 is damaged: its energy cannot be read from row 0 on (filter returned failure"
        " during read): download it again."
    )


def test_a_folder_is_read_by_suffix_or_contents_and_skips_are_counted(
    tmp_path: Path,
) -> None:
    names = ("a.h5", "b.HDF5", "c.hdf5?download=1", "without_a_suffix")
    for name in names:
        written(tmp_path / name)
    for name in names[:3]:
        (tmp_path / f"._{name}").write_bytes(b"\0\x05\x16\x07")
    (tmp_path / "README.txt").write_text("notes")
    (tmp_path / "more").mkdir()
    source = hdf5_files.source_of(tmp_path)
    assert [path.name for path in source.files] == list(names)
    assert source.skipped.hidden == 3
    assert source.skipped.counts == {"no HDF5 file": 1, "no file": 1}
    assert [skip.name for skip in source.skipped.first] == ["README.txt", "more"]


@pytest.mark.parametrize("name", ["dataset_2_1.hdf5?download=1", "dataset_2_1", "dataset_2_1.part"])
def test_a_single_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name)
    assert hdf5_files.source_of(path).files == [path]
    assert len(energies(path)) == 5_000


def test_a_source_without_hdf5_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="has no HDF5 file: give an HDF5 file"):
        hdf5_files.source_of(tmp_path)
    (tmp_path / "2019").mkdir()
    with pytest.raises(DatasetError, match=r"has no HDF5 file \(no file 1\): give an HDF5 file"):
        hdf5_files.source_of(tmp_path)
    with pytest.raises(DatasetError, match=r"cannot be read \(No such file or directory\)"):
        hdf5_files.source_of(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe.h5")
    with pytest.raises(DatasetError, match="is neither a file nor a folder"):
        hdf5_files.source_of(tmp_path / "pipe.h5")


def test_long_key_lists_are_shortened_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    with h5py.File(path, "w") as file:
        file["k" * 10_000] = 1.0
        file["line\nbreak"] = 1.0
        for number in range(20):
            file[f"z{number:02d}"] = 1.0
    said = refusal(path)
    assert len(said) < 250
    assert "\n" not in said
    assert f"{'k' * 39}…" in said
    assert "14 more" in said
