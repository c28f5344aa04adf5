"""The options for workload, data, devices, duration and monitoring of a run."""

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
AlarmAction = Literal["note", "stop", "roll_back"]
StallAction = Literal["note", "stop", "restart"]

TABLE_1 = "paper, Table 1"
HERE = "here"
# Options that name machines, and what they are in files for other people.
PRIVATE = {"tpu_address": "local", "target": HERE, "job_options": ""}
# Options of sbatch that say what a job gets and when. Others write files or run programs.
OF_SBATCH = (
    *("time", "partition", "account", "qos", "constraint", "reservation", "begin", "nice"),
    *("mem", "mem-per-cpu", "mem-per-gpu", "cpus-per-task", "gpus-per-task", "gres", "licenses"),
    *("nodelist", "exclude", "ntasks-per-node"),
)


class RunOptions(BaseModel):
    """Workload, data, devices, numbers and schedule.

    Whether a data set exists is checked when a run is submitted (data/loading.py): users name
    their own.
    """

    name: str = option(
        "",
        label="Name",
        group="Run",
        help="Name of this run in lists. Empty: its id, such as quick-0007.",
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
        help="Which GAN to train: its networks, losses and updates.",
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
            "Training data. Digits are embedded. MNIST comes from GAN_DATA_DIR, the Keras cache or"
            " a download."
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
            "Initial weights from another run, where names and shapes match: RUN or RUN:EPOCH."
            " Empty: random weights."
        ),
        source="transfer learning for GANs: Wang et al. 2018",
        error="use a run's id, optionally with a colon and an epoch, or leave it empty.",
    )
    target: str = option(
        HERE,
        label="Where",
        group="Accelerator",
        pattern=r"^[a-z0-9][a-z0-9-]{0,39}$",
        text="a name of up to 40 small letters, digits and '-'",
        help="Where to train: here, or the name of a target such as a Slurm cluster.",
        source="docs/cluster.md",
        error="use 'here' or the name of a target.",
    )
    job_options: str = option(
        "",
        label="Options of the job",
        group="Accelerator",
        pattern=rf"^( *--({'|'.join(OF_SBATCH)})=[A-Za-z0-9_.,:@&|*/+-]+)*$",
        max_length=400,
        text=f"words such as --time=02:00:00, of --{', --'.join(OF_SBATCH)}",
        help=(
            "Options of sbatch for this run, such as --time=02:00:00 --partition=long. They replace"
            " those of the target."
        ),
        source="Slurm: sbatch",
        error="use such words with a space between them, or leave it empty.",
    )
    engine: str = option(
        "auto",
        label="Engine",
        group="Accelerator",
        choices=("auto", *catalog.ENGINES),
        help=(
            "Framework that runs the training step. Auto: TensorFlow, or JAX if only JAX reaches"
            " the accelerator."
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
            "'custom': this project's loop, many steps per host call. 'keras': Keras' Model.fit"
            " loop with a train_step."
        ),
        source="CERN's 3DGAN on Google Cloud (Cardoso et al. 2021): both were tried",
        error="pick one of the listed loops.",
    )
    accelerator: Accelerator = option(
        "auto",
        label="Accelerator",
        group="Accelerator",
        choices=get_args(Accelerator),
        help="Device type to train on. Auto: TPU if present, else GPU, else CPU.",
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
            "Copies of the model, each on its share of the batch: GPUs, TPU cores or simulated CPU"
            " cores."
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
            "Processes that train together, each with its own replicas: on this host, or one per"
            " cluster node."
        ),
        source="tf.distribute.MultiWorkerMirroredStrategy",
        error="use the number of processes to train in.",
    )
    tpu_address: str = option(
        "local",
        label="TPU address",
        group="Accelerator",
        pattern=r"^[A-Za-z0-9:/._-]{1,200}$",
        help="'local' on a TPU host, else the TPU's name or grpc:// address. Used only on TPUs.",
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
            "Number format of the layers' arithmetic. Weights, losses and updates are always"
            " float32."
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
            "'jit' compiles the whole step, 'autocluster' parts of it. Often faster on GPUs, slower"
            " on CPUs; always on on TPUs."
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
        help="Images per step over all replicas of all workers. A multiple of replicas × workers.",
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
        help="Passes over the training set. Each pass drops its last incomplete batch.",
        source="paper: 30",
        error="use a whole number of epochs.",
    )
    steps_per_loop: int = option(
        10,
        label="Steps per call",
        group="Schedule",
        unit="steps",
        ge=1,
        le=10_000,
        help=(
            "Steps that the device makes before the host gets their numbers. More: less overhead."
            " Fewer: the curves update more often."
        ),
        source="tf.distribute guide: steps inside one tf.function",
        error="use a whole number of steps.",
    )


class MonitoringOptions(BaseModel):
    """Alarms, stalls, lost runs, checkpoints and sample images.

    Read by the training loop and by the supervisor of the home.
    """

    alarm_action: AlarmAction = option(
        "note",
        label="On an alarm",
        group="Monitoring",
        choices=get_args(AlarmAction),
        help=(
            "'note' logs it. 'stop' saves and stops. 'roll_back' reloads the last good checkpoint"
            " and halves the rates."
        ),
        source="",
        error="pick one of the listed actions.",
    )
    collapse_share: float = option(
        0.1,
        label="Collapse alarm below",
        group="Monitoring",
        unit="of the data's spread",
        ge=0,
        lt=1,
        help=(
            "Alarm when generated rows vary less than this share of the data: mode collapse. 0"
            " disables it."
        ),
        source="rule of thumb of this project",
        error="use 0, or about 0.1.",
    )
    d_wins_score: float = option(
        0.01,
        label="Judge-wins alarm below",
        group="Monitoring",
        unit="mean score",
        ge=0,
        lt=0.5,
        help=(
            "Alarm when mean scores are below this for generated rows and above 1 minus this for"
            " data. 0 disables it."
        ),
        source="rule of thumb of this project",
        error="use 0, or about 0.01.",
    )
    still_action: StallAction = option(
        "note",
        label="When stalled",
        group="Monitoring",
        choices=get_args(StallAction),
        help=(
            "After 20 usual calls, and at least 2 min, without output: 'note' logs, 'stop' ends,"
            " 'restart' resumes from a checkpoint."
        ),
        source="",
        error="pick one of the listed actions.",
    )
    resume_lost: Literal["no", "yes"] = option(
        "no",
        label="Resume when lost",
        group="Monitoring",
        choices=("no", "yes"),
        help=(
            "Resumes by itself after a killed process or reboot: up to 3 times, after 10 s, 1 min,"
            " 5 min. Also after the time limit of a cluster, as often as needed."
        ),
        source="",
        error="use yes or no.",
    )
    keep_checkpoints: int = option(
        3,
        label="Checkpoints retained",
        group="Monitoring",
        unit="newest",
        ge=1,
        le=1000,
        help=(
            "A run saves a checkpoint after each epoch, and retains the best and this many newest."
        ),
        source="",
        error="use a whole number from 1.",
    )
    pictures_every: int = option(
        1,
        label="Sample images every",
        group="Monitoring",
        unit="epochs",
        ge=1,
        le=1000,
        help="Sample images are stored after the first epoch, every so many epochs, and the last.",
        source="",
        error="use a whole number from 1.",
    )
    quality_every: int = option(
        5,
        label="Measure quality every",
        group="Monitoring",
        unit="epochs",
        ge=0,
        le=1000,
        help=(
            "A low-priority background job scores the newest checkpoint; without labels, only if"
            " ImageNet features were used before. It uses at most 3% of the processors in training."
            " 0 disables it."
        ),
        source="",
        error="use 0, or a whole number of epochs, such as 5.",
    )


class MeasuringOptions(BaseModel):
    """Measurements of the training loop beyond its usual numbers."""

    profile_steps: int = option(
        0,
        label="Profile steps",
        group="Run",
        unit="steps",
        ge=0,
        le=100,
        help=(
            "Steps to run under the profiler once. They train as usual but count in no time. 0"
            " disables profiling."
        ),
        source="CERN's 3DGAN on TPUs: 38% forward, 61% backward, 0.7% idle",
        error="use 0, or a few steps such as 5.",
    )
    weight_snapshots: Literal["no", "yes"] = option(
        "no",
        label="Weight snapshots",
        group="Run",
        choices=("no", "yes"),
        help=(
            "Stores all weights after each epoch in float16, for loss surfaces and evaluations:"
            " DCGAN about 5 MB per epoch."
        ),
        source="paper, Fig. 11",
        error="use no or yes.",
    )
    count_kernels: Literal["no", "yes"] = option(
        "no",
        label="Count kernels",
        group="Run",
        choices=("no", "yes"),
        help=(
            "With XLA jit: counts kernels and fusions of a step. One extra compilation; it counts"
            " in memory, not in time."
        ),
        source="TensorFlow: experimental_get_compiler_ir",
        error="use no or yes.",
    )
