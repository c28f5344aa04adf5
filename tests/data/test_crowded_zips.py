"""Zip files that list millions of members are refused before their list fills the memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from gan_runtime.base.errors import DatasetError
from gan_runtime.data import image_files, image_sources
from gan_runtime.records import run_files
from gan_runtime.records.run_files import CrowdedZipError
from tests.data.conftest import Pack, encoded
from tests.support.crafted_zips import crowded

MOST_MEMBERS = 100_000


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def refuse(path: Path, most_members: int = MOST_MEMBERS) -> None:
    with pytest.raises(CrowdedZipError), run_files.open_zip(path, most_members):
        pass


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("count", [500_000, 1])
def test_too_many_members_are_refused_despite_a_false_count(tmp_path: Path, count: int) -> None:
    refuse(crowded(tmp_path / "photos.zip", 500_000, count))
    assert tracemalloc.get_traced_memory()[1] < 50_000_000, (
        "the list, and not an object of each member"
    )


@pytest.mark.usefixtures("traced")
def test_an_oversized_member_list_is_refused_unread(tmp_path: Path) -> None:
    refuse(crowded(tmp_path / "photos.zip", 10_000, list_bytes=50_000_000_000))
    assert tracemalloc.get_traced_memory()[1] < 1_000_000


def test_as_many_members_as_the_limit_are_listed(tmp_path: Path) -> None:
    path = crowded(tmp_path / "photos.zip", 10_000)
    with run_files.open_zip(path, 10_000) as bundle:
        assert len(bundle.infolist()) == 10_000
    refuse(path, 9_999)


def test_a_member_may_contain_central_directory_signatures(pack: Pack) -> None:
    path = pack({"zips.png": b"PK\x01\x02" * 1_000})
    with run_files.open_zip(path, 10) as bundle:
        assert len(bundle.open("zips.png").read()) == 4_000


def test_an_image_zip_with_too_many_members_is_refused(
    pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_files, "MAX_MEMBERS", 2)
    path = pack({f"{number}.png": encoded() for number in range(3)})
    with pytest.raises(DatasetError) as refused, image_sources.open_source(path):
        pass
    assert (
        str(refused.value)
        == "photos.zip has more than 2 files and folders, so it is not read: pack only the images"
        " again."
    )
