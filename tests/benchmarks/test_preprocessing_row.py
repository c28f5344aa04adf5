"""The `preprocessing` row: both sides read the same values."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import shower_set
from benchmarks.effort import Effort
from benchmarks.results import Report
from benchmarks.rows import preprocessing
from benchmarks.run_options import SHOWERS, SHOWERS_PER_EPOCH, random_rows, reading
from gan_runtime.data import loading
from gan_runtime.engines.inputs import host_values
from gan_runtime.records.home import Home


def test_converting_per_epoch_and_once_give_the_same_values(home: Home) -> None:
    """The side that converts in each epoch resumes where it stopped, or restarts at the end."""
    with random_rows(home, 10, SHOWERS):
        with reading(SHOWERS):
            once = loading.load(shower_set.NAME, home)
        with reading(SHOWERS_PER_EPOCH):
            per_epoch = loading.load(shower_set.NAME, home)
            for rows in (range(4), range(4, 8), range(4)):
                indices = np.array(rows)
                expected = host_values(once.read(indices), once.fields)
                values = host_values(per_epoch.read(indices), per_epoch.fields)
                assert once.resident is per_epoch.resident is None
                assert values.keys() == expected.keys()
                assert values["showers"].shape == (4, 17, 17, 25, 1)
                for name, array in values.items():
                    np.testing.assert_allclose(array, expected[name], rtol=1e-6)


def test_both_rates_and_their_ratio_are_reported() -> None:
    report = Report("preprocessing")
    preprocessing.compare_reading(report, Effort(rounds=2, steps=1, batch=4, images=12))
    named = {
        (record["kind"], record["name"]): record["value"]
        for record in report.records
        if "name" in record
    }
    assert named["rate", f"reading, {preprocessing.PER_EPOCH}"] > 0.0
    assert named["rate", f"reading, {preprocessing.ONCE}"] > 0.0
    assert named["figure", preprocessing.FIGURE] == pytest.approx(
        named["rate", f"reading, {preprocessing.ONCE}"]
        / named["rate", f"reading, {preprocessing.PER_EPOCH}"],
        rel=0.9,
    )
    assert preprocessing.simulated_per_s() > 0.0
