"""The job that exports a generator, and the texts that go with it: a README that loads each format
in a few lines, and a model card, computed from what is stored of the run. Loads no framework.
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gan_runtime import __version__, catalog
from gan_runtime.base import formats
from gan_runtime.base.errors import ExportError
from gan_runtime.base.fields import Field, Fields
from gan_runtime.catalog import DatasetEntry
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.catalog.evaluations import evaluations
from gan_runtime.data import prepared
from gan_runtime.data.preparations import PREPARATIONS
from gan_runtime.evaluation.catalog import score_title
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobSnapshot
from gan_runtime.jobs.job import ON_THE_CPU, Job
from gan_runtime.records.answer import Answer
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, answers_of
from gan_runtime.spec import RunSpec
from gan_runtime.spec.run_options import PRIVATE
from gan_runtime.store import ingest, queries
from gan_runtime.training import inference
from gan_runtime.training.checkpoints import Which

EXPORT = "export_generator"
EXPORT_FILE = "generator.zip"  # all formats, README and model card
CONVERTERS = ("onnx", "tf2onnx")  # packages that write ONNX


@dataclass(frozen=True)
class ExportRequest:
    """The options of the job. `epoch`: epoch of the stored weights to export instead of the newest
    checkpoint.
    """

    run_id: str
    checkpoint: Which = "newest"
    epoch: int | None = None

    @property
    def weights(self) -> str:
        """The weights as text, such as "newest checkpoint"."""
        return f"{self.checkpoint} checkpoint" if self.epoch is None else "stored weights"


def check(home: Home, request: ExportRequest) -> None:
    """Checks whether a generator can be exported.

    Raises:
        UnknownRunError, SpecError: there is no such run, or its options cannot be read.
        CheckpointError: the run has no such checkpoint, or no weights of that epoch.
        DatasetError: the run's data set is missing or has changed.
        ExportError: a package that writes ONNX is not installed.
    """
    run = home.run_dir(request.run_id)
    inference.check_state(run, request.checkpoint, "export", request.epoch)
    inference.check_data(run, home)
    if missing := [name for name in CONVERTERS if importlib.util.find_spec(name) is None]:
        raise ExportError(
            f"ONNX files need the package {missing[0]}, which is not installed: run `make setup`,"
            f" or install the {missing[0]} of requirements.txt."
        )


def newest_export(home: Home, run_id: str) -> JobSnapshot | None:
    """The newest job that exports the generator of a run and is not cancelled."""
    return job_queue.newest(home, EXPORT, also_cancelled=False, run_id=run_id)


JOBS = (
    Job(
        EXPORT,
        "Export a generator",
        "gan_runtime.bundles.generator_formats:export",
        options=ExportRequest,
        check=check,
        same=("run_id", "checkpoint", "epoch"),
        busy="the generator of run {run_id} is being exported",
        # A SavedModel needs TensorFlow, whichever engine has trained the run.
        environment={**ON_THE_CPU, "KERAS_BACKEND": "tensorflow"},
    ),
)


# ---- texts ---------------------------------------------------------------------------------------

README, CARD, SPEC = "README.md", "MODEL_CARD.md", "spec.json"
KERAS_FILE, SAVED_MODEL, ONNX_FILE = "generator.keras", "saved_model", "generator.onnx"
EXAMPLE_FILE = "example.npz"
CLASSES = "classes.json"  # all names by input, where the README names only the first
MOST_NAMED = 20  # classes in a sentence
UNKNOWN_LICENSE = "not known to this program: follow the license of the files"


@dataclass(frozen=True)
class ArrayShape:
    """An input or output of the model. `shape`: of a row; None: any multiple of the tile."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]

    @property
    def in_words(self) -> str:
        """float32 (rows, 28, 28, 1)."""
        sizes = ("any" if size is None else str(size) for size in self.shape)
        return f"{self.dtype} ({', '.join(('rows', *sizes))})"


@dataclass(frozen=True)
class ExportedGenerator:
    """The exported generator. `checkpoint`: as text; `rows`: number of training rows; `fields`:
    fields of the data set; `parameters`: number of weights of the generator.
    """

    spec: RunSpec
    checkpoint: str
    step: int
    epoch: int
    rows: int
    parameters: int
    fields: Fields
    inputs: tuple[ArrayShape, ...]
    outputs: tuple[ArrayShape, ...]
    opset: int


def write(folder: Path, generator: ExportedGenerator, run: RunDir, home: Home) -> None:
    """Writes README, model card, the options of the run, and the names of many classes."""
    (folder / README).write_text(readme(generator, run.run_id), encoding="utf-8")
    (folder / CARD).write_text(card(generator, run, home), encoding="utf-8")
    options = {**generator.spec.model_dump(), **PRIVATE}
    (folder / SPEC).write_text(json.dumps(options, indent=2) + "\n", encoding="utf-8")
    given = {array.name: generator.fields.get(array.name) for array in generator.inputs}
    if many := {name: field.classes for name, field in given.items() if field and _is_cut(field)}:
        text = json.dumps(many, indent=2, ensure_ascii=False)
        (folder / CLASSES).write_text(f"{text}\n", encoding="utf-8")


def _is_cut(field: Field) -> bool:
    """Whether the README has only the first of its classes."""
    return len(field.classes) > MOST_NAMED


# ---- README --------------------------------------------------------------------------------------


def readme(generator: ExportedGenerator, run_id: str) -> str:
    """The files, the arrays, and a program for each format, which a test runs."""
    output = generator.outputs[0].name
    return f"""# Generator of {run_id}

Trained with gan-dashboard; opens without it. Weights, data and quality: [{CARD}]({CARD}).

{_arrays(generator)}

`{EXAMPLE_FILE}` has these arrays for a few rows: inputs, and the outputs of the trained network.
Each program below prints the largest difference to them: less than 0.001.

## Keras (`pip install keras tensorflow numpy`)

```python
import keras
import numpy

example = numpy.load("{EXAMPLE_FILE}")
inputs = {{name: example[name] for name in {_names(generator.inputs)}}}
generator = keras.saving.load_model("{KERAS_FILE}")
{output} = keras.ops.convert_to_numpy(generator(inputs)["{output}"])
print({output}.shape, abs({output} - example["{output}"]).max())
```

The file has Keras' own layers only, so it opens on TensorFlow, JAX and PyTorch.

## SavedModel (`pip install tensorflow numpy`)

```python
import numpy
import tensorflow

example = numpy.load("{EXAMPLE_FILE}")
inputs = {{name: tensorflow.constant(example[name]) for name in {_names(generator.inputs)}}}
generator = tensorflow.saved_model.load("{SAVED_MODEL}").signatures["serving_default"]
{output} = generator(**inputs)["{output}"].numpy()
print({output}.shape, abs({output} - example["{output}"]).max())
```

## ONNX, opset {generator.opset} (`pip install onnxruntime numpy`)

```python
import numpy
import onnxruntime

example = numpy.load("{EXAMPLE_FILE}")
inputs = {{name: example[name] for name in {_names(generator.inputs)}}}
generator = onnxruntime.InferenceSession("{ONNX_FILE}")
({output},) = generator.run(["{output}"], inputs)
print({output}.shape, abs({output} - example["{output}"]).max())
```
"""


def _arrays(generator: ExportedGenerator) -> str:
    rows = [
        (kind, f"`{array.name}`", array.in_words, _meaning(array, generator))
        for kind, arrays in (("input", generator.inputs), ("output", generator.outputs))
        for array in arrays
    ]
    return _table(("", "Name", "Type", "Meaning"), rows)


def _meaning(array: ArrayShape, generator: ExportedGenerator) -> str:
    name, field = array.name, generator.fields.get(array.name) or _like(array, generator.fields)
    if field is None:
        return "standard normal numbers" if name == "latents" else "drawn at random"
    if field.classes:
        names = [f"{number}: {each}" for number, each in enumerate(field.classes[:MOST_NAMED])]
        more = f", … (all {len(field.classes):,} in {CLASSES})" if _is_cut(field) else ""
        return f"class, {', '.join(names)}{more}"
    if field.dtype == "uint8":
        return f"a byte is (value − {field.shift:g}) × {1 / field.scale:g}".replace("− -", "+ ")
    unit = f"in {field.unit}" if field.unit else "no unit"
    tile = generator.spec.entry.tile
    sides = f"; sides are multiples of {tile(generator.spec.of_workload)}" if tile else ""
    return f"{unit}{sides if None in array.shape else ''}"


def _like(array: ArrayShape, fields: Fields) -> Field | None:
    """The field whose rows have this shape; channels alone count where sizes are free."""
    if len(array.shape) < 2:
        return None
    return next((field for field in fields.values() if _matches(array.shape, field.shape)), None)


def _matches(shape: tuple[int | None, ...], other: tuple[int, ...]) -> bool:
    pairs = zip(shape, other, strict=False)
    return len(shape) == len(other) and all(size in (None, expected) for size, expected in pairs)


def _names(arrays: Sequence[ArrayShape]) -> str:
    return json.dumps([array.name for array in arrays])


# ---- model card ----------------------------------------------------------------------------------


def card(generator: ExportedGenerator, run: RunDir, home: Home) -> str:
    """The model card: the facts for judging the generator. Unknown facts are listed as unknown."""
    spec, store = generator.spec, ingest.store_of(home, [run])
    state = f"{generator.checkpoint}, epoch {generator.epoch}, step {formats.count(generator.step)}"
    weights = "moving average of the weights" if spec.samples_from == "ema" else "trained weights"
    return f"""# Model card: generator of {run.run_id}

| | |
|---|---|
| Model | {spec.entry.title}: generator with {formats.count(generator.parameters)} weights |
| Source | {spec.entry.source} |
| Checkpoint | {state}; {weights} |
| Exported by | gan-dashboard {__version__}, in float32 |

## Data

{_data(spec.dataset, generator.rows, home)}

## Quality

{_quality(run, generator.step)}

## Hardware and time

{_hardware(queries.run(store, run.run_id).host, spec)}

{_time(queries.device_seconds(store, run.run_id, generator.step), spec)}

## Options

Options that differ from the usual ones; `{SPEC}` has all of them.

{_options(spec)}

## Limits

The generator imitates its training data and repeats its gaps. What the scores above do not measure
is not known: check outputs before you rely on them.
"""


def _data(name: str, rows: int, home: Home) -> str:
    title, source, license_text = name, "", UNKNOWN_LICENSE
    entry = catalog.DATASETS.get(name)
    if isinstance(entry, DatasetEntry):
        title, source, license_text = entry.title, entry.source, entry.license or UNKNOWN_LICENSE
    else:
        manifest = prepared.manifest(home, name)
        preparation = PREPARATIONS.get(manifest.preparation)
        title = preparation.title if preparation else name
        source = f"{manifest.source}, fingerprint {manifest.content[:16]}"
        if preparation and not preparation.source:
            license_text = "none needed: simulated by gan-dashboard"
    columns = ("Data set", "Source", "Training rows", "License")
    return _table(columns, [(title, source, formats.count(rows), license_text)])


def _quality(run: RunDir, step: int) -> str:
    """The scores in the newest answer of each evaluation of these weights, by each network that
    read the images.
    """
    parts = []
    for declared in evaluations().values():
        answers = [answer for answer in answers_of(run, declared.name) if answer.step == step]
        for answer in {answer.facts.get("features"): answer for answer in answers}.values():
            parts += _scores(declared, answer) if answer.scores else []
    if parts:
        return "\n\n".join(parts)
    return (
        "Not measured: no evaluation of this checkpoint is stored. Measure it with `python -m"
        f" gan_runtime evaluate {run.run_id}`, and export again."
    )


def _scores(declared: Evaluation, answer: Answer) -> list[str]:
    """The heading, the table of scores, and the warning, if any."""
    rows = [
        (
            score_title(declared, score.name),
            *map(_number, (score.value, score.low, score.high, score.floor, score.ceiling)),
        )
        for score in answer.scores
    ]
    facts = {**answer.facts}
    warning = str(facts.pop("warning", ""))
    settings = ", ".join(f"{name} {_text(fact)}" for name, fact in facts.items())
    columns = ("Score", "Value", "95% from", "to", "Real or simulated", "Noise")
    heading = f"{declared.title} ({settings}):" if settings else f"{declared.title}:"
    return [heading, _table(columns, rows), *filter(None, [warning])]


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else formats.UNKNOWN


def _hardware(host: str | None, spec: RunSpec) -> str:
    facts = json.loads(host) if host else {}
    versions = {"TensorFlow": facts.get("tensorflow"), "JAX": facts.get("jax")}
    versions |= {"Keras": facts.get("keras"), "Python": facts.get("python")}
    software = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    memory = facts.get("memory_bytes")
    rows = [
        ("Processor", facts.get("cpu_model")),
        ("Cores", facts.get("cores")),
        ("Memory", formats.size(memory) if memory else None),
        ("Devices", ", ".join(map(_device, facts.get("devices", ())))),
        ("Precision", spec.precision),
        ("Software", software),
    ]
    stated = [(name, str(fact)) for name, fact in rows if fact]
    return _table(("Hardware", ""), stated) if facts else "Not known: no attempt is stored."


def _device(name: str) -> str:
    """A short device name: GPU:0 for /job:localhost/replica:0/task:0/device:GPU:0; other names are
    unchanged.
    """
    return str(name).rpartition("device:")[2]


def _time(device_seconds: float | None, spec: RunSpec) -> str:
    if device_seconds is None:
        return "Training time: not known."
    devices = spec.replicas * spec.workers
    return (
        f"Training up to this step: {formats.duration(device_seconds / devices)} on"
        f" {formats.quantity(devices, 'device')}, {device_seconds:,.1f} device seconds."
    )


def _options(spec: RunSpec) -> str:
    declared = RunSpec.options(spec.workload)
    values = spec.flat()
    rows = [
        (option.label, f"{_text(value)}", f"`{name}`")
        for name, option in declared.items()
        if (value := _value(values, name)) != option.default and name not in PRIVATE
    ]
    return _table(("Option", "Value", "Name"), rows)


def _value(values: dict[str, Any], name: str) -> Any:
    return values.get(name, values.get(name.rpartition(".")[2]))


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown; a bar in a cell would end it."""
    lines = [columns, ["---"] * len(columns), *rows]
    cells = ([str(cell).replace("|", "/").replace("\n", " ") for cell in row] for row in lines)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)
