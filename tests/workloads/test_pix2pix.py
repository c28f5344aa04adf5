"""Pix2Pix: the authors' layers and constants, what it reads and refuses, and what a step and an epoch tell of known images."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from gan_runtime import pictures
from gan_runtime.catalog import flow_scores
from gan_runtime.catalog.pix2pix import ENTRY, Pix2pixOptions, halvings, patch_pixels, plan
from gan_runtime.catalog.pix2pix_fields import fitted, reads
from gan_runtime.engines.values import host_values
from gan_runtime.errors import DatasetError, SpecError
from gan_runtime.fields import Fields
from gan_runtime.fields import pictures as picture_field
from gan_runtime.frame_fields import LATER, SOURCE, TARGET, flow_fields, pair_fields
from gan_runtime.spec import RunSpec
from gan_runtime.workloads import pix2pix
from gan_runtime.workloads.contract import Forward
from gan_runtime.workloads.step_context import step_scope
from tests.engines.small_frames import small_flows, small_pairs
from tests.engines.step_contexts import alone

pytestmark = pytest.mark.usefixtures("cores", "plain_float32")
WORKLOAD = pix2pix.WORKLOAD
SMALL = Pix2pixOptions(tile=16)
FLOW = flow_fields(16, 20)


@pytest.fixture
def plain_float32() -> None:
    """New layers compute in float32 and start from the same weights in every test."""
    import keras

    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy("float32")


# ---- the authors' networks ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def full() -> dict[str, Any]:
    """At 256 pixels, RGB to RGB."""
    import keras

    keras.config.set_dtype_policy("float32")
    return WORKLOAD.networks(Pix2pixOptions(size="full", tile=256), pair_fields(256, 256))


def weights(network: Any) -> list[tuple[str, int]]:
    return [(layer.name, layer.count_params()) for layer in network.layers if layer.count_params()]


def test_the_full_generator_is_that_of_the_authors_layer_by_layer(full: dict[str, Any]) -> None:
    assert weights(full["generator"]) == [
        ("down_0", 3_136),
        *(("down_1", 131_072), ("norm_down_1", 512)),
        *(("down_2", 524_288), ("norm_down_2", 1_024)),
        *(("down_3", 2_097_152), ("norm_down_3", 2_048)),
        *(("down_4", 4_194_304), ("norm_down_4", 2_048)),
        *(("down_5", 4_194_304), ("norm_down_5", 2_048)),
        *(("down_6", 4_194_304), ("norm_down_6", 2_048)),
        ("down_7", 4_194_816),
        *(("up_7", 4_194_304), ("norm_up_7", 2_048)),
        *(("up_6", 8_388_608), ("norm_up_6", 2_048)),
        *(("up_5", 8_388_608), ("norm_up_5", 2_048)),
        *(("up_4", 8_388_608), ("norm_up_4", 2_048)),
        *(("up_3", 4_194_304), ("norm_up_3", 1_024)),
        *(("up_2", 1_048_576), ("norm_up_2", 512)),
        *(("up_1", 262_144), ("norm_up_1", 256)),
        ("up_0", 6_147),
    ]
    assert full["generator"].count_params() == 54_424_387


def test_the_full_discriminator_is_that_of_the_authors_layer_by_layer(full: dict[str, Any]) -> None:
    assert weights(full["discriminator"]) == [
        ("conv_0", 6_208),
        *(("conv_1", 131_072), ("norm_1", 512)),
        *(("conv_2", 524_288), ("norm_2", 1_024)),
        *(("conv_3", 2_097_152), ("norm_3", 2_048)),
        ("logits", 8_193),
    ]
    assert full["discriminator"].count_params() == 2_770_497
    strides = [full["discriminator"].get_layer(f"conv_{place}").strides[0] for place in range(4)]
    assert strides == [2, 2, 2, 1]
    assert full["discriminator"].get_layer("logits").compute_output_shape((1, 31, 31, 512)) == (1, 30, 30, 1)


def test_slopes_dropout_and_new_weights_are_those_of_the_authors(full: dict[str, Any]) -> None:
    layers = {f"{name}/{layer.name}": layer for name, network in full.items() for layer in network.layers}
    slopes = {layer.negative_slope for name, layer in layers.items() if "leaky" in name}
    dropped = {name: layer.rate for name, layer in layers.items() if "dropout" in name}
    norms = [layer for name, layer in layers.items() if "/norm" in name]
    convolutions = [layer for name, layer in layers.items() if hasattr(layer, "kernel")]
    assert slopes == {0.2}
    assert dropped == {f"generator/dropout_{block}": 0.5 for block in (1, 2, 3)}
    assert {(norm.momentum, norm.epsilon) for norm in norms} == {(0.9, 1e-5)}
    assert {layer.kernel.shape[:2] for layer in convolutions} == {(4, 4)}
    gamma = np.concatenate([np.asarray(norm.gamma) for norm in norms])
    assert (gamma.mean(), gamma.std()) == pytest.approx((1.0, 0.02), rel=0.05)
    assert {round(float(np.std(layer.kernel)), 3) for layer in convolutions} == {0.02}


def test_a_logit_sees_70_pixels_where_a_tile_has_so_many(full: dict[str, Any]) -> None:
    assert [patch_pixels(count) for count in (1, 2, 3)] == [16, 34, 70]
    assert [halvings(tile) for tile in (16, 32, 64, 128, 256)] == [1, 1, 2, 3, 3]
    discriminator, (row, column) = full["discriminator"], (15, 12)
    pair = np.random.default_rng(1).uniform(-1, 1, (1, 256, 256, 6)).astype(np.float32)
    far = pair.copy()
    top, left = row * 8 - 23, column * 8 - 23  # of the 70 pixels of this logit
    far[:, top : top + 70, left : left + 70] = pair[:, top : top + 70, left : left + 70] * 0.0
    seen = pair.copy()
    seen[:, :top], seen[:, top + 70 :], seen[:, :, :left], seen[:, :, left + 70 :] = 0.0, 0.0, 0.0, 0.0
    logits = [
        np.asarray(discriminator([each[..., :3], each[..., 3:]], training=False))[0, row, column, 0]
        for each in (pair, seen, far)
    ]
    assert logits[1] == pytest.approx(logits[0], abs=1e-6)
    assert abs(logits[2] - logits[0]) > 1e-4


def test_the_defaults_are_the_authors_constants() -> None:
    spec = RunSpec.parse({"workload": "pix2pix"})
    options = spec.of_workload
    assert (spec.optimizer, spec.adam_beta_1) == ("adam", 0.5)
    assert (options.learning_rate_generator, options.learning_rate_discriminator) == (2e-4, 2e-4)
    assert (options.weight_l1, options.weight_discriminator, options.dropout) == (100, 0.5, 0.5)
    assert (options.updates, options.unrolled, options.input_noise, options.flip) == (
        "together",
        1,
        0,
        "none",
    )


SIZES: dict[str, tuple[dict[str, Any], Fields]] = {
    "a flow": ({"tile": 64}, flow_fields(80, 192)),
    "a small tile": ({"tile": 16}, FLOW),
    "drawings in grey to photos": ({"tile": 128}, pair_fields(128, 128, 1, 3)),
}


@pytest.mark.parametrize("name", SIZES)
def test_the_catalog_counts_the_weights_and_what_a_step_keeps(name: str) -> None:
    given, fields = SIZES[name]
    options = Pix2pixOptions(**given)
    networks = WORKLOAD.networks(options, fields)
    size = ENTRY.size(options, fields)
    assert sum(network.count_params() for network in networks.values()) == size.parameters
    kept = sum(
        np.prod(np.shape(output))
        for network, times in ((networks["generator"], 1), (networks["discriminator"], 2))
        for output in outputs_of_layers(network, options.tile, times)
    )
    assert 0.5 < size.activations_per_row / kept < 2


def outputs_of_layers(network: Any, tile: int, times: int) -> list[np.ndarray]:
    """What every layer makes of one tile, so many times."""
    import keras

    tapped = keras.Model(network.inputs, [layer.output for layer in network.layers])
    tiles = [np.zeros((1, tile, tile, given.shape[-1]), np.float32) for given in network.inputs]
    return list(tapped(tiles, training=False)) * times


def test_the_full_sizes_are_counted_as_well(full: dict[str, Any]) -> None:
    counted = sum(network.count_params() for network in full.values())
    options = Pix2pixOptions(size="full", tile=256)
    assert ENTRY.size(options, pair_fields(256, 256)).parameters == counted == 57_194_884
    assert plan(options).encoder == (64, 128, 256, 512, 512, 512, 512, 512)


# ---- what it reads ------------------------------------------------------------------------------------------------


def test_a_flow_may_be_turned_upside_down_and_in_no_other_way() -> None:
    assert set(reads(Pix2pixOptions(tile=16, flip="vertical"), FLOW)) == {SOURCE, TARGET}
    with pytest.raises(
        DatasetError, match="a direction from left to right, which flip=horizontal would turn round"
    ):
        reads(Pix2pixOptions(tile=16, flip="horizontal"), FLOW)
    assert set(reads(Pix2pixOptions(tile=16, flip="horizontal"), pair_fields(16, 16))) == {SOURCE, TARGET}


@pytest.mark.parametrize(
    ("options", "offered", "sentence"),
    [
        (
            {},
            FLOW,
            "its source are 16 × 20 × 4, but an image of at least 64 × 64 is needed: use data set karman",
        ),
        ({}, {"images": picture_field(28, 28, 1)}, "it has no source, only images"),
        (
            {"tile": 16},
            {**FLOW, TARGET: pair_fields(16, 16)[TARGET]},
            "its target are 16 × 16 × 3, but an image of 16 × 20, as its source is, is needed",
        ),
        ({"tile": 16, "unrolled": 2}, FLOW, "it has no later, only source and target"),
        (
            {"tile": 16, "unrolled": 2},
            pair_fields(16, 16, 1, 3),
            "its target has 3 channels and its source 1, so that what is made cannot be fed back: use unrolled=1",
        ),
        (
            {"tile": 16, "unrolled": 4},
            flow_fields(16, 20, 2),
            "its later are 2 × 16 × 20 × 3, but 3 × 16 × 20 × 3, 3 or more frames after the target, is needed",
        ),
    ],
)
def test_data_that_does_not_fit_is_refused_with_the_reason(
    options: dict[str, Any], offered: Fields, sentence: str
) -> None:
    with pytest.raises(DatasetError, match=sentence):
        reads(Pix2pixOptions(**options), offered)


def test_the_frames_after_the_target_are_read_only_for_unrolled_steps() -> None:
    offered = flow_fields(16, 20, 2)
    assert set(reads(SMALL, offered)) == {SOURCE, TARGET}
    assert set(reads(Pix2pixOptions(tile=16, unrolled=3), offered)) == {SOURCE, TARGET, LATER}


@pytest.mark.parametrize(
    ("height", "width", "tile"), [(40, 96, 32), (200, 150, 128), (16, 16, 16), (8, 8, 16), (600, 1_024, 512)]
)
def test_the_largest_tile_that_fits_into_the_images_is_offered(height: int, width: int, tile: int) -> None:
    assert fitted(pair_fields(height, width)) == {"tile": tile}
    assert fitted({"images": picture_field(28, 28, 1)}) == {}


def test_a_tile_that_cannot_be_halved_down_to_one_pixel_is_refused() -> None:
    with pytest.raises(SpecError, match="tile is 48, but allowed is a power of two: use 32 or 64"):
        RunSpec.parse({"workload": "pix2pix", "tile": 48})


# ---- a step -------------------------------------------------------------------------------------------------------


class Known:
    """Even draws that stand in `draws` for each row, normal ones of 1, and no dropout."""

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
    """A generator that makes half of the flow that it is shown."""
    return source[..., :3] * 0.5


class Judge:
    """A discriminator of logits 1 for the first pair that it is shown and -1 for the others, four patches each."""

    def __init__(self) -> None:
        self.seen: list[tuple[np.ndarray, np.ndarray]] = []

    def __call__(self, pair: list[Any], training: bool) -> Any:  # noqa: ARG002
        self.seen.append(tuple(map(np.asarray, pair)))  # type: ignore[arg-type]
        return np.full((len(pair[0]), 2, 2, 1), 1.0 if len(self.seen) == 1 else -1.0, np.float32)


def forward_of(
    phase: str, data: Any, *draws: tuple[float, ...], **options: Any
) -> tuple[dict[str, float], Judge]:
    """Numbers of one phase of a program, and what D saw in it."""
    chosen, judge, noise = Pix2pixOptions(tile=16, **options), Judge(), Known(*draws)
    (own,) = [each for each in WORKLOAD.program(chosen, data.fields).phases if each.name == phase]
    with step_scope(alone(noise)):  # type: ignore[arg-type]
        found: Forward = own.forward({"generator": halved, "discriminator": judge}, values_of(data), noise)
    return {name: float(value) for name, value in {**found.losses, **found.scalars}.items()}, judge


REAL, FAKE = 0.3132617, 1.3132617  # cross-entropies of a logit of 1 against "real", and against "generated"


def test_both_losses_come_from_one_forward_pass() -> None:
    """D believes 0.73 of what is generated, which it is shown first, and 0.27 of what is real."""
    data = small_flows(2)
    found, judge = forward_of("both", data, (0.0, 0.0, 0.9), (0.0, 0.99, 0.9))
    values = values_of(data)
    tiles = [
        (values[SOURCE][row, :, left : left + 16], values[TARGET][row, :, left : left + 16])
        for row, left in ((0, 0), (1, 4))
    ]
    difference = np.mean([np.abs(0.5 * source[..., :3] - target).mean() for source, target in tiles])
    assert found == pytest.approx(
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
    (beside, made), (also_beside, real) = judge.seen
    assert np.array_equal(beside, np.stack([source for source, _ in tiles]))
    assert np.array_equal(beside, also_beside)
    assert np.array_equal(made, 0.5 * beside[..., :3])
    assert np.array_equal(real, np.stack([target for _, target in tiles]))


def test_in_turn_d_learns_first_and_g_against_the_new_d() -> None:
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
        forward_of(name, data, draw, updates="in_turn")[0] for name in ("discriminator", "generator")
    )
    assert {**for_d, **for_g} == pytest.approx(together)
    assert for_d.keys().isdisjoint(for_g)


def test_upside_down_a_flow_goes_down_where_it_went_up() -> None:
    data = small_flows(2)
    values = values_of(data)
    _, judge = forward_of("both", data, (0.0, 0.0, 0.4), (0.0, 0.0, 0.6), flip="vertical")
    (source, _), (_, target) = judge.seen
    signs = np.float32([1, -1, -1, 1])
    assert np.array_equal(source[0], (values[SOURCE][0, ::-1] * signs)[:, :16])
    assert np.array_equal(target[0], (values[TARGET][0, ::-1] * signs[:3])[:, :16])
    assert np.array_equal(source[1], values[SOURCE][1, :, :16]), "its draw is above a half"


def test_pictures_may_be_turned_from_left_to_right() -> None:
    data = small_pairs(1)
    _, judge = forward_of("both", data, (0.0, 0.0, 0.4), flip="horizontal")
    assert np.array_equal(judge.seen[0][0], values_of(data)[SOURCE][:, :, ::-1])


def test_unrolled_steps_go_on_from_what_was_made_and_keep_the_obstacle() -> None:
    """G halves: frames 1/2, 1/4 and 1/8 of the source beside the three true ones; D sees the last beside what truly came before."""
    data = small_flows(1, width=16, later=2)
    values = values_of(data)
    found, judge = forward_of("both", data, (0.0, 0.0, 0.9), unrolled=3)
    flow, obstacle = values[SOURCE][..., :3], values[SOURCE][..., 3:]
    truth = [values[TARGET], values[LATER][:, 0], values[LATER][:, 1]]
    errors = [np.abs(0.5 ** (place + 1) * flow - true).mean() for place, true in enumerate(truth)]
    assert found["l1_difference"] == pytest.approx(np.mean(errors), rel=1e-5)
    (beside, made), (also_beside, real) = judge.seen
    assert np.array_equal(made, 0.125 * flow)
    assert np.array_equal(real, truth[2])
    assert np.array_equal(beside, np.concatenate([truth[1], obstacle], axis=-1))
    assert np.array_equal(beside, also_beside)


def test_noise_moves_what_is_fed_back_but_no_obstacle_and_d_does_not_see_it() -> None:
    data = small_flows(1, width=16)
    asked: list[np.ndarray] = []

    def generator(source: Any, training: bool) -> Any:
        asked.append(np.asarray(source))
        return halved(source, training)

    chosen, judge, noise = Pix2pixOptions(tile=16, input_noise=0.25), Judge(), Known((0.0, 0.0, 0.0))
    (both,) = WORKLOAD.program(chosen, data.fields).phases
    with step_scope(alone(noise)):  # type: ignore[arg-type]
        both.forward({"generator": generator, "discriminator": judge}, values_of(data), noise)
    source = values_of(data)[SOURCE]
    assert np.array_equal(asked[0], source + np.float32([0.25, 0.25, 0.25, 0.0]))
    assert np.array_equal(judge.seen[0][0], source)


def test_tiles_are_cut_anywhere_within_the_frame_and_rows_by_themselves() -> None:
    from gan_runtime.workloads import tiles

    frames = np.arange(3 * 20 * 24 * 2, dtype=np.float32).reshape(3, 20, 24, 2)
    almost_one = np.nextafter(np.float32(1.0), np.float32(0.0))
    draws = np.float32([[0.0, almost_one], [almost_one, 0.0], [0.5, 0.5]])
    cut = np.asarray(tiles.cut(frames, draws, 16))
    corners = [(0, 8), (4, 0), (2, 4)]
    expected = [frames[row, top : top + 16, left : left + 16] for row, (top, left) in enumerate(corners)]
    assert np.array_equal(cut, np.stack(expected))
    apart = [np.asarray(tiles.cut(frames[row : row + 1], draws[row : row + 1], 16)) for row in range(3)]
    assert np.array_equal(cut, np.concatenate(apart)), "so replicas cut the same"
    assert tiles.cut(cut, draws, 16) is cut


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_in_every_precision_images_and_logits_are_finite_float32(policy: str) -> None:
    import keras

    keras.config.set_dtype_policy(policy)
    data = small_flows(2)
    networks, noise = WORKLOAD.networks(SMALL, data.fields), Known((0.1, 0.9, 0.0), (0.5, 0.5, 0.0))
    (both,) = WORKLOAD.program(SMALL, data.fields).phases
    with step_scope(alone(noise)):  # type: ignore[arg-type]
        found = both.forward(networks, values_of(data), noise)
    assert all(np.isfinite(float(value)) for value in {**found.losses, **found.scalars}.values())
    image = WORKLOAD.translate(SMALL, networks, values_of(data)[SOURCE][:, :, :16])
    logits = networks["discriminator"]([values_of(data)[SOURCE], values_of(data)[TARGET]], training=False)
    for output, shape in ((image, (2, 16, 16, 3)), (logits, (2, 6, 8, 1))):
        assert (np.asarray(output).dtype, tuple(output.shape)) == (np.float32, shape)
    assert np.abs(np.asarray(image)).max() <= 1.0


# ---- an epoch, and on request -------------------------------------------------------------------------------------


def test_what_is_judged_stands_in_the_catalog_and_lies_in_its_range() -> None:
    data = small_flows(2)
    noise = Known((0.0, 0.0), (0.0, 0.99))
    rows = values_of(data)
    inputs = WORKLOAD.inputs(SMALL, data.fields, rows, noise)  # type: ignore[arg-type]
    with step_scope(alone(noise)):  # type: ignore[arg-type]
        judged = WORKLOAD.judge(SMALL, {"generator": halved, "discriminator": Judge()}, rows, inputs)
    assert {name: np.asarray(values).tolist() for name, values in judged.values.items()} == {
        "real": pytest.approx([0.7310586] * 2),
        "fake": pytest.approx([0.2689414] * 2),
    }
    assert set(judged.values) == {judgement.name for judgement in ENTRY.judgements}
    scalars = {name: float(value) for name, value in judged.scalars.items()}
    declared = {metric.name for metric in ENTRY.metrics if metric.per_epoch}
    assert set(scalars) == declared - {metric.name for metric in flow_scores.METRICS}, "those come by a job"
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


def test_a_source_of_fewer_channels_is_no_output() -> None:
    import keras

    data = small_pairs(2, channels=(1, 3))
    inputs = {name: keras.ops.convert_to_tensor(values_of(data)[name]) for name in (SOURCE, TARGET)}
    networks = WORKLOAD.networks(SMALL, data.fields)
    with step_scope(alone(Known())):  # type: ignore[arg-type]
        judged = WORKLOAD.judge(SMALL, networks, inputs, inputs)
    assert "unchanged_error" not in judged.scalars
    assert 0.0 < float(judged.scalars["tile_error"]) < 2.0


@pytest.mark.parametrize("data", [small_flows(3), small_pairs(3)], ids=["a flow", "pictures"])
def test_pictures_show_held_out_tiles_beside_what_is_made_of_them(data: Any) -> None:
    few = values_of(data)
    eight, four = (
        WORKLOAD.fixed_inputs(SMALL, data.fields, few, np.random.RandomState(0), count) for count in (8, 4)
    )
    assert {name: values.shape[:3] for name, values in eight.items()} == dict.fromkeys(
        (SOURCE, TARGET), (8, 16, 16)
    )
    assert all(np.array_equal(eight[name][:4], four[name]) for name in four)
    networks = WORKLOAD.networks(SMALL, data.fields)
    shown = {name: np.asarray(values) for name, values in WORKLOAD.show(SMALL, networks, four).items()}
    (picture,) = ENTRY.pictures
    drawn = pictures.render(picture.renderer, tuple(shown[name] for name in picture.arrays))
    assert drawn.mode == "RGB"
    assert len(drawn.getcolors(100_000)) > 20
    assert np.array_equal(shown["target"], four[TARGET])


def test_a_tile_is_translated_by_itself_and_a_whole_frame_at_once() -> None:
    data = small_flows(3, 32, 48)
    networks = WORKLOAD.networks(SMALL, data.fields)
    source = values_of(data)[SOURCE]
    tiles = source[:, :16, :16]
    together = np.asarray(WORKLOAD.translate(SMALL, networks, tiles))
    apart = [np.asarray(WORKLOAD.translate(SMALL, networks, tiles[row : row + 1])) for row in range(3)]
    assert together == pytest.approx(np.concatenate(apart), abs=1e-6)
    assert WORKLOAD.translate(SMALL, networks, source).shape == (3, 32, 48, 3)
    assert WORKLOAD.tile(SMALL, data.fields) == 16


def test_the_entry_names_the_module_of_the_workload() -> None:
    assert importlib.import_module(ENTRY.module).WORKLOAD is WORKLOAD
