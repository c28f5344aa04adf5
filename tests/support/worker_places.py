"""The place that an engine gives a process with certain environment variables."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from unittest.mock import patch

from gan_runtime.base.cluster import WorkerRank, without_cluster
from gan_runtime.base.errors import AcceleratorError


def answer(
    place: Callable[[int], WorkerRank], variables: dict[str, str], workers: int
) -> list[object] | str:
    """Rank, workers, chiefs, and the cluster in TF_CONFIG afterward; or the error. The environment
    is restored.
    """
    with patch.dict(os.environ, {**without_cluster(dict(os.environ)), **variables}, clear=True):
        try:
            own_place = place(workers)
        except AcceleratorError as error:
            return str(error)
        cluster = json.loads(os.environ.get("TF_CONFIG", "{}")).get("cluster")
        return [own_place.rank, own_place.workers, own_place.chiefs, cluster]
