"""Every hostile input at its reader: an error message or a harmless answer, no traceback, and no
changes.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image
from typer.testing import Result

from gan_runtime import bundles
from gan_runtime.base.errors import BundleError, DatasetError, GanRuntimeError, SpecError
from gan_runtime.data import idx_files, images, preparations, prepared, summary, uploads
from gan_runtime.data.images import ImageOptions
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.data.uploads import Upload
from gan_runtime.jobs import job_queue
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.spec.run_spec import read_values
from gan_runtime.store import ingest, queries
from tests.domains.showers.hdf5_showers import challenge_columns
from tests.hostile import cases
from tests.hostile.cases import CUTS, TURNS, mutations
from tests.support import command_line
from tests.support.asking import ask_of

KINDS = dict(cases.kinds())
PLAIN_NAME = re.compile(
    r"[A-Za-z0-9._-][A-Za-z0-9 ._-]{0,59}"
)  # valid names of runs, which are shown and lead to no file
MOST_LETTERS = 6_000  # in a message about several options


def check_sentence(error: BaseException) -> None:
    """Checks for a user-facing error of this project: short, one line, nothing that a terminal or a
    page would interpret.
    """
    text = str(error)
    assert isinstance(error, GanRuntimeError), repr(error)
    assert 0 < len(text) <= MOST_LETTERS, len(text)
    assert "Traceback" not in text
    odd = [
        letter
        for letter in text
        if ord(letter) < 32 or 127 <= ord(letter) < 160 or "\ud800" <= letter <= "\udfff"
    ]
    assert not odd, ascii(text)


def tree(folder: Path) -> dict[str, bytes]:
    """Returns every file below a folder with its content."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def unchanged(tmp_path: Path) -> Iterator[None]:
    """Checks that nothing is written next to the home, where a path may lead."""
    (tmp_path / "guard").write_text("as it was", encoding="utf-8")
    before = {path.name for path in tmp_path.iterdir()}
    yield
    assert (tmp_path / "guard").read_text(encoding="utf-8") == "as it was"
    assert {path.name for path in tmp_path.iterdir()} - before <= {"home", "given", "whole"}


def test_over_a_thousand_hostile_inputs_exist() -> None:
    counts = cases.counts()
    assert sum(counts.values()) >= 1_000
    assert all(len(set(names)) == len(names) for names in map(list, KINDS.values()))


def test_accepted_option_values_round_trip_unchanged() -> None:
    for title, (workload, name, value) in KINDS["options of a run"].items():
        try:
            spec = RunSpec.parse(
                {"workload": workload, name: value} if name != "workload" else {name: value}
            )
        except SpecError as error:
            check_sentence(error)
            continue
        again = RunSpec.parse(json.loads(spec.model_dump_json()))
        assert again == spec, title
        assert not isinstance(spec.value(name), list | dict), title


def test_many_mistakes_are_summarized_in_a_few_sentences() -> None:
    with pytest.raises(SpecError, match=r"24 more options are wrong\.$") as refused:
        RunSpec.parse({f"no_option_{number}": number for number in range(30)})
    check_sentence(refused.value)
    assert len(refused.value.errors) == 30


def test_spec_files_give_options_or_one_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "given"
    for title, content in KINDS["spec files"].items():
        file.write_bytes(content)
        try:
            RunSpec.parse(read_values(file))
        except GanRuntimeError as error:
            check_sentence(error)
        else:
            assert title in ("a key twice", "a byte order mark", "UTF-16", "of_workload"), title


@pytest.mark.usefixtures("unchanged")
def test_no_name_escapes_its_folder(home: Home, new_run: Callable[..., RunDir]) -> None:
    run = new_run("quick-0001")
    before = tree(home.path)
    for title, text in KINDS["names"].items():
        request = PreparationRequest("pictures", text, home.path / "none.zip", {})
        for use in (
            home.run_dir,
            lambda name: job_queue.job_dir(home, name),
            prepared.check_name,
            lambda _, request=request: request.check(),
        ):
            with pytest.raises(GanRuntimeError) as refused:
                use(text)
            check_sentence(refused.value)
        assert not prepared.exists(home, text), title
        with pytest.raises(ValueError, match="is not the id of a file"):
            uploads.place(home, f"{text}.")
        if not PLAIN_NAME.fullmatch(text):
            with pytest.raises(SpecError) as refused:
                ask_of(run).rename(run.run_id, text)
            check_sentence(refused.value)
    assert tree(home.path) == before


@pytest.mark.usefixtures("unchanged")
def test_uploaded_file_names_stay_within_the_uploads_folder(home: Home) -> None:
    below = home.jobs / uploads.FOLDER
    for number, (title, name) in enumerate(KINDS["uploads"].items()):
        uploads.store(home, f"f{number}", b"x")
        for ending in ("", ".zip", ".h5"):
            source = uploads.as_source(home, [Upload(f"f{number}", name + ending)])
            assert source.resolve().is_relative_to(below.resolve()), title
            stored = [source] if source.is_file() else list(source.iterdir())
            assert [path.read_bytes() for path in stored] == [b"x"], title
    assert {path.name for path in home.path.iterdir()} <= {"jobs", "runs"}


@pytest.fixture(scope="module")
def whole_bundle(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A bundle of one small run."""
    folder = tmp_path_factory.mktemp("whole")
    run = RunDir(folder / "home" / "runs" / "quick-0001")
    run.samples.mkdir(parents=True)
    spec = RunSpec.parse({"workload": "mlp_gan"})
    (run.path / "spec.json").write_text(spec.model_dump_json(), encoding="utf-8")
    Image.new("L", (28, 28), 7).save(run.samples / "epoch-00001.png")
    journal.append(
        run.supervisor_journal,
        1,
        journal.Created(
            spec=spec.model_dump(), accelerator="cpu", color=0, preset="quick", study=None
        ),
    )
    journal.append(
        run.trainer_journal(),
        1,
        journal.Sample(
            epoch=1, step=1, sample_kind="fixed_latents", file="samples/epoch-00001.png", meta={}
        ),
        journal.StatusChange(status="finished", reason="all epochs done"),
    )
    bundles.pack([run], folder / "one.zip")
    return (folder / "one.zip").read_bytes()


@pytest.mark.usefixtures("unchanged")
def test_damaged_bundle_is_imported_whole_or_not_at_all(
    home: Home, tmp_path: Path, whole_bundle: bytes
) -> None:
    file, imported = tmp_path / "given", 0
    for title, content in mutations(whole_bundle, CUTS, TURNS, "a bundle").items():
        file.write_bytes(content)
        try:
            new = bundles.unpack(file, home)
        except BundleError as error:
            check_sentence(error)
            assert not home.runs.exists() or not list(home.runs.iterdir()), title
            continue
        imported += 1
        assert new == ["quick-0001"], title
        assert all(OF_A_RUN.fullmatch(name) for name in tree(home.runs)), title
        list(queries.runs(ingest.store_of(home)))
        shutil.rmtree(home.runs)
    assert imported < TURNS / 4, (
        "a turned byte is noticed, unless it stands where zip files keep dates"
    )


OF_A_RUN = re.compile(
    r"quick-0001/(journal-(0|supervisor)\.jsonl|spec\.json|samples/[a-z_-]+[0-9]{5}\.png)|\.last-number(\.lock)?"
)


@pytest.mark.usefixtures("unchanged")
def test_bundle_members_with_hostile_paths_are_refused(
    home: Home, tmp_path: Path, whole_bundle: bytes
) -> None:
    file = tmp_path / "given"
    for title, name in KINDS["members of bundles"].items():
        file.write_bytes(whole_bundle)
        with zipfile.ZipFile(file, "a") as bundle:
            bundle.writestr(name, b"{}")
        with pytest.raises(BundleError) as refused:
            bundles.unpack(file, home)
        check_sentence(refused.value)
        assert not home.runs.exists() or not list(home.runs.iterdir()), title


def test_damaged_images_are_skipped_one_by_one(tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    noise = np.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    for ending in ("png", "jpg"):
        whole = tmp_path / f"whole.{ending}"
        Image.fromarray(noise).save(whole)
        for number, content in enumerate(
            mutations(whole.read_bytes(), CUTS, TURNS, "a picture").values()
        ):
            (folder / f"{ending}-{number:03d}.{ending}").write_bytes(content)
    (folder / "good.png").write_bytes((tmp_path / "whole.png").read_bytes())
    surveyed = images.survey(folder, ImageOptions(), lambda *_: None)
    left_out = sum(surveyed.summary.skipped.counts.values())
    assert surveyed.rows + surveyed.summary.held_out + left_out == 2 * (CUTS + TURNS) + 1
    assert left_out >= 2 * CUTS
    assert surveyed.grid.dtype == np.uint8


def test_idx_files_yield_no_more_data_than_they_contain(tmp_path: Path) -> None:
    accepted = []
    for number, (title, content) in enumerate(KINDS["IDX files"].items()):
        for ending in ("", ".gz"):
            file = tmp_path / f"given-{number}{ending}"
            file.write_bytes(content)
            try:
                idx_files.check(file)
                rows = idx_files.read(file)
            except DatasetError as error:
                check_sentence(error)
                continue
            accepted.append(title)
            assert rows.dtype == np.uint8, title
            assert rows.nbytes <= len(content), title
    assert len(accepted) < 5, accepted


@pytest.mark.usefixtures("unchanged")
def test_damaged_hdf5_files_leave_no_partial_data_set(home: Home, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    with h5py.File(whole, "w") as file:
        for key, column in challenge_columns(6_480, count=4).items():
            file.create_dataset(key, data=column, compression="gzip" if key == "showers" else None)
    folder, accepted = tmp_path / "given", 0
    for title, content in mutations(whole.read_bytes(), CUTS, TURNS, "an HDF5 file").items():
        folder.mkdir(exist_ok=True)
        (folder / "showers.h5").write_bytes(content)
        request = PreparationRequest(
            "calochallenge", f"set-{accepted}", folder / "showers.h5", {"held_out_percent": 0}
        )
        try:
            manifest = preparations.prepare(home, request, lambda *_: None)
        except GanRuntimeError as error:
            check_sentence(error)
            assert not list(home.data.glob(f"set-{accepted}*")), title
            continue
        accepted += 1
        assert manifest is not None, title
        assert manifest.rows <= 4, title


COMMAND_LINES = KINDS["command lines"]


def beginning(words: tuple[str, ...]) -> str:
    """Returns the command, with `--` if only a text follows."""
    return f"{words[0]} --" if "--" in words else words[0]


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("command", sorted({beginning(words) for words in COMMAND_LINES.values()}))
def test_no_command_line_ends_in_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "gan_runtime.hardware.hosts.probe",
        lambda: pytest.fail("this must be refused before the host is looked at"),
    )
    place = tmp_path / "home"
    for title, words in COMMAND_LINES.items():
        if beginning(words) == command:
            check_answer(title, command_line.run(words[0], "--home", str(place), *words[1:]))
    assert not place.exists() or not tree(place)


def check_answer(title: str, answer: Result) -> None:
    """Checks for an error message or an answer, without effects on the terminal."""
    assert answer.exception is None or isinstance(answer.exception, SystemExit), (
        title,
        answer.exception,
    )
    assert answer.exit_code in (0, 2), title
    assert "Traceback" not in answer.output, title
    assert "\x1b[2J" not in answer.output, title
    if answer.exit_code == 2:
        assert answer.stderr.strip().count("\n") == 0, (title, answer.stderr)
        assert len(answer.stderr) <= MOST_LETTERS, title


def test_terminal_escapes_in_file_names_are_removed() -> None:
    assert not summary.readable("a\x1b[2Jb").count("\x1b")
