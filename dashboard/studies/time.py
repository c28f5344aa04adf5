"""How long studies will train, from the speed of runs like theirs that trained on this host."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from dashboard import actions
from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware.hosts import Host
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.studies.design import StudyDesign
from gan_runtime.supervision.admission import admit
from gan_runtime.training import memory_estimate

HELP = "From the speed of runs like these that trained on this host. Unknown before there are any."


def seconds(runtime: Runtime, host: Host, designs: Iterable[StudyDesign]) -> float | None:
    """Pure training of all their runs one after another; None while a run is unlike all that this host has trained."""
    known: dict[RunSpec, float | None] = {}
    total = 0.0
    for planned in (run for design in designs for run in design.runs):
        alike = planned.spec.model_copy(update={"seed": 0, "name": ""})  # repeats differ in these
        if alike not in known:
            known[alike] = _seconds(runtime, host, alike)
        one = known[alike]
        if one is None:
            return None
        total += one
    return total


def _seconds(runtime: Runtime, host: Host, spec: RunSpec) -> float | None:
    admission = actions.attempt(partial(admit, spec, host, runtime.home))
    if admission is None or admission.data is None:
        return None
    rate = queries.typical_images_per_s(runtime.store, spec, admission.accelerator, host.cpu_model)
    return memory_estimate.training_seconds(spec, admission.data.images, rate) if rate else None
