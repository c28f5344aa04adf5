"""Generates torch_fidelity_reference.json: scores of two samples by torch-fidelity and prdc, to
which test_sample_scores.py compares this project's scores.

    python -m venv /tmp/fid
    /tmp/fid/bin/pip install torch==2.13.0 torch-fidelity==0.4.0 prdc==0.2
    /tmp/fid/bin/python -m tests.evaluation.torch_fidelity_reference

torchvision, which torch-fidelity imports for its networks, is mocked: only arithmetic is called.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
from numpy.typing import NDArray

FIGURES = Path(__file__).with_name("torch_fidelity_reference.json")
ROWS, FEATURES, CLASSES = 500, 24, 10
Array = NDArray[np.float64]


def features() -> tuple[Array, Array]:
    """Returns two partly overlapping samples (500, 24), nonnegative as after a ReLU."""
    random = np.random.RandomState(7)
    mixing = random.standard_normal((FEATURES, FEATURES)) / FEATURES**0.5
    first = random.standard_normal((ROWS, FEATURES))
    second = random.standard_normal((ROWS, FEATURES)) * 0.9 + 0.25
    return np.maximum(first @ mixing + 0.5, 0.0), np.maximum(second @ mixing + 0.5, 0.0)


def logits() -> Array:
    """Returns classifier logits, (500, 10)."""
    return np.random.RandomState(8).standard_normal((ROWS, CLASSES)) * 3.0


def main() -> None:
    """Computes all scores with the conventions of docs/metrics.md."""
    for name in ("", ".transforms", ".transforms.functional", ".datasets", ".models"):
        sys.modules[f"torchvision{name}"] = MagicMock()
    import torch
    from prdc import compute_prdc
    from torch_fidelity import metric_fid, metric_isc, metric_kid

    first, second = features()
    statistics = [
        {"mu": sample.mean(axis=0), "sigma": np.cov(sample, rowvar=False)}
        for sample in (first, second)
    ]
    distance = metric_fid.fid_statistics_to_metric(*statistics, verbose=False)
    kernel = {"kid_kernel": "poly", "kid_kernel_poly_degree": 3, "kid_kernel_poly_coef0": 1.0}
    discrepancy = metric_kid.kernel_mmd(
        torch.from_numpy(first), torch.from_numpy(second), **kernel, kid_kernel_poly_gamma=None
    )
    score = metric_isc.isc_features_to_metric(torch.from_numpy(logits()), splits=1, shuffle=False)
    nearest_3, nearest_5 = (compute_prdc(first, second, nearest_k=k) for k in (3, 5))
    figures = {
        "fcd": distance["frechet_inception_distance"],
        "kcd": float(discrepancy),
        "classifier_score": score["inception_score_mean"],
        "precision": float(nearest_3["precision"]),
        "recall": float(nearest_3["recall"]),
        "density": float(nearest_5["density"]),
        "coverage": float(nearest_5["coverage"]),
    }
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
