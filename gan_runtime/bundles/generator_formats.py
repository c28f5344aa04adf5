"""The work of the job that exports a generator: one zip with the network of a checkpoint as Keras
file, SavedModel and ONNX, which open without this project. Loads Keras, on TensorFlow.

The exported model maps the inputs of `Workload.show` by name to its outputs by name, in float32 and
in inference mode. A `Translates` workload maps whole images instead of tiles. Weights of both
engines have the same names.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import CheckpointError, ExportError
from gan_runtime.base.fields import GENERATED, SOURCE
from gan_runtime.bundles import generator_export
from gan_runtime.bundles.generator_export import (
    EXPORT_FILE,
    ArrayShape,
    ExportedGenerator,
    ExportRequest,
)
from gan_runtime.data import loading
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.contract import check_fit
from gan_runtime.engines.inputs import drawn_inputs
from gan_runtime.engines.task import average_owners, data_for_workload, workload_of
from gan_runtime.jobs.process import Task
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints, inference
from gan_runtime.workloads.contract import Translates, Workload
from gan_runtime.workloads.layers import standard_network

Arrays = dict[str, NDArray[Any]]
TOLERANCE = 1e-3  # allowed difference to the run's networks, absolute and relative
EXAMPLES = 8  # rows of example.npz
SEED = 0  # of the inputs for the comparison
OPSET = 17  # ONNX version, which onnxruntime reads since 1.12
STEPS = 5  # steps of the progress


@dataclass(frozen=True)
class LoadedRun:
    """The networks of a run with the weights of one checkpoint, in float32."""

    spec: RunSpec
    workload: Workload
    data: DataSet
    networks: Mapping[str, keras.Model]
    step: int
    warnings: tuple[str, ...]


def export(task: Task) -> dict[str, Any]:
    """Writes the zip to the results of the job.

    Raises:
        CheckpointError: the checkpoint is not usable, or a layer cannot be exported.
        DatasetError, SpecError, UnknownRunError: as `inference.of_run`.
        ExportError: the exported network differs from that of the run.
    """
    request = ExportRequest(**task.options)
    run = task.home.run_dir(request.run_id)
    task.progress(0, STEPS, "building the networks")
    loaded = load(run, task.home, request)
    inputs = example_inputs(loaded)
    model = exported_model(loaded, inputs)
    outputs = run_outputs(loaded, inputs, model)
    _check_same(model, inputs, outputs)
    folder = task.work / f"{run.run_id}-generator"
    folder.mkdir()
    task.progress(1, STEPS, "writing the Keras file")
    model.save(folder / generator_export.KERAS_FILE)
    task.progress(2, STEPS, "writing the SavedModel")
    model.export(str(folder / generator_export.SAVED_MODEL), format="tf_saved_model", verbose=False)
    task.progress(3, STEPS, "writing the ONNX file")
    onnx_file = str(folder / generator_export.ONNX_FILE)
    model.export(onnx_file, format="onnx", verbose=False, opset_version=OPSET)
    example = folder / generator_export.EXAMPLE_FILE
    np.savez_compressed(example, allow_pickle=False, **inputs, **outputs)
    task.progress(4, STEPS, "writing the model card")
    facts = _facts(loaded, request, model)
    generator_export.write(folder, facts, run, task.home)
    _pack(folder, task.results / EXPORT_FILE)
    task.progress(STEPS, STEPS, "done")
    return {
        "step": loaded.step,
        "bytes": (task.results / EXPORT_FILE).stat().st_size,
        "warnings": list(loaded.warnings),
    }


def load(run: RunDir, home: Home, request: ExportRequest) -> LoadedRun:
    """The networks of a run, rebuilt in float32, with the weights of the checkpoint.

    Raises as `inference.of_run`.
    """
    spec = run.spec().model_copy(update={**inference.ONE_REPLICA, "precision": "float32"})
    inference.check_data(run, home)
    checkpoint = checkpoints.load(run.checkpoints, request.checkpoint)
    data = data_for_workload(spec, loading.load(spec.dataset, home))
    arrays, step = checkpoint.arrays, checkpoint.step
    if request.epoch is not None:
        arrays = {**arrays, **checkpoints.load_snapshot(run.snapshots, request.epoch)}
        step = request.epoch * spec.steps_per_epoch(data.rows)
    keras.config.set_dtype_policy("float32")
    workload = workload_of(spec)
    networks = workload.networks(spec.of_workload, data.fields)
    owners = average_owners(spec.entry) if spec.samples_from == "ema" else {}
    for name, network in networks.items():
        _assign(network, arrays, owners.get(name, name))
    return LoadedRun(spec, workload, data, networks, step, checkpoint.warnings)


def _assign(network: keras.Model, arrays: Mapping[str, Any], owner: str) -> None:
    """Assigns the weights of a network. `owner`: owner of the arrays in the checkpoint: the
    network, or its average.
    """
    own = {key: array for key, array in arrays.items() if key.startswith(f"{owner}/")}
    variables = {f"{owner}/{variable.path}": variable for variable in network.variables}
    check_fit(own, {key: tuple(variable.shape) for key, variable in variables.items()})
    for key, variable in variables.items():
        variable.assign(own[key])


def example_inputs(loaded: LoadedRun) -> Arrays:
    """Inputs by name (EXAMPLES, …): of every class, or of held-out rows."""
    options = loaded.spec.of_workload
    drawn = drawn_inputs(loaded.workload, options, loaded.data, EXAMPLES, SEED)
    return {SOURCE: drawn[SOURCE]} if isinstance(loaded.workload, Translates) else drawn


class _StandardNetworks(dict[str, keras.Model]):
    """Standard copies of the networks, created on request, since a discriminator can have layers
    that cannot be exported.
    """

    def __init__(self, networks: Mapping[str, keras.Model]) -> None:
        super().__init__()
        self._networks = networks

    def __missing__(self, name: str) -> keras.Model:
        try:
            self[name] = standard_network(self._networks[name])
        except ValueError as error:
            raise CheckpointError(f"the {name} cannot be exported: {error}") from None
        return self[name]


class _NoNoise:
    """The noise of an exported model: none, since its outputs follow from its inputs alone."""

    def normal(self, rows: Any, *shape: int) -> Any:  # noqa: ARG002
        raise CheckpointError(
            "this workload draws noise while it generates, so its outputs do not follow from its"
            " inputs: let `inputs` draw the noise."
        )

    uniform = normal

    def dropout(self, values: Any, rate: float) -> Any:  # noqa: ARG002
        return values


def exported_model(loaded: LoadedRun, examples: Arrays) -> keras.Model:
    """A model of Keras' own layers: {name: input (B, …)} → {name: output (B, …)}."""
    networks = _StandardNetworks(loaded.networks)
    inputs = {
        name: keras.Input(_row_shape(loaded, name, array), dtype=str(array.dtype), name=name)
        for name, array in examples.items()
    }
    outputs = _outputs(loaded, networks, inputs)
    return keras.Model(inputs, outputs, name=f"{loaded.spec.workload}_generator")


def _row_shape(loaded: LoadedRun, name: str, array: NDArray[Any]) -> tuple[int | None, ...]:
    """The shape of a row: that of the examples, or of the network if it takes images of several
    sizes.
    """
    if name == SOURCE and isinstance(loaded.workload, Translates):
        shape: tuple[int | None, ...] = loaded.networks[_translator(loaded)].inputs[0].shape[1:]
        return shape
    return array.shape[1:]


def _translator(loaded: LoadedRun) -> str:
    return loaded.spec.entry.averages[0]


def _outputs(
    loaded: LoadedRun, networks: Mapping[str, Any], inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """The outputs by name, without inputs that are passed through. Takes tensors or symbolic
    tensors.
    """
    options, workload = loaded.spec.of_workload, loaded.workload
    if isinstance(workload, Translates):
        return {GENERATED: workload.translate(options, networks, inputs[SOURCE])}
    outputs = workload.show(options, networks, inputs, _NoNoise())
    passed_on = {id(tensor) for tensor in inputs.values()}
    return {name: tensor for name, tensor in outputs.items() if id(tensor) not in passed_on}


def run_outputs(loaded: LoadedRun, inputs: Arrays, model: keras.Model) -> Arrays:
    """The outputs of the run's own networks, to compare with."""
    tensors = {name: keras.ops.convert_to_tensor(array) for name, array in inputs.items()}
    outputs = _outputs(loaded, loaded.networks, tensors)
    return {name: keras.ops.convert_to_numpy(outputs[name]) for name in model.output}


def _check_same(model: keras.Model, inputs: Arrays, outputs: Arrays) -> None:
    """Raises ExportError when the model differs from the run's networks."""
    for name, tensor in model(inputs, training=False).items():
        array = keras.ops.convert_to_numpy(tensor)
        if not np.allclose(array, outputs[name], TOLERANCE, TOLERANCE):
            difference = float(np.abs(array - outputs[name]).max())
            raise ExportError(
                f"the exported {name} differ from those of the run by {difference:.2g}, but at most"
                f" {TOLERANCE:g} is allowed: report this workload's layers."
            )


def _facts(loaded: LoadedRun, request: ExportRequest, model: keras.Model) -> ExportedGenerator:
    spec, fields = loaded.spec, loaded.data.fields
    return ExportedGenerator(
        spec=spec,
        checkpoint=request.weights,
        step=loaded.step,
        epoch=round(loaded.step / spec.steps_per_epoch(loaded.data.rows)),
        rows=loaded.data.rows,
        parameters=model.count_params(),
        fields=fields,
        inputs=tuple(_array_shape(name, tensor) for name, tensor in model.input.items()),
        outputs=tuple(_array_shape(name, tensor) for name, tensor in model.output.items()),
        opset=OPSET,
    )


def _array_shape(name: str, tensor: Any) -> ArrayShape:
    return ArrayShape(name, str(tensor.dtype), tuple(tensor.shape[1:]))


def _pack(folder: Path, target: Path) -> None:
    """Packs the folder into a zip and deletes the folder."""
    with zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED) as bundle:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                bundle.write(path, path.relative_to(folder.parent))
    shutil.rmtree(folder)
