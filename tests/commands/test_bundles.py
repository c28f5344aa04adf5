"""Bundles: ended runs in one file, loaded into another home without private data of their owner."""

from __future__ import annotations

import io
import os
import re
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gan_runtime import bundles
from gan_runtime.base.errors import BundleError, HomeError, PictureError, RunStateError, TargetError
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import image_files, journal, run_files, run_folder
from gan_runtime.records.home import SUBMITTED_NAME, Home, next_number
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.states import Reason, cause
from gan_runtime.store import ingest, queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.studies.design import StudyDesign
from tests.support.asking import ask
from tests.support.crafted_zips import crowded
from tests.support.measured_flows import frames, iteration

NewRun = Callable[..., RunDir]


def _png(width: int, height: int) -> bytes:
    content = io.BytesIO()
    Image.new("L", (width, height)).save(content, "PNG")
    return content.getvalue()


GRID = _png(4, 4)
FILM = frames(steps=3)
WIDE = np.zeros((4, 1, 5_000, 3), np.float16)


@pytest.fixture
def ended(new_run: NewRun) -> RunDir:
    """A finished run with numbers, an image, a checkpoint, a log, and private data in its host
    facts.
    """
    run = new_run("quick-0001")
    run.samples.mkdir()
    run.checkpoints.mkdir()
    (run.samples / "epoch-00001.png").write_bytes(GRID)
    (run.checkpoints / "step-00000010.safetensors").write_bytes(b"weights")
    run.log.write_text("trained in /home/jane/gan", encoding="utf-8")
    facts = {"cores": 8, "hostname": "janes-laptop", "data_origin": "/home/jane/data/mnist/t10k.gz"}
    journal.append(
        run.trainer_journal(),
        1,
        journal.HostFacts(facts=facts),
        journal.Event(
            level="info", topic="data", message="read /home/jane/data/mnist/t10k.gz: 38 images/s"
        ),
        journal.Scalars(
            epoch=1,
            first_step=1,
            wall_s=[1.0],
            values={"loss_generator": [0.5], "loss_discriminator": [float("nan")]},
        ),
        journal.Sample(
            epoch=1, step=1, sample_kind="fixed_latents", file="samples/epoch-00001.png", meta={}
        ),
        journal.StatusChange(status="finished", reason="all epochs done"),
    )
    return run


@pytest.fixture
def other(tmp_path: Path) -> Home:
    return Home(tmp_path / "other")


def test_a_bundle_transfers_numbers_images_and_options(
    ended: RunDir, other: Home, tmp_path: Path
) -> None:
    size = bundles.pack([ended], tmp_path / "one.zip", prefix="example-")
    assert size == (tmp_path / "one.zip").stat().st_size
    assert bundles.unpack(tmp_path / "one.zip", other) == ["example-quick-0001"]
    store = Store()
    Ingestor(other, store).catch_up()
    assert queries.run(store, "example-quick-0001").status == "finished"
    assert store.rows("SELECT metric, isnan(value) FROM scalars ORDER BY metric") == [
        ("loss_discriminator", True),
        ("loss_generator", False),
    ]
    grid = queries.sample(store, "example-quick-0001", 1)
    assert grid is not None
    assert grid.png == GRID


def test_a_bundle_reveals_nothing_about_its_owner(ended: RunDir, tmp_path: Path) -> None:
    bundles.pack([ended], tmp_path / "one.zip")
    with zipfile.ZipFile(tmp_path / "one.zip") as bundle:
        names = bundle.namelist()
        text = b"".join(bundle.read(name) for name in names).decode(errors="replace")
    assert sorted(names) == [
        "bundle.json",
        "quick-0001/journal-0.jsonl",
        "quick-0001/journal-supervisor.jsonl",
        "quick-0001/samples/epoch-00001.png",
        "quick-0001/spec.json",
    ]
    assert "jane" not in text
    assert '"data_origin":"t10k.gz"' in text
    assert "read t10k.gz: 38 images/s" in text  # text that is not a path is kept
    assert '"cores":8' in text


def test_a_bundle_contains_images_of_all_kinds_and_older_runs(
    ended: RunDir, other: Home, tmp_path: Path
) -> None:
    for kind in ("samples", "by_class"):
        ended.sample_file(kind, 2).write_bytes(GRID)
        file = f"samples/{kind}-00002.png"
        journal.append(
            ended.trainer_journal(),
            1,
            journal.Sample(epoch=2, step=2, sample_kind=kind, file=file, meta={}),
        )
    bundles.pack([ended], tmp_path / "one.zip")
    with zipfile.ZipFile(tmp_path / "one.zip") as bundle:
        names = sorted(name for name in bundle.namelist() if "/samples/" in name)
    assert [name.removeprefix("quick-0001/samples/") for name in names] == [
        "by_class-00002.png",
        "epoch-00001.png",
        "samples-00002.png",
    ]
    bundles.unpack(tmp_path / "one.zip", other)
    store = Store()
    Ingestor(other, store).catch_up()
    assert queries.sample_kinds(store, ["quick-0001"]) == ["samples", "by_class"]
    assert queries.sample_epochs(store, ["quick-0001"], "samples") == [1, 2]


def test_loading_a_bundle_twice_changes_nothing(ended: RunDir, other: Home, tmp_path: Path) -> None:
    bundles.pack([ended], tmp_path / "one.zip")
    bundles.unpack(tmp_path / "one.zip", other)
    journal.append(
        other.run_dir("quick-0001").supervisor_journal, 1, journal.Renamed(name="mine now")
    )
    assert bundles.unpack(tmp_path / "one.zip", other) == []
    assert "mine now" in other.run_dir("quick-0001").supervisor_journal.read_text(encoding="utf-8")


def test_a_study_stays_a_study_under_its_prefixed_name(
    home: Home, host: Host, other: Home, tmp_path: Path
) -> None:
    runs = ask(home, host).submit_study(
        StudyDesign.parse("batch_size", {"workload": "mlp_gan"}, ["64", "128"])
    )
    for run in runs:
        journal.append(
            run.supervisor_journal,
            1,
            journal.StatusChange(status="stopped", reason="taken from the queue"),
        )
    bundles.pack(runs, tmp_path / "study.zip", prefix="example-")
    bundles.unpack(tmp_path / "study.zip", other)
    store = Store()
    Ingestor(other, store).catch_up()
    assert [(row.study_id, row.runs) for row in queries.studies(store)] == [
        ("example-study-0001", 2)
    ]


def test_a_run_that_has_not_ended_is_not_bundled(new_run: NewRun, tmp_path: Path) -> None:
    with pytest.raises(
        RunStateError, match=r"run quick-0001 is queued: stop it first, then bundle it\."
    ):
        bundles.pack([new_run("quick-0001")], tmp_path / "one.zip")
    assert not (tmp_path / "one.zip").exists()


def test_an_unwritable_bundle_path_is_explained(ended: RunDir, tmp_path: Path) -> None:
    with pytest.raises(
        BundleError,
        match=r"none/one\.zip cannot be written \(No such file or directory\): choose another file",
    ):
        bundles.pack([ended], tmp_path / "none" / "one.zip")


@pytest.mark.parametrize(
    "name",
    [
        "../evil/spec.json",
        "run-0001/../../spec.json",
        "/etc/passwd",
        "./run-0001/spec.json",
        "run-0001/process.json",
        "run-0001/checkpoints/step-1.safetensors",
        "run-0001/samples/epoch-٣٣٣٣٣.png",
        "run-0001/samples/By-class-00001.png",
        "run-0001/samples/00001.png",
        "run-0001/flow/../film.npz",
        "run-0001/flow/Film.npz",
        "run-0001/flow/film.npy",
        f"run-0001/flow/{'x' * 121}.npz",
        f"run-0001/samples/{'x' * 41}-00001.png",
        ".owner.lock/spec.json",
        "run-999999999/spec.json",
        ".last-number/spec.json",
        ".new-abcdefgh/spec.json",
        ".import-1/spec.json",
        ".deleted-run-0001/spec.json",
        "run/spec.json",
        "Run-0001/spec.json",
        "run-٠٠٠١/spec.json",
        "run-0001\n/spec.json",
        "run-12345678901/spec.json",
    ],
)
def test_files_not_allowed_in_a_bundle_are_refused(other: Home, tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "odd.zip", "w") as odd:
        odd.writestr(name, b"{}")
    assert "which a bundle must not contain" in refused(tmp_path / "odd.zip", other)


def refused(path: Path, home: Home) -> str:
    """The one-sentence error of a refused bundle, which leaves nothing in the home."""
    with pytest.raises(BundleError) as error:
        bundles.unpack(path, home)
    assert home.run_dirs() == []
    assert not home.runs.exists() or list(home.runs.iterdir()) == []
    assert "\n" not in str(error.value)
    return str(error.value)


def _rewritten(path: Path, change: Callable[[bytearray], None]) -> Path:
    """The zip file with some bytes changed in place."""
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)
    return path


def _in_each_header(
    offset_local: int, offset_central: int, value: bytes
) -> Callable[[bytearray], None]:
    """Writes `value` into every local and central header, at these offsets from their
    signatures.
    """

    def change(data: bytearray) -> None:
        for mark, offset in ((b"PK\x03\x04", offset_local), (b"PK\x01\x02", offset_central)):
            place = data.find(mark)
            while place >= 0:
                data[place + offset : place + offset + len(value)] = value
                place = data.find(mark, place + 1)

    return change


def _broken_stream(data: bytearray) -> None:
    start = data.find(b"spec.json") + len(b"spec.json")
    data[start : start + 20] = b"\xff" * 20


def _nul_in_a_name(data: bytearray) -> None:
    data[:] = bytes(data).replace(b"samples/epoch-00001.png", b"samples/epoch-00001.pn\0")


DAMAGES: dict[str, tuple[Callable[[bytearray], None], str]] = {
    "encrypted": (
        _in_each_header(6, 8, b"\x01\x00"),
        r"is damaged|is encrypted, or uses another compression",
    ),
    "unknown compression": (
        _in_each_header(8, 10, b"\x63\x00"),
        r"is damaged|uses another compression",
    ),
    "bzip2, which no bundle has": (
        _in_each_header(8, 10, b"\x0c\x00"),
        r"is damaged|uses another compression",
    ),
    "zip of version 9.0": (
        _in_each_header(4, 6, b"\x5a\x00"),
        r"cannot be read \(it is not a zip file, or damaged\)",
    ),
    "damaged stream": (_broken_stream, r"spec\.json in .+ is damaged: copy the file again"),
    "NUL in a name": (_nul_in_a_name, r"which a bundle must not contain"),
    "cut": (
        lambda data: data.__delitem__(slice(-40, None)),
        r"cannot be read \(it is not a zip file, or damaged\)",
    ),
    "no zip": (
        lambda data: data.__setitem__(slice(None), b"what?"),
        r"cannot be read \(it is not a zip file, or damaged\)",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_bundle_loads_nothing(
    ended: RunDir, other: Home, tmp_path: Path, damage: str
) -> None:
    change, sentence = DAMAGES[damage]
    bundles.pack([ended], tmp_path / "one.zip")
    assert re.search(sentence, refused(_rewritten(tmp_path / "one.zip", change), other))


def test_a_zip_with_too_many_members_is_refused(other: Home, tmp_path: Path) -> None:
    assert (
        refused(crowded(tmp_path / "odd.zip", 100_010, stated=1), other)
        == f"{tmp_path / 'odd.zip'} contains more than 2 GB or 100,000 files: use a smaller bundle."
    )


def _zip(path: Path, members: list[tuple[str, bytes]]) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        warnings.simplefilter("ignore")  # about duplicate names
        for name, content in members:
            bundle.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ([], "contains no run"),
        ([("bundle.json", b'{"format": 1, "program": "0.2.0"}')], "contains no run"),
        (
            [("run-0001/spec.json", b"{}"), ("run-0001/spec.json", b"{}")],
            "contains run-0001/spec.json twice",
        ),
        ([("run-0001/spec.json", b"{}")], "run run-0001 in .+ is not whole: make the bundle again"),
        (
            [("run-0001/samples/epoch-00001.png", bytes(30_000_000))],
            "has 30 MB, more than the 20 MB allowed",
        ),
        (
            [("bundle.json", b'{"format": 99, "program": "3.1"}'), ("x", b"")],
            r"made by a newer version .+\('3\.1', this is",
        ),
        (
            [("bundle.json", b'{"format": 1, "program": "99.0"}'), ("run-0001/spec.json", b"{}")],
            "made by a newer version",
        ),
        ([("bundle.json", b"[" * 5_000)], "bundle.json in .+ has no format"),
        ([("bundle.json", bytes(1_000_000))], "bundle.json in .+ has no format"),
        ([("bundle.json", b'{"format": "x"}')], "bundle.json in .+ has no format"),
    ],
)
def test_a_zip_that_is_not_a_valid_bundle_is_refused(
    other: Home, tmp_path: Path, members: list[tuple[str, bytes]], sentence: str
) -> None:
    assert re.search(sentence, refused(_zip(tmp_path / "odd.zip", members), other))


@pytest.mark.parametrize(
    ("grid", "reason"),
    [
        (b"\x89PNG, or so", "it is not a PNG image"),
        (GRID[:-30], "it is a damaged PNG image"),
        (_png(20_000, 2), "it has 20000 × 2 pixels, but at most 4,096 a side are allowed"),
    ],
)
def test_a_bundle_with_an_invalid_sample_grid_is_refused(
    ended: RunDir, other: Home, tmp_path: Path, grid: bytes, reason: str
) -> None:
    bundles.pack([ended], tmp_path / "one.zip")
    with zipfile.ZipFile(tmp_path / "one.zip", "a") as bundle:
        bundle.writestr("quick-0001/samples/epoch-00002.png", grid)
    assert f"epoch-00002.png in {tmp_path}/one.zip is not a sample grid ({reason})" in refused(
        tmp_path / "one.zip", other
    )


def test_linked_or_damaged_images_are_not_bundled(ended: RunDir, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the host")
    (ended.samples / "epoch-00002.png").symlink_to(tmp_path / "secret")
    (ended.samples / "epoch-00003.png").write_bytes(b"torn")
    bundles.pack([ended], tmp_path / "one.zip")
    with zipfile.ZipFile(tmp_path / "one.zip") as bundle:
        assert [name for name in bundle.namelist() if "samples" in name] == [
            "quick-0001/samples/epoch-00001.png"
        ]


def test_a_bundle_that_is_not_a_regular_file_is_refused(other: Home, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in refused(tmp_path / "pipe", other)
    assert "(No such file or directory)" in refused(tmp_path / "none.zip", other)


def test_loading_a_bundle_on_a_full_disk_blames_the_disk(
    ended: RunDir,
    other: Home,
    tmp_path: Path,
    files_end_at: Callable[[int], AbstractContextManager[None]],
) -> None:
    bundles.pack([ended], tmp_path / "one.zip")
    with (
        files_end_at(100),
        pytest.raises(
            HomeError, match=r"runs cannot be written \(File too large\): check the disk"
        ),
    ):
        bundles.unpack(tmp_path / "one.zip", other)
    assert list(other.runs.iterdir()) == []


def test_examples_without_a_format_number_still_load(other: Home) -> None:
    assert len(bundles.unpack(bundles.examples()[0], other)) > 10


# ---- films ---------------------------------------------------------------------------------------


@pytest.fixture
def iterated(ended: RunDir) -> RunDir:
    """The same run after two rollouts, with the film of the first; that of the second is missing,
    and another film has no record.
    """
    film = image_files.write_film(ended, "iterate-0001-map_reduce", FILM)
    gone = iteration(steps=3, number=2, way="whole").model_copy(update={"frames": "flow/gone.npz"})
    journal.append(
        ended.earlier_journal("flow"),
        1,
        iteration(steps=3).model_copy(update={"frames": film}),
        gone,
    )
    image_files.write_film(ended, "unnamed", FILM)
    return ended


def test_a_bundle_transfers_rollouts_with_their_films(
    iterated: RunDir, other: Home, tmp_path: Path
) -> None:
    bundles.pack([iterated], tmp_path / "one.zip", prefix="example-")
    assert bundles.unpack(tmp_path / "one.zip", other) == ["example-quick-0001"]
    brought = other.run_dir("example-quick-0001")
    rows = ingest.store_of(other).rows("SELECT frames FROM flow ORDER BY frames")
    assert [frames for (frames,) in rows] == ["flow/gone.npz", "flow/iterate-0001-map_reduce.npz"]
    assert [path.name for path in brought.films.iterdir()] == ["iterate-0001-map_reduce.npz"]
    film = image_files.read_film(brought, "flow/iterate-0001-map_reduce.npz")
    np.testing.assert_array_equal(film.predicted, FILM.predicted)


def test_a_bundle_can_omit_the_films(iterated: RunDir, other: Home, tmp_path: Path) -> None:
    with_films = bundles.pack([iterated], tmp_path / "one.zip")
    without = bundles.pack([iterated], tmp_path / "two.zip", films=False)
    assert without < with_films - 2_000
    bundles.unpack(tmp_path / "two.zip", other)
    assert not other.run_dir("quick-0001").films.exists()
    assert len(ingest.store_of(other).rows("SELECT run_id FROM flow")) == 2


def test_damaged_missing_linked_or_unreferenced_films_are_not_bundled(
    iterated: RunDir, tmp_path: Path
) -> None:
    film = iterated.films / "iterate-0001-map_reduce.npz"
    secret = iterated.films / "unnamed.npz"
    for change in (lambda: film.write_bytes(b"torn"), film.unlink, lambda: film.symlink_to(secret)):
        change()
        bundles.pack([iterated], tmp_path / "one.zip", overwrite=True)
        with zipfile.ZipFile(tmp_path / "one.zip") as bundle:
            assert [name for name in bundle.namelist() if "npz" in name] == []


def test_runs_with_too_many_films_are_not_bundled_together(
    iterated: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gan_runtime.bundles.packing.MAX_FILM_BYTES", FILM.nbytes - 1)
    with pytest.raises(BundleError, match=r"GB of films: bundle fewer runs, or give --no-films\."):
        bundles.pack([iterated], tmp_path / "one.zip")
    assert list(tmp_path.glob("*.zip")) == []
    assert bundles.pack([iterated], tmp_path / "one.zip", films=False)


def _npy(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=True)
    return content.getvalue()


class Evil:
    """Fails the test when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return print, ("unpickled",)


ARRAYS = {name: _npy(getattr(FILM, name)) for name in ("steps", "truth", "predicted", "mask")}
OVERSTATED = ARRAYS["truth"].replace(b"(4, 12, 40, 3)", b"(9999999, 40, 3)")  # header length kept


def _film(**changes: np.ndarray | bytes | None) -> bytes:
    """A film file with some arrays changed; None omits an array."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as film:
        for name, array in {**ARRAYS, **changes}.items():
            if array is not None:
                film.writestr(f"{name}.npy", array if isinstance(array, bytes) else _npy(array))
    return content.getvalue()


def _crowded_film() -> bytes:
    """A film with so many unnamed members that their list alone exceeds the limit."""
    with tempfile.TemporaryDirectory() as folder:
        return crowded(Path(folder) / "film.npz", 5_000).read_bytes()


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "objects": (
        lambda: _film(mask=np.array([Evil()], object)),
        "its array mask has the type object",
    ),
    "a type of its own": (
        lambda: _film(truth=np.zeros((4, 12, 40, 3))),
        "its array truth has the type float64",
    ),
    "fields": (lambda: _film(steps=np.zeros(4, [("a", "<i8")])), "its array steps has the type"),
    "more than it has": (
        lambda: _film(truth=OVERSTATED),
        "the size of its array truth differs from its header",
    ),
    "no array": (lambda: _film(truth=b"what?"), "it is damaged"),
    "half an array": (
        lambda: _film(truth=ARRAYS["truth"][:500]),
        "the size of its array truth differs from its header",
    ),
    "no mask": (
        lambda: _film(mask=None),
        "it does not contain exactly steps, truth, predicted, mask",
    ),
    "something else": (lambda: _film(more=b"x"), "it is damaged|it does not contain exactly"),
    "a list of thousands": (_crowded_film, "it is damaged"),
    "no zip": (lambda: b"what?", "it is damaged"),
    "two shapes": (
        lambda: _film(predicted=FILM.predicted[1:]),
        "its two films differ in shape or type",
    ),
    "two types": (
        lambda: _film(predicted=FILM.predicted.astype(np.int8)),
        "its two films differ in shape or type",
    ),
    "no frames": (
        lambda: _film(truth=FILM.truth[:0], predicted=FILM.truth[:0], steps=FILM.steps[:0]),
        "its films are empty",
    ),
    "one pixel high": (lambda: _film(truth=WIDE, predicted=WIDE), "a frame has 5000 × 1 pixels"),
    "another mask": (lambda: _film(mask=FILM.mask[1:]), "its mask does not fit its films"),
    "steps back": (lambda: _film(steps=FILM.steps[::-1]), "its steps are not those of a rollout"),
    "steps beyond all": (
        lambda: _film(steps=np.array([0, 2**63 - 1, -(2**63), 3])),
        "its steps are not those of a rollout",
    ),
}


@pytest.mark.parametrize("film", HOSTILE)
def test_a_bundle_with_an_invalid_film_is_refused(
    iterated: RunDir, other: Home, tmp_path: Path, film: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content, sentence = HOSTILE[film]
    bundles.pack([iterated], tmp_path / "one.zip")
    with zipfile.ZipFile(tmp_path / "one.zip", "a") as bundle:
        bundle.writestr("quick-0001/flow/gone.npz", content())
    refusal = refused(tmp_path / "one.zip", other)
    assert re.search(
        rf"quick-0001/flow/gone\.npz in .+ is not a film \(({sentence}).*\): make the bundle again",
        refusal,
    )
    assert "unpickled" not in capsys.readouterr().out


def test_a_film_is_refused_by_its_declared_size_before_unpacking(
    iterated: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gan_runtime.records.image_files.MAX_FILM_BYTES", 100_000)
    (iterated.films / "gone.npz").write_bytes(_film(mask=bytes(100_001)))
    with pytest.raises(PictureError, match="it has more than 100,000 bytes, unpacked"):
        image_files.read_film(iterated, "flow/gone.npz")


def test_a_bundle_with_too_many_films_is_refused(
    iterated: RunDir, other: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundles.pack([iterated], tmp_path / "one.zip")
    monkeypatch.setattr("gan_runtime.bundles.unpacking.MAX_FILM_BYTES", FILM.nbytes - 1)
    assert "GB of films: use a smaller bundle" in refused(tmp_path / "one.zip", other)


# ---- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["../", "Example-", "a b", "-", "x" * 100, "."])
def test_an_invalid_prefix_is_refused(ended: RunDir, tmp_path: Path, prefix: str) -> None:
    with pytest.raises(BundleError, match="use lowercase letters, digits"):
        bundles.pack([ended], tmp_path / "one.zip", prefix)
    assert list(tmp_path.glob("*.zip")) == []


@pytest.mark.parametrize(
    "folder",
    [
        "/home/jane doe/My Data (old)/[2024]",
        "/srv/jane, private: data",
        "data of jane/mnist",
        "/home/jane's",
    ],
)
def test_folder_paths_with_unusual_names_are_stripped(
    ended: RunDir, tmp_path: Path, folder: str
) -> None:
    journal.append(
        ended.trainer_journal(),
        1,
        journal.HostFacts(
            facts={"hostname": "janes-laptop", "data_origin": f"{folder}/train-images-idx3-ubyte"}
        ),
        journal.Event(
            level="info",
            topic="data",
            message=f"read {folder}/t10k.gz on janes-laptop, from grpc://jane.lan:8470/x",
        ),
        journal.Event(level="info", topic="data", message="read file:///home/jane/My Data/x.gz"),
        StatusChange.of(
            "failed", cause(Reason.REFUSED, message=f"{folder}/t10k.gz on janes-laptop is damaged")
        ),
    )
    bundles.pack([ended], tmp_path / "one.zip")
    with zipfile.ZipFile(tmp_path / "one.zip") as bundle:
        text = b"".join(bundle.read(name) for name in bundle.namelist()).decode(errors="replace")
    assert "jane" not in text
    assert "private" not in text
    assert '"message":"read t10k.gz on host, from grpc://host:8470/x"' in text
    assert '"data_origin":"train-images-idx3-ubyte"' in text
    assert '"details":{"message":"t10k.gz on host is damaged"}' in text


def test_the_tpu_address_is_not_bundled(new_run: NewRun, other: Home, tmp_path: Path) -> None:
    run = new_run("quick-0001", tpu_address="grpc://tpu.jane.lan:8470")
    journal.append(
        run.supervisor_journal,
        1,
        journal.StatusChange(status="stopped", reason="taken from the queue"),
    )
    bundles.pack([run], tmp_path / "one.zip")
    bundles.unpack(tmp_path / "one.zip", other)
    brought = other.run_dir("quick-0001")
    assert brought.spec().tpu_address == "local"
    assert "jane" not in brought.supervisor_journal.read_text(encoding="utf-8")


# ---- output files --------------------------------------------------------------------------------


def test_an_existing_file_is_replaced_only_on_request(ended: RunDir, tmp_path: Path) -> None:
    target = tmp_path / "one.zip"
    target.write_text("my thesis")
    with pytest.raises(
        TargetError, match=r"one\.zip exists already: choose another path, or add --overwrite"
    ):
        bundles.pack([ended], target)
    assert target.read_text() == "my thesis"
    bundles.pack([ended], target, overwrite=True)
    assert zipfile.is_zipfile(target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "one.zip"]


def test_only_regular_files_are_replaced(ended: RunDir, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/dev/null")
    for name, kind in (("pipe", "a named pipe"), ("folder", "a folder"), ("link", "a link")):
        with pytest.raises(
            TargetError, match=f"{name} is {kind}, not a regular file: choose another path"
        ):
            bundles.pack([ended], tmp_path / name, overwrite=True)
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "home", "link", "pipe"]


# ---- excessive memory, disk space or time --------------------------------------------------------


def _with(source: Path, target: Path, name: str, more: bytes, **how: Any) -> Path:
    """A copy of a bundle with `more` appended to one file."""
    with (
        zipfile.ZipFile(source) as old,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, **how) as new,
    ):
        for member in old.infolist():
            new.writestr(
                member.filename,
                old.read(member) + (more if member.filename.endswith(name) else b""),
            )
    return target


@pytest.mark.parametrize("name", ["journal-0.jsonl", "journal-supervisor.jsonl", "epoch-00001.png"])
def test_a_highly_compressed_bundle_is_refused_before_unpacking(
    ended: RunDir, other: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    bundles.pack([ended], tmp_path / "one.zip")
    crafted = _with(tmp_path / "one.zip", tmp_path / "crafted.zip", name, b"no\n" * 2_000_000)
    opened, open_ = [], zipfile.ZipFile.open
    monkeypatch.setattr(
        zipfile.ZipFile,
        "open",
        lambda self, member: opened.append(member.filename) or open_(self, member),
    )
    with pytest.raises(BundleError, match=r"would unpack to \d,?\d+ times its size"):
        bundles.unpack(crafted, other)
    assert opened == ["bundle.json"]
    assert not other.runs.exists()


def test_a_run_with_an_oversized_journal_is_not_packed(ended: RunDir, tmp_path: Path) -> None:
    with ended.supervisor_journal.open("ab") as file:
        file.truncate(2_500_000_000)  # sparse: the zeros take no disk space
    with pytest.raises(
        BundleError, match=r"journal-supervisor\.jsonl has 2,500 MB, and at most 20 MB"
    ):
        bundles.pack([ended], tmp_path / "one.zip")
    assert not (tmp_path / "one.zip").exists()


def test_a_run_with_an_invalid_journal_is_neither_packed_nor_loaded(
    ended: RunDir, other: Home, tmp_path: Path
) -> None:
    bundles.pack([ended], tmp_path / "one.zip")
    no_records = b"what is this?\n" * (run_files.MAX_BAD_LINES + 1)
    crafted = _with(tmp_path / "one.zip", tmp_path / "crafted.zip", "journal-0.jsonl", no_records)
    with pytest.raises(BundleError, match=r"run quick-0001 in .* is not whole"):
        bundles.unpack(crafted, other)
    ended.trainer_journal().write_bytes(ended.trainer_journal().read_bytes() + no_records)
    with pytest.raises(BundleError, match="run quick-0001 cannot be bundled"):
        bundles.pack([ended], tmp_path / "two.zip")


def test_a_run_with_a_too_repetitive_journal_is_not_packed(ended: RunDir, tmp_path: Path) -> None:
    event = journal.Event(level="info", topic="t", message="again")
    journal.append(ended.trainer_journal(), 1, *[event] * 20_000)
    with pytest.raises(BundleError, match=r"journal-0\.jsonl is too repetitive"):
        bundles.pack([ended], tmp_path / "one.zip")
    assert not (tmp_path / "one.zip").exists()


def test_an_imported_run_is_neither_pinned_nor_hidden(
    ended: RunDir, other: Home, tmp_path: Path
) -> None:
    bundles.pack([ended], tmp_path / "one.zip")
    marked = (
        journal.Marked(tags=["mine"], pinned=True, hidden=True).model_dump_json().encode() + b"\n"
    )
    crafted = _with(
        tmp_path / "one.zip", tmp_path / "crafted.zip", "journal-supervisor.jsonl", marked
    )
    assert bundles.unpack(crafted, other) == ["quick-0001"]
    assert run_folder.marks_of(other.run_dir("quick-0001")) == run_folder.Marks(tags=("mine",))
    [row] = queries.run_table(ingest.store_of(other)).to_dict("records")
    assert (row["pinned"], row["hidden"], row["tags"]) == (False, False, ["mine"])


@pytest.mark.parametrize("count", [0, 3])
def test_an_import_does_not_advance_our_run_numbers(
    ended: RunDir, home: Home, other: Home, tmp_path: Path, count: int
) -> None:
    theirs = RunDir(ended.path.rename(home.runs / "theirs-0050"))
    bundles.pack([theirs], tmp_path / "one.zip")
    other.prepare()
    assert [next_number(other.runs) for _ in range(count)] == list(range(1, count + 1))
    assert bundles.unpack(tmp_path / "one.zip", other) == ["theirs-0050"]
    assert next_number(other.runs) == count + 1
    other.last_number_file.write_text("49\n")
    assert next_number(other.runs) == 51, "50 is theirs"


def test_imported_runs_with_huge_numbers_leave_valid_numbers_for_new_runs(
    home: Home,
) -> None:
    numbers = [next_number(home.runs)]
    for imported in ("q-99999999", "q-9999999", "q-0006", "q-999999", "q-1000002"):
        (home.runs / imported).mkdir()
        numbers += [next_number(home.runs), next_number(home.runs)]
    assert numbers == [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12]
    home.last_number_file.write_text(
        "100000001\n"
    )  # as written by earlier versions after such an import
    assert next_number(home.runs) == 1_000_000
    home.last_number_file.write_text("9" * 5_000)  # more digits than Python converts to an integer
    assert next_number(home.runs) == 1_000_000
    assert all(SUBMITTED_NAME.fullmatch(f"quick-{number:04d}") for number in numbers)
