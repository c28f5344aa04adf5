"""Invalid values of single options, each refused with one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from gan_runtime import catalog
from gan_runtime.base.errors import SpecError
from gan_runtime.spec import RunSpec

WORKLOADS = ", ".join(catalog.WORKLOADS)  # as error messages list them
WRONG_VALUES: list[tuple[str, Any, str]] = [
    (
        "profile_steps",
        101,
        (
            "profile_steps is 101, but allowed is a whole number from 0 to 100: use 0, or a few"
            " steps such as 5."
        ),
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
        (
            "epochs is 10001, but allowed is a whole number from 1 to 10000: use a whole number of"
            " epochs."
        ),
    ),
    (
        "epochs",
        3.5,
        (
            "epochs is 3.5, but allowed is a whole number from 1 to 10000: use a whole number of"
            " epochs."
        ),
    ),
    (
        "epochs",
        "three",
        (
            "epochs is 'three', but allowed is a whole number from 1 to 10000: use a whole number"
            " of epochs."
        ),
    ),
    (
        "epochs",
        "",
        (
            "epochs is '', but allowed is a whole number from 1 to 10000: use a whole number of"
            " epochs."
        ),
    ),
    (
        "epochs",
        None,
        (
            "epochs is None, but allowed is a whole number from 1 to 10000: use a whole number of"
            " epochs."
        ),
    ),
    (
        "steps_per_loop",
        0,
        (
            "Steps per call (steps_per_loop) is 0, but allowed is a whole number from 1 to"
            " 10000: use a whole number of steps."
        ),
    ),
    (
        "epochs",
        True,
        (
            "epochs is True, but allowed is a whole number from 1 to 10000: use a whole number of"
            " epochs."
        ),
    ),
    (
        "seed",
        False,
        (
            "seed is False, but allowed is a whole number from 0 to 2147483647: use a whole number"
            " from 0."
        ),
    ),
    (
        "learning_rate_generator",
        True,
        (
            "Learning rate, generator (learning_rate_generator) is True, but allowed is above 0 and"
            " at most 1: use a positive rate, such as 1e-4."
        ),
    ),
    (
        "seed",
        -1,
        (
            "seed is -1, but allowed is a whole number from 0 to 2147483647: use a whole number"
            " from 0."
        ),
    ),
    (
        "seed",
        2**31,
        (
            "seed is 2147483648, but allowed is a whole number from 0 to 2147483647: use a whole"
            " number from 0."
        ),
    ),
    (
        "workers",
        257,
        (
            "workers is 257, but allowed is a whole number from 1 to 256: use the number of"
            " processes to train in."
        ),
    ),
    (
        "all_reduce_pack_mb",
        1025,
        (
            "All-reduce pack (all_reduce_pack_mb) is 1025, but allowed is a whole number from 0 to"
            " 1024: use 0 for one pack, or a size such as 8."
        ),
    ),
    (
        "replicas",
        0,
        (
            "replicas is 0, but allowed is a whole number from 1 to 1024: use the number of devices"
            " to train on."
        ),
    ),
    (
        "batch_size_global",
        65_537,
        (
            "Global batch (batch_size_global) is 65537, but allowed is a whole number from 1 to"
            " 65536: use a multiple of replicas × workers."
        ),
    ),
    (
        "learning_rate_generator",
        0,
        (
            "Learning rate, generator (learning_rate_generator) is 0, but allowed is above 0 and at"
            " most 1: use a positive rate, such as 1e-4."
        ),
    ),
    (
        "learning_rate_discriminator",
        1.5,
        (
            "Learning rate, discriminator (learning_rate_discriminator) is 1.5, but allowed is"
            " above 0 and at most 1: use a positive rate, such as 1e-4."
        ),
    ),
    (
        "learning_rate_discriminator",
        "nan",
        (
            "Learning rate, discriminator (learning_rate_discriminator) is 'nan', but allowed is"
            " above 0 and at most 1: use a positive rate, such as 1e-4."
        ),
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
        (
            "dataset is '../minst', but allowed is a name of up to 60 small letters, digits, '_'"
            " and '-': use digits, or the name of another data set."
        ),
    ),
    (
        "engine",
        "torch",
        "engine is 'torch', but allowed is auto, tensorflow, jax: pick one of the listed engines.",
    ),
    (
        "loop",
        "fit",
        (
            "Training loop (loop) is 'fit', but allowed is custom, keras: pick one of the listed"
            " loops."
        ),
    ),
    (
        "accelerator",
        "gpux",
        "accelerator is 'gpux', but allowed is auto, cpu, gpu, tpu: did you mean gpu?",
    ),
    (
        "accelerator",
        "cuda",
        (
            "accelerator is 'cuda', but allowed is auto, cpu, gpu, tpu: pick one of the listed"
            " accelerators."
        ),
    ),
    (
        "precision",
        "float16",
        (
            "precision is 'float16', but allowed is float32, mixed_bfloat16, mixed_float16: did you"
            " mean float32?"
        ),
    ),
    (
        "xla",
        "on",
        "xla is 'on', but allowed is off, jit, autocluster: pick one of the listed settings.",
    ),
    (
        "optimizer",
        "adamw",
        "optimizer is 'adamw', but allowed is adam, sgd, rmsprop: did you mean adam?",
    ),
    (
        "adam_beta_1",
        1.0,
        (
            "adam_beta_1 is 1.0, but allowed is at least 0 and below 1: use 0.9, or 0.5 for"
            " steadier training."
        ),
    ),
    (
        "adam_beta_2",
        1.5,
        (
            "adam_beta_2 is 1.5, but allowed is at least 0 and below 1: use 0.999, or 0.9 as"
            " WGAN-GP does."
        ),
    ),
    (
        "rmsprop_epsilon",
        "within",
        (
            "rmsprop_epsilon is 'within', but allowed is inside, outside: use inside, or outside as"
            " TensorFlow 2 does."
        ),
    ),
    (
        "momentum",
        0.999999999,
        (
            "Momentum (SGD) (momentum) is 0.999999999, which float32 rounds to 1, but allowed is at"
            " least 0 and below 1: use 0, or about 0.9."
        ),
    ),
    (
        "momentum",
        10**400,
        (
            f"Momentum (SGD) (momentum) is 1{'0' * 78}…, but allowed is at least 0 and below 1: use"
            " 0, or about 0.9."
        ),
    ),
    (
        "momentum",
        -0.1,
        (
            "Momentum (SGD) (momentum) is -0.1, but allowed is at least 0 and below 1: use 0, or"
            " about 0.9."
        ),
    ),
    (
        "learning_rate_schedule",
        "cosine",
        (
            "Rate schedule (learning_rate_schedule) is 'cosine', but allowed is constant,"
            " cosine_restarts: pick one of the listed schedules."
        ),
    ),
    (
        "restart_epochs",
        0,
        (
            "Restart cycle (restart_epochs) is 0, but allowed is a whole number from 1 to 10000:"
            " use a whole number of epochs."
        ),
    ),
    (
        "warmup_epochs",
        -1,
        (
            "Warm-up (warmup_epochs) is -1, but allowed is a whole number from 0 to 10000: use a"
            " whole number of epochs, or 0."
        ),
    ),
    (
        "learning_rate_scaling",
        "quadratic",
        (
            "Rate scaling (learning_rate_scaling) is 'quadratic', but allowed is none, linear,"
            " sqrt: pick one of the listed scalings."
        ),
    ),
    (
        "reference_batch",
        0,
        (
            "reference_batch is 0, but allowed is a whole number from 1 to 65536: use the batch for"
            " which the rates were tuned."
        ),
    ),
    (
        "clip_norm",
        -1,
        (
            "Gradient clipping (clip_norm) is -1, but allowed is at least 0 and at most 1e+06: use"
            " 0, or a norm such as 1."
        ),
    ),
    (
        "generator_loss",
        "wgan",
        (
            "generator_loss is 'wgan', but allowed is non_saturating, minimax: pick one of the"
            " listed losses."
        ),
    ),
    (
        "updates",
        "alternating",
        (
            "updates is 'alternating', but allowed is together, in_turn: pick one of the listed"
            " orders."
        ),
    ),
    (
        "discriminator_steps",
        11,
        (
            "discriminator_steps is 11, but allowed is a whole number from 1 to 10: use a whole"
            " number from 1 to 10."
        ),
    ),
    (
        "label_smoothing",
        0.6,
        "label_smoothing is 0.6, but allowed is at least 0 and at most 0.5: use 0, or about 0.1.",
    ),
    (
        "r1_weight",
        -1,
        (
            "R1 penalty (r1_weight) is -1, but allowed is at least 0 and at most 1000: use 0, or"
            " about 1 to 10."
        ),
    ),
    (
        "r2_weight",
        -1,
        (
            "R2 penalty (r2_weight) is -1, but allowed is at least 0 and at most 1000: use 0, or"
            " the weight of R1."
        ),
    ),
    (
        "penalty_end",
        2,
        (
            "Final penalties (penalty_end) is 2, but allowed is at least 0 and at most 1: use 1, or"
            " about 0.1."
        ),
    ),
    (
        "augmentation",
        "flips",
        (
            "augmentation is 'flips', but allowed is none, translation, color_translation,"
            " translation_cutout, color_translation_cutout: pick one of the listed values."
        ),
    ),
    (
        "loss",
        "least_squares",
        (
            "loss is 'least_squares', but allowed is cross_entropy, hinge, relativistic: pick one"
            " of the listed losses."
        ),
    ),
    (
        "start_from",
        "quick-0003:0",
        (
            "start_from is 'quick-0003:0', but allowed is a run, such as quick-0003, or one of its"
            " epochs, such as quick-0003:5: use a run's id, optionally with a colon and an epoch,"
            " or leave it empty."
        ),
    ),
    (
        "ema_decay",
        1,
        (
            "Moving average (EMA) (ema_decay) is 1, but allowed is at least 0 and below 1: use 0,"
            " or about 0.99 to 0.9999."
        ),
    ),
    (
        "samples_from",
        "average",
        (
            "Sample grids from (samples_from) is 'average', but allowed is live, ema: pick one of"
            " the listed networks."
        ),
    ),
    (
        "batch_norm",
        "synchronized",
        (
            "Batch norm over (batch_norm) is 'synchronized', but allowed is per_replica,"
            " synchronised: did you mean synchronised?"
        ),
    ),
    (
        "all_reduce_type",
        "float16",
        (
            "Gradient exchange (all_reduce_type) is 'float16', but allowed is float32, bfloat16:"
            " did you mean bfloat16?"
        ),
    ),
    (
        "accumulation_steps",
        0,
        (
            "Gradient accumulation (accumulation_steps) is 0, but allowed is a whole number from 1"
            " to 64: use a whole number that divides the images per replica."
        ),
    ),
    (
        "sync_every_steps",
        0,
        (
            "Synchronize every (sync_every_steps) is 0, but allowed is a whole number from 1 to"
            " 1000: use 1, or a whole number of steps."
        ),
    ),
    (
        "name",
        "a/b",
        (
            "name is 'a/b', but allowed is text of up to 60 letters, digits, spaces, '.', '_' and"
            " '-', not of spaces alone: use a short plain name."
        ),
    ),
    (
        "target",
        "My Cluster",
        (
            "Where (target) is 'My Cluster', but allowed is a name of up to 40 small letters,"
            " digits and '-': use 'here' or the name of a target."
        ),
    ),
    (
        "job_options",
        "--output=/etc/motd",
        (
            "Options of the job (job_options) is '--output=/etc/motd', but allowed is words such as"
            " --time=02:00:00, of --time, --partition, --account, --qos, --constraint,"
            " --reservation, --begin, --nice, --mem, --mem-per-cpu, --mem-per-gpu,"
            " --cpus-per-task, --gpus-per-task, --gres, --licenses, --nodelist, --exclude,"
            " --ntasks-per-node: use such words with a space between them, or leave it empty."
        ),
    ),
    (
        "tpu_address",
        "",
        (
            "tpu_address is '', but allowed is text of 1 to 200 letters, digits, ':', '/', '.', '_'"
            " and '-': use 'local', a TPU name, or grpc://host:port."
        ),
    ),
    (
        "alarm_action",
        "ignore",
        (
            "On an alarm (alarm_action) is 'ignore', but allowed is note, stop, roll_back: did you"
            " mean note?"
        ),
    ),
    (
        "collapse_share",
        1.0,
        (
            "Collapse alarm below (collapse_share) is 1.0, but allowed is at least 0 and below 1:"
            " use 0, or about 0.1."
        ),
    ),
    (
        "d_wins_score",
        0.5,
        (
            "Judge-wins alarm below (d_wins_score) is 0.5, but allowed is at least 0 and below 0.5:"
            " use 0, or about 0.01."
        ),
    ),
    (
        "still_action",
        "roll_back",
        (
            "When stalled (still_action) is 'roll_back', but allowed is note, stop, restart: pick"
            " one of the listed actions."
        ),
    ),
    (
        "resume_lost",
        "maybe",
        "Resume when lost (resume_lost) is 'maybe', but allowed is no, yes: use yes or no.",
    ),
    (
        "keep_checkpoints",
        0,
        (
            "Checkpoints retained (keep_checkpoints) is 0, but allowed is a whole number from 1 to"
            " 1000: use a whole number from 1."
        ),
    ),
    (
        "pictures_every",
        0,
        (
            "Sample images every (pictures_every) is 0, but allowed is a whole number from 1 to"
            " 1000: use a whole number from 1."
        ),
    ),
    (
        "quality_every",
        -1,
        (
            "Measure quality every (quality_every) is -1, but allowed is a whole number from 0 to"
            " 1000: use 0, or a whole number of epochs, such as 5."
        ),
    ),
]


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    WRONG_VALUES,
    ids=lambda value: None if isinstance(value, str) else repr(value),
)
def test_an_invalid_value_is_refused_with_a_message(field: str, value: Any, sentence: str) -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({field: value})
    assert refused.value.by_field() == {field: sentence}


def test_every_option_has_an_invalid_value_in_the_list() -> None:
    assert {field for field, _, _ in WRONG_VALUES} == set(RunSpec.options("dcgan_mnist"))
