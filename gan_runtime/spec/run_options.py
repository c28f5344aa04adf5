"""What is trained, on what, where and for how long."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel

from gan_runtime import catalog
from gan_runtime.base.options import option
from gan_runtime.spec import nesting

Accelerator = Literal["auto", "cpu", "gpu", "tpu"]
Precision = Literal["float32", "mixed_bfloat16", "mixed_float16"]
Xla = Literal["off", "jit", "autocluster"]
Loop = Literal["custom", "keras"]

TABLE_1 = "paper, Table 1"


class RunOptions(BaseModel):
    """Read by everyone.

    Which data sets there are is known at the door only (data/loading.py): people name their own.
    """

    name: str = option(
        "",
        label="Name",
        group="Run",
        help="What this run is called in lists. Empty: its number, such as quick-0007.",
        error="use a short plain name.",
        text="text of up to 60 letters, digits, spaces, '.', '_' and '-', not of spaces alone",
        # Rust's: `$` is the very end, not before a last newline
        pattern=r"^( *[A-Za-z0-9._-][A-Za-z0-9 ._-]*)?$",
        max_length=60,
    )
    workload: str = option(
        nesting.DEFAULT_WORKLOAD,
        label="Workload",
        group="Model and data",
        choices=tuple(catalog.WORKLOADS),
        help="Which GAN is trained: its networks, losses and updates.",
        source=TABLE_1,
        error="pick one of the listed workloads.",
    )
    dataset: str = option(
        "digits",
        label="Dataset",
        group="Model and data",
        pattern=r"^[a-z0-9][a-z0-9_-]{0,59}$",
        text="a name of up to 60 small letters, digits, '_' and '-'",
        help=(
            "The real images. Digits comes with the project; MNIST is read from GAN_DATA_DIR,"
            " Keras' cache, or downloaded by Keras."
        ),
        source="paper, section 4: MNIST",
        error="use digits, or the name of another data set.",
    )
    start_from: str = option(
        "",
        label="Start from",
        group="Model and data",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,99}(:[1-9][0-9]{0,4})?)?$",
        text="a run, such as quick-0003, or one of its epochs, such as quick-0003:5",
        help=(
            "Another run with whose weights this one begins, as far as their names and shapes fit:"
            " RUN or RUN:EPOCH. Empty: new weights."
        ),
        source="transfer learning for GANs: Wang et al. 2018",
        error="use a run's id, with a colon and an epoch behind it if need be, or nothing.",
    )
    engine: str = option(
        "auto",
        label="Engine",
        group="Accelerator",
        choices=("auto", *catalog.ENGINES),
        help=(
            "The framework that runs the training step. Auto takes TensorFlow unless only JAX"
            " reaches the accelerator."
        ),
        source="paper, section 4.2: distributed TensorFlow",
        error="pick one of the listed engines.",
    )
    loop: Loop = option(
        "custom",
        label="Training loop",
        group="Accelerator",
        choices=get_args(Loop),
        help=(
            "Who repeats the step: 'custom' is a loop of our own, many steps in one host call;"
            " 'keras' is Keras' built-in one, a Model with a train_step."
        ),
        source="CERN's 3DGAN on Google Cloud (Cardoso et al. 2021): both were tried",
        error="pick one of the listed loops.",
    )
    accelerator: Accelerator = option(
        "auto",
        label="Accelerator",
        group="Accelerator",
        choices=get_args(Accelerator),
        help=(
            "Where the run trains. Auto takes the TPU if there is one, else the GPU, else the CPU."
        ),
        source="paper, Fig. 13",
        error="pick one of the listed accelerators.",
    )
    replicas: int = option(
        1,
        label="Replicas",
        group="Accelerator",
        unit="devices",
        ge=1,
        le=1024,
        help=(
            "Copies of the model that train in step, each on its share of the batch: GPUs, TPU"
            " cores, or simulated CPU cores."
        ),
        source="paper, section 4.2: eight TPU cores",
        error="use the number of devices to train on.",
    )
    workers: int = option(
        1,
        label="Workers",
        group="Accelerator",
        unit="processes",
        ge=1,
        le=256,
        help=(
            "Processes that train in step, each with its own replicas: here on this host, or one"
            " per node of a cluster."
        ),
        source="tf.distribute.MultiWorkerMirroredStrategy",
        error="use the number of processes to train in.",
    )
    tpu_address: str = option(
        "local",
        label="TPU address",
        group="Accelerator",
        pattern=r"^[A-Za-z0-9:/._-]{1,200}$",
        help=(
            "'local' on a TPU host, else the name or grpc:// address of the TPU. Read only when the"
            " accelerator is a TPU."
        ),
        source="tf.distribute.cluster_resolver.TPUClusterResolver",
        error="use 'local', a TPU name, or grpc://host:port.",
        text="text of 1 to 200 letters, digits, ':', '/', '.', '_' and '-'",
    )
    precision: Precision = option(
        "mixed_bfloat16",
        label="Precision",
        group="Numbers",
        choices=get_args(Precision),
        help=(
            "Number format of the layers' arithmetic. Weights, losses and updates stay in float32"
            " in every case."
        ),
        source="paper, section 4.3",
        error="pick one of the listed precisions.",
    )
    xla: Xla = option(
        "off",
        label="XLA",
        group="Numbers",
        choices=get_args(Xla),
        help=(
            "'jit' compiles forward and backward pass with XLA, 'autocluster' what XLA finds worth"
            " it. Often faster on GPUs, slower on CPUs; TPUs always use XLA."
        ),
        source="paper, section 5.3 and Fig. 12",
        error="pick one of the listed settings.",
    )
    batch_size_global: int = option(
        256,
        label="Global batch",
        group="Schedule",
        unit="images per step",
        ge=1,
        le=65_536,
        help=(
            "Images per training step over all replicas of all workers together. Must be a multiple"
            " of replicas × workers."
        ),
        source="paper: 64 to 512",
        error="use a multiple of replicas × workers.",
    )
    epochs: int = option(
        30,
        label="Epochs",
        group="Schedule",
        unit="passes over the data",
        ge=1,
        le=10_000,
        help=(
            "How often the training set is passed through. The last incomplete batch of a pass is"
            " dropped."
        ),
        source="paper: 30",
        error="use a whole number of epochs.",
    )
    steps_per_loop: int = option(
        10,
        label="Steps per host call",
        group="Schedule",
        unit="steps",
        ge=1,
        le=10_000,
        help=(
            "Training steps that run on the device between two reports. More is less overhead,"
            " fewer is a livelier curve."
        ),
        source="tf.distribute guide: steps inside one tf.function",
        error="use a whole number of steps.",
    )
