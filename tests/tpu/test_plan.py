"""The programs that a check compiles, and when a stored answer is valid."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import metadata

import pytest

from gan_runtime import catalog
from gan_runtime.base.errors import AcceleratorError, DatasetError, SpecError
from gan_runtime.base.fields import IMAGES, LABELS, Field, Fields, labels, pictures
from gan_runtime.data import prepared
from gan_runtime.data.prepared import FieldRecord, Manifest
from gan_runtime.records.home import Home
from gan_runtime.records.record import now
from gan_runtime.spec import RunSpec
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.estimates import Point
from gan_runtime.tpu.plan import Reading

PAPER = {"dataset": "mnist", "batch_size_global": 512}


def test_check_starts_with_the_run_then_sweeps_precision_batches_and_cores() -> None:
    points = planning.make(PAPER, "v3:2x2").points
    assert points[0] == Point("v3:2x2", 8, 512, "mixed_bfloat16")
    assert points[1] == Point("v3:2x2", 8, 512, "float32")
    assert [point.batch_size_global for point in points[2:5]] == [64, 128, 256]
    assert [point.devices for point in points[5:]] == [1, 2, 4]


def test_only_the_run_is_compiled_without_a_sweep() -> None:
    assert len(planning.make(PAPER, "v5e:2x4", sweep=False).points) == 1


def test_frame_sweeps_precision_and_cores_and_has_its_own_answers() -> None:
    flow = {"workload": "pix2pix", "dataset": "karman"}
    frame, step = (planning.make(flow, "v3:2x2", program=program) for program in ("frame", "step"))
    batch = frame.point.batch_size_global
    assert [(point.devices, point.precision) for point in frame.points] == [
        (8, "mixed_bfloat16"),
        (8, "float32"),
        *((cores, "mixed_bfloat16") for cores in (1, 2, 4)),
    ]
    assert {point.batch_size_global for point in frame.points} == {batch}
    assert not set(frame.keys) & set(step.keys)


def test_frame_of_a_workload_without_frames_is_refused() -> None:
    with pytest.raises(DatasetError, match="data set mnist has no source, so there is no frame"):
        planning.make(PAPER, "v3:2x2", program="frame")


def test_unknown_topology_error_lists_the_valid_ones() -> None:
    with pytest.raises(
        AcceleratorError, match=r"topology is 'v9:1x1', but allowed is v2:2x2, v3:2x2"
    ):
        planning.make(PAPER, "v9:1x1")


def test_batch_not_divisible_by_the_cores_is_refused() -> None:
    with pytest.raises(SpecError, match=r"\(batch_size_global\) is 100"):
        planning.make({"batch_size_global": 100}, "v3:2x2")


def test_float16_is_refused() -> None:
    with pytest.raises(SpecError, match="float16"):
        planning.make({**PAPER, "precision": "mixed_float16"}, "v3:2x2")


def test_data_set_that_does_not_fit_is_refused_as_for_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    photos = replace(catalog.DATASETS["mnist"], fields={IMAGES: pictures(64, 64, 3)})
    monkeypatch.setitem(catalog.DATASETS, "mnist", photos)
    with pytest.raises(DatasetError, match=r"64 × 64 × 3.*28 × 28 × 1"):
        planning.make(PAPER, "v3:2x2")


def test_data_set_too_small_for_one_step_is_refused() -> None:
    with pytest.raises(DatasetError, match="digits"):
        planning.make({"dataset": "digits", "batch_size_global": 2048}, "v3:2x2")


def prepare(home: Home, fields: Fields, rows: int = 1_000) -> None:
    """Writes the manifest of a prepared data set `photos` with these fields, without its rows."""
    folder = prepared.folder(home, "photos")
    folder.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(
        name="photos",
        preparation="pictures",
        source="photos.zip",
        options={},
        content="0123456789abcdef",
        fields={name: FieldRecord.of(field) for name, field in fields.items()},
        shards=dict.fromkeys(fields, (rows,)),
        held_out=100,
        prepared_at=now(),
    )
    prepared.write_manifest(folder, manifest)


@pytest.mark.parametrize(("rows", "streamed"), [(1_000, False), (2_000_000, True)])
def test_prepared_data_set_is_read_from_the_home_and_streamed_when_large(
    rows: int, streamed: bool, home: Home
) -> None:
    fields = {IMAGES: pictures(28, 28, 1)}
    prepare(home, fields, rows)
    spec = RunSpec.parse({}).model_copy(update={"dataset": "photos"})
    assert planning.reading(spec, home) == Reading(fields, rows - 100, streamed)


def test_reading_round_trips_through_json() -> None:
    fields = {
        IMAGES: pictures(64, 64, 3),
        LABELS: labels(("cat", "dog")),
        "energy": Field((), "float32", 0.01),
    }
    reading = Reading(fields, 1200, streamed=True)
    assert Reading.from_json(json.loads(json.dumps(reading.to_json()))) == reading


@pytest.mark.parametrize(
    "other",
    [
        {IMAGES: pictures(32, 32, 1)},
        {IMAGES: pictures(28, 28, 3)},
        {IMAGES: pictures(28, 28, 1), LABELS: labels(("cat", "dog"))},
        {IMAGES: Field((28, 28, 1), "float32")},
    ],
)
def test_data_set_of_the_same_name_with_other_fields_needs_a_new_check(
    home: Home, other: Fields
) -> None:
    """A prepared data set can be replaced by another one of the same name."""
    names = set()
    for fields in ({IMAGES: pictures(28, 28, 1)}, other):
        prepare(home, fields)
        plan = planning.make({"workload": "dcgan", "dataset": "photos"}, "v3:2x2", home=home)
        names.add(planning.key(plan, plan.point))
    assert len(names) == 2


def test_checked_code_includes_all_workloads_and_their_options() -> None:
    modules = {
        place
        for entry in catalog.WORKLOADS.values()
        for place in (entry.module, entry.options.__module__)
    }
    assert {module.split(".")[1] for module in modules} <= set(planning.CODE)


def test_data_set_with_another_number_of_rows_needs_a_new_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = name()
    monkeypatch.setitem(catalog.DATASETS, "mnist", replace(catalog.DATASETS["mnist"], rows=50_000))
    assert name() != before


def name(**options: object) -> str:
    plan = planning.make({**PAPER, **options}, "v3:2x2")
    return planning.key(plan, plan.point)


@pytest.mark.parametrize(
    "option",
    [
        {"seed": 9},
        {"name": "other"},
        {"epochs": 2},
        {"keep_checkpoints": 9},
        {"alarm_action": "stop"},
    ],
)
def test_option_that_does_not_affect_the_step_keeps_the_answer(option: dict[str, object]) -> None:
    assert name(**option) == name()


@pytest.mark.parametrize(
    "option",
    [
        {"ema_decay": 0.9},
        {"steps_per_loop": 20},
        {"updates": "in_turn"},
        {"dataset": "digits"},
        {"optimizer": "sgd"},
    ],
)
def test_an_option_that_changes_the_step_needs_a_new_check(option: dict[str, object]) -> None:
    assert name(**option) != name()


def test_another_compiler_version_needs_a_new_check(monkeypatch: pytest.MonkeyPatch) -> None:
    before = name()
    monkeypatch.setattr(planning, "versions", lambda: {"libtpu": "9.9"})
    assert name() != before


def test_missing_compiler_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def version(name: str) -> str:
        if name in ("jax", "libtpu"):
            raise metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(metadata, "version", version)
    assert (
        planning.missing_library()
        == "jax and libtpu are not installed here: the TPU's compiler exists for Linux on x86-64"
        " only. Run `make setup` on a machine of this kind."
    )
