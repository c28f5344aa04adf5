"""Errors are one sentence and leave nothing behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec
from gan_runtime.spec.presets import PRESETS
from tests.support.command_line import refused
from tests.support.trained_home import TINY

WRONG = {
    "name": "a/b",
    "profile_steps": "101",
    "count_kernels": "maybe",
    "weight_snapshots": "maybe",
    "workload": "dcgan_mnits",
    "dataset": "ci/far",
    "engine": "torch",
    "accelerator": "cuda",
    "replicas": "0",
    "tpu_address": "a b",
    "target": "My Cluster",
    "job_options": "--output=/etc/motd",
    "precision": "float16",
    "xla": "on",
    "loop": "estimator",
    "batch_size_global": "65537",
    "epochs": "-1",
    "steps_per_loop": "2.5",
    "learning_rate_generator": "0",
    "learning_rate_discriminator": "fast",
    "seed": "one",
    "workers": "0",
    "all_reduce_pack_mb": "-1",
    "optimizer": "adamw",
    "adam_beta_1": "1",
    "adam_beta_2": "1",
    "rmsprop_epsilon": "beside",
    "momentum": "1",
    "learning_rate_schedule": "cosine",
    "restart_epochs": "0",
    "warmup_epochs": "-1",
    "learning_rate_scaling": "square",
    "reference_batch": "0",
    "clip_norm": "-1",
    "generator_loss": "wgan",
    "updates": "alternating",
    "discriminator_steps": "0",
    "label_smoothing": "0.6",
    "r1_weight": "-1",
    "r2_weight": "-1",
    "penalty_end": "2",
    "augmentation": "flips",
    "loss": "wasserstein",
    "start_from": "quick-0001:0",
    "ema_decay": "1",
    "samples_from": "average",
    "batch_norm": "none",
    "all_reduce_type": "float16",
    "accumulation_steps": "0",
    "sync_every_steps": "0",
    "alarm_action": "ignore",
    "collapse_share": "1",
    "d_wins_score": "0.5",
    "keep_checkpoints": "0",
    "pictures_every": "0",
    "quality_every": "-1",
    "still_action": "roll_back",
    "resume_lost": "maybe",
}


def test_wrong_values_cover_every_option() -> None:
    assert set(WRONG) == set(RunSpec.options("dcgan_mnist"))


@pytest.mark.parametrize("option", WRONG)
def test_a_wrong_value_is_refused(place: Path, command: Callable[..., Result], option: str) -> None:
    sentence = refused(command("train", "--set", f"{option}={WRONG[option]}"))
    assert sentence.startswith(f"{RunSpec.options('dcgan_mnist')[option].named} is ")
    assert "allowed is" in sentence
    assert not place.exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--preset", "quik"],
            (
                "preset is 'quik', but allowed is quick, paper, modern, showers, karman: did you"
                " mean quick?"
            ),
        ),
        (["--set", "epoch=3"], "epoch is not an option of a run: did you mean epochs?"),
        (
            ["--set", "mlp_gan.label_smoothing=0.1"],
            (
                "mlp_gan.label_smoothing belongs to workload mlp_gan, but workload is dcgan_mnist:"
                " leave it out, or use workload=mlp_gan."
            ),
        ),
        (["--set", "epochs"], "--set 'epochs' has no '=': write key=value, such as epochs=3."),
        (
            ["--spec", "/no/such.json"],
            (
                "spec file /no/such.json cannot be read (No such file or directory): give the path"
                " of a JSON file."
            ),
        ),
    ],
)
def test_a_wrong_argument_is_refused(
    place: Path, command: Callable[..., Result], words: list[str], sentence: str
) -> None:
    assert refused(command("train", *words)) == sentence
    assert not place.exists()


def test_incompatible_options_are_refused(place: Path, command: Callable[..., Result]) -> None:
    sentence = refused(command("train", "--set", "batch_size_global=30", "--set", "replicas=4"))
    assert sentence.startswith("Global batch (batch_size_global) is 30, but 4 replicas ")
    assert not place.exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["train", "--detac"],
            (
                r"no such option: --detac \(Possible options: .+\): see `.+ -m gan_runtime train"
                r" --help`\."
            ),
        ),
        (["--detach"], r"no such option: --detach: see `.+ -m gan_runtime --help`\."),
        (["shw"], r"no such command 'shw', did you mean 'show': see `.+ -m gan_runtime --help`\."),
        (["x" * 10_000], r"no such command 'x{150,190}…: see `.+ -m gan_runtime --help`\."),
        (["show"], r"missing argument 'RUN': see `.+ -m gan_runtime show --help`\."),
        (
            ["serve", "--port", "0"],
            r"invalid value for '--port': .+: see `.+ -m gan_runtime serve --help`\.",
        ),
        (
            ["study", "batch_size", "--values", ""],
            r"values has 1 value\(s\), but a study compares at least 2: try .+\.",
        ),
        (
            ["serve", "--address", "x" * 64],
            r"the dashboard cannot listen on address x{64} with port 8501 \(.+\): use .+\.",
        ),
    ],
)
def test_an_invalid_command_line_is_refused_in_one_line(
    command: Callable[..., Result], words: list[str], sentence: str
) -> None:
    result = command(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert re.fullmatch(sentence, result.stderr.strip()), result.stderr


@pytest.mark.parametrize("content", ["epochs: 3", "[1, 2]", ""])
def test_a_spec_file_without_options_is_refused(
    place: Path, command: Callable[..., Result], tmp_path: Path, content: str
) -> None:
    (tmp_path / "spec.json").write_text(content, encoding="utf-8")
    assert refused(command("train", "--spec", str(tmp_path / "spec.json"))).startswith("spec file ")
    assert not place.exists()


@pytest.mark.usefixtures("known_host")
def test_set_overrides_the_spec_file_which_overrides_the_preset(
    place: Path, command: Callable[..., Result], tmp_path: Path
) -> None:
    file = tmp_path / "spec.json"
    file.write_text('{"epochs": 4, "seed": 5}', encoding="utf-8")
    command("train", "--preset", "quick", "--spec", str(file), "--set", "seed=6", "--detach")
    spec = Home(place).run_dir("quick-0001").spec()
    assert (spec.batch_size_global, spec.epochs, spec.seed) == (
        PRESETS["quick"].values["batch_size_global"],
        4,
        6,
    )


@pytest.mark.usefixtures("known_host")
@pytest.mark.parametrize("accelerator", ["gpu", "tpu"])
def test_an_absent_accelerator_is_refused(
    place: Path, command: Callable[..., Result], accelerator: str
) -> None:
    sentence = refused(command("train", *TINY, "--set", f"accelerator={accelerator}"))
    assert (
        sentence
        == f"accelerator is {accelerator}, but this host has no {accelerator.upper()}; on this host"
        " use cpu."
    )
    assert not place.exists()


@pytest.mark.usefixtures("known_host")
def test_a_batch_larger_than_the_dataset_is_refused(
    place: Path, command: Callable[..., Result]
) -> None:
    sentence = refused(command("train", "--set", "batch_size_global=2000"))
    assert sentence.startswith("Global batch (batch_size_global) is 2000, but digits has only ")
    assert not place.exists()


@pytest.mark.usefixtures("known_host")
def test_an_empty_data_folder_is_refused(
    place: Path, command: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path))
    assert "but has no mnist images" in refused(command("train", "--preset", "paper"))
    assert not place.exists()


@pytest.mark.usefixtures("known_host")
def test_an_unreadable_idx_file_is_refused(
    place: Path, command: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist/train-images-idx3-ubyte").write_bytes(b"no images at all")
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path))
    assert "has no IDX header" in refused(command("train", "--preset", "paper"))
    assert not place.exists()


@pytest.mark.usefixtures("known_host")
@pytest.mark.parametrize("words", [("train",), ("study", "batch_size")])
def test_settings_known_to_yield_no_digits_warn_before_start(
    command: Callable[..., Result], words: tuple[str, ...]
) -> None:
    def said(*options: str) -> str:
        return command(*words, "--preset", "paper", *options, "--detach").stderr

    caution = "gave strokes instead of digits"
    repair = "Add --set learning_rate_scaling=linear --set adam_beta_1=0.5 to repair it."
    assert caution in said("--set", "batch_size_global=512")
    assert " ".join(said("--set", "batch_size_global=512").split()).count(repair) == 1
    if words == ("train",):
        assert caution not in said()
    assert caution not in said("--set", "batch_size_global=512", "--set", "adam_beta_1=0.5")
