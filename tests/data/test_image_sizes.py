"""The size of the rows, where none is chosen: the usual one, or a smaller one that images have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gan_runtime.base.errors import DatasetError
from gan_runtime.data import loading, preparations
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.data.summary import Survey
from gan_runtime.records.home import Home
from tests.data.conftest import RED, Pack, encoded
from tests.data.two_classes import quiet


def survey_of(source: Path, preparation: str = "pictures", **options: Any) -> Survey:
    return preparations.survey(PreparationRequest(preparation, "photos", source, options), quiet)


def files(*sizes: tuple[int, int]) -> dict[str, bytes]:
    return {f"{number}.png": encoded(RED, size) for number, size in enumerate(sizes)}


@pytest.mark.parametrize(
    ("sizes", "options", "pixels", "skipped"),
    [
        ([(48, 48)] * 6, {}, 32, {}),
        ([(30, 200)] * 6, {}, 28, {}),
        ([(30, 200)] * 6, {"frame": "fit"}, 64, {}),
        ([(64, 64)] * 9 + [(40, 40)], {}, 64, {"too small": 1}),
        ([(64, 64)] * 8 + [(40, 40)] * 2, {}, 32, {}),
        ([(500, 500)], {}, 64, {}),
        ([(500, 500)], {"pixels": "128"}, 128, {}),
        ([(20, 20)] * 2 + [(29, 29)], {}, 28, {"too small": 2}),
    ],
)
def test_rows_have_the_usual_size_or_the_largest_that_most_images_have(
    spread: Pack,
    sizes: list[tuple[int, int]],
    options: dict[str, str],
    pixels: int,
    skipped: dict[str, int],
) -> None:
    survey = survey_of(spread(files(*sizes)), **options)
    assert survey.grid.shape[1:3] == (pixels, pixels)
    assert survey.summary.skipped.counts == skipped
    assert survey.summary.warnings == (
        (
            f"The images are stored with {pixels} × {pixels} pixels, since too few of them have"
            " more: for another size, set pixels.",
        )
        if pixels < 64
        else ()
    )


def test_images_below_every_size_are_refused_with_their_own(spread: Pack) -> None:
    with pytest.raises(DatasetError) as refused:
        survey_of(spread({**files((20, 90), (27, 15)), "torn.png": encoded()[:20]}))
    assert str(refused.value) == (
        "the images are too small: no side of the 2 images has more than 20 pixels, but at least 28"
        " × 28 are needed: give larger images."
    )


@pytest.mark.parametrize(
    ("names", "size", "layout", "pixels"),
    [
        (["1.png"], (280, 140), "side_by_side", 128),
        (["a/1.png", "b/1.png"], (70, 90), "folders", 64),
        (["1.png"], (90, 140), "halves", 32),
    ],
)
def test_pairs_have_a_size_that_fits_both_images(
    home: Home, spread: Pack, names: list[str], size: tuple[int, int], layout: str, pixels: int
) -> None:
    source = spread(dict.fromkeys(names, encoded(RED, size)))
    request = PreparationRequest("picture_pairs", "pairs", source, {"layout": layout})
    manifest = preparations.prepare(home, request, quiet)
    assert manifest is not None
    assert loading.fields_of("pairs", home)["target"].shape == (pixels, pixels, 3)
    assert manifest.warnings[0].startswith(f"The images are stored with {pixels} × {pixels}")
