"""The kinds of jobs, as a literal table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NOTHING_KEPT = "nothing of it was kept"


@dataclass(frozen=True)
class Kind:
    """`entry`: module:function that does the work (jobs/task.py says what it is given).

    `turn`: among the jobs of one turn one works at a time; an accelerator's name is the turn of its trainings as well. Empty:
    it starts at once. `environment`: variables of its process, for libraries that read them once. `kept`: what is left of a
    job that did not finish. `killed_at_once`: a cancel need not wait for a library that listens to no signal; only where
    nothing can be left half-made.
    """

    title: str
    entry: str
    turn: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    kept: str = NOTHING_KEPT
    killed_at_once: bool = False


# Only the TPU's compiler is used: JAX stays on the CPU, and libtpu must not ask the cloud for the machine it thinks it runs on.
COMPILE_ONLY = {
    "JAX_PLATFORMS": "cpu",
    "KERAS_BACKEND": "jax",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # beside another check, or a training on this host's TPU: it touches no device
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v3-8",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
ON_THE_CPU = {"CUDA_VISIBLE_DEVICES": "-1"}  # always, beside whatever trains
KINDS: dict[str, Kind] = {
    "prepare_data": Kind("Prepare a data set", "gan_runtime.jobs.data_work:prepare"),
    "survey_data": Kind("Look through pictures", "gan_runtime.jobs.data_work:look_through"),
    "generate": Kind("Generate images", "gan_runtime.jobs.picture_work:generate", environment=ON_THE_CPU),
    "compute_surface": Kind(
        "Compute loss surfaces", "gan_runtime.evaluation.loss_surface:compute", environment=ON_THE_CPU
    ),
    "measure_physics": Kind(
        "Measure showers", "gan_runtime.domains.showers.measurement:measure", environment=ON_THE_CPU
    ),
    "make_showers": Kind(
        "Generate showers of one energy",
        "gan_runtime.domains.showers.shower_samples:make",
        environment=ON_THE_CPU,
    ),
    "iterate": Kind(
        "Feed a model with its own pictures",
        "gan_runtime.domains.flows.rollout:iterate",
        environment=ON_THE_CPU,
    ),
    "check_tpu": Kind(
        "Compile for a TPU",
        "gan_runtime.tpu.work:compile_points",
        environment=COMPILE_ONLY,
        kept="what was compiled by then is kept",
        killed_at_once=True,
    ),
}


def cancelled(kind: str) -> str:
    """What is said of a job of this kind that somebody has cancelled."""
    return f"cancelled on request; {_kept(kind)}."


def lost(kind: str) -> str:
    """What is said of a job of this kind whose process is gone."""
    return f"its process was ended before it was done; {_kept(kind)}. Start it again."


def _kept(kind: str) -> str:
    return KINDS[kind].kept if kind in KINDS else NOTHING_KEPT
