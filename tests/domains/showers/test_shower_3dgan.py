"""3DGAN: the authors' layers and constants, other grids, and the numbers of a step and an epoch on
known showers.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import Fields, pictures
from gan_runtime.domains.showers import networks as shower_networks
from gan_runtime.domains.showers import workload
from gan_runtime.domains.showers import workload as shower_3dgan
from gan_runtime.domains.showers.entry import (
    ANGLE,
    BELIEF,
    CELL_UNITS,
    DEPOSIT,
    ENERGY,
    ENTRY,
    SHOWERS,
    ShowerGanOptions,
    layers,
    reads,
    shower_fields,
)
from gan_runtime.domains.showers.measurement import reading
from gan_runtime.domains.showers.score_metrics import METRICS as OF_A_JOB
from gan_runtime.engines.inputs import HostNoise
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Noise
from gan_runtime.workloads.step_context import step_scope
from tests.support.engines.small_showers import small_showers
from tests.support.engines.step_contexts import alone

pytestmark = pytest.mark.usefixtures("cores", "plain_float32")
FULL = shower_fields((51, 51, 25, 1))


@pytest.fixture
def plain_float32() -> None:
    """New layers compute in float32 and start from the same weights in every test."""
    import keras

    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy("float32")


def table(network: Any) -> list[tuple[str, tuple[int, ...], int]]:
    """Layers that have weights or change the shape: name, output shape and parameter count."""
    parts = ("dense", "cells", "conv", "norm", "pool", "flatten", "logit", "energy")
    return [
        (layer.name, tuple(layer.output.shape[1:]), layer.count_params())
        for layer in network.layers
        if layer.name.startswith(parts)
    ]


# ---- the authors' networks -----------------------------------------------------------------------


def test_full_networks_match_the_authors_layer_by_layer() -> None:
    networks = shower_networks.networks(ShowerGanOptions(size="full"), FULL)
    assert table(networks["generator"]) == [
        ("dense", (5_184,), 1_332_288),
        ("cells", (9, 9, 8, 8), 0),
        ("conv_1", (49, 49, 41, 8), 18_440),
        ("norm_1", (49, 49, 41, 8), 32),
        ("conv_2", (50, 50, 38, 6), 4_614),
        ("norm_2", (50, 50, 38, 6), 24),
        ("conv_3", (51, 51, 35, 6), 3_462),
        ("norm_3", (51, 51, 35, 6), 24),
        ("conv_4", (52, 52, 32, 6), 3_462),
        ("norm_4", (52, 52, 32, 6), 24),
        ("conv_5", (52, 52, 28, 6), 1_626),
        ("norm_5", (52, 52, 28, 6), 24),
        ("conv_6", (52, 52, 26, 6), 978),
        ("conv_7", (51, 51, 25, 1), 49),
    ]
    assert table(networks["discriminator"]) == [
        ("conv_1", (51, 51, 25, 16), 2_896),
        ("conv_2", (47, 46, 22, 8), 23_048),
        ("norm_2", (47, 46, 22, 8), 32),
        ("conv_3", (43, 41, 19, 8), 11_528),
        ("norm_3", (43, 41, 19, 8), 32),
        ("conv_4", (39, 36, 14, 8), 11_528),
        ("norm_4", (39, 36, 14, 8), 32),
        ("pool", (19, 18, 7, 8), 0),
        ("flatten", (19_152,), 0),
        ("logit", (1,), 19_153),
        ("energy", (1,), 19_153),
    ]
    assert [network.count_params() for network in networks.values()] == [1_365_047, 87_402]
    assert_constants(networks)


def assert_constants(networks: dict[str, Any]) -> None:
    generator, discriminator = (
        {layer.name: layer for layer in each.layers} for each in networks.values()
    )
    norms = [
        layer for name, layer in (generator | discriminator).items() if name.startswith("norm")
    ]
    assert {(layer.epsilon, layer.momentum) for layer in norms} == {(1e-6, 0.99)}
    assert generator["conv_1"].factors == (6, 6, 6)
    zeros = [generator[f"conv_{number}"].zeros for number in range(2, 8)]
    assert zeros == [
        *[((2, 2), (2, 2), (1, 1))] * 3,
        *[((1, 1), (1, 1), (0, 0))] * 2,
        ((0, 0),) * 3,
    ]
    zeros = [discriminator[f"conv_{number}"].zeros for number in range(1, 5)]
    assert zeros == [((2, 2), (2, 3), (2, 3)), *[((0, 0), (0, 0), (1, 1))] * 2, ((0, 0),) * 3]
    begun = [type(generator[f"conv_{number}"].kernel_initializer).__name__ for number in (1, 6, 7)]
    assert begun == ["HeUniform", "HeUniform", "GlorotNormal"]
    assert {
        layer.negative_slope for name, layer in discriminator.items() if name.startswith("leaky")
    } == {0.3}
    assert [layer.rate for name, layer in discriminator.items() if name.startswith("dropout")] == [
        0.2
    ] * 4


def test_step_of_the_full_networks_takes_40_billion_multiplications() -> None:
    generator, discriminator = layers(ShowerGanOptions(size="full"), FULL).multiplications()
    assert (generator, discriminator) == (3_059_992_368, 1_895_469_120)
    # A forward pass counts once, a backward pass to weights and values twice. D's weights are fixed
    # while G is updated.
    assert 38e9 < (1 + 2 * 3) * generator + (2 * 3 + 2 * 2) * discriminator < 42e9


def test_default_options_match_the_authors_constants() -> None:
    import keras

    from gan_runtime.engines.tf.optimizers import make_optimizer

    spec = RunSpec.parse({"workload": "shower_3dgan"})
    options = spec.of_workload
    assert (
        options.weight_real,
        options.weight_energy,
        options.weight_angle,
        options.weight_deposit,
    ) == (
        3,
        0.1,
        25,
        0.1,
    )
    assert (options.flip_share, options.latent_size, options.dropout) == (0.05, 256, 0.2)
    optimizer: Any = make_optimizer(spec, "generator", spec.learning_rate("generator"))  # type: ignore[arg-type]
    assert isinstance(optimizer, keras.optimizers.RMSprop)
    assert (optimizer.rho, optimizer.momentum, optimizer.epsilon) == (0.9, 0.0, 1e-7)
    assert float(optimizer.learning_rate) == pytest.approx(1e-3)


# ---- other grids ---------------------------------------------------------------------------------

GRIDS: dict[str, tuple[str, Fields, tuple[int, ...], tuple[int, ...]]] = {
    "three lateral cells in one": ("tiny", shower_fields((17, 17, 25, 1)), (4, 4, 8), (5, 5, 6)),
    "CaloChallenge 2": ("full", shower_fields((16, 9, 45, 1), False, (0,)), (4, 3, 17), (4, 3, 4)),
    "CaloChallenge 3": (
        "full",
        shower_fields((50, 18, 45, 1), False, (0,)),
        (10, 7, 17),
        (5, 3, 4),
    ),
    "short axes": ("tiny", shower_fields((5, 6, 4, 1)), (3, 3, 2), (2, 2, 2)),
    "a prime axis that closes": (
        "tiny",
        shower_fields((7, 5, 4, 1), True, (0,)),
        (7, 3, 2),
        (1, 2, 2),
    ),
}


@pytest.mark.parametrize("grid", GRIDS)
def test_networks_fit_every_grid_and_the_cataloged_size(grid: str) -> None:
    size, fields, cells, factors = GRIDS[grid]
    options = ShowerGanOptions(size=size)
    plan, networks = layers(options, fields), shower_networks.networks(options, fields)
    assert (plan.cells, plan.factors) == (cells, factors)
    assert networks["generator"].output_shape[1:] == fields[SHOWERS].shape
    assert [head[1:] for head in networks["discriminator"].output_shape] == [(1,), (1,)]
    counted = sum(network.count_params() for network in networks.values())
    assert counted == ENTRY.size(options, fields).parameters
    for name, planned in (("generator", plan.generator), ("discriminator", plan.discriminator)):
        convolutions = [row for row in table(networks[name]) if row[0].startswith("conv")]
        cut = {
            row.name: row.output.shape[1:-1]
            for row in networks[name].layers
            if row.name.startswith("cut")
        }
        assert [cut.get(row[0].replace("conv", "cut"), row[1][:-1]) for row in convolutions] == [
            layer.sizes for layer in planned
        ]


def test_periodic_padding_wraps_around() -> None:
    values = np.arange(16, dtype=np.float32).reshape(1, 4, 2, 2, 1)
    around = np.asarray(shower_networks.PeriodicPadding(((1, 2), (0, 1), (0, 0)), (0,))(values))[
        0, ..., 0
    ]
    assert around[:, 0, 0].tolist() == [12, 0, 4, 8, 12, 0, 4]
    assert around[:, 2].tolist() == [[0, 0]] * 7


def test_rotation_along_a_periodic_axis_rotates_the_output() -> None:
    """Rotating the generator's small grid, the input of its first convolution, by one cell rotates
    the shower by `factor` cells.
    """
    fields = shower_fields((16, 9, 4, 1), True, (0,))
    plan = layers(ShowerGanOptions(), fields)
    generator = shower_networks.networks(ShowerGanOptions(), fields)["generator"]
    import keras

    tail = keras.Model(generator.get_layer("cells").output, generator.output)
    cells = (
        np.random.default_rng(1)
        .standard_normal((2, *plan.cells, plan.cell_channels))
        .astype(np.float32)
    )
    generated, turned = (np.asarray(tail(values)) for values in (cells, np.roll(cells, 1, axis=1)))
    assert generated.std() > 0.0
    assert np.abs(np.roll(generated, plan.factors[0], axis=1) - turned).max() < 1e-5


def test_discriminator_of_a_checkpoint_reads_showers() -> None:
    """70 showers are one full batch and a partial one. Results match the network itself, whose
    weights a checkpoint stores by name.
    """
    fields = shower_fields((5, 6, 4, 1))
    trained = shower_networks.networks(ShowerGanOptions(), fields)
    arrays = {
        f"{name}/{variable.path}": np.asarray(variable)
        for name, network in trained.items()
        for variable in network.variables
    }
    showers = np.random.default_rng(2).random((70, 5, 6, 4, 1)).astype(np.float32)
    read = reading(shower_3dgan.WORKLOAD, ShowerGanOptions(), fields)
    assert read is not None
    result = read(arrays, {SHOWERS: showers})
    logits, energy = trained["discriminator"](showers, training=False)
    assert {name: array.shape for name, array in result.items()} == {BELIEF: (70,), ENERGY: (70,)}
    assert result[BELIEF] == pytest.approx(
        1.0 / (1.0 + np.exp(-np.asarray(logits)[:, 0])), abs=1e-5
    )
    assert result[ENERGY] == pytest.approx(np.asarray(energy)[:, 0], abs=1e-5)
    assert np.ptp(result[BELIEF]) > 1e-4, "not the same of all"
    assert reading(object(), ShowerGanOptions(), fields) is None


def test_unsuitable_fields_are_refused() -> None:
    full = ShowerGanOptions(size="full")
    with pytest.raises(
        DatasetError, match="its showers are 17 × 17 × 25 × 1, but 51 × 51 × 25 or 16 × 9 × 45"
    ):
        reads(full, shower_fields((17, 17, 25, 1)))
    with pytest.raises(DatasetError, match="it has no showers, only images"):
        reads(full, {"images": pictures(28, 28, 1)})
    with pytest.raises(DatasetError, match="its showers are 1 × 4 × 4 × 1"):
        reads(ShowerGanOptions(), shower_fields((1, 4, 4, 1)))
    without = {name: field for name, field in FULL.items() if name != DEPOSIT}
    with pytest.raises(DatasetError, match="it has no deposit, only showers and energy and angle"):
        reads(full, without)
    assert set(reads(full, shower_fields((16, 9, 45, 1), angle=False, periodic=(0,)))) == {
        SHOWERS,
        ENERGY,
        DEPOSIT,
    }


# ---- steps ---------------------------------------------------------------------------------------


class FixedNoise(Noise):
    """Uniform draws of 0.01 and 0.9 in turn; normal draws of 7."""

    def normal(self, rows: int, *shape: int) -> np.ndarray:
        return np.full((rows, *shape), 7.0, np.float32)

    def uniform(self, rows: int, *shape: int) -> np.ndarray:
        return np.resize(np.float32([0.01, 0.9]), (rows, *shape))

    def dropout(self, values: Any, rate: float) -> Any:  # noqa: ARG002
        return values


# Two showers of one cell each, in the middle of 3 × 3 × 3 cells: 1 GeV · 50, and half of it.
CELLS = np.zeros((2, 3, 3, 3), np.float32)
CELLS[:, 1, 1, 1] = 50.0, 25.0
VALUES = (CELLS**0.85)[..., None]
BATCH = {
    SHOWERS: VALUES,
    ENERGY: np.float32([1.0, 2.0]),
    DEPOSIT: np.float32([40.0, 50.0]),
    ANGLE: np.full(2, np.pi / 2 + 0.1, np.float32),
}


@pytest.mark.parametrize(
    ("options", "expected"), [({}, np.pi / 2 + 0.1), ({"angle_gain": 6.0}, 0.6)]
)
def test_latent_starts_with_energy_and_angle_with_optional_gain(
    options: dict[str, float], expected: float
) -> None:
    inputs_of_calls: list[np.ndarray] = []

    def generator(latents: Any, training: bool) -> Any:  # noqa: ARG001
        inputs_of_calls.append(np.asarray(latents))
        return VALUES

    all_options = ShowerGanOptions(latent_size=5, **options)
    inputs = shower_3dgan.generator_inputs(all_options, BATCH, FixedNoise())
    shower_3dgan.WORKLOAD.show(all_options, {"generator": generator}, inputs, HostNoise(0))
    assert inputs_of_calls[0] == pytest.approx(
        np.float32([[1.0, expected, 7, 7, 7], [2.0, expected, 7, 7, 7]]), abs=1e-5
    )


def forward_of(phase: str, batch: dict[str, np.ndarray], **options: float) -> dict[str, float]:
    """The numbers of one phase, for networks that return these two showers, a logit of 1 and an
    energy of 1.5.
    """
    requests: list[np.ndarray] = []

    def generator(latents: Any, training: bool) -> Any:
        requests.append(np.asarray(latents))
        assert training == (phase != "d_fake"), "for D it generates by its stored statistics"
        return VALUES

    def discriminator(showers: Any, training: bool) -> tuple[Any, Any]:
        assert training
        return np.ones((len(showers), 1), np.float32), np.full((len(showers), 1), 1.5, np.float32)

    all_options = ShowerGanOptions(latent_size=4, **options)
    phases = shower_3dgan.WORKLOAD.program(all_options, {}).phases
    (declared,) = [each for each in phases if each.name == phase]
    noise = FixedNoise()
    with step_scope(alone(noise)):
        forward = declared.forward(
            {"generator": generator, "discriminator": discriminator}, batch, noise
        )
    if requests:
        angles = batch.get(ANGLE)
        begin = [batch[ENERGY], *([] if angles is None else [angles])]
        assert np.array_equal(
            requests[0],
            np.stack([*begin, *[np.full(2, 7.0)] * (4 - len(begin))], axis=1).astype(np.float32),
        )
    return {name: float(value) for name, value in {**forward.losses, **forward.scalars}.items()}


LN = {1: 0.3132617, 0: 1.3132617}  # cross-entropy of a logit of 1 against "real" and "generated"


def test_d_real_loss_flips_a_twentieth_of_the_labels() -> None:
    """The first shower's draw is below 0.05, so its label for D is flipped."""
    result = forward_of("d_real", BATCH)
    bce, energy = (LN[0] + LN[1]) / 2, (50.0 + 25.0) / 2
    assert result == pytest.approx(
        {
            "loss_discriminator_real": 3.0 * bce + 0.1 * energy,
            "bce_real": bce,
            "energy_error_real": energy,
            "d_real": 0.7310586,
        }
    )
    assert forward_of("d_real", BATCH, flip_share=0.0)["bce_real"] == pytest.approx(LN[1])


def test_d_fake_loss_uses_stored_statistics_of_g() -> None:
    result = forward_of("d_fake", BATCH)
    bce = (LN[0] + LN[1]) / 2
    assert result["loss_discriminator_fake"] == pytest.approx(3.0 * bce + 0.1 * 37.5)
    assert forward_of("d_fake", BATCH, flip_share=0.0)["bce_fake"] == pytest.approx(LN[0])


@pytest.mark.parametrize("number", [1, 2])
def test_g_loss_has_reality_energy_angle_and_deposit_terms(
    number: int,
) -> None:
    result = forward_of(f"g_{number}", BATCH)
    terms = {
        "bce_generator": LN[1],
        "energy_error_fake": 37.5,
        "angle_error": 0.1,
        "deposit_error": (25.0 + 50.0) / 2,
    }
    loss = 3.0 * LN[1] + 0.1 * 37.5 + 25.0 * 0.1 + 0.1 * 37.5
    assert result == pytest.approx({**terms, f"loss_generator_{number}": loss}, abs=1e-4)


def test_g_loss_without_an_angle_has_no_angle_term() -> None:
    batch = {name: values for name, values in BATCH.items() if name != ANGLE}
    result = forward_of("g_1", batch)
    assert "angle_error" not in result
    assert result["loss_generator_1"] == pytest.approx(
        3.0 * LN[1] + 0.1 * 37.5 + 0.1 * 37.5, abs=1e-4
    )


def test_each_update_has_its_own_loss_on_the_same_batch() -> None:
    program = shower_3dgan.WORKLOAD.program(ShowerGanOptions(), {})
    assert [
        (phase.name, phase.batch, phase.updates[0].network, phase.updates[0].loss)
        for phase in program.phases
    ] == [
        ("d_real", 0, "discriminator", "loss_discriminator_real"),
        ("d_fake", 0, "discriminator", "loss_discriminator_fake"),
        ("g_1", 0, "generator", "loss_generator_1"),
        ("g_2", 0, "generator", "loss_generator_2"),
    ]
    assert program.batches == ENTRY.batches(ShowerGanOptions()) == 1


# ---- epochs --------------------------------------------------------------------------------------


def scores_of(generated: np.ndarray, rows: dict[str, np.ndarray]) -> dict[str, float]:
    """Scores of generated showers (B, X, Y, Z, 1) against real ones."""
    guess = np.full(len(generated), 0.5, np.float32)
    with step_scope(alone(FixedNoise())):
        judged = workload.judged(rows, generated, guess, guess)
    assert set(judged.values) == {judgement.name for judgement in ENTRY.judgements}
    assert {np.asarray(values).shape for values in judged.values.values()} == {(len(generated),)}
    deposits_gev, energies_gev = rows[DEPOSIT] / CELL_UNITS, 100.0 * rows[ENERGY]
    assert np.asarray(judged.values["sampled_real"]) == pytest.approx(
        100.0 * deposits_gev / energies_gev
    )
    of_an_epoch = {
        metric.name for metric in ENTRY.metrics if metric.per_epoch and metric not in OF_A_JOB
    }
    assert set(judged.scalars) == of_an_epoch
    return {name: float(value) for name, value in judged.scalars.items()}


@pytest.fixture
def rows() -> dict[str, np.ndarray]:
    """40 showers as values, without the empty one."""
    stored = small_showers(41).resident
    values = {name: array[1:].astype(np.float32) for name, array in stored.items()}
    return {**values, ENERGY: values[ENERGY] / 100.0}


def test_identical_showers_have_no_error(rows: dict[str, np.ndarray]) -> None:
    values = scores_of(rows[SHOWERS], rows)
    for name in (
        "sampling_fraction_error",
        "profile_error",
        "profile_error_z",
        "probe_angle_error",
    ):
        assert values[name] < 2e-3, name  # showers are stored in float16
    assert values["energy_response"] == pytest.approx(1.0, abs=1e-3)
    assert values["empty_showers"] == 0.0
    assert values["spread_fake"] == pytest.approx(values["spread_real"])


def test_halved_energies_give_a_response_of_half(rows: dict[str, np.ndarray]) -> None:
    values = scores_of(rows[SHOWERS] * np.float32(0.5**0.85), rows)
    names = ("energy_response", "sampling_fraction_error", "profile_error", "profile_error_x")
    assert [values[name] for name in names] == pytest.approx([0.5] * 4, abs=2e-3)


def test_all_zero_showers_are_empty_with_full_error(rows: dict[str, np.ndarray]) -> None:
    values = scores_of(np.zeros_like(rows[SHOWERS]), rows)
    assert (values["empty_showers"], values["energy_response"]) == (1.0, 0.0)
    assert (values["sampling_fraction_error"], values["profile_error"]) == pytest.approx((1.0, 1.0))


def test_flipped_showers_differ_only_along_that_axis(
    rows: dict[str, np.ndarray],
) -> None:
    values = scores_of(rows[SHOWERS][:, :, :, ::-1], rows)
    assert values["profile_error_z"] > 0.3
    assert max(values["profile_error_x"], values["profile_error_y"]) < 2e-3
    assert values["sampling_fraction_error"] < 2e-3


def test_sampling_fraction_is_compared_per_energy() -> None:
    """Correct on average, too bright at 30 GeV and too faint at 300: the mean of both errors."""
    energies = np.float32([0.3, 0.3, 3.0, 3.0])
    real, fake = np.float32([2.0, 2.0, 2.0, 2.0]), np.float32([2.5, 2.5, 1.5, 1.5])
    with step_scope(alone(FixedNoise())):
        assert float(workload.sampling_fraction_error(energies, real, fake)) == pytest.approx(0.25)
        assert float(workload.sampling_fraction_error(energies, real, real)) == 0.0


def test_images_use_energies_and_angles_of_held_out_showers() -> None:
    workload, fields = shower_3dgan.WORKLOAD, shower_fields((5, 6, 4, 1))
    few = {ENERGY: np.float32([1.0, 2.0, 3.0]), ANGLE: np.float32([1.5, 1.6, 1.7])}
    eight, four = (
        workload.fixed_inputs(ShowerGanOptions(), fields, few, np.random.RandomState(0), count)
        for count in (8, 4)
    )
    assert eight[ENERGY].tolist() == [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0]
    assert eight["latents"].shape == (8, 254)
    assert all(np.array_equal(eight[name][:4], four[name]) for name in four)
    networks = workload.networks(ShowerGanOptions(), fields)
    images = workload.show(ShowerGanOptions(), networks, four, HostNoise(0))
    assert {name: np.asarray(values).shape for name, values in images.items()} == {
        SHOWERS: (4, 5, 6, 4, 1),
        ENERGY: (4,),
        ANGLE: (4,),
    }
    assert np.asarray(images[SHOWERS]).min() == 0.0


def test_entry_names_the_workload_module() -> None:
    assert importlib.import_module(ENTRY.module).WORKLOAD is shower_3dgan.WORKLOAD
