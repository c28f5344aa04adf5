"""Data sets allowed for a run: any prepared one with the fields that the workload reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gan_runtime.base.errors import DatasetError, RunStateError, SpecError
from gan_runtime.base.fields import IMAGES, LABELS, labels, needed, pair_fields, pictures
from gan_runtime.data import loading, preparations, prepared
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.tpu import plan as planning
from tests.data.conftest import RED, Pack, encoded
from tests.support.asking import ask, ask_of

Prepare = Callable[..., None]


@pytest.fixture
def prepare(home: Home, spread: Pack) -> Prepare:
    """`prepare(pixels="28", color="gray")` prepares eight pictures as `photos`."""

    def make(**options: str) -> None:
        folder: Path = spread({f"{number}.png": encoded(RED) for number in range(8)})
        preparations.prepare(
            home, PreparationRequest("pictures", "photos", folder, options), lambda *_: None
        )

    return make


def sentence(act: Callable[[], Any]) -> str:
    with pytest.raises((DatasetError, SpecError)) as refused:
        act()
    return str(refused.value)


def photos(**options: Any) -> RunSpec:
    return RunSpec.parse({"dataset": "photos", "batch_size_global": 8, **options})


def test_a_run_can_use_any_prepared_data_set_that_fits(
    home: Home, host: Host, prepare: Prepare
) -> None:
    prepare(pixels="28", color="gray")
    assert ask(home, host).submit(photos()).spec().dataset == "photos"
    assert loading.check(photos(), home) == {IMAGES: pictures(28, 28, 1)}
    assert loading.rows("photos", home) == 8


def test_an_unsuitable_data_set_is_refused_with_one_reason_everywhere(
    home: Home, host: Host, prepare: Prepare
) -> None:
    prepare(pixels="32", color="rgb")
    said = sentence(lambda: ask(home, host).submit(photos()))
    assert (
        said
        == "data set photos does not fit workload dcgan_mnist: its images are 32 × 32 × 3, but 28 ×"
        " 28 × 1 is needed: use a data set of grayscale images of 28 pixels, or another"
        " workload."
    )
    values = photos().model_dump() | {"batch_size_global": 64}
    assert sentence(lambda: planning.make(values, "v3:2x2", home=home)) == said
    assert not home.run_dirs()


def test_stacked_digits_do_not_fit_grayscale_networks() -> None:
    spec = RunSpec.parse({"dataset": "stacked_digits"})
    assert "its images are 28 × 28 × 3, but 28 × 28 × 1 is needed" in sentence(
        lambda: loading.check(spec)
    )


def test_workloads_for_a_data_set_are_those_that_can_read_it() -> None:
    assert {"dcgan_mnist", "dcgan", "mlp_gan"} <= set(
        loading.workloads_for({IMAGES: pictures(28, 28, 1)})
    )
    for_color = loading.workloads_for({IMAGES: pictures(64, 64, 3), LABELS: labels(("cat", "dog"))})
    assert "dcgan" in for_color
    assert {"dcgan_mnist", "mlp_gan", "pix2pix", "shower_3dgan"}.isdisjoint(for_color)
    assert "dcgan" not in loading.workloads_for({LABELS: labels(("cat",))})
    assert "pix2pix" in loading.workloads_for(pair_fields(32, 32)), (
        "with a smaller tile than the usual one"
    )
    assert "pix2pix" not in loading.workloads_for(pair_fields(8, 8))


def test_a_missing_data_set_is_refused_with_the_available_ones(home: Home, host: Host) -> None:
    said = sentence(lambda: ask(home, host).submit(photos()))
    assert said.startswith("there is no data set 'photos', only digits")


def test_a_data_set_with_fewer_rows_than_a_step_is_refused(
    home: Home, host: Host, prepare: Prepare
) -> None:
    prepare(pixels="28", color="gray")
    said = sentence(lambda: ask(home, host).submit(photos(batch_size_global=16)))
    assert "but photos has only 8 images" in said


def test_missing_labels_are_reported_with_advice() -> None:
    offered = {IMAGES: pictures(28, 28, 1)}
    advice = "use an unconditional workload"
    said = sentence(
        lambda: needed(offered, LABELS, lambda shape: shape == (), "one number", advice)
    )
    assert said == "it has no labels, only images: use an unconditional workload."
    assert needed(
        {LABELS: labels(("a",))}, LABELS, lambda shape: shape == (), "one number", advice
    ).classes == ("a",)


def test_a_data_set_of_a_queued_run_cannot_be_removed(
    home: Home, prepare: Prepare, new_run: Callable[..., RunDir]
) -> None:
    prepare(pixels="28", color="gray")
    run = new_run("quick-0001", dataset="photos")
    new_run("quick-0002", dataset="digits")
    with pytest.raises(RunStateError) as refused:
        ask(home).remove_data("photos")
    assert (
        str(refused.value)
        == "data set photos is used by run quick-0001, which is queued: stop it first."
    )
    ask_of(run).delete(run.run_id)
    ask(home).remove_data("photos")
    assert prepared.names(home) == []
