"""Rules across options: incompatible options are refused in one sentence."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest
from pydantic import ValidationError

from gan_runtime import catalog
from gan_runtime.base.errors import SpecError
from gan_runtime.spec import RunSpec
from gan_runtime.spec import rules as spec_rules


@pytest.mark.parametrize(
    ("batch", "replicas", "sentence"),
    [
        (
            30,
            4,
            (
                "Global batch (batch_size_global) is 30, but 4 replicas need a multiple of 4: use"
                " 28 or 32."
            ),
        ),
        (
            2,
            4,
            "Global batch (batch_size_global) is 2, but 4 replicas need a multiple of 4: use 4.",
        ),
    ],
)
def test_an_indivisible_batch_is_refused_with_the_nearest_valid_sizes(
    batch: int, replicas: int, sentence: str
) -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({"batch_size_global": batch, "replicas": replicas})
    assert refused.value.by_field() == {"batch_size_global": sentence}


def test_float16_on_a_tpu_is_refused() -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({"accelerator": "tpu", "precision": "mixed_float16"})
    assert refused.value.by_field() == {
        "precision": (
            "precision is mixed_float16, but a TPU has no float16 arithmetic: use mixed_bfloat16 or"
            " float32."
        )
    }


@pytest.mark.parametrize(
    ("values", "field", "sentence"),
    [
        (
            {"workers": 3, "batch_size_global": 64},
            "batch_size_global",
            (
                "Global batch (batch_size_global) is 64, but 3 workers of 1 replica(s) each need a"
                " multiple of 3: use 63 or 66."
            ),
        ),
        (
            {"workers": 2, "accelerator": "tpu"},
            "workers",
            (
                "workers is 2, but the cores of a TPU are the replicas of one worker: use workers=1"
                " and more replicas."
            ),
        ),
        (
            {"workers": 2, "replicas": 2, "accelerator": "cpu"},
            "replicas",
            (
                "replicas is 2, but TensorFlow runs one replica per CPU worker: use replicas=1 and"
                " workers=4, or workers=1."
            ),
        ),
        (
            {"all_reduce_pack_mb": 8},
            "all_reduce_pack_mb",
            (
                "All-reduce pack (all_reduce_pack_mb) is 8, but only TensorFlow's workers take a"
                " pack size: use 0, or engine=tensorflow and workers above 1."
            ),
        ),
    ],
)
def test_unsupported_options_of_several_workers_are_refused(
    values: dict[str, object], field: str, sentence: str
) -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse(values)
    assert refused.value.by_field() == {field: sentence}


def test_the_batch_is_divided_among_replicas_of_all_workers() -> None:
    spec = RunSpec.parse(
        {"workers": 2, "replicas": 4, "batch_size_global": 64, "all_reduce_pack_mb": 8}
    )
    assert (spec.replicas_in_all, spec.batch_size_per_replica) == (8, 8)


def test_xla_with_float16_is_refused_only_on_several_replicas() -> None:
    values = {"precision": "mixed_float16", "xla": "jit", "batch_size_global": 32}
    assert RunSpec.parse({**values, "replicas": 1}).xla == "jit"
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({**values, "replicas": 2})
    assert refused.value.by_field() == {
        "xla": (
            "xla is jit with mixed_float16 on 2 replicas, which TensorFlow cannot combine: use"
            " mixed_bfloat16, or xla=off."
        )
    }


@pytest.mark.parametrize(
    ("values", "field", "sentence"),
    [
        (
            {"xla": "jit", "batch_norm": "synchronised", "replicas": 2},
            "xla",
            (
                "xla is jit with batch_norm=synchronised on 2 replicas, which TensorFlow cannot"
                " combine: use batch_norm=per_replica, or xla=off."
            ),
        ),
        (
            {"xla": "autocluster", "accelerator": "tpu"},
            "xla",
            (
                "xla is autocluster, but a TPU compiles whole steps: use xla=off or xla=jit, which"
                " are the same there."
            ),
        ),
        (
            {"xla": "autocluster", "workers": 2},
            "xla",
            (
                "xla is autocluster with 2 workers, which TensorFlow cannot combine: use xla=off or"
                " jit, or workers=1."
            ),
        ),
        (
            {"workload": "shower_3dgan", "accelerator": "cpu", "precision": "mixed_float16"},
            "precision",
            (
                "precision is mixed_float16, but TensorFlow on a CPU cannot pool float16 volumes:"
                " use mixed_bfloat16 or float32, or engine=jax."
            ),
        ),
        (
            {"workload": "shower_3dgan", "xla": "autocluster", "accumulation_steps": 4},
            "xla",
            (
                "xla is autocluster, which cannot cluster this GAN's step in 4 parts: use xla=off"
                " or jit, or accumulation_steps=1."
            ),
        ),
        (
            {"discriminator_steps": 2},
            "discriminator_steps",
            (
                "discriminator_steps is 2, but updates=together makes one: use updates=in_turn, or"
                " discriminator_steps=1."
            ),
        ),
        (
            {"loss": "hinge", "generator_loss": "minimax"},
            "generator_loss",
            (
                "generator_loss is minimax, but loss=hinge has none: use"
                " generator_loss=non_saturating, or loss=cross_entropy."
            ),
        ),
        (
            {"loss": "relativistic", "label_smoothing": 0.1},
            "label_smoothing",
            (
                "label_smoothing is 0.1, but loss=relativistic has none: use label_smoothing=0, or"
                " loss=cross_entropy."
            ),
        ),
        (
            {"penalty_end": 0.1},
            "penalty_end",
            (
                "Final penalties (penalty_end) is 0.1, but r1_weight and r2_weight are 0: set one"
                " of them, or penalty_end=1."
            ),
        ),
        (
            {"momentum": 0.9},
            "momentum",
            (
                "Momentum (SGD) (momentum) is 0.9, but only optimizer=sgd has one: use momentum=0,"
                " or optimizer=sgd."
            ),
        ),
        (
            {"samples_from": "ema"},
            "samples_from",
            (
                "Sample grids from (samples_from) is ema, but ema_decay is 0: set ema_decay to"
                " about 0.999, or samples_from=live."
            ),
        ),
        (
            {"accumulation_steps": 3, "batch_size_global": 64, "replicas": 2},
            "accumulation_steps",
            (
                "Gradient accumulation (accumulation_steps) is 3, but each replica has 32 images"
                " per step: use a divisor of 32."
            ),
        ),
        (
            {"sync_every_steps": 4},
            "sync_every_steps",
            (
                "Synchronize every (sync_every_steps) is 4, but there is 1 replica: use"
                " sync_every_steps=1, or more replicas or workers."
            ),
        ),
        (
            {"sync_every_steps": 4, "replicas": 2, "precision": "mixed_float16"},
            "sync_every_steps",
            (
                "Synchronize every (sync_every_steps) is 4 with mixed_float16, whose loss scale all"
                " replicas must share: use mixed_bfloat16, or sync_every_steps=1."
            ),
        ),
        (
            {"sync_every_steps": 4, "replicas": 2, "batch_norm": "synchronised"},
            "sync_every_steps",
            (
                "Synchronize every (sync_every_steps) is 4, but batch_norm=synchronised exchanges"
                " in each step: use batch_norm=per_replica, or sync_every_steps=1."
            ),
        ),
        (
            {"sync_every_steps": 4, "replicas": 2, "all_reduce_type": "bfloat16"},
            "all_reduce_type",
            (
                "Gradient exchange (all_reduce_type) is bfloat16, but sync_every_steps=4 exchanges"
                " float32 weights and no gradients: use all_reduce_type=float32, or"
                " sync_every_steps=1."
            ),
        ),
        (
            {"engine": "jax", "xla": "autocluster"},
            "xla",
            (
                "xla is autocluster, but engine=jax compiles whole steps: use xla=off or xla=jit,"
                " which are the same there."
            ),
        ),
        (
            {"engine": "jax", "replicas": 2, "sync_every_steps": 4},
            "sync_every_steps",
            (
                "Synchronize every (sync_every_steps) is 4, but with engine=jax all replicas share"
                " one state: use sync_every_steps=1, or engine=tensorflow."
            ),
        ),
        (
            {"engine": "jax", "profile_steps": 5},
            "profile_steps",
            (
                "profile_steps is 5, but engine=jax has no step profile: use profile_steps=0, or"
                " engine=tensorflow."
            ),
        ),
        (
            {"engine": "jax", "workers": 2, "all_reduce_pack_mb": 8},
            "all_reduce_pack_mb",
            (
                "All-reduce pack (all_reduce_pack_mb) is 8, but only TensorFlow's workers take a"
                " pack size: use 0, or engine=tensorflow and workers above 1."
            ),
        ),
        (
            {"engine": "jax", "accelerator": "tpu", "tpu_address": "grpc://10.0.0.2:8470"},
            "tpu_address",
            (
                "tpu_address is 'grpc://10.0.0.2:8470', but engine=jax uses the TPU of this host:"
                " use tpu_address=local."
            ),
        ),
        (
            {"loop": "keras", "engine": "jax"},
            "loop",
            (
                "Training loop (loop) is keras, but engine=jax has its own loop: use"
                " loop=custom, or engine=tensorflow."
            ),
        ),
        (
            {"loop": "keras", "workers": 2},
            "loop",
            (
                "Training loop (loop) is keras, but 2 workers cannot agree there when to stop: use"
                " loop=custom, or workers=1 and more replicas."
            ),
        ),
        (
            {"loop": "keras", "replicas": 2, "sync_every_steps": 4},
            "loop",
            (
                "Training loop (loop) is keras with sync_every_steps=4, but Keras' loop exchanges"
                " gradients in each step: use loop=custom, or sync_every_steps=1."
            ),
        ),
        (
            {"loop": "keras", "accelerator": "tpu"},
            "loop",
            (
                "Training loop (loop) is keras, but on a TPU Keras reports the numbers of the first"
                " core alone: use loop=custom, or accelerator=cpu or gpu."
            ),
        ),
    ],
)
def test_incompatible_options_are_refused(
    values: dict[str, Any], field: str, sentence: str
) -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse(values)
    assert refused.value.by_field() == {field: sentence}


def test_invalid_choices_and_numbers_are_reported_together() -> None:
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
    assert set(refused.value.by_field()) == {
        "workload",
        "dataset",
        "engine",
        "epochs",
        "xla",
        "epoch",
    }


def test_broken_rules_are_reported_together() -> None:
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


def test_broken_rules_are_reported_alongside_invalid_values() -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse(
            {"epochs": 0, "dataset": "mi nst", "batch_size_global": "30", "replicas": "4"}
        )
    assert set(refused.value.by_field()) == {"epochs", "dataset", "batch_size_global"}
    assert (
        "Global batch (batch_size_global) is 30, but 4 replicas need a multiple of 4: use 28 or 32."
        in str(refused.value)
    )


def test_a_rule_is_not_checked_on_an_invalid_value() -> None:
    """The default batch of 256 is not divisible by 3 replicas, but 256 was not set."""
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({"batch_size_global": "many", "replicas": 3})
    assert [error.message for error in refused.value.errors] == [
        "Global batch (batch_size_global) is 'many', but allowed is a whole number from 1 to 65536:"
        " use a multiple of replicas × workers."
    ]


def test_rule_parameters_are_existing_options() -> None:
    for rule in spec_rules.RULES:
        assert set(signature(rule).parameters) <= set(RunSpec.options())


@pytest.mark.parametrize("workload", catalog.WORKLOADS)
def test_workload_rules_read_only_workload_or_shared_options(workload: str) -> None:
    for rule in catalog.WORKLOADS[workload].rules:
        assert set(signature(rule).parameters) <= set(RunSpec.options(workload))


def test_a_directly_constructed_spec_is_validated_and_frozen() -> None:
    with pytest.raises(
        ValidationError, match="is 30, but 4 replicas need a multiple of 4: use 28 or 32"
    ):
        RunSpec(batch_size_global=30, replicas=4, epochs=0)
    with pytest.raises(ValidationError, match="frozen"):
        RunSpec().epochs = 3  # type: ignore[misc]
