"""JSON spec files, presets, and command-line assignments."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gan_runtime import catalog
from gan_runtime.base.errors import GanRuntimeError, SpecError
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec, nesting, presets
from gan_runtime.studies.design import StudyDesign


def test_a_spec_survives_its_json_file(tmp_path: Path) -> None:
    spec = RunSpec.parse(
        {
            "name": "round trip",
            "learning_rate_generator": 3e-4,
            "replicas": 2,
            "precision": "float32",
        }
    )
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(spec.model_dump()), encoding="utf-8")
    assert RunSpec.read(file) == spec


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", r"spec file .*spec\.json is not JSON \(.+\): correct it, or start from .+\."),
        ("[1]", r"spec file .*spec\.json contains a list: write one JSON object of options\."),
        (
            '{"epochs": 0}',
            (
                "epochs is 0, but allowed is a whole number from 1 to 10000: use a whole number of"
                " epochs."
            ),
        ),
    ],
)
def test_an_invalid_spec_file_is_refused(tmp_path: Path, content: str, sentence: str) -> None:
    file = tmp_path / "spec.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SpecError, match=sentence):
        RunSpec.read(file)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"[" * 50_000, r"spec\.json is nested too deeply: correct it"),
        (
            b'{"epochs": ' + b"[" * 900 + b"]" * 900 + b"}",
            r"^epochs is \[\[.{70,80}…, but allowed is a whole number",
        ),
        (
            b'{"epochs": "' + b"9" * 10_000 + b'"}',
            r"^epochs is '9{78}…, but allowed is a whole number",
        ),
        (b'{"epochs": ' + b"9" * 10_000 + b"}", r"spec\.json is not JSON \(Exceeds the limit"),
        (
            b'{"workload": "' + b"d" * 10_000 + b'"}',
            rf"^workload is 'd{{78}}…, but allowed is {', '.join(catalog.WORKLOADS)}: ",
        ),
        (b'{"' + b"k" * 10_000 + b'": 1}', r"^'k{78}… is not an option of a run: "),
        (b'{"\\ud800": 1}', r"^'\\ud800' is not an option of a run: "),
        (b'{"name": "\\ud800"}', r"^name is '\\ud800', but allowed is text of up to 60 letters"),
        (b'{"name\\n": "x"}', r"^'name\\n' is not an option of a run: did you mean name\?$"),
        (b"\xff\xfe\x00", r"spec\.json is not JSON \("),
        (b'{"seed": 1}' + b" " * 100_000, r"spec\.json has more than 100,000 bytes: correct it"),
        (
            json.dumps({f"k{number}": 1 for number in range(5_000)}).encode(),
            r"spec\.json has 5,000 keys, more than there are",
        ),
    ],
    ids=lambda value: None if isinstance(value, str) else value[:20].decode(errors="replace"),
)
def test_a_hostile_spec_file_is_refused_with_a_short_message(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    file = tmp_path / "spec.json"
    file.write_bytes(content)
    with pytest.raises(SpecError, match=sentence) as refused:
        RunSpec.read(file)
    assert len(str(refused.value)) < 1_500
    str(refused.value).encode()


def test_a_spec_file_that_is_not_a_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(
            SpecError, match=r"is not a regular file: give the path of a JSON file\.$"
        ):
            RunSpec.read(path)


def test_a_missing_spec_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        SpecError,
        match=r"cannot be read \(No such file or directory\): give the path of a JSON file\.",
    ):
        RunSpec.read(tmp_path / "none.json")


@pytest.mark.parametrize("name", list(presets.PRESETS))
def test_presets_and_their_suggested_values_are_valid_specs(name: str) -> None:
    preset = presets.preset(name)
    assert preset.title
    assert preset.summary.endswith(".")
    RunSpec.parse(preset.values)
    for field, values in preset.suggestions.items():
        for value in values:
            RunSpec.parse({**preset.values, field: value})


def test_the_paper_preset_matches_the_paper() -> None:
    spec = RunSpec.parse(presets.preset("paper").values)
    assert (spec.workload, spec.dataset, spec.replicas, spec.epochs) == (
        "dcgan_mnist",
        "mnist",
        8,
        30,
    )
    assert (
        spec.precision,
        spec.learning_rate("generator"),
        spec.learning_rate("discriminator"),
    ) == (
        "mixed_bfloat16",
        1e-4,
        1e-4,
    )
    assert presets.preset("paper").suggestions["batch_size_global"] == (64, 128, 256, 512)


def test_a_workload_can_override_shared_defaults() -> None:
    showers = {"workload": "shower_3dgan", "dataset": "showers"}
    assert RunSpec.parse(showers).optimizer == "rmsprop"
    assert RunSpec.parse({**showers, "optimizer": "adam"}).optimizer == "adam"
    assert RunSpec.parse({}).optimizer == "adam"
    assert RunSpec.options("shower_3dgan")["optimizer"].default == "rmsprop"
    assert set(RunSpec.parse(showers).changed_from_default()) == {"workload", "dataset"}


def test_shared_options_return_to_the_default_of_the_new_workload() -> None:
    """A preset for another GAN does not set this GAN's optimizer."""
    moved = nesting.overlaid(
        {"workload": "dcgan_mnist", "optimizer": "sgd", "epochs": 3}, {"workload": "shower_3dgan"}
    )
    assert RunSpec.parse(moved).optimizer == "rmsprop"
    assert RunSpec.parse(moved).epochs == 3
    options = nesting.overlaid(
        {"workload": "dcgan_mnist"}, {"workload": "shower_3dgan", "optimizer": "adam"}
    )
    assert RunSpec.parse(options).optimizer == "adam"
    back = nesting.overlaid(
        {"workload": "shower_3dgan", "optimizer": "rmsprop"}, {"workload": "mlp_gan"}
    )
    assert RunSpec.parse(back).optimizer == "adam"


def test_an_unknown_preset_lists_all_presets() -> None:
    with pytest.raises(
        SpecError,
        match="but allowed is quick, paper, modern, showers, karman: did you mean quick",
    ):
        presets.preset("quik")


def test_assignments_are_read_as_text_values() -> None:
    assert presets.parse_assignments(["epochs=3", " seed = 7 ", "name=a=b"]) == {
        "epochs": "3",
        "seed": "7",
        "name": "a=b",
    }


def test_an_assignment_to_a_name_with_a_newline_is_refused() -> None:
    with pytest.raises(
        SpecError, match=r"^'name\\n' is not an option of a run: did you mean name\?$"
    ):
        RunSpec.parse(presets.parse_assignments(["name\n=1"]))


def test_long_values_are_shortened_in_every_error_message(home: Home) -> None:
    long = "x" * 10_000
    for ask in (
        lambda: presets.preset(long),
        lambda: presets.parse_assignments([long]),
        lambda: home.run_dir(long),
        lambda: StudyDesign.parse(long, {}),
        lambda: StudyDesign.parse("batch_size", {}, ["64", long]),
        lambda: StudyDesign.parse("batch_size", {}, ["64", "128"], title=long),
    ):
        with pytest.raises(GanRuntimeError) as refused:
            ask()
        assert 80 < len(str(refused.value)) < 500


def test_an_assignment_without_equals_is_refused() -> None:
    with pytest.raises(
        SpecError, match="--set 'epochs' has no '=': write key=value, such as epochs=3"
    ):
        presets.parse_assignments(["epochs"])
