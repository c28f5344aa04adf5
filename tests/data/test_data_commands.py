"""`data list|prepare|show|remove` on the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gan_runtime.cli.app import app
from gan_runtime.data import images, prepared
from gan_runtime.jobs import job_queue
from gan_runtime.records.home import Home
from tests.data.conftest import BLUE, RED, Pack, encoded

TWO_CLASSES = {
    **{f"cats/{number}.png": encoded(RED) for number in range(3)},
    **{f"dogs/{number}.png": encoded(BLUE) for number in range(2)},
    "dogs/torn.png": encoded()[:60],
}
Run = Callable[..., Result]


@pytest.fixture
def run(home: Home) -> Run:
    """`run("list")` runs `data list` on the home."""
    return lambda *words: CliRunner().invoke(app, ["data", *words, "--home", str(home.path)])


@pytest.fixture
def prepare(run: Run, pack: Pack) -> Run:
    """Prepares the zip of two classes as `photos`."""
    path = pack(TWO_CLASSES)
    return lambda *words: run(
        "prepare", "pictures", "--from", str(path), "--as", "photos", "--set", "pixels=32", *words
    )


def test_images_are_prepared_shown_listed_and_removed(run: Run, prepare: Run, home: Home) -> None:
    answer = prepare()
    assert (answer.exit_code, answer.stderr) == (0, "")
    [job] = job_queue.snapshots(home)
    assert (job.request.kind, job.request.asker, job.state) == (
        "prepare_data",
        "command line",
        "finished",
    )
    assert answer.stdout.splitlines() == [
        (
            "data set photos is ready: 5 training rows, 0 held out. Train on it with `train"
            " --set dataset=photos`."
        ),
        "1 file skipped: damaged 1 (dogs/torn.png).",
        "Converted: resized 5.",
        "class  training  held out",
        "cats   3         0       ",
        "dogs   2         0       ",
        "skipped        why          ",
        "dogs/torn.png  it is damaged",
        f"See the first rows in {prepared.first_rows_image(home, 'photos')}.",
    ]
    text = run("show", "photos").stdout
    for part in (
        "32 × 32 × 3 images, labels",
        "photos.zip, fingerprint ",
        "cats   3",
        "dogs/torn.png  it is damaged",
    ):
        assert part in text
    assert re.search("photos +5 +32 × 32 × 3 images, labels +2 ", run("list").stdout)
    assert run("remove", "photos").stdout == "data set photos is deleted.\n"
    assert not prepared.names(home)


def test_data_commands_give_the_same_answers_in_json(run: Run, prepare: Run) -> None:
    answer = json.loads(prepare("--json").stdout)
    assert (answer["data_set"], answer["rows"], answer["counts"]) == (
        "photos",
        5,
        {"cats": 3, "dogs": 2},
    )
    description = json.loads(run("show", "photos", "--json").stdout)
    assert (description["classes"], description["source"], description["options"]["pixels"]) == (
        ["cats", "dogs"],
        "photos.zip",
        "32",
    )
    assert [row["data_set"] for row in json.loads(run("list", "--json").stdout)][-1] == "photos"
    assert json.loads(run("remove", "photos", "--json").stdout) == {"removed": "photos"}


def test_a_preview_describes_the_data_set_and_stores_nothing(prepare: Run, home: Home) -> None:
    preview = prepare("--preview")
    assert "training rows  5" in preview.stdout
    assert "dogs/torn.png  it is damaged" in preview.stdout
    assert json.loads(prepare("--preview", "--json").stdout)["skipped"]["counts"] == {"damaged": 1}
    assert not home.data.exists()


def test_a_preview_needs_no_name_but_a_preparation_does(run: Run, pack: Pack) -> None:
    source = str(pack(TWO_CLASSES))
    request = ("prepare", "pictures", "--from", source, "--set", "pixels=32")
    assert "training rows  5" in run(*request, "--preview").stdout
    refused = run(*request)
    assert refused.exit_code == 2
    assert "pictures needs a name for the new set (--as): use 1 to 60 of" in refused.stderr


def test_ctrl_c_cancels_a_preview(prepare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(images, "convert", interrupted)
    ended = prepare("--preview")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (
        1,
        "",
        "cancelled: nothing was stored.\n",
    )


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["prepare", "pictures", "--as", "photos"], "--from"),
        (["prepare", "picture"], "'picture'"),
        (["remove", "digits"], "digits"),
        (["remove", "photo"], "'photo'"),
        (["show", "digit"], "did you mean digits?"),
    ],
)
def test_invalid_requests_exit_with_code_2_and_one_sentence(
    run: Run, words: list[str], named: str
) -> None:
    refused = run(*words)
    assert (refused.exit_code, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert named in refused.stderr


def test_a_usage_error_points_to_the_help(run: Run) -> None:
    assert run("prepare", "--bogus").stderr.endswith("-m gan_runtime data prepare --help`.\n")
    assert run("prepair").stderr.endswith("-m gan_runtime data --help`.\n")


@pytest.mark.parametrize("name", ["broken.zip", "evil.zip"])
def test_broken_and_escaping_zips_give_one_sentence_errors(
    run: Run, pack: Pack, home: Home, name: str
) -> None:
    path: Path = pack({"../evil.png": encoded()}, name)
    if name == "broken.zip":
        path.write_bytes(path.read_bytes()[:30])
    refused = run("prepare", "pictures", "--from", str(path), "--as", "photos")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert refused.stderr.startswith(name)
    assert not home.data.exists()
