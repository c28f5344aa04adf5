"""RunSpec: every option of a run with its unit, range, default, source and error text.

The Launch form, the command line (`--set key=value`) and spec.json are all made from this one table. A spec checks
itself when it is built, before any process starts; below that line the code trusts it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from pydantic import (
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from gan_runtime import catalog, options
from gan_runtime.errors import DatasetError, FieldError, SpecError
from gan_runtime.options import Option, option
from gan_runtime.spec import rules as spec_rules
from gan_runtime.spec.distribution import DistributionOptions
from gan_runtime.spec.measuring import MeasuringOptions
from gan_runtime.spec.objective import ObjectiveOptions
from gan_runtime.spec.optimizer import OptimizerOptions
from gan_runtime.spec.spec_file import read_values
from gan_runtime.spec.watching import WatchingOptions

Accelerator = Literal["auto", "cpu", "gpu", "tpu"]
Precision = Literal["float32", "mixed_bfloat16", "mixed_float16"]
Xla = Literal["off", "jit", "autocluster"]

TABLE_1 = "paper, Table 1"


class RunSpec(ObjectiveOptions, OptimizerOptions, DistributionOptions, WatchingOptions, MeasuringOptions):
    """What one training run is. Immutable; a wrong value never gets past `RunSpec.parse`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = option(
        "",
        label="Name",
        group="Run",
        help="What this run is called in lists. Empty: its number, such as quick-0007.",
        error="use a short plain name.",
        text="text of up to 60 letters, digits, spaces, '.', '_' and '-', not of spaces alone",
        pattern=r"^( *[A-Za-z0-9._-][A-Za-z0-9 ._-]*)?$",  # Rust's: `$` is the very end, not before a last newline
        max_length=60,
    )
    workload: str = option(
        "dcgan_mnist",
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
        choices=tuple(catalog.DATASETS),
        help="The real images. Digits comes with the project; MNIST is read from GAN_DATA_DIR, Keras' cache, or downloaded by Keras.",
        source="paper, section 4: MNIST",
        error="pick one of the listed datasets.",
    )
    engine: str = option(
        "auto",
        label="Engine",
        group="Accelerator",
        choices=("auto", *catalog.ENGINES),
        help="The framework that runs the training step. Auto takes TensorFlow unless only JAX reaches the accelerator.",
        source="paper, section 4.2: distributed TensorFlow",
        error="pick one of the listed engines.",
    )
    accelerator: Accelerator = option(
        "auto",
        label="Accelerator",
        group="Accelerator",
        choices=get_args(Accelerator),
        help="Where the run trains. Auto takes the TPU if there is one, else the GPU, else the CPU.",
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
        help="Copies of the model that train in step, each on its share of the batch: GPUs, TPU cores, or simulated CPU cores.",
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
        help="Processes that train in step, each with its own replicas: here on this host, or one per node of a cluster.",
        source="tf.distribute.MultiWorkerMirroredStrategy",
        error="use the number of processes to train in.",
    )
    tpu_address: str = option(
        "local",
        label="TPU address",
        group="Accelerator",
        pattern=r"^[A-Za-z0-9:/._-]{1,200}$",
        help="'local' on a TPU host, else the name or grpc:// address of the TPU. Read only when the accelerator is a TPU.",
        source="tf.distribute.cluster_resolver.TPUClusterResolver",
        error="use 'local', a TPU name, or grpc://host:port.",
        text="text of 1 to 200 letters, digits, ':', '/', '.', '_' and '-'",
    )
    precision: Precision = option(
        "mixed_bfloat16",
        label="Precision",
        group="Numbers",
        choices=get_args(Precision),
        help="Number format of the layers' arithmetic. Weights, losses and updates stay in float32 in every case.",
        source="paper, section 4.3",
        error="pick one of the listed precisions.",
    )
    xla: Xla = option(
        "off",
        label="XLA",
        group="Numbers",
        choices=get_args(Xla),
        help="'jit' compiles forward and backward pass with XLA, 'autocluster' what XLA finds worth it. Often faster on GPUs, slower on CPUs; TPUs always use XLA.",
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
        help="Images per training step over all replicas of all workers together. Must be a multiple of replicas × workers.",
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
        help="How often the training set is passed through. The last incomplete batch of a pass is dropped.",
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
        help="Training steps that run on the device between two reports. More is less overhead, fewer is a livelier curve.",
        source="tf.distribute guide: steps inside one tf.function",
        error="use a whole number of steps.",
    )

    @field_validator("*", mode="before")
    @classmethod
    def _check_option(cls, value: Any, info: ValidationInfo) -> Any:
        return options.check(cls.options()[str(info.field_name)], value)

    @field_validator("*", mode="after")
    @classmethod
    def _without_negative_zero(cls, value: Any) -> Any:
        """-0.0 is 0: two runs that do the same say the same."""
        return value + 0.0 if isinstance(value, float) else value

    @model_validator(mode="wrap")
    @classmethod
    def _check_all(cls, given: Any, check_options: ModelWrapValidatorHandler[RunSpec]) -> RunSpec:
        """Everything that is wrong is told at once: the rules are tried on whatever options are right by themselves."""
        wrong: list[FieldError] = []
        try:
            spec = check_options(given)
        except ValidationError as error:
            wrong = [options.in_words(detail, cls.options()) for detail in error.errors()]
            spec = check_options(
                {name: value for name, value in dict(given).items() if name not in _names(wrong)}
            )
        broken = spec_rules.broken({name: value for name, value in spec if name not in _names(wrong)})
        wrong += [
            FieldError(error.field, options.labelled(error.message, cls.options()[error.field]))
            for error in broken
        ]
        if wrong:
            raise ValidationError.from_exception_data(
                cls.__name__, [_detail(error, given) for error in wrong]
            )
        return spec

    _options: ClassVar[dict[str, Option]] = {}

    @classmethod
    def options(cls) -> dict[str, Option]:
        """Every option by name, in the order of the form."""
        if not cls._options:
            known = [options.read_option(name, info) for name, info in cls.model_fields.items()]
            cls._options.update(
                {
                    option.name: option
                    for option in sorted(known, key=lambda one: options.GROUPS.index(one.group))
                }
            )
        return cls._options

    @classmethod
    def named(cls, name: str) -> str:
        """An option as sentences call it: "Global batch (batch_size_global)"."""
        return cls.options()[name].named

    @classmethod
    def parse(cls, values: dict[str, Any]) -> RunSpec:
        """A spec from plain values (numbers may be text, as a form or `--set` gives them).

        Raises:
            SpecError: one message per wrong option: what was given, what is allowed, what to do.
        """
        odd = [name for name in values if not options.can_be_a_name(name)]
        if odd:
            raise SpecError([options.unknown(name, cls.options()) for name in odd])
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise SpecError(
                [FieldError(str(detail["loc"][0]), detail["msg"]) for detail in error.errors()]
            ) from None

    @classmethod
    def read(cls, path: Path) -> RunSpec:
        """The spec in a JSON file. Raises SpecError when the file is missing, no JSON, or holds a wrong value."""
        return cls.parse(read_values(path))

    @property
    def replicas_in_all(self) -> int:
        """Copies of the model over all workers together."""
        return self.replicas * self.workers

    @property
    def batch_size_per_replica(self) -> int:
        """Images that one replica sees in a step."""
        return self.batch_size_global // self.replicas_in_all

    @property
    def images_per_step(self) -> int:
        """Real images that one step takes from the set: a global batch for each discriminator step.

        Every rate, estimate and count of images is made from this, never from the batch alone.
        """
        return self.batch_size_global * self.discriminator_steps

    def steps_per_epoch(self, images: int) -> int:
        """Steps in one epoch, which is one pass over `images` images; 0 when a step takes more than the set has."""
        return images // self.images_per_step

    def check_set(self, images: int) -> None:
        """Raises DatasetError when a set of `images` images does not fill one step: there would be none to train."""
        if self.steps_per_epoch(images):
            return
        batch = f"{self.named('batch_size_global')} is {self.batch_size_global}"
        has = f"{self.dataset} has only {images} images"
        if self.batch_size_global > images:
            raise DatasetError(f"{batch}, but {has}: use a smaller batch.")
        raise DatasetError(
            f"{batch} and discriminator_steps {self.discriminator_steps}, so a step takes {self.images_per_step} images, "
            f"but {has}: use fewer discriminator steps or a smaller batch."
        )

    def changed_from_default(self) -> dict[str, Any]:
        """The options that differ from their default, for showing a run in short."""
        return {
            name: value for name, value in self.model_dump().items() if value != self.options()[name].default
        }


def _names(errors: list[FieldError]) -> set[str]:
    return {error.field for error in errors}


def _detail(error: FieldError, given: Any) -> InitErrorDetails:
    kind = PydanticCustomError("option", "{message}", {"message": error.message})
    return InitErrorDetails(type=kind, loc=(error.field,), input=given)
