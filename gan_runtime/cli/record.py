"""Everything that `show` tells of one run, as one plain record for JSON and tables."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from gan_runtime.store import queries
from gan_runtime.store.store import Store


def of_run(store: Store, run_id: str) -> dict[str, Any]:
    """Keys: run, spec, host (None before the first attempt), progress, phases (seconds), profile (largest share first),
    memory (None before the first epoch) and events, oldest first.

    Raises:
        UnknownRunError: no such run.
    """
    run = asdict(queries.run(store, run_id))
    spec, host = json.loads(run.pop("spec")), json.loads(run.pop("host") or "null")
    memory = queries.peak_memory(store, run_id)
    return {
        "run": run,
        "spec": spec,
        "host": host,
        "progress": asdict(queries.progress(store, run_id)),
        "phases": queries.phases(store, run_id),
        "profile": queries.profile(store, run_id).to_dict("records"),
        "memory": asdict(memory) if memory else None,
        "events": queries.events(store, run_id).to_dict("records"),
    }
