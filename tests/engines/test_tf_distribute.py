"""The tensorflow engine on simulated cores: the same numbers on any number of replicas, and nothing lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from gan_runtime.engines.tf_devices import make_strategy, tpu_advice
from gan_runtime.engines.tf_input import distributed_batches
from gan_runtime.engines.tf_noise import StepNoise
from gan_runtime.errors import AcceleratorError, CheckpointError
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Forward, Objective, Phase, Workload
from gan_runtime.workloads.dcgan_mnist import DcganMnist
from gan_runtime.workloads.mlp_gan import MlpGan
from gan_runtime.workloads.pair import pair_phases
from tests.engines.small_engines import (
    BATCH,
    MakeEngine,
    assert_close,
    assert_equal,
    copies,
    copies_in_use,
    kept,
    random_images,
    trained,
)

pytestmark = pytest.mark.usefixtures("cores")
[INNER] = pair_phases(MlpGan.latent_size, Objective())  # each network follows a loss of its own


# ---- replicas compute what one device computes --------------------------------------------------------------------------------


@pytest.mark.usefixtures("exchange")
@pytest.mark.parametrize("replicas", [2, 4])
def test_replicas_compute_what_one_replica_computes_on_the_whole_batch(make: MakeEngine, replicas: int) -> None:
    one, several = make(1), make(replicas)
    expected, found = trained(one, 1, 6), trained(several, 1, 6)
    assert {metric: len(values) for metric, values in found.items()} == dict.fromkeys(
        ("d_fake", "d_real", "learning_rate_discriminator", "learning_rate_generator", "loss_discriminator", "loss_generator"),
        7,
    )
    assert_close(found, expected, 1e-5)
    assert_close(several.state(), one.state(), 1e-5)


def test_training_moves_every_weight_of_both_networks(make: MakeEngine) -> None:
    engine = make(2)
    before = engine.state()
    numbers = trained(engine, 7)
    after = engine.state()
    assert [name for name in before if np.array_equal(before[name], after[name]) and name != "rate_factor"] == []
    assert np.isfinite(numbers["loss_discriminator"]).all()
    assert after["step"] == 7


@pytest.mark.usefixtures("exchange")
def test_all_replicas_hold_the_same_weights(make: MakeEngine) -> None:
    engine = make(4)
    trained(engine, 5)
    in_use = copies_in_use(engine)
    assert {len(values) for name, values in in_use.items() if not name.startswith("optimizer_")} == {4}
    for name, values in in_use.items():
        assert all(np.array_equal(value, values[0]) for value in values), name


def test_the_length_of_a_call_changes_no_number(make: MakeEngine) -> None:
    expected, found = trained(make(1), 7), trained(make(1), 1, 2, 4)
    assert_equal(found, expected)


def test_another_seed_gives_other_numbers(make: MakeEngine) -> None:
    first, second = trained(make(1), 2), trained(make(1, seed=2), 2)
    assert not np.array_equal(first["loss_generator"], second["loss_generator"])


def test_compiled_steps_equal_uncompiled_ones(make: MakeEngine) -> None:
    off, jit = make(2, xla="off"), make(2, xla="jit")
    assert_close(trained(jit, 1, 6), trained(off, 1, 6), 1e-4)
    assert_close(jit.state(), off.state(), 1e-4)


def test_bfloat16_keeps_float32_weights_and_similar_losses(make: MakeEngine) -> None:
    exact, rough = make(1), make(2, precision="mixed_bfloat16")
    assert_close(trained(rough, 7), trained(exact, 7), 0.05)
    assert {str(array.dtype) for name, array in rough.state().items() if "kernel" in name} == {"float32"}


# ---- noise --------------------------------------------------------------------------------------------------------------------


def noise(step: int, replica: int, replicas: int, seed: int = 1) -> StepNoise:
    return StepNoise(seed, tf.constant(step), tf.constant(replica), replicas)


def global_latents(step: int, replicas: int) -> np.ndarray:
    return np.concatenate([noise(step, replica, replicas).normal(8 // replicas, 5).numpy() for replica in range(replicas)])


@pytest.mark.parametrize("replicas", [2, 4, 8])
def test_latents_of_the_global_batch_do_not_depend_on_the_replicas(replicas: int) -> None:
    assert np.array_equal(global_latents(3, replicas), global_latents(3, 1))


def test_latents_are_standard_normal_and_new_in_every_draw_and_step() -> None:
    many = noise(1, 0, 1).normal(1_000, 100).numpy()
    assert abs(many.mean()) < 0.02
    assert abs(many.std() - 1) < 0.02
    stream = noise(1, 0, 1)
    draws = [
        stream.normal(8, 5).numpy(),
        stream.normal(8, 5).numpy(),
        global_latents(2, 1),
        noise(1, 0, 1, seed=2).normal(8, 5).numpy(),
    ]
    assert all(not np.array_equal(one, other) for index, one in enumerate(draws) for other in draws[:index])


def test_dropout_masks_differ_between_replicas_steps_and_layers() -> None:
    ones, stream = tf.ones([64, 64]), noise(1, 0, 2)
    masks = [
        stream.dropout(ones, 0.3),
        stream.dropout(ones, 0.3),
        noise(1, 1, 2).dropout(ones, 0.3),
        noise(2, 0, 2).dropout(ones, 0.3),
    ]
    dropped = [mask.numpy() == 0 for mask in masks]
    for index, one in enumerate(dropped):
        for other in dropped[:index]:
            # Independent masks agree in a share of 0.3² + 0.7² = 0.58 of the units.
            assert 0.54 < (one == other).mean() < 0.62


def test_dropout_keeps_the_mean_and_drops_the_share() -> None:
    found = noise(5, 3, 4).dropout(tf.fill([500, 500], 2.0), 0.3).numpy()
    assert abs((found == 0).mean() - 0.3) < 0.005
    assert abs(found.mean() - 2.0) < 0.01
    assert len(np.unique(found)) == 2


@pytest.mark.parametrize("rate", [0.0, 0.001])
def test_dropout_of_next_to_nothing_drops_nothing(rate: float) -> None:
    assert np.array_equal(noise(1, 0, 1).dropout(tf.fill([64, 64], 2.0), rate).numpy(), np.full((64, 64), 2.0))


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_dropout_keeps_shape_and_precision(dtype: tf.DType) -> None:
    found = noise(1, 0, 1).dropout(tf.ones([3, 5, 7], dtype), 0.3)
    assert (found.shape, found.dtype) == ((3, 5, 7), dtype)


def test_compiled_noise_equals_uncompiled_noise() -> None:
    def draw(step: tf.Tensor, replica: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        stream = StepNoise(1, step, replica, 4)
        return stream.normal(8, 5), stream.dropout(tf.ones([64, 64]), 0.3), stream.normal(8, 5)

    plain, compiled = tf.function(draw), tf.function(draw, jit_compile=True)
    for step, replica in ((0, 0), (3, 1), (1_000_000, 3)):
        numbers = (tf.constant(step), tf.constant(replica))
        for expected, found in zip(plain(*numbers), compiled(*numbers), strict=True):
            assert np.abs(found.numpy() - expected.numpy()).max() < 1e-5


def test_the_engine_keys_the_noise_by_step_and_replica(make: MakeEngine) -> None:
    weights = np.random.default_rng(3).standard_normal(1_000).astype(np.float32)

    class Listening(MlpGan):
        """Reports what each replica's dropout let through."""

        def forward(self, networks: Any, batch: Any, stream: Any) -> Forward:
            heard = ops.sum(stream.dropout(ops.ones([1_000]), 0.3) * weights)
            inner = INNER.forward(networks, batch, stream)
            return Forward(inner.losses, {"heard": heard})

        def phases(self, objective: Objective) -> tuple[Phase, ...]:  # noqa: ARG002
            return (Phase(self.forward, INNER.updates),)

    heard = trained(make(2, Listening()), 1, 2)["heard"]
    expected = [
        np.mean([np.sum(noise(step, replica, 2).dropout(tf.ones([1_000]), 0.3).numpy() * weights) for replica in (0, 1)])
        for step in range(3)
    ]
    assert heard.tolist() == pytest.approx(expected, abs=1e-3)


# ---- input --------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def batches(new_group: Callable[[], None]) -> Callable[..., list[list[int]]]:
    """The images of each global batch by number, of 21 images in batches of 4: 5 steps an epoch, one image left out."""

    def call(steps: int, replicas: int = 1, first_step: int = 0, seed: int = 1) -> list[list[int]]:
        new_group()
        spec = RunSpec.parse({"batch_size_global": 4, "replicas": replicas, "seed": seed})
        images = np.arange(21, dtype=np.uint8).reshape(21, 1, 1, 1)
        strategy = make_strategy(spec, "cpu")
        iterator = kept(distributed_batches(strategy, spec, images, first_step))
        shares = [strategy.experimental_local_results(next(iterator)) for _ in range(steps)]
        assert {share.shape for step in shares for share in step} == {(4 // replicas, 1, 1, 1)}
        return [np.concatenate([share.numpy().ravel() for share in step]).tolist() for step in shares]

    return call


def test_an_epoch_visits_no_image_twice(batches: Callable[..., list[list[int]]]) -> None:
    found = batches(15)
    for epoch in (found[:5], found[5:10], found[10:]):
        assert len({image for batch in epoch for image in batch}) == 20


def test_the_order_is_new_in_every_epoch_and_for_every_seed(batches: Callable[..., list[list[int]]]) -> None:
    found = batches(10)
    assert found[:5] != found[5:]
    assert found[:5] != batches(5, seed=2)
    assert found[:5] != [list(range(first, first + 4)) for first in range(0, 20, 4)]


def test_over_many_epochs_every_image_is_seen(batches: Callable[..., list[list[int]]]) -> None:
    assert {image for batch in batches(50) for image in batch} == set(range(21))


@pytest.mark.parametrize("replicas", [2, 4])
def test_the_global_batches_do_not_depend_on_the_replicas(batches: Callable[..., list[list[int]]], replicas: int) -> None:
    assert batches(7, replicas) == batches(7)


@pytest.mark.parametrize("first_step", [1, 4, 5, 6, 12])
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_resumed_run_goes_on_with_the_images_it_would_have_seen(
    batches: Callable[..., list[list[int]]], first_step: int, replicas: int
) -> None:
    assert batches(7, replicas, first_step) == batches(20)[first_step : first_step + 7]


# ---- float16 ------------------------------------------------------------------------------------------------------------------


class Overflowing(MlpGan):
    """Its losses are infinite on the replica that sees the white image, and as usual on the others."""

    def phases(self, objective: Objective) -> tuple[Phase, ...]:  # noqa: ARG002
        """One phase with the losses below."""
        return (Phase(self.forward, INNER.updates),)

    def forward(self, networks: Any, batch: Any, stream: Any) -> Forward:
        """As the inner forward pass, times infinity where the white image is."""
        inner = INNER.forward(networks, batch, stream)
        factor = ops.where(ops.max(batch["images"]) > 0.999, np.float32(np.inf), np.float32(1.0))
        return Forward({name: loss * factor for name, loss in inner.losses.items()}, inner.scalars)


def white_on_replica(seed: int) -> list[int | None]:
    """For each of the first five steps, an epoch, the replica that sees image 0."""
    spec = RunSpec.parse({"replicas": 2, "batch_size_global": BATCH, "seed": seed})
    numbers = np.arange(40, dtype=np.uint8).reshape(40, 1, 1, 1)
    strategy = make_strategy(spec, "cpu")
    iterator = kept(distributed_batches(strategy, spec, numbers, 0))
    steps = [[0 in share.numpy() for share in strategy.experimental_local_results(next(iterator))] for _ in range(5)]
    return [step.index(True) if any(step) else None for step in steps]


@pytest.mark.usefixtures("exchange")
@pytest.mark.parametrize("replica", [0, 1])
def test_an_overflow_on_one_replica_skips_the_step_on_all(make: MakeEngine, replica: int) -> None:
    seed, step = next((seed, seen.index(replica)) for seed in range(1, 60) if replica in (seen := white_on_replica(seed))[1:4])
    images = random_images(40)
    images[0] = 255
    engine = make(2, Overflowing(), images, precision="mixed_float16", seed=seed)
    trained(engine, step)
    before = engine.state()
    engine.run(1)
    after = engine.state()
    changed = {name.rpartition("/")[2] for name in before if not np.array_equal(before[name], after[name])}
    assert {"step", "dynamic_scale"} <= changed <= {"step", "dynamic_scale", "step_counter"}
    scales = {float(after[name] / before[name]) for name in before if name.endswith("dynamic_scale")}
    assert scales == {0.5}
    for name, (first, *others) in copies_in_use(engine).items():
        assert all(np.array_equal(first, other) for other in others), name
    numbers = engine.run(1).values
    assert [numbers[f"loss_scale_{network}"].item() for network in ("generator", "discriminator")] == [16_384.0, 16_384.0]
    assert not np.array_equal(engine.state()["generator/generator/hidden/kernel"], after["generator/generator/hidden/kernel"])


def test_float16_without_overflow_trains_as_float32_does(make: MakeEngine) -> None:
    exact, half = make(1), make(2, precision="mixed_float16")
    found = trained(half, 7)
    scales = {found.pop(f"loss_scale_{network}")[-1] for network in ("generator", "discriminator")}
    assert scales == {32768.0}
    assert_close(found, trained(exact, 7), 0.01)


# ---- probes and samples ---------------------------------------------------------------------------------------------------------


def test_a_probe_changes_no_variable_and_counts_everything(make: MakeEngine) -> None:
    engine = make(2, DcganMnist())
    trained(engine, 2)
    before = engine.state()
    found = {item.name: item for item in engine.probe().histograms}
    assert_equal(engine.state(), before)
    weights = {
        "generator": 2_330_944 - 2 * 12_736,
        "generator/dense": 100 * 12_544,
        "generator/norm_1": 2 * 12_544,
        "generator/norm_2": 2 * 128,
        "generator/norm_3": 2 * 64,
        "generator/up_1": 5 * 5 * 256 * 128,
        "generator/up_2": 5 * 5 * 128 * 64,
        "generator/up_3": 5 * 5 * 64,
        "discriminator": 212_865,
        "discriminator/conv_1": 5 * 5 * 64 + 64,
        "discriminator/conv_2": 5 * 5 * 64 * 128 + 128,
        "discriminator/logit": 6_272 + 1,
    }
    assert {name: int(item.counts.sum()) for name, item in found.items()} == {
        **{f"{kind}/{name}": size for kind in ("gradient", "weight") for name, size in weights.items()},
        "score/fake": 40,
        "score/real": 40,
    }
    for name, item in found.items():
        assert (len(item.counts), len(item.edges)) == ((40, 41) if name.startswith("score") else (60, 61))
        assert (np.diff(item.edges) > 0).all()


def test_a_probe_spans_exactly_the_weights(make: MakeEngine) -> None:
    engine = make(1)
    trained(engine, 2)
    found = {item.name: item for item in engine.probe().histograms}["weight/generator"]
    weights = np.concatenate([array.ravel() for name, array in engine.state().items() if name.startswith("generator/")])
    assert (found.edges[0], found.edges[-1]) == (weights.min(), weights.max())
    assert np.abs(found.counts - np.histogram(weights, found.edges)[0]).max() <= 2  # rounding at the edges


def test_scores_are_counted_between_zero_and_one(make: MakeEngine) -> None:
    engine = make(2)
    trained(engine, 1)
    scores = [item for item in engine.probe().histograms if item.name.startswith("score/")]
    assert all((item.edges[0], item.edges[-1]) == (0.0, 1.0) for item in scores)


@pytest.mark.parametrize(
    "options", [{"replicas": 2}, {"replicas": 2, "precision": "mixed_float16"}, {"replicas": 4, "xla": "jit"}]
)
def test_probed_gradients_are_those_of_the_whole_batch_unscaled(make: MakeEngine, options: dict[str, Any]) -> None:
    images = random_images(BATCH)  # no more than a batch, so that the probe takes the same ones whatever the replicas
    one, other = make(1, images=images), make(images=images, **options)
    expected, found = ({item.name: item for item in engine.probe().histograms} for engine in (one, other))
    for name in ("gradient/generator", "gradient/discriminator"):
        span = expected[name].edges[[0, -1]]
        assert found[name].edges[[0, -1]] == pytest.approx(span, rel=0.02)


@pytest.mark.parametrize("workload", [MlpGan, DcganMnist])
def test_samples_are_64_images_in_range_whatever_the_replicas(make: MakeEngine, workload: type[Workload]) -> None:
    one = make(1, workload(), batch_size_global=6)
    expected = one.sample()
    assert (expected.shape, expected.dtype) == ((64, 28, 28, 1), np.float32)
    assert -1 <= expected.min() < 0 < expected.max() <= 1
    assert len({image.tobytes() for image in expected}) == 64
    for replicas in (2, 3):
        several = make(replicas, workload(), batch_size_global=6)
        assert np.abs(several.sample() - expected).max() < 1e-5


def test_samples_stay_the_same_latents_while_training_goes_on(make: MakeEngine) -> None:
    engine = make(1)
    first = engine.sample()
    assert np.array_equal(engine.sample(), first)
    trained(engine, 1)
    assert 0 < np.abs(engine.sample() - first).max() < 0.1


def test_samples_of_the_same_weights_are_the_same_whatever_the_seed(make: MakeEngine) -> None:
    """Otherwise the grids of several seeds could not be compared image by image."""
    first, second = make(1, seed=1), make(1, seed=2)
    assert np.abs(second.sample() - first.sample()).max() > 0.01, "other seeds, other weights"
    second.load(first.state())
    assert np.array_equal(second.sample(), first.sample())


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_samples_are_float32_in_every_precision(make: MakeEngine, precision: str) -> None:
    images = make(2, precision=precision).sample()
    assert images.dtype == np.float32
    assert -1 <= images.min() < 0 < images.max() <= 1


# ---- state --------------------------------------------------------------------------------------------------------------------


def test_a_state_of_two_replicas_opens_on_one_and_gives_the_same_samples(make: MakeEngine) -> None:
    two, one = make(2, DcganMnist()), make(1, DcganMnist(), seed=2)
    trained(two, 2)
    state = two.state()
    one.load(state)
    assert_equal(one.state(), state)
    assert np.abs(one.sample() - two.sample()).max() < 1e-5


def test_a_state_of_one_replica_reaches_every_replica_of_four(make: MakeEngine) -> None:
    one, four = make(1, DcganMnist()), make(4, DcganMnist(), seed=2)
    trained(one, 1)
    state = one.state()
    four.load(state)
    for name, variable in four._state._variables().items():
        values = copies(four, variable)
        assert len(values) == 4, name
        assert all(np.array_equal(value, state[name]) for value in values), name


def test_training_goes_on_on_another_number_of_replicas_as_if_nothing_had_happened(make: MakeEngine) -> None:
    whole, first, second = make(1), make(2), make(4)
    expected = trained(whole, 8)
    trained(first, 3)
    second.load(first.state())
    found = trained(second, 5)
    assert_close(found, {metric: values[3:] for metric, values in expected.items()}, 1e-5)
    assert_close(second.state(), whole.state(), 1e-5)


def test_batch_norm_statistics_drift_apart_and_are_averaged_into_one_state(make: MakeEngine) -> None:
    engine = make(2, DcganMnist())
    trained(engine, 2)
    name, variable = next(
        (name, value) for name, value in engine._state._variables().items() if name.endswith("norm_1/moving_mean")
    )
    first, second = copies(engine, variable)
    assert not np.array_equal(first, second)
    state = engine.state()
    assert np.allclose(state[name], (first + second) / 2, atol=1e-7)
    assert all(np.array_equal(value, state[name]) for value in copies(engine, variable))


def test_a_state_holds_every_variable(make: MakeEngine) -> None:
    engine = make(2, DcganMnist(), precision="mixed_float16")
    owners = [*engine._networks.values(), *engine._optimizers.values()]
    assert len(engine.state()) == sum(len(owner.variables) for owner in owners) + 2  # the steps done, the rate factor


def test_a_state_with_foreign_names_is_refused(make: MakeEngine) -> None:
    engine = make(1)
    state = engine.state()
    before = dict(state)
    state["stranger"] = state.pop("generator/generator/hidden/bias")
    with pytest.raises(CheckpointError) as refused:
        engine.load(state)
    assert str(refused.value) == (
        "the checkpoint does not fit this run's networks and optimizers "
        "(differs in generator/generator/hidden/bias, stranger): start a new run."
    )
    assert_equal(engine.state(), before)


def test_a_state_with_another_shape_is_refused(make: MakeEngine) -> None:
    engine = make(1)
    state = engine.state() | {"generator/generator/hidden/bias": np.zeros(7, np.float32)}
    with pytest.raises(
        CheckpointError, match=r"generator/generator/hidden/bias has shape \(7,\), the run's \(128,\): start a new run"
    ):
        engine.load(state)


# ---- devices --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("replicas", "strategy"), [(1, "OneDeviceStrategy"), (8, "SharedMemoryMirroredStrategy")])
def test_the_engine_describes_its_devices(make: MakeEngine, replicas: int, strategy: str) -> None:
    found = make(replicas).describe()
    assert found["strategy"] == strategy
    assert [str(device)[-5:] for device in found["devices"]] == [f"CPU:{index}" for index in range(replicas)]
    assert found["parameters"] == {"generator": 105_360, "discriminator": 100_609}


def test_more_replicas_than_simulated_cores_are_refused() -> None:
    with pytest.raises(AcceleratorError) as refused:
        make_strategy(RunSpec.parse({"replicas": 16}), "cpu")
    assert str(refused.value) == (
        "this process already runs TensorFlow with 8 CPU core(s), but the run needs 16: start it in a process of its own."
    )


def test_more_replicas_than_gpus_are_refused() -> None:
    with pytest.raises(
        AcceleratorError, match=r"the run wants 1024 GPU\(s\), but TensorFlow sees \d+: lower replicas, use accelerator=cpu"
    ):
        make_strategy(RunSpec.parse({"replicas": 1_024, "batch_size_global": 1_024}), "gpu")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            "No OpKernel was registered to support Op 'ConfigureDistributedTPU'",
            "the TPU at 'local' cannot be used (this TensorFlow was built without TPU support: run `make clean setup` on the TPU host, "
            "or use engine=jax); or choose accelerator=cpu or gpu.",
        ),
        (
            "No TPU platform found",
            "the TPU at 'local' cannot be used (libtpu is there but finds no TPU: see that no other process holds it, and that libtpu "
            "suits the framework (docs/tpu.md)); or choose accelerator=cpu or gpu.",
        ),
        ("first line\nsecond", "the TPU at 'local' cannot be used (first line); or choose accelerator=cpu or gpu."),
        ("", "the TPU at 'local' cannot be used (ValueError); or choose accelerator=cpu or gpu."),
    ],
)
def test_a_tpu_that_cannot_be_used_is_explained(error: str, sentence: str) -> None:
    assert tpu_advice("local", ValueError(error)) == sentence


# ---- where the time goes ------------------------------------------------------------------------------------------------------


def test_a_real_profile_finds_the_work_of_both_networks(make: MakeEngine) -> None:
    engine = make(2)
    trained(engine, 4)
    found = engine.profile(5)
    assert found.numbers.values["loss_generator"].shape == (5,)
    assert sum(item.share for item in found.shares) == pytest.approx(1.0)
    assert sum(item.seconds for item in found.shares) == pytest.approx(found.numbers.seconds, rel=0.1)
    work = {(name, part) for name in ("generator", "discriminator") for part in ("forward", "backward", "optimizer")}
    assert work <= {(item.network, item.category) for item in found.shares}
    assert engine.state()["step"] == 9


def test_a_cpu_tells_nothing_of_device_memory(make: MakeEngine) -> None:
    assert make(2).device_memory() is None
