"""Every pair of an image generator and a discriminator: shapes, value ranges and losses; Table 1 of
the paper.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from gan_runtime import catalog
from gan_runtime.base.fields import pictures
from gan_runtime.catalog import WorkloadEntry
from gan_runtime.catalog.dcgan import DcganOptions
from gan_runtime.catalog.pairs import PairOptions
from gan_runtime.data import loading
from gan_runtime.workloads import dcgan, dcgan_mnist
from gan_runtime.workloads.contract import Networks, Phase, Workload
from gan_runtime.workloads.layers import BatchNorm, ReplicaDropout
from gan_runtime.workloads.pair import Pair, UnconditionalPair
from gan_runtime.workloads.step_context import step_scope
from tests.support.engines.step_contexts import alone
from tests.workloads.plain_noise import PlainNoise

pytestmark = pytest.mark.usefixtures("cores")
IMAGES = 6
FIELDS = {"images": pictures(28, 28, 1)}
PAIRS = [
    name
    for name in loading.workloads_for(FIELDS)
    if isinstance(importlib.import_module(catalog.WORKLOADS[name].module).WORKLOAD, Pair)
]
LN_2 = 0.6931471805599453


@pytest.fixture(autouse=True)
def plain_float32() -> None:
    """New layers compute in float32 and start from the same weights in every test."""
    import keras

    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy("float32")


@pytest.fixture(params=PAIRS)
def entry(request: pytest.FixtureRequest) -> WorkloadEntry:
    """Each entry of the catalog whose workload is a pair."""
    return catalog.WORKLOADS[request.param]


@pytest.fixture
def workload(entry: WorkloadEntry) -> Pair:
    """The workload of `entry`."""
    return importlib.import_module(entry.module).WORKLOAD


@pytest.fixture
def batch() -> dict[str, np.ndarray]:
    """Six images over the whole range of values."""
    return {
        "images": np.random.default_rng(2).uniform(-1, 1, (IMAGES, 28, 28, 1)).astype(np.float32)
    }


def options_of(workload: Workload, **options: Any) -> PairOptions:
    """The defaults, except for `options`."""
    return (DcganOptions if workload is dcgan.WORKLOAD else PairOptions)(**options)


def networks_of(workload: Workload) -> dict[str, Any]:
    return workload.networks(options_of(workload), FIELDS)


def phases_of(workload: Workload, **options: Any) -> tuple[Phase, ...]:
    return workload.program(options_of(workload, **options), FIELDS).phases


def latents(workload: Pair) -> np.ndarray:
    return PlainNoise().normal(IMAGES, workload.latent_size_of(options_of(workload)))


def output_shapes(network: Any) -> list[tuple[str, tuple[int, ...]]]:
    return [(layer.name, tuple(layer.output.shape[1:])) for layer in network.layers]


def test_three_discriminator_updates_take_three_batches(
    entry: WorkloadEntry, workload: Workload
) -> None:
    options = entry.options(updates="in_turn", discriminator_steps=3)
    program = workload.program(options, FIELDS)
    assert program.batches == entry.batches(options) == program.updates_of("discriminator") == 3


def test_generator_images_are_in_the_range_of_tanh(workload: Pair) -> None:
    images = np.asarray(networks_of(workload)["generator"](latents(workload) * 30, training=False))
    assert images.shape == (IMAGES, 28, 28, 1)
    assert images.dtype == np.float32
    assert -1 <= images.min() < 0 < images.max() <= 1


def test_the_discriminator_gives_one_logit_per_image(
    workload: Workload, batch: dict[str, np.ndarray]
) -> None:
    logits = np.asarray(networks_of(workload)["discriminator"](batch["images"], training=False))
    assert logits.shape == (IMAGES, 1)
    assert logits.dtype == np.float32
    assert len(set(logits[:, 0].tolist())) == IMAGES


def test_step_returns_losses_and_scores_in_their_ranges(
    workload: Workload, batch: dict[str, np.ndarray]
) -> None:
    noise, networks = PlainNoise(), networks_of(workload)
    (phase,) = phases_of(workload)
    with step_scope(alone(noise)):
        forward = phase.forward(networks, batch, noise)
    assert sorted(forward.losses) == ["loss_discriminator", "loss_generator"]
    assert sorted(forward.scalars) == ["d_fake", "d_real"]
    assert (
        0.3 < float(forward.losses["loss_generator"]) < 1.5
    )  # an untrained discriminator is undecided: about ln 2
    assert 0.7 < float(forward.losses["loss_discriminator"]) < 3.0  # about 2 ln 2
    assert all(0.2 < float(value) < 0.8 for value in forward.scalars.values())


def test_both_networks_are_updated_from_one_forward_pass(workload: Workload) -> None:
    (phase,) = phases_of(workload)
    assert [update.network for update in phase.updates] == ["generator", "discriminator"]


def test_the_logit_of_an_image_depends_on_no_other_image(
    workload: Workload, batch: dict[str, np.ndarray]
) -> None:
    """Otherwise the two losses could not share one backward pass through D."""
    discriminator, images = networks_of(workload)["discriminator"], batch["images"]
    with step_scope(alone(PlainNoise())):
        together = np.asarray(discriminator(images, training=True))
        apart = np.concatenate(
            [
                np.asarray(discriminator(images[row : row + 1], training=True))
                for row in range(IMAGES)
            ]
        )
    assert np.abs(together - apart).max() < 1e-5


def test_judgements_are_in_the_catalog_and_within_their_range(
    entry: WorkloadEntry, workload: Pair, batch: dict[str, np.ndarray]
) -> None:
    with step_scope(alone(PlainNoise())):
        judged = workload.judge(
            options_of(workload), networks_of(workload), batch, {"latents": latents(workload)}
        )
    assert set(judged.values) == {judgement.name for judgement in entry.judgements}
    for judgement in entry.judgements:
        values = np.asarray(judged.values[judgement.name])
        assert values.shape == (IMAGES,)
        assert judgement.low is not None
        assert judgement.high is not None
        assert judgement.low <= values.min() <= values.max() <= judgement.high
    of_the_probe = {metric.name for metric in entry.metrics if metric.per_epoch}
    of_an_evaluation = {name for name in of_the_probe if name.startswith("quality_")}
    assert set(judged.scalars) == of_the_probe - of_an_evaluation


def test_shown_arrays_are_reproducible_and_match_the_catalog(
    entry: WorkloadEntry, workload: Pair
) -> None:
    networks, inputs = networks_of(workload), {"latents": latents(workload)}
    first, second = (
        workload.show(options_of(workload), networks, inputs, PlainNoise()) for _ in range(2)
    )
    assert [picture.name for picture in entry.pictures if set(picture.arrays) <= set(first)] == [
        "samples"
    ]
    assert np.asarray(first["images"]).shape == (IMAGES, 28, 28, 1)
    assert np.array_equal(np.asarray(first["images"]), np.asarray(second["images"]))


def test_dcgan_generator_matches_table_1() -> None:
    assert output_shapes(dcgan_mnist.networks()["generator"]) == [
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


def test_dcgan_discriminator_matches_table_1() -> None:
    assert output_shapes(dcgan_mnist.networks()["discriminator"]) == [
        ("conv_1", (14, 14, 64)),
        ("leaky_1", (14, 14, 64)),
        ("dropout_1", (14, 14, 64)),
        ("conv_2", (7, 7, 128)),
        ("leaky_2", (7, 7, 128)),
        ("dropout_2", (7, 7, 128)),
        ("flatten", (6_272,)),
        ("logit", (1,)),
    ]


def test_leaky_relu_and_dropout_have_the_papers_rates() -> None:
    layers = {layer.name: layer for layer in dcgan_mnist.networks()["discriminator"].layers}
    assert np.asarray(layers["leaky_1"](np.float32([-1.0, 2.0]))).tolist() == pytest.approx(
        [-0.2, 2.0]
    )
    assert (layers["dropout_1"].rate, layers["dropout_2"].rate) == (0.3, 0.3)


def test_dropout_is_the_identity_outside_training_and_needs_noise_in_training() -> None:
    layer, ones = ReplicaDropout(0.3), np.ones((2, 4), np.float32)
    assert np.array_equal(np.asarray(layer(ones, training=False)), ones)
    with pytest.raises(LookupError):
        layer(ones, training=True)
    with step_scope(alone(PlainNoise())):
        assert np.asarray(layer(ones, training=True)).tolist() == [[0, 2, 0, 2], [0, 2, 0, 2]]
    with pytest.raises(LookupError):
        layer(ones, training=True)


def test_only_the_generator_has_batch_norm_and_it_updates_only_in_training() -> None:
    networks = dcgan_mnist.networks()
    assert networks["discriminator"].non_trainable_variables == []
    statistics = networks["generator"].non_trainable_variables
    assert len(statistics) == 6
    before = [np.asarray(value) for value in statistics]
    numbers = PlainNoise().normal(IMAGES, 100)
    networks["generator"](numbers, training=False)
    assert all(
        np.array_equal(np.asarray(value), old)
        for value, old in zip(statistics, before, strict=True)
    )
    networks["generator"](numbers, training=True)
    assert not any(
        np.array_equal(np.asarray(value), old)
        for value, old in zip(statistics, before, strict=True)
    )


class GivenMoments:
    """Kernels whose batch norm returns these moments for any values."""

    def batch_norm(
        self,
        values: Any,
        gamma: Any,  # noqa: ARG002
        beta: Any,  # noqa: ARG002
        epsilon: float,  # noqa: ARG002
    ) -> tuple[Any, Any, Any]:
        return values, np.float32([2.0]), np.float32([5.0])


def test_moving_statistics_are_weighted_by_their_momentum() -> None:
    layer = BatchNorm(momentum=0.9)
    layer.build((None, 1))  # starts with mean 0 and variance 1
    with step_scope(alone(PlainNoise(), GivenMoments())):  # type: ignore[arg-type]
        layer(np.ones((3, 1), np.float32), training=True)
        assert (float(layer.moving_mean[0]), float(layer.moving_variance[0])) == pytest.approx(
            (0.2, 1.4)
        )
        layer(np.ones((3, 1), np.float32), training=True)
    assert (float(layer.moving_mean[0]), float(layer.moving_variance[0])) == pytest.approx(
        (0.38, 1.76)
    )


class Constant:
    """Latents of -1, which the networks below turn into logits of -1."""

    def normal(self, rows: int, *shape: int) -> np.ndarray:
        return np.full((rows, *shape), -1.0, np.float32)


def first_number(inputs: Any, training: bool) -> Any:  # noqa: ARG001
    """As a generator, returns the first latent as the image; as a discriminator, the first pixel as
    the logit.
    """
    return inputs[:, :1]


TRANSPARENT: Networks = {"generator": first_number, "discriminator": first_number}
REAL = {"images": np.full((5, 3), 2.0, np.float32)}  # their logit is 2


@pytest.mark.parametrize("one_way_back", [True, False])
@pytest.mark.parametrize(
    ("options", "losses"),
    [
        ({}, {"loss_generator": 1.3132617, "loss_discriminator": 0.126928 + 0.3132617}),
        (
            {"generator_loss": "minimax"},
            {"loss_generator": -0.3132617, "loss_discriminator": 0.126928 + 0.3132617},
        ),
        (
            {"label_smoothing": 0.1},
            {"loss_generator": 1.3132617, "loss_discriminator": 0.326928 + 0.3132617},
        ),
        (
            {"updates": "in_turn", "discriminator_steps": 2},
            {"loss_discriminator": 0.126928 + 0.3132617},
        ),
    ],
)
@pytest.mark.parametrize("loss_scaling", [True, False])
def test_losses_and_scores_match_known_logits(
    options: dict[str, Any], losses: dict[str, float], one_way_back: bool, loss_scaling: bool
) -> None:
    """Real images have logit 2 (probability 0.88), generated ones -1 (0.27)."""
    phase = phases_of(UnconditionalPair(4, dict, each_image_alone=one_way_back), **options)[0]
    with step_scope(alone(Constant(), loss_scaling=loss_scaling)):  # type: ignore[arg-type]
        forward = phase.forward(TRANSPARENT, REAL, Constant())  # type: ignore[arg-type]
    assert {name: float(value) for name, value in forward.losses.items()} == pytest.approx(
        losses, abs=1e-6
    )
    assert {name: float(value) for name, value in forward.scalars.items()} == pytest.approx(
        {"d_real": 0.8807971, "d_fake": 0.2689414}
    )


def test_each_phase_updates_its_networks_on_its_own_images() -> None:
    def plan(
        each_image_alone: bool, loss_scaling: bool = False, **options: Any
    ) -> list[tuple[int, list[tuple[str, str]]]]:
        phases = phases_of(UnconditionalPair(4, dict, each_image_alone), **options)
        return [
            (
                phase.batch,
                [(update.network, update.followed(loss_scaling)) for update in phase.updates],
            )
            for phase in phases
        ]

    critic, painter = ("discriminator", "loss_discriminator"), ("generator", "loss_generator")
    assert plan(False) == [(0, [painter, critic])]
    assert plan(True) == [(0, [("generator", "loss_discriminator"), critic])]
    assert plan(True, loss_scaling=True) == [(0, [painter, critic])], (
        "a loss scale for each network, so a way back for each"
    )
    assert plan(True, updates="in_turn", discriminator_steps=3) == [
        (0, [critic]),
        (1, [critic]),
        (2, [critic]),
        (0, [painter]),
    ]


def test_judgements_belong_to_the_images_they_are_named_after() -> None:
    inputs = {"latents": -np.ones((5, 4), np.float32)}
    with step_scope(alone(Constant())):  # type: ignore[arg-type]
        judged = UnconditionalPair(4, dict).judge(PairOptions(), TRANSPARENT, REAL, inputs)
    assert np.asarray(judged.values["real"]).tolist() == pytest.approx([0.8807971] * 5)
    assert np.asarray(judged.values["fake"]).tolist() == pytest.approx([0.2689414] * 5)
    scalars = {name: float(value) for name, value in judged.scalars.items()}
    assert scalars == pytest.approx(
        {
            "d_accuracy_real": 1.0,
            "d_accuracy_fake": 1.0,
            "probe_score_real": 0.8807971,
            "probe_score_fake": 0.2689414,
            "spread_real": 0.0,
            "spread_fake": 0.0,
        },
        abs=1e-6,
    )
