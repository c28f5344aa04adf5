"""Pix2Pix: the numbers of a step and an epoch on known images."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from gan_runtime import pictures
from gan_runtime.base.fields import SOURCE, TARGET
from gan_runtime.domains.flows import score_metrics, workload
from gan_runtime.domains.flows.entry import ENTRY
from gan_runtime.domains.flows.fields import LATER
from gan_runtime.domains.flows.options import Pix2pixOptions
from gan_runtime.engines.inputs import HostNoise, host_values
from gan_runtime.evaluation.quality_scores import QUALITY_METRICS
from gan_runtime.workloads.contract import Forward
from gan_runtime.workloads.step_context import step_scope
from tests.support.engines.small_frames import small_flows, small_pairs
from tests.support.engines.step_contexts import alone

pytestmark = pytest.mark.usefixtures("cores", "plain_float32")
WORKLOAD = workload.WORKLOAD
SMALL = Pix2pixOptions(tile=16)


class FixedNoise:
    """Uniform draws from `draws`, one tuple per row; normal draws of 1; no dropout."""

    def __init__(self, *draws: tuple[float, ...]) -> None:
        self.draws = np.float32(draws)

    def normal(self, rows: int, *shape: int) -> np.ndarray:
        return np.ones((rows, *shape), np.float32)

    def uniform(self, rows: int, *shape: int) -> np.ndarray:
        assert (rows, *shape) == self.draws.shape
        return self.draws

    def dropout(self, values: Any, rate: float) -> Any:  # noqa: ARG002
        return values


def values_of(data: Any) -> dict[str, np.ndarray]:
    return host_values(data.resident, data.fields)


def halved(source: Any, training: bool) -> Any:  # noqa: ARG001
    """A generator that halves the flow of its input."""
    return source[..., :3] * 0.5


class Judge:
    """A discriminator that returns logits of 1 for the first pair and -1 for the others, with four
    patches each.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[np.ndarray, np.ndarray]] = []

    def __call__(self, pair: list[Any], training: bool) -> Any:  # noqa: ARG002
        self.seen.append(tuple(map(np.asarray, pair)))  # type: ignore[arg-type]
        return np.full((len(pair[0]), 2, 2, 1), 1.0 if len(self.seen) == 1 else -1.0, np.float32)


def forward_of(
    phase: str, data: Any, *draws: tuple[float, ...], **options: Any
) -> tuple[dict[str, float], Judge]:
    """The numbers of one phase of a program, and the discriminator with the pairs that it read."""
    all_options, judge, noise = Pix2pixOptions(tile=16, **options), Judge(), FixedNoise(*draws)
    (declared,) = [
        each for each in WORKLOAD.program(all_options, data.fields).phases if each.name == phase
    ]
    with step_scope(alone(noise)):  # type: ignore[arg-type]
        result: Forward = declared.forward(
            {"generator": halved, "discriminator": judge}, values_of(data), noise
        )
    return {
        name: float(value) for name, value in {**result.losses, **result.scalars}.items()
    }, judge


REAL, FAKE = (
    0.3132617,
    1.3132617,
)  # cross-entropies of a logit of 1 against "real" and "generated"


def test_both_losses_come_from_one_forward_pass() -> None:
    """D rates generated images, which it reads first, 0.73 and target images 0.27."""
    data = small_flows(2)
    result, judge = forward_of("both", data, (0.0, 0.0, 0.9), (0.0, 0.99, 0.9))
    values = values_of(data)
    training_tiles = [
        (values[SOURCE][row, :, column : column + 16], values[TARGET][row, :, column : column + 16])
        for row, column in ((0, 0), (1, 4))
    ]
    difference = np.mean(
        [np.abs(0.5 * source[..., :3] - target).mean() for source, target in training_tiles]
    )
    assert result == pytest.approx(
        {
            "loss_generator": REAL + 100.0 * difference,
            "loss_discriminator": 0.5 * (FAKE + FAKE),
            "bce_generator": REAL,
            "l1_difference": difference,
            "d_real": 0.2689414,
            "d_fake": 0.7310586,
        },
        rel=1e-5,
    )
    (condition, generated), (same_condition, target) = judge.seen
    assert np.array_equal(condition, np.stack([source for source, _ in training_tiles]))
    assert np.array_equal(condition, same_condition)
    assert np.array_equal(generated, 0.5 * condition[..., :3])
    assert np.array_equal(target, np.stack([target for _, target in training_tiles]))


def test_in_turn_updates_train_d_first_then_g() -> None:
    data = small_flows(1)
    program = WORKLOAD.program(Pix2pixOptions(tile=16, updates="in_turn"), data.fields)
    assert [(phase.name, phase.batch, phase.updates[0].network) for phase in program.phases] == [
        ("discriminator", 0, "discriminator"),
        ("generator", 0, "generator"),
    ]
    (both,) = WORKLOAD.program(SMALL, data.fields).phases
    assert [update.network for update in both.updates] == ["generator", "discriminator"]
    draw = (0.0, 0.0, 0.9)
    together = forward_of("both", data, draw)[0]
    for_d, for_g = (
        forward_of(name, data, draw, updates="in_turn")[0]
        for name in ("discriminator", "generator")
    )
    assert {**for_d, **for_g} == pytest.approx(together)
    assert for_d.keys().isdisjoint(for_g)


def test_vertical_flip_negates_the_vertical_velocity() -> None:
    data = small_flows(2)
    values = values_of(data)
    _, judge = forward_of("both", data, (0.0, 0.0, 0.4), (0.0, 0.0, 0.6), flip="vertical")
    (source, _), (_, target) = judge.seen
    signs = np.float32([1, -1, -1, 1])
    assert np.array_equal(source[0], (values[SOURCE][0, ::-1] * signs)[:, :16])
    assert np.array_equal(target[0], (values[TARGET][0, ::-1] * signs[:3])[:, :16])
    assert np.array_equal(source[1], values[SOURCE][1, :, :16]), "its draw is above a half"


def test_horizontal_flip_mirrors_the_columns() -> None:
    data = small_pairs(1)
    _, judge = forward_of("both", data, (0.0, 0.0, 0.4), flip="horizontal")
    assert np.array_equal(judge.seen[0][0], values_of(data)[SOURCE][:, :, ::-1])


def test_unrolled_steps_feed_outputs_back_and_keep_the_obstacle() -> None:
    """G halves: frames of 1/2, 1/4 and 1/8 of the source, against the three true ones. D reads the
    last one next to the true frame before it.
    """
    data = small_flows(1, width=16, later=2)
    values = values_of(data)
    result, judge = forward_of("both", data, (0.0, 0.0, 0.9), unrolled=3)
    flow, obstacle = values[SOURCE][..., :3], values[SOURCE][..., 3:]
    truth = [values[TARGET], values[LATER][:, 0], values[LATER][:, 1]]
    errors = [np.abs(0.5 ** (place + 1) * flow - true).mean() for place, true in enumerate(truth)]
    assert result["l1_difference"] == pytest.approx(np.mean(errors), rel=1e-5)
    (condition, generated), (same_condition, target) = judge.seen
    assert np.array_equal(generated, 0.125 * flow)
    assert np.array_equal(target, truth[2])
    assert np.array_equal(condition, np.concatenate([truth[1], obstacle], axis=-1))
    assert np.array_equal(condition, same_condition)


def test_output_change_is_added_to_the_source_flow() -> None:
    """G halves, so the sum is 1.5 times the source, and 2.25 times after a second step."""
    data = small_flows(1, width=16, later=1)
    values = values_of(data)
    result, judge = forward_of("both", data, (0.0, 0.0, 0.9), unrolled=2, output="change")
    flow, truth = values[SOURCE][..., :3], [values[TARGET], values[LATER][:, 0]]
    errors = [np.abs(1.5 ** (place + 1) * flow - true).mean() for place, true in enumerate(truth)]
    assert result["l1_difference"] == pytest.approx(np.mean(errors), rel=1e-5)
    assert judge.seen[0][1] == pytest.approx(2.25 * flow, rel=1e-6)
    options = Pix2pixOptions(tile=16, output="change")
    output = WORKLOAD.translate(options, {"generator": halved}, values[SOURCE])
    assert np.abs(1.5 * flow).max() > 1.0, "the test has something to cut"
    assert np.asarray(output) == pytest.approx(np.clip(1.5 * flow, -1.0, 1.0), rel=1e-6)
    images = WORKLOAD.show(options, {"generator": halved}, {SOURCE: values[SOURCE]}, HostNoise(0))
    assert np.asarray(images["generated"]) == pytest.approx(
        np.clip(1.5 * flow, -1.0, 1.0), rel=1e-6
    )


def test_input_noise_changes_only_the_flow_that_g_reads() -> None:
    data = small_flows(1, width=16)
    inputs: list[np.ndarray] = []

    def generator(source: Any, training: bool) -> Any:
        inputs.append(np.asarray(source))
        return halved(source, training)

    all_options, judge, noise = (
        Pix2pixOptions(tile=16, input_noise=0.25),
        Judge(),
        FixedNoise((0.0, 0.0, 0.0)),
    )
    (both,) = WORKLOAD.program(all_options, data.fields).phases
    with step_scope(alone(noise)):  # type: ignore[arg-type]
        both.forward({"generator": generator, "discriminator": judge}, values_of(data), noise)
    source = values_of(data)[SOURCE]
    assert np.array_equal(inputs[0], source + np.float32([0.25, 0.25, 0.25, 0.0]))
    assert np.array_equal(judge.seen[0][0], source)


def test_tiles_are_cut_anywhere_in_the_frame_row_by_row() -> None:
    from gan_runtime.domains.flows import networks

    frames = np.arange(3 * 20 * 24 * 2, dtype=np.float32).reshape(3, 20, 24, 2)
    almost_one = np.nextafter(np.float32(1.0), np.float32(0.0))
    draws = np.float32([[0.0, almost_one], [almost_one, 0.0], [0.5, 0.5]])
    cut = np.asarray(networks.cut(frames, draws, 16))
    corners = [(0, 8), (4, 0), (2, 4)]
    expected = [
        frames[row, top : top + 16, column : column + 16]
        for row, (top, column) in enumerate(corners)
    ]
    assert np.array_equal(cut, np.stack(expected))
    apart = [
        np.asarray(networks.cut(frames[row : row + 1], draws[row : row + 1], 16))
        for row in range(3)
    ]
    assert np.array_equal(cut, np.concatenate(apart)), "so replicas cut the same"
    assert networks.cut(cut, draws, 16) is cut


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_outputs_are_finite_float32_in_every_precision(policy: str) -> None:
    import keras

    keras.config.set_dtype_policy(policy)
    data = small_flows(2)
    networks, noise = (
        WORKLOAD.networks(SMALL, data.fields),
        FixedNoise((0.1, 0.9, 0.0), (0.5, 0.5, 0.0)),
    )
    (both,) = WORKLOAD.program(SMALL, data.fields).phases
    with step_scope(alone(noise)):  # type: ignore[arg-type]
        result = both.forward(networks, values_of(data), noise)
    assert all(np.isfinite(float(value)) for value in {**result.losses, **result.scalars}.values())
    image = WORKLOAD.translate(SMALL, networks, values_of(data)[SOURCE][:, :, :16])
    logits = networks["discriminator"](
        [values_of(data)[SOURCE], values_of(data)[TARGET]], training=False
    )
    for output, shape in ((image, (2, 16, 16, 3)), (logits, (2, 6, 8, 1))):
        assert (np.asarray(output).dtype, tuple(output.shape)) == (np.float32, shape)
    assert np.abs(np.asarray(image)).max() <= 1.0


# ---- epochs and requests -------------------------------------------------------------------------


def test_judge_returns_cataloged_values_in_range() -> None:
    data = small_flows(2)
    noise = FixedNoise((0.0, 0.0), (0.0, 0.99))
    rows = values_of(data)
    inputs = WORKLOAD.inputs(SMALL, data.fields, rows, noise)  # type: ignore[arg-type]
    with step_scope(alone(noise)):  # type: ignore[arg-type]
        judged = WORKLOAD.judge(
            SMALL, {"generator": halved, "discriminator": Judge()}, rows, inputs
        )
    assert {name: np.asarray(values).tolist() for name, values in judged.values.items()} == {
        "real": pytest.approx([0.7310586] * 2),
        "fake": pytest.approx([0.2689414] * 2),
    }
    assert set(judged.values) == {judgement.name for judgement in ENTRY.judgements}
    scalars = {name: float(value) for name, value in judged.scalars.items()}
    declared = {metric.name for metric in ENTRY.metrics if metric.per_epoch}
    of_jobs = {metric.name for metric in (*QUALITY_METRICS, *score_metrics.METRICS)}
    assert set(scalars) == declared - of_jobs
    source, target = (np.asarray(inputs[name]) for name in (SOURCE, TARGET))
    assert np.array_equal(source[1], rows[SOURCE][1, :, 4:])
    assert scalars == pytest.approx(
        {
            **{"d_accuracy_real": 1.0, "d_accuracy_fake": 1.0},
            **{"probe_score_real": 0.7310586, "probe_score_fake": 0.2689414},
            "spread_real": target.var(axis=0).mean(),
            "spread_fake": 0.25 * source[..., :3].var(axis=0).mean(),
            "tile_error": np.abs(0.5 * source[..., :3] - target).mean(),
            "unchanged_error": np.abs(source[..., :3] - target).mean(),
        },
        rel=1e-4,
    )


def test_no_unchanged_error_if_source_has_fewer_channels() -> None:
    import keras

    data = small_pairs(2, channels=(1, 3))
    inputs = {name: keras.ops.convert_to_tensor(values_of(data)[name]) for name in (SOURCE, TARGET)}
    networks = WORKLOAD.networks(SMALL, data.fields)
    with step_scope(alone(FixedNoise())):  # type: ignore[arg-type]
        judged = WORKLOAD.judge(SMALL, networks, inputs, inputs)
    assert "unchanged_error" not in judged.scalars
    assert 0.0 < float(judged.scalars["tile_error"]) < 2.0


@pytest.mark.parametrize("data", [small_flows(3), small_pairs(3)], ids=["a flow", "pictures"])
def test_show_pairs_held_out_tiles_with_outputs(data: Any) -> None:
    few = values_of(data)
    eight, four = (
        WORKLOAD.fixed_inputs(SMALL, data.fields, few, np.random.RandomState(0), count)
        for count in (8, 4)
    )
    assert {name: values.shape[:3] for name, values in eight.items()} == dict.fromkeys(
        (SOURCE, TARGET), (8, 16, 16)
    )
    assert all(np.array_equal(eight[name][:4], four[name]) for name in four)
    networks = WORKLOAD.networks(SMALL, data.fields)
    images = {
        name: np.asarray(values)
        for name, values in WORKLOAD.show(SMALL, networks, four, HostNoise(0)).items()
    }
    (picture,) = ENTRY.pictures
    image = pictures.render(picture.renderer, tuple(images[name] for name in picture.arrays))
    assert image.mode == "RGB"
    assert len(image.getcolors(100_000)) > 20
    assert np.array_equal(images["target"], four[TARGET])


def test_tiles_are_translated_independently_and_frames_whole() -> None:
    data = small_flows(3, 32, 48)
    networks = WORKLOAD.networks(SMALL, data.fields)
    source = values_of(data)[SOURCE]
    training_tiles = source[:, :16, :16]
    together = np.asarray(WORKLOAD.translate(SMALL, networks, training_tiles))
    apart = [
        np.asarray(WORKLOAD.translate(SMALL, networks, training_tiles[row : row + 1]))
        for row in range(3)
    ]
    assert together == pytest.approx(np.concatenate(apart), abs=1e-6)
    assert WORKLOAD.translate(SMALL, networks, source).shape == (3, 32, 48, 3)
    assert WORKLOAD.tile(SMALL, data.fields) == 16


def test_entry_names_the_workload_module() -> None:
    assert importlib.import_module(ENTRY.module).WORKLOAD is WORKLOAD
