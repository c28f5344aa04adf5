"""Every workload of the catalog: its steps and measurements match its entry.

A workload is tested on the first of `OFFERED` that it reads; for a workload that reads none of
them, add the fields of its rows there.
"""

from __future__ import annotations

import importlib
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from keras import ops

from gan_runtime import catalog
from gan_runtime.base.fields import IMAGES, LABELS, Fields, labels, pictures
from gan_runtime.catalog import WorkloadEntry
from gan_runtime.data import loading
from gan_runtime.domains.flows.fields import flow_fields
from gan_runtime.domains.showers.entry import shower_fields
from gan_runtime.workloads.contract import Batch, Forward, Phase, Workload
from gan_runtime.workloads.step_context import step_scope
from tests.support.engines.step_contexts import alone
from tests.workloads.plain_noise import PlainNoise

pytestmark = pytest.mark.usefixtures("cores")
ROWS = 4
OFFERED: tuple[Fields, ...] = (
    {IMAGES: pictures(28, 28, 1), LABELS: labels(("up", "down", "strange"))},
    shower_fields((17, 17, 9, 1)),
    flow_fields(64, 64),
)


class TensorNoise(PlainNoise):
    """The same draws as tensors."""

    def normal(self, rows: int, *shape: int) -> Any:
        return ops.convert_to_tensor(super().normal(rows, *shape))

    def uniform(self, rows: int, *shape: int) -> Any:
        return ops.convert_to_tensor(super().uniform(rows, *shape))


class RecordedNetwork:
    """A network that records its inputs."""

    def __init__(self, network: Any) -> None:
        self.network, self.calls = network, []

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        self.calls.append((inputs, named))
        return self.network(*inputs, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)


@dataclass(frozen=True)
class Pass:
    """One forward pass. `calls`: how often it calls each network."""

    phase: Phase
    forward: Forward
    calls: Counter[str]


@dataclass(frozen=True)
class Case:
    """A workload with its default options and the fields that it reads; its networks, and one
    step of its program.
    """

    entry: WorkloadEntry
    workload: Workload
    options: Any
    fields: Fields
    networks: dict[str, RecordedNetwork]
    passes: tuple[Pass, ...]

    @property
    def batch(self) -> dict[str, np.ndarray]:
        return batch_of(self.fields)


@pytest.fixture(scope="module", params=catalog.WORKLOADS)
def case(request: pytest.FixtureRequest) -> Case:
    """Each workload of the catalog after the forward passes of one step, in plain Keras and
    float32.
    """
    import keras

    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy("float32")
    entry = catalog.WORKLOADS[request.param]
    offered = next(
        (fields for fields in OFFERED if request.param in loading.workloads_for(fields)), None
    )
    assert offered is not None, (
        f"{request.param} reads no fields of OFFERED: add those of its rows there"
    )
    options = entry.options(**entry.fitted(offered))
    fields = entry.reads(options, offered)
    workload = importlib.import_module(entry.module).WORKLOAD
    networks = {
        name: RecordedNetwork(network)
        for name, network in workload.networks(options, fields).items()
    }
    phases = workload.program(options, fields).phases
    return Case(
        entry,
        workload,
        options,
        fields,
        networks,
        tuple(passed(phase, networks, fields) for phase in phases),
    )


def passed(phase: Phase, networks: dict[str, RecordedNetwork], fields: Fields) -> Pass:
    before = {name: len(network.calls) for name, network in networks.items()}
    noise = TensorNoise()
    with step_scope(alone(noise)):
        forward = phase.forward(networks, tensors_of(batch_of(fields)), noise)
    calls = Counter({name: len(network.calls) - before[name] for name, network in networks.items()})
    return Pass(phase, forward, calls)


def tensors_of(batch: Batch) -> Batch:
    """A batch of tensors, as engines pass it to a workload."""
    return {name: ops.convert_to_tensor(values) for name, values in batch.items()}


def batch_of(fields: Fields) -> dict[str, np.ndarray]:
    """ROWS rows: images in [-1, 1], positive numbers, classes."""
    random, batch = np.random.default_rng(2), {}
    for name, field in fields.items():
        shape = (ROWS, *field.shape)
        if field.classes:
            batch[name] = random.integers(0, len(field.classes), shape, np.int32)
        else:
            batch[name] = random.uniform(-1 if field.dtype == "uint8" else 0.1, 1, shape).astype(
                np.float32
            )
    return batch


def test_catalog_matches_the_programs_batches_and_networks(case: Case) -> None:
    program = case.workload.program(case.options, case.fields)
    assert program.batches == case.entry.batches(case.options)
    assert (
        set(program.networks)
        == {network.name for network in case.entry.networks}
        == set(case.networks)
    )
    assert set(case.entry.averages) <= set(program.networks)


def test_every_phase_returns_its_followed_losses_and_finite_numbers(case: Case) -> None:
    for each in case.passes:
        followed = {
            update.followed(scaling) for update in each.phase.updates for scaling in (False, True)
        }
        assert followed <= set(each.forward.losses)
        for name, value in {**each.forward.losses, **each.forward.scalars}.items():
            assert np.shape(value) == (), name
            assert np.isfinite(np.asarray(value)), name
        assert {np.asarray(loss).dtype for loss in each.forward.losses.values()} == {
            np.dtype(np.float32)
        }


def test_catalog_losses_are_among_the_programs_losses(case: Case) -> None:
    losses = {name for each in case.passes for name in each.forward.losses}
    assert {metric.name for metric in case.entry.metrics if metric.role == "loss"} <= losses


def test_judgements_are_numbers_per_row_within_their_bounds(case: Case) -> None:
    noise, batch = PlainNoise(), case.batch
    with step_scope(alone(noise)):
        inputs = case.workload.inputs(
            case.options, case.fields, batch, noise
        )  # NumPy, as for requested images
        judged = case.workload.judge(
            case.options, case.networks, tensors_of(batch), tensors_of(inputs)
        )
    assert set(judged.values) == {judgement.name for judgement in case.entry.judgements}
    for judgement in case.entry.judgements:
        values = np.asarray(judged.values[judgement.name])
        assert values.shape == (ROWS,)
        low, high = judgement.bounds or (-np.inf, np.inf)
        assert low <= values.min() <= values.max() <= high
    assert set(judged.scalars) <= {metric.name for metric in case.entry.metrics if metric.per_epoch}


def test_catalog_images_come_from_reproducible_arrays(
    case: Case,
) -> None:
    random = np.random.RandomState(3)
    inputs = tensors_of(
        case.workload.fixed_inputs(case.options, case.fields, case.batch, random, ROWS)
    )
    with step_scope(alone(TensorNoise())):
        first, second = (
            case.workload.show(case.options, case.networks, inputs, TensorNoise()) for _ in range(2)
        )
    assert [picture.name for picture in case.entry.pictures if set(picture.arrays) <= set(first)]
    for name in first:
        assert np.array_equal(np.asarray(first[name]), np.asarray(second[name])), name


def test_the_catalog_knows_the_number_of_weights(case: Case) -> None:
    counted = sum(network.count_params() for network in case.networks.values())
    assert counted == case.entry.size(case.options, case.fields).parameters


def test_the_catalog_estimates_the_activations_within_a_factor_of_two(case: Case) -> None:
    """Counts the outputs of all layers in the largest phase, once per call of their network."""
    activations = max(
        sum(calls * outputs(case.networks[name]) for name, calls in each.calls.items())
        for each in case.passes
    )
    assert 0.5 < case.entry.size(case.options, case.fields).activations_per_row / activations < 2


def outputs(network: RecordedNetwork) -> int:
    """The number of outputs of all layers per row, for rows as in the first call."""
    import keras

    layers = [layer for layer in network.layers if not isinstance(layer, keras.layers.InputLayer)]
    whole = keras.Model(network.inputs, [layer.output for layer in layers])
    (inputs, *_), _ = network.calls[0]
    return sum(
        int(np.prod(output.shape[1:]))
        for output in keras.tree.flatten(whole(inputs, training=False))
    )


def test_networks_can_be_saved_and_loaded(case: Case) -> None:
    import keras

    for name, recorded in case.networks.items():
        again = keras.models.model_from_json(recorded.to_json())
        again.set_weights(recorded.get_weights())
        inputs, named = recorded.calls[0]
        results = []
        for network in (recorded.network, again):
            with step_scope(alone(TensorNoise())):
                results.append(keras.tree.flatten(network(*inputs, **named)))
        for before, after in zip(*results, strict=True):
            assert np.array_equal(np.asarray(before), np.asarray(after)), name


def test_new_weights_follow_the_seed_and_differ_between_layers(case: Case) -> None:
    """An initializer that layers share, or that is created on import, draws its seed once and too
    early.
    """
    of_one, again, of_two = (new_kernels(case, seed) for seed in (1, 1, 2))
    assert of_one.keys() == again.keys(), "a layer without a name has another one in each process"
    assert [name for name in of_one if not np.array_equal(of_one[name], again[name])] == []
    assert [name for name in of_one if np.array_equal(of_one[name], of_two[name])] == []
    # Layers with the same seed start with the same numbers, scaled by their spread.
    beginnings = {
        tuple(np.round(kernel.ravel()[:8] / np.abs(kernel.ravel()[:8]).max(), 4))
        for kernel in of_one.values()
    }
    assert len(beginnings) == len(of_one)


def new_kernels(case: Case, seed: int) -> dict[str, np.ndarray]:
    """New random weights, by network and name."""
    import keras

    keras.utils.set_random_seed(seed)
    kernels = {
        f"{name}/{weight.path}": np.asarray(weight.value)
        for name, network in case.workload.networks(case.options, case.fields).items()
        for weight in network.trainable_weights
    }
    return {name: kernel for name, kernel in kernels.items() if kernel.std() > 0}


def test_networks_output_float32_in_mixed_precision(case: Case) -> None:
    import keras

    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        networks = case.workload.networks(case.options, case.fields)
    finally:
        keras.config.set_dtype_policy("float32")
    for name, network in networks.items():
        assert {tensor.dtype for tensor in network.outputs} == {"float32"}, name
