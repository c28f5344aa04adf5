"""Every workload: shapes and value ranges, Table 1 of the paper, and the counts that the catalog promises."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from gan_runtime import catalog
from gan_runtime.engines.tf.step import input_gradient, weighted_gradient
from gan_runtime.workloads.contract import Objective, Workload
from gan_runtime.workloads.layers import BatchNorm, ReplicaDropout
from gan_runtime.workloads.pair import pair_phases, pair_scores
from gan_runtime.workloads.step_context import StepContext, step_scope

pytestmark = pytest.mark.usefixtures("cores")
IMAGES = 6
LN_2 = 0.6931471805599453


class PlainNoise:
    """Noise without any engine: numpy draws, and a dropout that keeps every second unit."""

    def __init__(self) -> None:
        self._draws = np.random.default_rng(1)

    def normal(self, rows: int, columns: int) -> np.ndarray:
        return self._draws.standard_normal((rows, columns), np.float32)

    def dropout(self, values: Any, rate: float) -> Any:
        return (
            values
            * np.tile([0.0, 2.0], int(np.prod(values.shape)) // 2).reshape(values.shape).astype(np.float32)
            * (rate > 0)
        )


def plain(noise: PlainNoise) -> StepContext:
    return StepContext(noise, None, input_gradient, weighted_gradient)


@pytest.fixture(autouse=True)
def plain_float32() -> None:
    """New layers compute in float32 and start from the same weights in every test."""
    import keras

    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy("float32")


@pytest.fixture(params=list(catalog.WORKLOADS))
def workload(request: pytest.FixtureRequest) -> Workload:
    """Each workload of the catalog."""
    return importlib.import_module(catalog.WORKLOADS[request.param].module).WORKLOAD


@pytest.fixture
def batch() -> dict[str, np.ndarray]:
    """Six images over the whole range of values."""
    return {"images": np.random.default_rng(2).uniform(-1, 1, (IMAGES, 28, 28, 1)).astype(np.float32)}


def latents(workload: Workload) -> np.ndarray:
    return PlainNoise().normal(IMAGES, workload.latent_size)


def output_shapes(network: Any) -> list[tuple[str, tuple[int, ...]]]:
    return [(layer.name, tuple(layer.output.shape[1:])) for layer in network.layers]


def test_a_workload_is_called_as_in_the_catalog(workload: Workload) -> None:
    assert catalog.WORKLOADS[workload.name].module.endswith(workload.name)


def test_the_generator_makes_images_in_the_range_of_tanh(workload: Workload) -> None:
    images = np.asarray(workload.networks()["generator"](latents(workload) * 30, training=False))
    assert images.shape == (IMAGES, *workload.image_shape) == (6, 28, 28, 1)
    assert images.dtype == np.float32
    assert -1 <= images.min() < 0 < images.max() <= 1


def test_the_discriminator_gives_one_logit_per_image(
    workload: Workload, batch: dict[str, np.ndarray]
) -> None:
    found = np.asarray(workload.networks()["discriminator"](batch["images"], training=False))
    assert found.shape == (IMAGES, 1)
    assert found.dtype == np.float32
    assert len(set(found[:, 0].tolist())) == IMAGES


def test_a_step_names_losses_and_scores_with_their_ranges(
    workload: Workload, batch: dict[str, np.ndarray]
) -> None:
    noise, networks = PlainNoise(), workload.networks()
    [phase] = workload.phases(Objective())
    with step_scope(plain(noise)):
        forward = phase.forward(networks, batch, noise)
    assert sorted(forward.losses) == ["loss_discriminator", "loss_generator"]
    assert sorted(forward.scalars) == ["d_fake", "d_real"]
    assert (
        0.3 < float(forward.losses["loss_generator"]) < 1.5
    )  # an untrained discriminator is undecided: about ln 2
    assert 0.7 < float(forward.losses["loss_discriminator"]) < 3.0  # about 2 ln 2
    assert all(0.2 < float(value) < 0.8 for value in forward.scalars.values())


def test_both_networks_are_updated_from_one_forward_pass(workload: Workload) -> None:
    [phase] = workload.phases(Objective())
    assert [update.network for update in phase.updates] == ["generator", "discriminator"]


def test_the_logit_of_an_image_depends_on_no_other_image(
    workload: Workload, batch: dict[str, np.ndarray]
) -> None:
    """Else the two losses could not share one way back through D."""
    discriminator, images = workload.networks()["discriminator"], batch["images"]
    with step_scope(plain(PlainNoise())):
        together = np.asarray(discriminator(images, training=True))
        alone = np.concatenate(
            [np.asarray(discriminator(images[row : row + 1], training=True)) for row in range(IMAGES)]
        )
    assert np.abs(together - alone).max() < 1e-5


def test_scores_are_probabilities_per_image(workload: Workload, batch: dict[str, np.ndarray]) -> None:
    scores = {
        name: np.asarray(value)
        for name, value in workload.scores(workload.networks(), batch, latents(workload)).items()
    }
    assert {name: value.shape for name, value in scores.items()} == {"real": (IMAGES,), "fake": (IMAGES,)}
    assert all(0 <= value.min() <= value.max() <= 1 for value in scores.values())


def test_a_preview_is_the_same_twice(workload: Workload) -> None:
    networks, numbers = workload.networks(), latents(workload)
    first, second = (np.asarray(workload.preview(networks, numbers)) for _ in range(2))
    assert first.shape == (IMAGES, 28, 28, 1)
    assert np.array_equal(first, second)


def test_the_catalog_knows_the_number_of_weights(workload: Workload) -> None:
    counted = sum(network.count_params() for network in workload.networks().values())
    assert counted == catalog.WORKLOADS[workload.name].size(None, {}).parameters


def test_the_catalog_estimates_the_activations_within_a_factor_of_two(workload: Workload) -> None:
    networks = workload.networks()
    passes = {"generator": 1, "discriminator": 2}
    kept = sum(
        passes[name] * np.prod(shape)
        for name, network in networks.items()
        for _, shape in output_shapes(network)
    )
    assert 0.5 < catalog.WORKLOADS[workload.name].size(None, {}).activations_per_row / kept < 2


def test_the_dcgan_generator_is_that_of_table_1() -> None:
    from gan_runtime.workloads import dcgan_mnist

    assert output_shapes(dcgan_mnist.WORKLOAD.networks()["generator"]) == [
        ("dense", (12_544,)),
        ("norm_1", (12_544,)),
        ("leaky_1", (12_544,)),
        ("reshape", (7, 7, 256)),
        ("up_1", (7, 7, 128)),
        ("norm_2", (7, 7, 128)),
        ("leaky_2", (7, 7, 128)),
        ("up_2", (14, 14, 64)),
        ("norm_3", (14, 14, 64)),
        ("leaky_3", (14, 14, 64)),
        ("up_3", (28, 28, 1)),
        ("tanh", (28, 28, 1)),
    ]


def test_the_dcgan_discriminator_is_that_of_table_1() -> None:
    from gan_runtime.workloads import dcgan_mnist

    assert output_shapes(dcgan_mnist.WORKLOAD.networks()["discriminator"]) == [
        ("conv_1", (14, 14, 64)),
        ("leaky_1", (14, 14, 64)),
        ("dropout_1", (14, 14, 64)),
        ("conv_2", (7, 7, 128)),
        ("leaky_2", (7, 7, 128)),
        ("dropout_2", (7, 7, 128)),
        ("flatten", (6_272,)),
        ("logit", (1,)),
    ]


def test_leaky_relu_and_dropout_have_the_rates_of_the_paper() -> None:
    from gan_runtime.workloads import dcgan_mnist

    layers = {layer.name: layer for layer in dcgan_mnist.WORKLOAD.networks()["discriminator"].layers}
    assert np.asarray(layers["leaky_1"](np.float32([-1.0, 2.0]))).tolist() == pytest.approx([-0.2, 2.0])
    assert (layers["dropout_1"].rate, layers["dropout_2"].rate) == (0.3, 0.3)


def test_dropout_is_the_identity_outside_training_and_needs_noise_in_training() -> None:
    layer, ones = ReplicaDropout(0.3), np.ones((2, 4), np.float32)
    assert np.array_equal(np.asarray(layer(ones, training=False)), ones)
    with pytest.raises(LookupError):
        layer(ones, training=True)
    with step_scope(plain(PlainNoise())):
        assert np.asarray(layer(ones, training=True)).tolist() == [[0, 2, 0, 2], [0, 2, 0, 2]]
    with pytest.raises(LookupError):
        layer(ones, training=True)


def test_networks_can_be_written_down_and_made_again(
    workload: Workload, batch: dict[str, np.ndarray]
) -> None:
    import keras

    discriminator = workload.networks()["discriminator"]
    again = keras.models.model_from_json(discriminator.to_json())
    again.set_weights(discriminator.get_weights())
    outputs = []
    for network in (discriminator, again):
        with step_scope(plain(PlainNoise())):
            outputs.append(np.asarray(network(batch["images"], training=True)))
    assert np.array_equal(*outputs)
    generator = keras.models.model_from_json(workload.networks()["generator"].to_json())
    assert generator.count_params() == workload.networks()["generator"].count_params()


def test_batch_norm_stands_in_the_generator_only_and_learns_in_training_only() -> None:
    from gan_runtime.workloads import dcgan_mnist

    networks = dcgan_mnist.WORKLOAD.networks()
    assert networks["discriminator"].non_trainable_variables == []
    statistics = networks["generator"].non_trainable_variables
    assert len(statistics) == 6
    before = [np.asarray(value) for value in statistics]
    numbers = PlainNoise().normal(IMAGES, 100)
    networks["generator"](numbers, training=False)
    assert all(np.array_equal(np.asarray(value), old) for value, old in zip(statistics, before, strict=True))
    networks["generator"](numbers, training=True)
    assert not any(
        np.array_equal(np.asarray(value), old) for value, old in zip(statistics, before, strict=True)
    )


class GivenMoments:
    """Kernels whose batch norm finds these moments, whatever the values."""

    def batch_norm(self, values: Any, gamma: Any, beta: Any, epsilon: float) -> tuple[Any, Any, Any]:  # noqa: ARG002
        return values, np.float32([2.0]), np.float32([5.0])


def test_stored_statistics_keep_the_share_of_their_momentum() -> None:
    layer = BatchNorm(momentum=0.9)
    layer.build((None, 1))  # begins with mean 0 and variance 1
    with step_scope(StepContext(PlainNoise(), GivenMoments(), input_gradient, weighted_gradient)):  # type: ignore[arg-type]
        layer(np.ones((3, 1), np.float32), training=True)
        assert (float(layer.moving_mean[0]), float(layer.moving_variance[0])) == pytest.approx((0.2, 1.4))
        layer(np.ones((3, 1), np.float32), training=True)
    assert (float(layer.moving_mean[0]), float(layer.moving_variance[0])) == pytest.approx((0.38, 1.76))


class Constant:
    """Latents of -1, which the networks below make logits of -1."""

    def normal(self, rows: int, columns: int) -> np.ndarray:
        return np.full((rows, columns), -1.0, np.float32)


def first_number(inputs: Any, training: bool) -> Any:  # noqa: ARG001
    """A generator whose image is its latents' first number, and a discriminator whose logit is the first pixel."""
    return inputs[:, :1]


TRANSPARENT = {"generator": first_number, "discriminator": first_number}
REAL = {"images": np.full((5, 3), 2.0, np.float32)}  # of logit 2


@pytest.mark.parametrize("one_way_back", [True, False])
@pytest.mark.parametrize(
    ("objective", "losses"),
    [
        (Objective(), {"loss_generator": 1.3132617, "loss_discriminator": 0.126928 + 0.3132617}),
        (Objective("minimax"), {"loss_generator": -0.3132617, "loss_discriminator": 0.126928 + 0.3132617}),
        (
            Objective(real_target=0.9),
            {"loss_generator": 1.3132617, "loss_discriminator": 0.326928 + 0.3132617},
        ),
        (
            Objective(loss_scaling=True),
            {"loss_generator": 1.3132617, "loss_discriminator": 0.126928 + 0.3132617},
        ),
        (Objective(updates="in_turn", discriminator_steps=2), {"loss_discriminator": 0.126928 + 0.3132617}),
    ],
)
def test_losses_and_scores_are_told_from_images_of_known_logits(
    objective: Objective, losses: dict[str, float], one_way_back: bool
) -> None:
    """Real images have logit 2, a probability of 0.88; generated ones -1, 0.27."""
    phase = pair_phases(4, objective, each_image_alone=one_way_back)[0]
    with step_scope(StepContext(Constant(), None, input_gradient, weighted_gradient)):  # type: ignore[arg-type]
        forward = phase.forward(TRANSPARENT, REAL, Constant())
    assert {name: float(value) for name, value in forward.losses.items()} == pytest.approx(losses, abs=1e-6)
    assert {name: float(value) for name, value in forward.scalars.items()} == pytest.approx(
        {"d_real": 0.8807971, "d_fake": 0.2689414}
    )


def test_each_phase_updates_its_networks_on_its_own_images() -> None:
    def plan(each_image_alone: bool, **options: Any) -> list[tuple[int, list[tuple[str, str]]]]:
        phases = pair_phases(4, Objective(**options), each_image_alone)
        return [
            (phase.real_batch, [(update.network, update.loss) for update in phase.updates])
            for phase in phases
        ]

    critic, own = ("discriminator", "loss_discriminator"), ("generator", "loss_generator")
    assert plan(False) == [(0, [own, critic])]
    assert plan(True) == [(0, [("generator", "loss_discriminator"), critic])]
    assert plan(True, loss_scaling=True) == [(0, [own, critic])], (
        "a loss scale for each network, so a way back for each"
    )
    assert plan(True, updates="in_turn", discriminator_steps=3) == [
        (0, [critic]),
        (1, [critic]),
        (2, [critic]),
        (0, [own]),
    ]


def test_scores_and_losses_belong_to_the_images_they_are_named_after() -> None:
    scores = pair_scores(TRANSPARENT, REAL, -np.ones((5, 4), np.float32))
    assert np.asarray(scores["real"]).tolist() == pytest.approx([0.8807971] * 5)
    assert np.asarray(scores["fake"]).tolist() == pytest.approx([0.2689414] * 5)
