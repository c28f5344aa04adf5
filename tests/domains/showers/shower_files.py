"""Writes shower files, prepares them, and collects refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gan_runtime.base.errors import DatasetError
from gan_runtime.data import preparations, prepared
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.data.summary import Summary
from gan_runtime.records.home import Home
from tests.domains.showers.hdf5_showers import authors_columns, challenge_columns, written

KEYS = {"calochallenge": ("incident_energies", "showers"), "showers_hdf5": ("energy", "ECAL")}
ALL = np.arange(5)


def columns_of(preparation: str, count: int = 8) -> dict[str, np.ndarray]:
    return challenge_columns(6_480, count) if preparation == "calochallenge" else authors_columns()


def prepare(home: Home, folder: Path, columns: dict[str, np.ndarray], **options: Any) -> Summary:
    preparation = "calochallenge" if "showers" in columns else "showers_hdf5"
    source = written(folder / "run.h5", columns)
    request = PreparationRequest(preparation, "", source, {"held_out_percent": 0, **options})
    manifest = preparations.prepare(home, request, lambda *_: None)
    assert manifest is not None
    return manifest


def refusal(home: Home, folder: Path, columns: dict[str, np.ndarray], **options: Any) -> str:
    with pytest.raises(DatasetError) as refused:
        prepare(home, folder, columns, **options)
    assert not list(home.data.glob("*")), "something half-converted is left"
    return str(refused.value)


def rows(home: Home, preparation: str) -> dict[str, np.ndarray]:
    return prepared.open_set(home, preparation).read(ALL)
