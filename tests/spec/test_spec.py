"""A spec refuses wrong values at the door, in sentences: what was given, what is allowed, what to do."""

from __future__ import annotations

import json
import os
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gan_runtime import catalog
from gan_runtime.catalog.entries import Rule
from gan_runtime.errors import GanRuntimeError, SpecError
from gan_runtime.home import Home
from gan_runtime.spec import RunSpec, nesting, presets
from gan_runtime.spec import rules as spec_rules
from gan_runtime.studies.design import StudyDesign

WORKLOADS = ", ".join(catalog.WORKLOADS)  # as sentences list them
WRONG_VALUES: list[tuple[str, Any, str]] = [
    (
        "profile_steps",
        101,
        "profile_steps is 101, but allowed is a whole number from 0 to 100: use 0, or a few steps such as 5.",
    ),
    ("weight_snapshots", "1", "weight_snapshots is '1', but allowed is no, yes: use no or yes."),
    ("count_kernels", "on", "count_kernels is 'on', but allowed is no, yes: use no or yes."),
    (
        "epochs",
        0,
        "epochs is 0, but allowed is a whole number from 1 to 10000: use a whole number of epochs.",
    ),
    (
        "epochs",
        10_001,
        "epochs is 10001, but allowed is a whole number from 1 to 10000: use a whole number of epochs.",
    ),
    (
        "epochs",
        3.5,
        "epochs is 3.5, but allowed is a whole number from 1 to 10000: use a whole number of epochs.",
    ),
    (
        "epochs",
        "three",
        "epochs is 'three', but allowed is a whole number from 1 to 10000: use a whole number of epochs.",
    ),
    (
        "epochs",
        "",
        "epochs is '', but allowed is a whole number from 1 to 10000: use a whole number of epochs.",
    ),
    (
        "epochs",
        None,
        "epochs is None, but allowed is a whole number from 1 to 10000: use a whole number of epochs.",
    ),
    (
        "steps_per_loop",
        0,
        "Steps per host call (steps_per_loop) is 0, but allowed is a whole number from 1 to 10000: use a whole number of steps.",
    ),
    (
        "epochs",
        True,
        "epochs is True, but allowed is a whole number from 1 to 10000: use a whole number of epochs.",
    ),
    (
        "seed",
        False,
        "seed is False, but allowed is a whole number from 0 to 2147483647: use a whole number from 0.",
    ),
    (
        "learning_rate_generator",
        True,
        "Learning rate, generator (learning_rate_generator) is True, but allowed is above 0 and at most 1: use a positive rate, such as 1e-4.",
    ),
    (
        "seed",
        -1,
        "seed is -1, but allowed is a whole number from 0 to 2147483647: use a whole number from 0.",
    ),
    (
        "seed",
        2**31,
        "seed is 2147483648, but allowed is a whole number from 0 to 2147483647: use a whole number from 0.",
    ),
    (
        "workers",
        257,
        "workers is 257, but allowed is a whole number from 1 to 256: use the number of processes to train in.",
    ),
    (
        "all_reduce_pack_mb",
        1025,
        "All-reduce pack (all_reduce_pack_mb) is 1025, but allowed is a whole number from 0 to 1024: use 0 for one pack, or a size such as 8.",
    ),
    (
        "replicas",
        0,
        "replicas is 0, but allowed is a whole number from 1 to 1024: use the number of devices to train on.",
    ),
    (
        "batch_size_global",
        65_537,
        "Global batch (batch_size_global) is 65537, but allowed is a whole number from 1 to 65536: use a multiple of replicas × workers.",
    ),
    (
        "learning_rate_generator",
        0,
        "Learning rate, generator (learning_rate_generator) is 0, but allowed is above 0 and at most 1: use a positive rate, such as 1e-4.",
    ),
    (
        "learning_rate_discriminator",
        1.5,
        "Learning rate, discriminator (learning_rate_discriminator) is 1.5, but allowed is above 0 and at most 1: use a positive rate, such as 1e-4.",
    ),
    (
        "learning_rate_discriminator",
        "nan",
        "Learning rate, discriminator (learning_rate_discriminator) is 'nan', but allowed is above 0 and at most 1: use a positive rate, such as 1e-4.",
    ),
    (
        "workload",
        "dcgan_minst",
        f"workload is 'dcgan_minst', but allowed is {WORKLOADS}: did you mean dcgan_mnist?",
    ),
    (
        "workload",
        3,
        f"workload is 3, but allowed is {WORKLOADS}: pick one of the listed workloads.",
    ),
    (
        "dataset",
        "../minst",
        "dataset is '../minst', but allowed is a name of up to 60 small letters, digits, '_' and '-': use digits, or the name of another data set.",
    ),
    (
        "engine",
        "torch",
        "engine is 'torch', but allowed is auto, tensorflow, jax: pick one of the listed engines.",
    ),
    (
        "loop",
        "fit",
        "Training loop (loop) is 'fit', but allowed is custom, keras: pick one of the listed loops.",
    ),
    ("accelerator", "gpux", "accelerator is 'gpux', but allowed is auto, cpu, gpu, tpu: did you mean gpu?"),
    (
        "accelerator",
        "cuda",
        "accelerator is 'cuda', but allowed is auto, cpu, gpu, tpu: pick one of the listed accelerators.",
    ),
    (
        "precision",
        "float16",
        "precision is 'float16', but allowed is float32, mixed_bfloat16, mixed_float16: did you mean float32?",
    ),
    ("xla", "on", "xla is 'on', but allowed is off, jit, autocluster: pick one of the listed settings."),
    ("optimizer", "adamw", "optimizer is 'adamw', but allowed is adam, sgd, rmsprop: did you mean adam?"),
    (
        "adam_beta_1",
        1.0,
        "adam_beta_1 is 1.0, but allowed is at least 0 and below 1: use 0.9, or 0.5 for steadier training.",
    ),
    (
        "adam_beta_2",
        1.5,
        "adam_beta_2 is 1.5, but allowed is at least 0 and below 1: use 0.999, or 0.9 as WGAN-GP does.",
    ),
    (
        "rmsprop_epsilon",
        "within",
        "RMSprop's epsilon (rmsprop_epsilon) is 'within', but allowed is inside, outside: use inside, or outside as TensorFlow 2 does.",
    ),
    (
        "momentum",
        0.999999999,
        "Momentum (SGD) (momentum) is 0.999999999, which float32 rounds to 1, but allowed is at least 0 and below 1: use 0, or about 0.9.",
    ),
    (
        "momentum",
        10**400,
        f"Momentum (SGD) (momentum) is 1{'0' * 78}…, but allowed is at least 0 and below 1: use 0, or about 0.9.",
    ),
    (
        "momentum",
        -0.1,
        "Momentum (SGD) (momentum) is -0.1, but allowed is at least 0 and below 1: use 0, or about 0.9.",
    ),
    (
        "learning_rate_schedule",
        "cosine",
        "Rate schedule (learning_rate_schedule) is 'cosine', but allowed is constant, cosine_restarts: pick one of the listed schedules.",
    ),
    (
        "restart_epochs",
        0,
        "Cycle of the schedule (restart_epochs) is 0, but allowed is a whole number from 1 to 10000: use a whole number of epochs.",
    ),
    (
        "warmup_epochs",
        -1,
        "Warm-up (warmup_epochs) is -1, but allowed is a whole number from 0 to 10000: use a whole number of epochs, or 0.",
    ),
    (
        "learning_rate_scaling",
        "quadratic",
        "Rate by batch (learning_rate_scaling) is 'quadratic', but allowed is none, linear, sqrt: pick one of the listed scalings.",
    ),
    (
        "reference_batch",
        0,
        "reference_batch is 0, but allowed is a whole number from 1 to 65536: use the batch for which the rates were tuned.",
    ),
    (
        "clip_norm",
        -1,
        "Gradient clipping (clip_norm) is -1, but allowed is at least 0 and at most 1e+06: use 0, or a norm such as 1.",
    ),
    (
        "generator_loss",
        "wgan",
        "generator_loss is 'wgan', but allowed is non_saturating, minimax: pick one of the listed losses.",
    ),
    (
        "updates",
        "alternating",
        "updates is 'alternating', but allowed is together, in_turn: pick one of the listed orders.",
    ),
    (
        "discriminator_steps",
        11,
        "discriminator_steps is 11, but allowed is a whole number from 1 to 10: use a whole number from 1 to 10.",
    ),
    (
        "label_smoothing",
        0.6,
        "Label smoothing, real side (label_smoothing) is 0.6, but allowed is at least 0 and at most 0.5: use 0, or about 0.1.",
    ),
    (
        "r1_weight",
        -1,
        "R1 penalty (r1_weight) is -1, but allowed is at least 0 and at most 1000: use 0, or about 1 to 10.",
    ),
    (
        "ema_decay",
        1,
        "Moving average (EMA) (ema_decay) is 1, but allowed is at least 0 and below 1: use 0, or about 0.99 to 0.9999.",
    ),
    (
        "samples_from",
        "average",
        "Sample grids from (samples_from) is 'average', but allowed is live, ema: pick one of the listed networks.",
    ),
    (
        "batch_norm",
        "synchronized",
        "Batch norm over (batch_norm) is 'synchronized', but allowed is per_replica, synchronised: did you mean synchronised?",
    ),
    (
        "all_reduce_type",
        "float16",
        "Exchange gradients in (all_reduce_type) is 'float16', but allowed is float32, bfloat16: did you mean bfloat16?",
    ),
    (
        "accumulation_steps",
        0,
        "Gradient accumulation (accumulation_steps) is 0, but allowed is a whole number from 1 to 64: use a whole number that divides the images per replica.",
    ),
    (
        "sync_every_steps",
        0,
        "Synchronise every (sync_every_steps) is 0, but allowed is a whole number from 1 to 1000: use 1, or a whole number of steps.",
    ),
    (
        "name",
        "a/b",
        "name is 'a/b', but allowed is text of up to 60 letters, digits, spaces, '.', '_' and '-', not of spaces alone: "
        "use a short plain name.",
    ),
    (
        "tpu_address",
        "",
        "tpu_address is '', but allowed is text of 1 to 200 letters, digits, ':', '/', '.', '_' and '-': "
        "use 'local', a TPU name, or grpc://host:port.",
    ),
    (
        "alarm_action",
        "ignore",
        "On an alarm (alarm_action) is 'ignore', but allowed is note, stop, roll_back: did you mean note?",
    ),
    (
        "collapse_share",
        1.0,
        "Collapse alarm below (collapse_share) is 1.0, but allowed is at least 0 and below 1: use 0, or about 0.1.",
    ),
    (
        "d_wins_score",
        0.5,
        "Judge-wins alarm below (d_wins_score) is 0.5, but allowed is at least 0 and below 0.5: use 0, or about 0.01.",
    ),
    (
        "still_action",
        "roll_back",
        "When it stands still (still_action) is 'roll_back', but allowed is note, stop, restart: pick one of the listed actions.",
    ),
    (
        "resume_lost",
        "maybe",
        "Resume when lost (resume_lost) is 'maybe', but allowed is no, yes: use yes or no.",
    ),
    (
        "keep_checkpoints",
        0,
        "Checkpoints kept (keep_checkpoints) is 0, but allowed is a whole number from 1 to 1000: use a whole number from 1.",
    ),
    (
        "pictures_every",
        0,
        "pictures_every is 0, but allowed is a whole number from 1 to 1000: use a whole number from 1.",
    ),
]


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    WRONG_VALUES,
    ids=lambda item: None if isinstance(item, str) else repr(item),
)
def test_a_wrong_value_is_refused_in_a_sentence(field: str, value: Any, sentence: str) -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({field: value})
    assert refused.value.by_field() == {field: sentence}


def test_every_option_has_a_wrong_value_above() -> None:
    assert {field for field, _, _ in WRONG_VALUES} == set(RunSpec.options("dcgan_mnist"))


@pytest.mark.parametrize("name", ["x" * 61, "über", "run\n", "\n", "a\tb", "../up", " ", " " * 60])
def test_a_name_that_could_not_be_shown_plainly_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match="use a short plain name"):
        RunSpec.parse({"name": name})


@pytest.mark.parametrize("name", ["", "x", "x" * 60, " two words "])
def test_a_plain_name_is_taken_as_it_is(name: str) -> None:
    assert RunSpec.parse({"name": name}).name == name


@pytest.mark.parametrize("address", ["local\n", "a b", "x" * 201])
def test_an_address_that_no_tpu_has_is_refused(address: str) -> None:
    with pytest.raises(SpecError, match="use 'local', a TPU name, or grpc://host:port"):
        RunSpec.parse({"tpu_address": address})


def test_several_wrong_values_give_several_sentences() -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({"epochs": 0, "seed": -1, "xla": "on"})
    assert set(refused.value.by_field()) == {"epochs", "seed", "xla"}
    assert (
        "seed is -1, but allowed is a whole number from 0 to 2147483647: use a whole number from 0."
        in str(refused.value)
    )


def test_a_misspelt_option_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({"epoch": 3})
    assert refused.value.by_field() == {"epoch": "epoch is not an option of a run: did you mean epochs?"}


def test_an_unknown_option_lists_the_options_there_are() -> None:
    with pytest.raises(
        SpecError,
        match=r"zzz is not an option of a run: the options are workload, dataset, .*, r1_weight\.$",
    ):
        RunSpec.parse({"zzz": 1})


# ---- rules across fields --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "replicas", "sentence"),
    [
        (30, 4, "Global batch (batch_size_global) is 30, but 4 replicas need a multiple of 4: use 28 or 32."),
        (2, 4, "Global batch (batch_size_global) is 2, but 4 replicas need a multiple of 4: use 4."),
    ],
)
def test_a_batch_that_replicas_cannot_share_is_refused_with_its_neighbours(
    batch: int, replicas: int, sentence: str
) -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({"batch_size_global": batch, "replicas": replicas})
    assert refused.value.by_field() == {"batch_size_global": sentence}


def test_float16_on_a_tpu_is_refused() -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({"accelerator": "tpu", "precision": "mixed_float16"})
    assert refused.value.by_field() == {
        "precision": "precision is mixed_float16, but a TPU has no float16 arithmetic: use mixed_bfloat16 or float32."
    }


@pytest.mark.parametrize(
    ("values", "field", "sentence"),
    [
        (
            {"workers": 3, "batch_size_global": 64},
            "batch_size_global",
            "Global batch (batch_size_global) is 64, but 3 workers of 1 replica(s) each need a multiple of 3: use 63 or 66.",
        ),
        (
            {"workers": 2, "accelerator": "tpu"},
            "workers",
            "workers is 2, but the cores of a TPU are the replicas of one worker: use workers=1 and more replicas.",
        ),
        (
            {"workers": 2, "replicas": 2, "accelerator": "cpu"},
            "replicas",
            "replicas is 2 in each of 2 workers, but on the CPU TensorFlow gives a worker one replica: "
            "use replicas=1 and workers=4, or workers=1.",
        ),
        (
            {"all_reduce_pack_mb": 8},
            "all_reduce_pack_mb",
            "All-reduce pack (all_reduce_pack_mb) is 8, but only TensorFlow's workers take a pack size: use 0, or engine=tensorflow and workers above 1.",
        ),
    ],
)
def test_what_several_workers_cannot_do_is_refused(
    values: dict[str, object], field: str, sentence: str
) -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse(values)
    assert refused.value.by_field() == {field: sentence}


def test_the_batch_is_shared_by_the_replicas_of_all_workers() -> None:
    spec = RunSpec.parse({"workers": 2, "replicas": 4, "batch_size_global": 64, "all_reduce_pack_mb": 8})
    assert (spec.replicas_in_all, spec.batch_size_per_replica) == (8, 8)


def test_xla_with_float16_is_refused_on_several_replicas_only() -> None:
    values = {"precision": "mixed_float16", "xla": "jit", "batch_size_global": 32}
    assert RunSpec.parse({**values, "replicas": 1}).xla == "jit"
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({**values, "replicas": 2})
    assert refused.value.by_field() == {
        "xla": "xla is jit with mixed_float16 on 2 replicas, which TensorFlow cannot combine: use mixed_bfloat16, or xla=off."
    }


@pytest.mark.parametrize(
    ("values", "field", "sentence"),
    [
        (
            {"xla": "jit", "batch_norm": "synchronised", "replicas": 2},
            "xla",
            "xla is jit with synchronised batch norm on 2 replicas, which TensorFlow cannot combine: "
            "use batch_norm=per_replica, or xla=off.",
        ),
        (
            {"xla": "autocluster", "accelerator": "tpu"},
            "xla",
            "xla is autocluster, but a TPU compiles every step as a whole: use xla=off or jit, which are the same there.",
        ),
        (
            {"xla": "autocluster", "workers": 2},
            "xla",
            "xla is autocluster with 2 workers, which TensorFlow cannot combine: use xla=off or jit, or workers=1.",
        ),
        (
            {"workload": "shower_3dgan", "accelerator": "cpu", "precision": "mixed_float16"},
            "precision",
            "precision is mixed_float16, but TensorFlow on a CPU cannot pool float16 volumes: use mixed_bfloat16 or float32, or engine=jax.",
        ),
        (
            {"workload": "shower_3dgan", "xla": "autocluster", "accumulation_steps": 4},
            "xla",
            "xla is autocluster, which cannot cluster this GAN's step in 4 parts: use xla=off or jit, or accumulation_steps=1.",
        ),
        (
            {"discriminator_steps": 2},
            "discriminator_steps",
            "discriminator_steps is 2, but updates=together makes one: use updates=in_turn, or discriminator_steps=1.",
        ),
        (
            {"momentum": 0.9},
            "momentum",
            "Momentum (SGD) (momentum) is 0.9, but only optimizer=sgd has one: use momentum=0, or optimizer=sgd.",
        ),
        (
            {"samples_from": "ema"},
            "samples_from",
            "Sample grids from (samples_from) is ema, but ema_decay is 0: set ema_decay to about 0.999, or samples_from=live.",
        ),
        (
            {"accumulation_steps": 3, "batch_size_global": 64, "replicas": 2},
            "accumulation_steps",
            "Gradient accumulation (accumulation_steps) is 3, but each replica has 32 images per step: use a divisor of 32.",
        ),
        (
            {"sync_every_steps": 4},
            "sync_every_steps",
            "Synchronise every (sync_every_steps) is 4, but there is 1 replica: use sync_every_steps=1, or more replicas or workers.",
        ),
        (
            {"sync_every_steps": 4, "replicas": 2, "precision": "mixed_float16"},
            "sync_every_steps",
            "Synchronise every (sync_every_steps) is 4 with mixed_float16, whose loss scale all replicas must share: "
            "use mixed_bfloat16, or sync_every_steps=1.",
        ),
        (
            {"sync_every_steps": 4, "replicas": 2, "batch_norm": "synchronised"},
            "sync_every_steps",
            "Synchronise every (sync_every_steps) is 4 with synchronised batch norm, which exchanges in each step: "
            "use batch_norm=per_replica, or sync_every_steps=1.",
        ),
        (
            {"sync_every_steps": 4, "replicas": 2, "all_reduce_type": "bfloat16"},
            "all_reduce_type",
            "Exchange gradients in (all_reduce_type) is bfloat16, but with sync_every_steps=4 no gradients travel, and weights do so in float32: "
            "use all_reduce_type=float32, or sync_every_steps=1.",
        ),
        (
            {"engine": "jax", "xla": "autocluster"},
            "xla",
            "xla is autocluster, but engine=jax compiles every step as a whole: use xla=off or jit, which are the same there.",
        ),
        (
            {"engine": "jax", "replicas": 2, "sync_every_steps": 4},
            "sync_every_steps",
            "Synchronise every (sync_every_steps) is 4, but with engine=jax all replicas share one state: "
            "use sync_every_steps=1, or engine=tensorflow.",
        ),
        (
            {"engine": "jax", "profile_steps": 5},
            "profile_steps",
            "profile_steps is 5, but engine=jax cannot tell where a step's time goes: use profile_steps=0, or engine=tensorflow.",
        ),
        (
            {"engine": "jax", "workers": 2, "all_reduce_pack_mb": 8},
            "all_reduce_pack_mb",
            "All-reduce pack (all_reduce_pack_mb) is 8, but only TensorFlow's workers take a pack size: use 0, or engine=tensorflow and workers above 1.",
        ),
        (
            {"engine": "jax", "accelerator": "tpu", "tpu_address": "grpc://10.0.0.2:8470"},
            "tpu_address",
            "tpu_address is 'grpc://10.0.0.2:8470', but engine=jax uses the TPU of its own host: use tpu_address=local.",
        ),
        (
            {"loop": "keras", "engine": "jax"},
            "loop",
            "Training loop (loop) is keras, but engine=jax runs its steps as one program of its own: use loop=custom, or engine=tensorflow.",
        ),
        (
            {"loop": "keras", "workers": 2},
            "loop",
            "Training loop (loop) is keras with 2 workers, which could not agree there when to stop: use loop=custom, or workers=1 and "
            "more replicas.",
        ),
        (
            {"loop": "keras", "replicas": 2, "sync_every_steps": 4},
            "loop",
            "Training loop (loop) is keras with sync_every_steps=4, but Keras' loop exchanges gradients in each step: "
            "use loop=custom, or sync_every_steps=1.",
        ),
        (
            {"loop": "keras", "accelerator": "tpu"},
            "loop",
            "Training loop (loop) is keras, but on a TPU Keras reports the numbers of the first core alone: use loop=custom, "
            "or accelerator=cpu or gpu.",
        ),
    ],
)
def test_what_cannot_work_together_is_refused(values: dict[str, Any], field: str, sentence: str) -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse(values)
    assert refused.value.by_field() == {field: sentence}


def test_wrong_choices_and_wrong_numbers_are_told_at_once() -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse(
            {
                "workload": "cgan",
                "dataset": "mi nst",
                "engine": "torch",
                "epochs": 0,
                "xla": "on",
                "epoch": 3,
            }
        )
    assert set(refused.value.by_field()) == {"workload", "dataset", "engine", "epochs", "xla", "epoch"}


def test_rules_across_fields_are_told_together() -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse(
            {
                "accelerator": "tpu",
                "precision": "mixed_float16",
                "xla": "jit",
                "batch_size_global": 30,
                "replicas": 4,
            }
        )
    assert set(refused.value.by_field()) == {"batch_size_global", "precision", "xla"}


def test_rules_across_fields_are_told_beside_wrong_values_of_other_fields() -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({"epochs": 0, "dataset": "mi nst", "batch_size_global": "30", "replicas": "4"})
    assert set(refused.value.by_field()) == {"epochs", "dataset", "batch_size_global"}
    assert (
        "Global batch (batch_size_global) is 30, but 4 replicas need a multiple of 4: use 28 or 32."
        in str(refused.value)
    )


def test_a_rule_is_not_tried_on_a_value_that_is_wrong_by_itself() -> None:
    """The default of 256 cannot be shared by 3 replicas, but nobody asked for 256."""
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({"batch_size_global": "many", "replicas": 3})
    assert [error.message for error in refused.value.errors] == [
        "Global batch (batch_size_global) is 'many', but allowed is a whole number from 1 to 65536: use a multiple of replicas × workers."
    ]


@pytest.mark.parametrize("rule", spec_rules.RULES, ids=lambda rule: rule.__name__)
def test_a_rule_names_the_options_that_it_reads(rule: Rule) -> None:
    assert set(signature(rule).parameters) <= set(RunSpec.options())


@pytest.mark.parametrize("workload", catalog.WORKLOADS)
def test_a_rule_of_a_workload_reads_its_own_options_or_shared_ones(workload: str) -> None:
    for rule in catalog.WORKLOADS[workload].rules:
        assert set(signature(rule).parameters) <= set(RunSpec.options(workload))


def test_a_spec_checks_itself_however_it_is_built() -> None:
    with pytest.raises(ValidationError, match="is 30, but 4 replicas need a multiple of 4: use 28 or 32"):
        RunSpec(batch_size_global=30, replicas=4, epochs=0)
    with pytest.raises(ValidationError, match="frozen"):
        RunSpec().epochs = 3  # type: ignore[misc]


# ---- what is accepted -----------------------------------------------------------------------------------------------------


def test_numbers_may_come_as_text() -> None:
    spec = RunSpec.parse(
        {"epochs": "3", "seed": " 7 ", "learning_rate_generator": "2e-4", "batch_size_global": "64"}
    )
    assert (spec.epochs, spec.seed, spec.learning_rate("generator"), spec.batch_size_global) == (
        3,
        7,
        0.0002,
        64,
    )


def test_numbers_may_be_grouped_as_in_python_and_zero_has_no_sign() -> None:
    spec = RunSpec.parse({"seed": "1_000", "momentum": "-0.0", "clip_norm": -0.0})
    assert (spec.seed, repr(spec.momentum), repr(spec.clip_norm)) == (1000, "0.0", "0.0")


def test_the_defaults_are_the_settings_of_the_paper() -> None:
    assert RunSpec().model_dump() == {
        "name": "",
        "workload": "dcgan_mnist",
        "dataset": "digits",
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
            "generator_loss": "non_saturating",
            "updates": "together",
            "discriminator_steps": 1,
            "label_smoothing": 0.0,
            "r1_weight": 0.0,
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
        "profile_steps": 0,
        "weight_snapshots": "no",
        "count_kernels": "no",
    }


@pytest.mark.parametrize("together", [{"precision": "mixed_float16"}, {"batch_norm": "synchronised"}])
def test_jax_compiles_what_tensorflow_cannot(together: dict[str, Any]) -> None:
    RunSpec.parse({"engine": "jax", "xla": "jit", "replicas": 2, **together})
    for engine in ("tensorflow", "auto"):
        with pytest.raises(SpecError, match="which TensorFlow cannot combine"):
            RunSpec.parse({"engine": engine, "xla": "jit", "replicas": 2, **together})


def test_a_spec_knows_its_shares_and_its_steps() -> None:
    spec = RunSpec.parse({"batch_size_global": 64, "replicas": 8})
    assert spec.batch_size_per_replica == 8
    assert spec.steps_per_epoch(1_797) == 28
    assert spec.steps_per_epoch(63) == 0
    twice = RunSpec.parse({"batch_size_global": 64, "updates": "in_turn", "discriminator_steps": 2})
    assert (twice.images_per_step, twice.steps_per_epoch(1_797)) == (128, 14)


def test_only_changed_options_are_shown_in_short() -> None:
    assert RunSpec.parse({"epochs": 2, "seed": 1}).changed_from_default() == {"epochs": 2}


def test_the_bounds_of_an_option_are_readable_for_forms() -> None:
    options = RunSpec.options("dcgan_mnist")
    replicas, rate = options["replicas"], options["learning_rate_generator"]
    assert (replicas.minimum, replicas.maximum, replicas.default, replicas.kind) == (1, 1024, 1, int)
    assert (rate.minimum, rate.maximum, rate.default, rate.kind) == (0.0, 1.0, 1e-4, float)
    assert options["precision"].choices == ("float32", "mixed_bfloat16", "mixed_float16")


# ---- files, presets, assignments ---------------------------------------------------------------------------------------------


def test_a_spec_survives_its_json_file(tmp_path: Path) -> None:
    spec = RunSpec.parse(
        {"name": "round trip", "learning_rate_generator": 3e-4, "replicas": 2, "precision": "float32"}
    )
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(spec.model_dump()), encoding="utf-8")
    assert RunSpec.read(file) == spec


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", r"spec file .*spec\.json is not JSON \(.+\): correct it, or start from .+\."),
        ("[1]", r"spec file .*spec\.json holds a list: it must hold one JSON object of options\."),
        (
            '{"epochs": 0}',
            "epochs is 0, but allowed is a whole number from 1 to 10000: use a whole number of epochs.",
        ),
    ],
)
def test_a_wrong_spec_file_is_refused_in_a_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    file = tmp_path / "spec.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SpecError, match=sentence):
        RunSpec.read(file)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"[" * 50_000, r"spec\.json holds brackets within brackets without end: correct it"),
        (
            b'{"epochs": ' + b"[" * 900 + b"]" * 900 + b"}",
            r"^epochs is \[\[.{70,80}…, but allowed is a whole number",
        ),
        (b'{"epochs": "' + b"9" * 10_000 + b'"}', r"^epochs is '9{78}…, but allowed is a whole number"),
        (b'{"epochs": ' + b"9" * 10_000 + b"}", r"spec\.json is not JSON \(Exceeds the limit"),
        (
            b'{"workload": "' + b"d" * 10_000 + b'"}',
            rf"^workload is 'd{{78}}…, but allowed is {WORKLOADS}: ",
        ),
        (b'{"' + b"k" * 10_000 + b'": 1}', r"^'k{78}… is not an option of a run: "),
        (b'{"\\ud800": 1}', r"^'\\ud800' is not an option of a run: "),
        (b'{"name": "\\ud800"}', r"^name is '\\ud800', but allowed is text of up to 60 letters"),
        (b'{"name\\n": "x"}', r"^'name\\n' is not an option of a run: did you mean name\?$"),
        (b"\xff\xfe\x00", r"spec\.json is not JSON \("),
        (b'{"seed": 1}' + b" " * 100_000, r"spec\.json has more than 100,000 bytes: correct it"),
        (
            json.dumps({f"k{number}": 1 for number in range(5_000)}).encode(),
            r"spec\.json holds 5,000 keys, more than there are",
        ),
    ],
    ids=lambda item: None if isinstance(item, str) else item[:20].decode(errors="replace"),
)
def test_a_hostile_spec_file_is_refused_in_a_short_sentence(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    file = tmp_path / "spec.json"
    file.write_bytes(content)
    with pytest.raises(SpecError, match=sentence) as refused:
        RunSpec.read(file)
    assert len(str(refused.value)) < 1_500
    str(refused.value).encode()


def test_a_spec_file_that_is_no_plain_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(SpecError, match=r"is not a plain file: give the path of a JSON file\.$"):
            RunSpec.read(path)


def test_a_missing_spec_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        SpecError, match=r"cannot be read \(No such file or directory\): give the path of a JSON file\."
    ):
        RunSpec.read(tmp_path / "none.json")


@pytest.mark.parametrize("name", list(presets.PRESETS))
def test_every_preset_and_every_value_it_suggests_is_a_valid_spec(name: str) -> None:
    preset = presets.preset(name)
    assert preset.title
    assert preset.summary.endswith(".")
    RunSpec.parse(preset.values)
    for field, values in preset.suggestions.items():
        for value in values:
            RunSpec.parse({**preset.values, field: value})


def test_the_paper_preset_is_the_setting_of_the_study() -> None:
    spec = RunSpec.parse(presets.preset("paper").values)
    assert (spec.workload, spec.dataset, spec.replicas, spec.epochs) == ("dcgan_mnist", "mnist", 8, 30)
    assert (spec.precision, spec.learning_rate("generator"), spec.learning_rate("discriminator")) == (
        "mixed_bfloat16",
        1e-4,
        1e-4,
    )
    assert presets.preset("paper").suggestions["batch_size_global"] == (64, 128, 256, 512)


def test_a_workload_may_have_defaults_of_its_own_for_shared_options() -> None:
    showers = {"workload": "shower_3dgan", "dataset": "showers"}
    assert RunSpec.parse(showers).optimizer == "rmsprop"
    assert RunSpec.parse({**showers, "optimizer": "adam"}).optimizer == "adam"
    assert RunSpec.parse({}).optimizer == "adam"
    assert RunSpec.options("shower_3dgan")["optimizer"].default == "rmsprop"
    assert set(RunSpec.parse(showers).changed_from_default()) == {"workload", "dataset"}


def test_shared_options_begin_anew_where_a_workload_has_a_default_of_its_own() -> None:
    """A preset made for another GAN says nothing of this one's optimizer."""
    moved = nesting.overlaid(
        {"workload": "dcgan_mnist", "optimizer": "sgd", "epochs": 3}, {"workload": "shower_3dgan"}
    )
    assert RunSpec.parse(moved).optimizer == "rmsprop"
    assert RunSpec.parse(moved).epochs == 3
    chosen = nesting.overlaid({"workload": "dcgan_mnist"}, {"workload": "shower_3dgan", "optimizer": "adam"})
    assert RunSpec.parse(chosen).optimizer == "adam"
    back = nesting.overlaid({"workload": "shower_3dgan", "optimizer": "rmsprop"}, {"workload": "mlp_gan"})
    assert RunSpec.parse(back).optimizer == "adam"


def test_an_unknown_preset_names_the_presets_there_are() -> None:
    with pytest.raises(
        SpecError, match="preset is 'quik', but allowed is quick, paper, showers, karman: did you mean quick"
    ):
        presets.preset("quik")


def test_assignments_are_read_as_text_values() -> None:
    assert presets.parse_assignments(["epochs=3", " seed = 7 ", "name=a=b"]) == {
        "epochs": "3",
        "seed": "7",
        "name": "a=b",
    }


def test_an_assignment_to_a_name_with_a_line_end_is_refused() -> None:
    with pytest.raises(SpecError, match=r"^'name\\n' is not an option of a run: did you mean name\?$"):
        RunSpec.parse(presets.parse_assignments(["name\n=1"]))


def test_long_words_are_cut_in_every_sentence(home: Home) -> None:
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
    with pytest.raises(SpecError, match="--set 'epochs' has no '=': write it as key=value, such as epochs=3"):
        presets.parse_assignments(["epochs"])
