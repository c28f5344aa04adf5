"""A spec: its names and addresses, accepted values, and derived values."""

from __future__ import annotations

from typing import Any

import pytest

from gan_runtime.base.errors import SpecError
from gan_runtime.spec import RunSpec


@pytest.mark.parametrize("name", ["x" * 61, "über", "run\n", "\n", "a\tb", "../up", " ", " " * 60])
def test_a_name_with_unsafe_text_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match="use a short plain name"):
        RunSpec.parse({"name": name})


@pytest.mark.parametrize("name", ["", "x", "x" * 60, " two words "])
def test_a_plain_name_is_accepted(name: str) -> None:
    assert RunSpec.parse({"name": name}).name == name


@pytest.mark.parametrize("address", ["local\n", "a b", "x" * 201])
def test_an_invalid_tpu_address_is_refused(address: str) -> None:
    with pytest.raises(SpecError, match="use 'local', a TPU name, or grpc://host:port"):
        RunSpec.parse({"tpu_address": address})


def test_each_invalid_value_gets_its_own_message() -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({"epochs": 0, "seed": -1, "xla": "on"})
    assert set(refused.value.by_field()) == {"epochs", "seed", "xla"}
    assert (
        "seed is -1, but allowed is a whole number from 0 to 2147483647: use a whole number from 0."
        in str(refused.value)
    )


def test_a_misspelled_option_is_refused_with_a_suggestion() -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({"epoch": 3})
    assert refused.value.by_field() == {
        "epoch": "epoch is not an option of a run: did you mean epochs?"
    }


def test_an_unknown_option_lists_all_options() -> None:
    with pytest.raises(
        SpecError,
        match=(
            r"zzz is not an option of a run: the options are workload, dataset, .*, augmentation\.$"
        ),
    ):
        RunSpec.parse({"zzz": 1})


def test_numbers_can_be_text() -> None:
    spec = RunSpec.parse(
        {"epochs": "3", "seed": " 7 ", "learning_rate_generator": "2e-4", "batch_size_global": "64"}
    )
    assert (spec.epochs, spec.seed, spec.learning_rate("generator"), spec.batch_size_global) == (
        3,
        7,
        0.0002,
        64,
    )


def test_numbers_can_contain_underscores_and_zero_has_no_sign() -> None:
    spec = RunSpec.parse({"seed": "1_000", "momentum": "-0.0", "clip_norm": -0.0})
    assert (spec.seed, repr(spec.momentum), repr(spec.clip_norm)) == (1000, "0.0", "0.0")


def test_defaults_match_the_paper() -> None:
    assert RunSpec().model_dump() == {
        "name": "",
        "workload": "dcgan_mnist",
        "dataset": "digits",
        "start_from": "",
        "target": "here",
        "job_options": "",
        "engine": "auto",
        "loop": "custom",
        "accelerator": "auto",
        "replicas": 1,
        "workers": 1,
        "all_reduce_pack_mb": 0,
        "tpu_address": "local",
        "precision": "mixed_bfloat16",
        "xla": "off",
        "batch_size_global": 256,
        "epochs": 30,
        "steps_per_loop": 10,
        "optimizer": "adam",
        "adam_beta_1": 0.9,
        "adam_beta_2": 0.999,
        "rmsprop_epsilon": "inside",
        "momentum": 0.0,
        "learning_rate_schedule": "constant",
        "restart_epochs": 10,
        "warmup_epochs": 0,
        "learning_rate_scaling": "none",
        "reference_batch": 64,
        "clip_norm": 0.0,
        "seed": 1,
        "dcgan_mnist": {
            "loss": "cross_entropy",
            "generator_loss": "non_saturating",
            "updates": "together",
            "discriminator_steps": 1,
            "label_smoothing": 0.0,
            "r1_weight": 0.0,
            "r2_weight": 0.0,
            "penalty_end": 1.0,
            "augmentation": "none",
            "learning_rate_generator": 0.0001,
            "learning_rate_discriminator": 0.0001,
        },
        "ema_decay": 0.0,
        "samples_from": "live",
        "batch_norm": "per_replica",
        "all_reduce_type": "float32",
        "accumulation_steps": 1,
        "sync_every_steps": 1,
        "alarm_action": "note",
        "collapse_share": 0.1,
        "d_wins_score": 0.01,
        "still_action": "note",
        "resume_lost": "no",
        "keep_checkpoints": 3,
        "pictures_every": 1,
        "quality_every": 5,
        "profile_steps": 0,
        "weight_snapshots": "no",
        "count_kernels": "no",
    }


@pytest.mark.parametrize(
    "together", [{"precision": "mixed_float16"}, {"batch_norm": "synchronised"}]
)
def test_jax_accepts_xla_combinations_that_tensorflow_refuses(together: dict[str, Any]) -> None:
    RunSpec.parse({"engine": "jax", "xla": "jit", "replicas": 2, **together})
    for engine in ("tensorflow", "auto"):
        with pytest.raises(SpecError, match="which TensorFlow cannot combine"):
            RunSpec.parse({"engine": engine, "xla": "jit", "replicas": 2, **together})


def test_a_spec_computes_per_replica_batch_and_steps() -> None:
    spec = RunSpec.parse({"batch_size_global": 64, "replicas": 8})
    assert spec.batch_size_per_replica == 8
    assert spec.steps_per_epoch(1_797) == 28
    assert spec.steps_per_epoch(63) == 0
    twice = RunSpec.parse({"batch_size_global": 64, "updates": "in_turn", "discriminator_steps": 2})
    assert (twice.images_per_step, twice.steps_per_epoch(1_797)) == (128, 14)


def test_changed_from_default_lists_only_changed_options() -> None:
    assert RunSpec.parse({"epochs": 2, "seed": 1}).changed_from_default() == {"epochs": 2}


def test_forms_can_read_the_bounds_of_an_option() -> None:
    options = RunSpec.options("dcgan_mnist")
    replicas, rate = options["replicas"], options["learning_rate_generator"]
    assert (replicas.minimum, replicas.maximum, replicas.default, replicas.kind) == (
        1,
        1024,
        1,
        int,
    )
    assert (rate.minimum, rate.maximum, rate.default, rate.kind) == (0.0, 1.0, 1e-4, float)
    assert options["precision"].choices == ("float32", "mixed_bfloat16", "mixed_float16")
