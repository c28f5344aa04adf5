"""The declarations of flows past an obstacle, and the training times of KIT."""

from __future__ import annotations

from gan_runtime.catalog.domain import Domain
from gan_runtime.catalog.entries import Preset, PublishedTimes, Renderer, TrainingTime
from gan_runtime.catalog.preparation import Preparation
from gan_runtime.domains.flows import entry, fields
from gan_runtime.domains.flows.preparation_options import (
    FlowOptions,
    SmallFlowOptions,
    enough_frames,
    held_out_is_not_trained_on,
    promised,
)

SOURCE = (
    "R. Lehmann, P. Schaarschmidt, W. Karl, PARS-Mitteilungen 2024 (dl.gi.de, 20.500.12116/44645),"
    " and the talk of 15 September 2023"
)
SETTING = (
    "Average training time over 45 epochs, PyTorch with XLA, data parallel over the cores of a TPU."
    " The number of frames is unpublished, so images per second are unknown."
)


TIMES = tuple(
    TrainingTime(device, batch_size, seconds)
    for device, by_batch in (
        ("A6000 GPU", {8: 3451.0, 16: 3385.0, 32: 3133.0, 64: 2790.0}),
        ("TPU v2-8", {8: 2518.0, 16: 1525.0}),
        ("TPU v3-8", {8: 2383.0, 16: 1438.0}),
        ("TPU v4-8", {8: 2130.0, 16: 1369.0, 32: 1092.0, 64: 1077.0}),
    )
    for batch_size, seconds in by_batch.items()
)
KIT = PublishedTimes(
    title="KIT, Pix2Pix on flow: training time in seconds by batch size",
    source=(
        "KIT, Pix2Pix flow simulation (Lehmann et al. 2024), average training time over 45 epochs"
    ),
    setting=SETTING,
    times=TIMES,
)


# ---- domain --------------------------------------------------------------------------------------

RULES = (held_out_is_not_trained_on, enough_frames)
PREPARATIONS = {
    "karman": Preparation(
        "Simulated flow",
        "Frames of a Kármán vortex street behind an obstacle. A run that needs them starts the"
        " simulation.",
        FlowOptions,
        maker="gan_runtime.domains.flows.films",
        name="karman",
        rules=RULES,
        promises=promised,
    ),
    "karman_small": Preparation(
        "Simulated flow, small",
        "The same flows in 40 × 96 pixels, for two cores. A run that needs them starts the"
        " simulation.",
        SmallFlowOptions,
        maker="gan_runtime.domains.flows.films",
        name="karman_small",
        rules=RULES,
        promises=promised,
    ),
}
PRESETS = {
    "karman": Preset(
        title="Kármán street: KIT's Pix2Pix, small enough for two cores",
        summary=(
            "In minutes a small U-Net learns to predict the next frame of a simulated flow, 40 × 96"
            " pixels. A rollout makes a film (docs/pix2pix.md)."
        ),
        values={
            "workload": "pix2pix",
            "dataset": "karman_small",
            "size": "small",
            "tile": 32,  # of 40 × 96 pixels
            "replicas": 1,
            "batch_size_global": 32,
            "epochs": 90,
            "learning_rate_generator": 1e-3,
            "learning_rate_schedule": (
                "cosine_restarts"
            ),  # one cycle, so that the last weights do not oscillate
            "restart_epochs": 90,
            "output": "change",  # consecutive frames differ little
            "weight_l1": 4000.0,  # a frame has one correct successor, which D only sharpens
            "dropout": 0.0,  # useless noise
            "norm_momentum": 0.99,  # rollouts use the stored statistics
            "flip": "vertical",
            "input_noise": 0.02,  # inputs of rollouts have errors
            "unrolled": 3,
            "steps_per_loop": 10,
            "weight_snapshots": "yes",  # for rollouts of each epoch
        },
    ),
}
DOMAIN = Domain(
    name="flows",
    title="Flows past an obstacle",
    workloads={"pix2pix": entry.ENTRY},
    preparations=PREPARATIONS,
    renderers={
        "triplets": Renderer(
            ("inputs", "outputs", "targets"), "gan_runtime.domains.flows.pictures:triplets"
        )
    },
    presets=PRESETS,
    evaluations=("gan_runtime.domains.flows.evaluation:ROLLOUT",),
    first_rows="gan_runtime.domains.flows.pictures:first_rows",
    nouns={fields.REYNOLDS: "frame"},
    describe=fields.describe,
    examples=("karman",),
    times=KIT,
)
