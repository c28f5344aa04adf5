"""The embedded digits: their content, and how rows are read."""

from __future__ import annotations

import numpy as np
import sklearn.datasets

from gan_runtime import catalog
from gan_runtime.data import builtin_sets, loading


def test_digits_are_1797_gray_images_over_the_full_range() -> None:
    data = builtin_sets.load_digits()
    assert data.resident["images"].shape == (1_797, 28, 28, 1)
    assert data.resident["images"].dtype == np.uint8
    assert (data.resident["images"].min(), data.resident["images"].max()) == (0, 255)
    assert 40 < data.resident["images"].mean() < 80
    assert (data.name, data.origin, data.note) == ("digits", "scikit-learn", "")


def test_digits_are_enlarged_scikit_learn_digits() -> None:
    inner = (
        builtin_sets.load_digits()
        .resident["images"][
            :,
            builtin_sets.MARGIN : -builtin_sets.MARGIN,
            builtin_sets.MARGIN : -builtin_sets.MARGIN,
            0,
        ]
        .astype(np.float32)
    )
    made_small = (
        inner.reshape(-1, 8, 3, 8, 3).mean(axis=(2, 4)).reshape(-1, 64)
    )  # 24 pixels per side: three for each of the eight
    correlations = [
        np.corrcoef(row, other)[0, 1]
        for row, other in zip(made_small, sklearn.datasets.load_digits().data, strict=True)
    ]
    assert min(correlations) > 0.97


def test_digits_have_a_black_margin_like_mnist() -> None:
    images = builtin_sets.load_digits().resident["images"][..., 0]
    assert not images[:, :2].any()
    assert not images[:, -2:].any()
    assert not images[:, :, :2].any()
    assert not images[:, :, -2:].any()
    assert images[:, 2].any()


def test_digits_are_available_without_reading_files() -> None:
    availability = loading.availability("digits")
    assert (availability.ready, availability.images) == (True, catalog.DATASETS["digits"].rows)


def test_digits_have_correct_labels() -> None:
    data = builtin_sets.load_digits()
    assert np.array_equal(data.resident["labels"], sklearn.datasets.load_digits().target)
    assert data.fields["labels"].classes == tuple("0123456789")
    assert data.fields == catalog.DATASETS["digits"].fields


def test_held_out_digits_are_among_the_training_digits() -> None:
    data = builtin_sets.load_digits()
    assert (data.rows, data.held_out) == (1_797, 0)
    assert np.array_equal(data.read_held_out(5)["images"], data.resident["images"][:5])


def test_rows_are_read_in_the_requested_order() -> None:
    data = builtin_sets.load_digits()
    rows = data.read(np.array([7, 3, 7]))
    assert list(rows) == ["images", "labels"]
    assert rows["labels"].tolist() == [7, 3, 7]
    assert np.array_equal(rows["images"], data.resident["images"][[7, 3, 7]])
