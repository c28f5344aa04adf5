"""The row `preprocessing`: both of its sides read the same values."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.effort import Effort
from benchmarks.results import Report
from benchmarks.rows import preprocessing
from gan_runtime.data import hdf5_files, prepared, preparing
from gan_runtime.data.preparing import Asked
from gan_runtime.engines.values import host_values
from gan_runtime.home import Home


def test_converting_anew_and_converting_once_give_the_same_values(home: Home, tmp_path: Path) -> None:
    source = tmp_path / "showers.h5"
    preprocessing.write(source, 10)
    preparing.prepare(home, Asked("showers_hdf5", "showers", source), lambda *_: None)
    showers = prepared.opened(home, "showers")
    once = host_values(showers.read(np.arange(4, 8)), showers.fields)
    with hdf5_files.opened(source) as file:
        anew = preprocessing.each_epoch(file, 4).batch(1)
    assert anew.keys() == once.keys()
    for name, values in anew.items():
        np.testing.assert_allclose(values, once[name], rtol=1e-6)


def test_both_rates_their_ratio_and_the_rate_of_the_simulation_are_reported() -> None:
    report = Report("preprocessing")
    preprocessing.measure(report, Effort(rounds=2, steps=1, batch=4, images=12))
    named = {
        (record["kind"], record["name"]): record["value"] for record in report.records if "name" in record
    }
    assert named["rate", "each epoch"] > 0.0
    assert named["rate", "converted once"] > 0.0
    assert named["figure", preprocessing.FIGURE] > 0.0
    assert named["figure", preprocessing.SIMULATED] > 0.0
