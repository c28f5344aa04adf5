"""Several kinds of images under one slider: on the page of a run, Compare and Home."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.samples import sample_images
from gan_runtime import pictures
from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir
from tests.pages.reading import texts
from tests.support.small_pictures import write_grid

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]
LABELS = np.repeat(np.arange(8), 8)


def sample(kind: str, epoch: int) -> journal.Sample:
    return journal.Sample(
        epoch=epoch,
        step=10 * epoch,
        sample_kind=kind,
        file=f"samples/{kind}-{epoch:05d}.png",
        meta={},
    )


def with_two_kinds(trained: Make, run_id: str, **options: float) -> None:
    """Creates a run with the usual grids after both epochs and rows by class after the first."""
    run = trained(run_id, after_epoch_1=(sample("samples", 1), sample("by_class", 1)), **options)
    write_grid(run.sample_file("samples", 1))
    images = np.zeros((64, 28, 28, 1), np.float32)
    pictures.save(
        pictures.render("labelled_grid", (images, LABELS)), run.sample_file("by_class", 1)
    )


def image_texts(app: AppTest) -> list[str]:
    """The alternative texts of the images on the page."""
    return [picture.alt for element in app.get("image") for picture in element.proto.imgs]


def choices(app: AppTest) -> list[str]:
    """The kinds of images to choose from, or none without a choice."""
    return [
        name
        for element in app.segmented_control
        if element.key and element.key.endswith(".kind")
        for name in element.options
    ]


def test_a_single_sample_kind_offers_no_choice(show: Show, trained: Make) -> None:
    trained("quick-0001")
    for tab in ("samples", "overview"):
        app = show("run", run="quick-0001", tab=tab)
        assert not app.exception
        assert choices(app) == []
        assert image_texts(app) == ["Generated images of quick-0001 after epoch 2."]


@pytest.mark.parametrize(
    ("tab", "key"), [("samples", "samples.quick-0001"), ("overview", "run.quick-0001")]
)
def test_several_sample_kinds_offer_a_choice(show: Show, trained: Make, tab: str, key: str) -> None:
    with_two_kinds(trained, "quick-0001")
    app = show("run", run="quick-0001", tab=tab)
    assert choices(app) == ["Generated images", "By class"]
    assert image_texts(app) == ["Generated images of quick-0001 after epoch 2."]
    app.segmented_control(key=f"{key}.kind").set_value("by_class").run()
    assert not app.exception
    assert image_texts(app) == ["By class of quick-0001 after epoch 1."]
    assert app.slider[0].value == 1, "the newest epoch of this kind"
    app.slider[0].set_value(2).run()
    assert image_texts(app) == ["By class of quick-0001 after epoch 1."]
    assert "After epoch 1, step 10 (its last)" in texts(app)


def test_compare_reports_a_run_without_the_selected_kind(show: Show, trained: Make) -> None:
    with_two_kinds(trained, "quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", tab="samples", runs="quick-0001,quick-0002")
    assert len(image_texts(app)) == 2
    app.segmented_control(key="compare.samples.kind").set_value("by_class").run()
    assert not app.exception
    assert image_texts(app) == ["By class of quick-0001 after epoch 1."]
    assert "This run makes no images called “By class”." in texts(app)


def test_home_shows_the_first_sample_kind(show: Show, trained: Make) -> None:
    with_two_kinds(trained, "quick-0001")
    assert image_texts(show("home")) == ["Generated images of quick-0001 after epoch 2."]


def test_a_kind_without_a_workload_title_uses_its_own_name() -> None:
    assert sample_images.title("samples", []) == "Samples"
    assert sample_images.title("by_class", []) == "By class"
