"""The summary of a preparation, which a user checks before training."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from gan_runtime.data import preparations, prepared
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.data.summary import MOST_SKIPS, Quantity, Skip, SkippedFiles, Summary, Tally
from gan_runtime.pictures.sheet import GAP
from gan_runtime.records.home import Home
from tests.data.conftest import BLUE, GREEN, Pack, encoded


def test_a_manifest_counts_rows_by_class_and_split(home: Home, spread: Pack) -> None:
    files = {f"fern/{number}.png": encoded(GREEN) for number in range(14)}
    files |= {f"sky/{number}.png": encoded(BLUE) for number in range(6)}
    options = {"pixels": "32", "held_out_percent": "30"}
    preparations.prepare(
        home, PreparationRequest("pictures", "plants", spread(files), options), lambda *_: None
    )
    summary = prepared.manifest(home, "plants")
    assert (summary.counts, summary.held_out) == ({"fern": 14, "sky": 6}, 6)
    data = prepared.open_set(home, "plants")
    held_out = data.read_held_out(6)["labels"].tolist()
    assert summary.by_split() == {
        "fern": (14 - held_out.count(0), held_out.count(0)),
        "sky": (6 - held_out.count(1), held_out.count(1)),
    }


def test_flows_are_counted_by_reynolds_number(home: Home) -> None:
    options = {
        "reynolds": "60, 90",
        "held_out_reynolds": "75",
        "frames": "4",
        "discarded": "0",
        "later": "0",
    }
    request = PreparationRequest("karman_small", "brief", None, {**options, "steps_per_frame": "1"})
    preparations.prepare(home, request, lambda *_: None)
    summary = prepared.manifest(home, "brief")
    assert summary.by_split() == {"Re 60": (3, 0), "Re 90": (3, 0), "Re 75": (0, 3)}
    assert summary.held_out == 3


def test_the_first_rows_image_shows_at_least_five_pairs(home: Home, spread: Pack) -> None:
    pairs = {f"{letter}.png": encoded(GREEN, (80, 40)) for letter in "abcdefgh"}
    options = {"layout": "side_by_side", "pixels": "32"}
    preparations.prepare(
        home, PreparationRequest("picture_pairs", "both", spread(pairs), options), lambda *_: None
    )
    path = prepared.first_rows_image(home, "both")
    assert path is not None
    picture = Image.open(path)
    assert picture.size == (2 * 64 + GAP, 3 * 32 + 2 * GAP)  # six pairs, two per row
    assert (np.asarray(picture) == GREEN).all(axis=-1).sum() == 6 * 64 * 32


def test_pairs_of_large_images_are_drawn_smaller() -> None:
    image = Image.open(io.BytesIO(prepared.png_of_pairs(np.zeros((3, 512, 1024, 3), np.uint8))))
    assert image.width == prepared.WIDEST_PAIRS


def test_skipped_files_are_summarized_with_examples_of_each_kind() -> None:
    skips = [
        Skip(name=f"{letter}.png", kind="too small", reason="it is small") for letter in "abcd"
    ]
    torn = Skip(name="z.jpg", kind="damaged", reason="it is damaged")
    skipped = SkippedFiles(counts={"too small": 4, "damaged": 1}, first=(*skips, torn), hidden=1)
    assert (
        skipped.in_words()
        == "5 files skipped: too small 4 (a.png, b.png, c.png, …), damaged 1 (z.jpg). 1 hidden file"
        " skipped."
    )
    assert SkippedFiles().in_words() == ""


def test_a_rare_skip_kind_keeps_its_example() -> None:
    tally = Tally(hidden=0)
    for number in range(MOST_SKIPS + 5):
        tally.skip(Skip(name=f"{number}.txt", kind="no image", reason="it is text"))
    tally.skip(Skip(name="rare.png", kind="damaged", reason="it is damaged"))
    assert "damaged 1 (rare.png)" in tally.skipped.in_words()


def test_the_summary_has_sentences_for_conversions_quantities_and_note() -> None:
    summary = Summary(
        converted={"color profile to sRGB": 1200, "turned by EXIF": 3},
        quantities=(
            Quantity(name="sampling fraction", value=0.021349),
            Quantity(name="depth", value=7.5, unit="X0"),
        ),
        note="12 showers are faint",
    )
    assert summary.sentences() == [
        "Converted: color profile to sRGB 1,200, turned by EXIF 3.",
        "Measured: sampling fraction 0.02135, depth 7.5 X0.",
        "12 showers are faint.",
    ]
    assert Summary().sentences() == []


def test_a_quantity_must_not_be_nan() -> None:
    """JSON has no NaN, so a manifest with one could not be read."""
    with pytest.raises(ValidationError):
        Quantity(name="sampling fraction", value=float("nan"))


def test_a_manifest_of_an_earlier_version_has_a_summary(home: Home, spread: Pack) -> None:
    source = spread({"a/1.png": encoded(GREEN), "b/1.png": encoded(BLUE)})
    preparations.prepare(
        home, PreparationRequest("pictures", "old", source, {"pixels": "32"}), lambda *_: None
    )
    path = prepared.folder(home, "old") / prepared.MANIFEST
    later = {"held_out_counts", "converted", "quantities", "curve", "warnings"}
    path.write_text(prepared.manifest(home, "old").model_dump_json(exclude=later))
    assert prepared.manifest(home, "old").by_split() == {"a": (1, 0), "b": (1, 0)}
