"""How well a small network tells real showers from generated ones: the area under its ROC curve, 0.5 where it can only guess.

The CaloChallenge (arXiv:2410.21611, section 5.3) trains such a network on all cells (low-level) and on layer energies, centers and
widths (high-level). This one is smaller, and so are its samples: an AUC near 0.5 here is no proof there. Needs scikit-learn.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gan_runtime.domains.showers.values import Value

FOLDS = 3
UNITS, ROUNDS = 64, 40
MOST_NUMBERS = (
    30_000_000  # of both samples together: 120 MB, 7,000 showers of the tiny grid and 460 of the full one
)


def auc(real: NDArray[np.floating], other: NDArray[np.floating], seed: int = 0) -> Value:
    """Of rows that it was not trained on: mean over FOLDS folds, each once left out, and their standard deviation. Rows (N, F), (M, F);
    of samples that are too large the first rows."""
    rows = max(2 * FOLDS, min(len(real), len(other), MOST_NUMBERS // (2 * real.shape[1])))
    numbers = np.concatenate([real[:rows], other[:rows]]).astype(np.float32)
    is_real = np.concatenate([np.ones(len(real[:rows])), np.zeros(len(other[:rows]))])
    areas = []
    for train, left_out in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(numbers, is_real):
        network = make_pipeline(
            StandardScaler(),
            MLPClassifier((UNITS,), alpha=1e-3, early_stopping=True, max_iter=ROUNDS, random_state=seed),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it ends after ROUNDS in any case
            network.fit(numbers[train], is_real[train])
        areas.append(roc_auc_score(is_real[left_out], network.predict_proba(numbers[left_out])[:, 1]))
    return Value(float(np.mean(areas)), float(np.std(areas, ddof=1)))
