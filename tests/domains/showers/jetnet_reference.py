"""Generates jetnet_reference.json: values of FPD and KPD for two samples from the package jetnet,
which test_challenge_distances.py compares with.

    python -m venv /tmp/jetnet
    /tmp/jetnet/bin/pip install --no-deps jetnet==0.2.5 numba llvmlite numpy scipy
    /tmp/jetnet/bin/python -m tests.domains.showers.jetnet_reference

The features are implemented a second time, in the units and voxel order of the CaloChallenge's
files: MeV, mm / 100, angles from -π. Torch and energyflow, which jetnet loads for other scores, are
replaced by stubs.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from tests.domains.showers.toy_showers import ANGLES, RADII, beam_showers

FIGURES = Path(__file__).with_name("jetnet_reference.json")
THRESHOLD_MEV, RADIUS_MM = 0.5e-3 / 0.033, 4.65  # of a cell; cell width in data set 2
COUNT, LAYERS = 600, 12
# The CaloChallenge's own arguments since May 2024 (code/evaluate.py of its homepage).
FPD_DRAWS, KPD_DRAWS = {"min_samples": 10_000}, {"batch_size": 10_000}
SAMPLES = {
    "real": (1, {}),
    "alike": (2, {}),
    "off": (3, {"scale": 1.05, "shift": 1.0}),
}  # seed, fault
Array = NDArray[np.float64]


def main() -> None:
    """Stores the value and error of both distances to the real sample."""
    jetnet = _jetnet()
    arrays = {name: challenge_arrays(*showers(name)) for name in SAMPLES}
    figures = {
        name: {
            "fpd": list(map(float, jetnet.fpd(arrays["real"], arrays[name], **FPD_DRAWS))),
            "kpd": list(map(float, jetnet.kpd(arrays["real"], arrays[name], **KPD_DRAWS))),
        }
        for name in ("alike", "off")
    }
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def showers(name: str) -> tuple[NDArray[np.float32], Array]:
    """Cells (N, alpha, r, layer) and incident energies (N,), GeV."""
    seed, fault = SAMPLES[name]
    return beam_showers(COUNT, seed, layers=LAYERS, **fault)


def challenge_arrays(cells_gev: NDArray[np.float32], energy_gev: Array) -> Array:
    """Features (N, 2 + 8 Z), column by column, from voxels in the order of the files."""
    layers = cells_gev.shape[-1]
    voxels = (
        np.moveaxis(cells_gev.astype(np.float64), -1, 1).reshape(len(cells_gev), layers, -1) * 1e3
    )
    voxels[voxels < THRESHOLD_MEV] = 0.0
    step = 2.0 * np.pi / ANGLES
    alpha = np.repeat(-np.pi + step * (np.arange(ANGLES) + 0.5), RADII)
    radius = np.tile(RADIUS_MM * (np.arange(RADII) + 0.5), ANGLES)
    energies = voxels.sum(axis=2)
    spreads = [
        _spread(voxels, energies, place)
        for place in (radius * np.cos(alpha), radius * np.sin(alpha), radius)
    ]
    (x, wide), (y, high), (r, broad) = spreads
    total = energies.sum(axis=1, keepdims=True)
    first = [np.log10(energy_gev * 1e3)[:, np.newaxis], np.log10(energies + 1e-8), x, y, wide, high]
    return np.concatenate(
        [*first, np.log10(total + 1e-8), 1.0 - (voxels > 0.0).mean(axis=2), r, broad], axis=1
    )


def _spread(voxels: Array, energies: Array, place: Array) -> tuple[Array, Array]:
    mean = (voxels * place).sum(axis=2) / (energies + 1e-16)
    square = (voxels * place**2).sum(axis=2) / (energies + 1e-16)
    return mean / 100.0, np.sqrt(np.clip(square - mean**2, 0.0, None)) / 100.0


def _jetnet() -> ModuleType:
    """jetnet's module of distances, without imports that the distances do not need."""
    stubs = {
        "torch": {"Tensor": type("Tensor", (), {})},
        "torch.utils": {},
        "torch.utils.data": {"DataLoader": None},
    }
    stubs |= {
        "energyflow": {},
        "energyflow.emd": {"emds": None},
        "jetnet": {"utils": None, "__path__": []},
    }
    place = importlib.util.find_spec("jetnet")
    assert place is not None
    assert place.origin is not None
    for name, members in {**stubs, "jetnet.datasets": {"JetNet": None}}.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(members)
    spec = importlib.util.spec_from_file_location(
        "gen_metrics", Path(place.origin).parent / "evaluation/gen_metrics.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["gen_metrics"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
