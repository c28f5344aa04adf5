"""The rank of a worker process, from TF_CONFIG or Slurm's variables, and its cores, GPUs and
journal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gan_runtime import worker
from gan_runtime.base import slurm as slurm_step
from gan_runtime.base.cluster import Members, WorkerRank, tf_config, without_cluster
from gan_runtime.engines.tf import process as tf_process
from gan_runtime.records import journal
from gan_runtime.records.home import REPOSITORY
from gan_runtime.spec import RunSpec
from gan_runtime.training import workers
from tests.support.worker_places import answer

FIND = """
import json, os, sys
from gan_runtime.engines.jax.devices import place
from tests.support.worker_places import answer
for case in sys.stdin.read().splitlines():
    print(json.dumps(answer(place, *json.loads(case))))
assert not {"tensorflow", "jax"} & set(sys.modules)  # flags for JAX are set later
"""
Case = tuple[dict[str, str], int]


def of_jax(cases: list[Case]) -> list[Any]:
    """Runs in a separate process, which must not load a framework for it."""
    environment = {**without_cluster(dict(os.environ)), "PYTHONPATH": str(REPOSITORY)}
    child = subprocess.run(
        [sys.executable, "-c", FIND],
        input="\n".join(json.dumps(case) for case in cases),
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [json.loads(line) for line in child.stdout.splitlines()]


def of_tensorflow(cases: list[Case]) -> list[Any]:
    """Runs in this process, which has TensorFlow."""
    return [answer(tf_process.place, *case) for case in cases]


class InternalError(Exception):
    """Named like TensorFlow's error, which is not imported here."""


class UnavailableError(Exception):
    """Named like TensorFlow's error."""


class JaxRuntimeError(Exception):
    """Named like JAX's error."""


@pytest.mark.parametrize(
    ("rank", "error", "lost"),
    [
        (
            0,
            UnavailableError("Collective ops is aborted: /job:worker/replica:0/task:1 is gone"),
            "worker 1 of 2",
        ),
        (0, UnavailableError("Socket closed"), "another worker"),
        (0, InternalError("from /job:worker/replica:0/task:1/device:CPU:0"), "worker 1 of 2"),
        (
            1,
            InternalError(
                "Multiple"
                " [/job:worker/replica:0/task:1/device:CPU:0,/job:localhost/replica:0/task:0/device:CPU:0]"  # noqa: E501
            ),
            None,
        ),
        (0, ValueError("of /job:worker/replica:0/task:1"), None),
        (
            0,
            JaxRuntimeError("UNKNOWN: Gloo all-reduce failed: Connection reset by peer"),
            "another worker",
        ),
        (0, JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory"), None),
    ],
)
def test_only_communication_errors_mean_a_lost_worker(
    rank: int, error: Exception, lost: str | None
) -> None:
    assert WorkerRank(rank, workers=2).lost_in(error) == lost
    assert WorkerRank().lost_in(error) is None


def test_workers_in_errors_are_numbered_after_the_chief() -> None:
    place = WorkerRank(rank=0, workers=3, chiefs=1)
    assert (
        place.lost_in(UnavailableError("/job:worker/replica:0/task:1 is gone")) == "worker 2 of 3"
    )
    assert (
        WorkerRank(rank=2, workers=3, chiefs=1).lost_in(
            UnavailableError("/job:chief/replica:0/task:0")
        )
        == "worker 0 of 3"
    )


@pytest.fixture(scope="module")
def loaded(cores: int) -> object:  # noqa: ARG001
    """Modules that TensorFlow loads at the first request for a cluster."""
    import tensorflow as tf

    return tf.distribute.cluster_resolver.SlurmClusterResolver


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("engine", ["tf", "jax"])
def test_worker_gets_its_rank_from_tf_config_or_slurm(engine: str) -> None:
    with_chief = {
        "cluster": {"chief": ["a:1"], "worker": ["b:2", "c:3"]},
        "task": {"type": "worker", "index": 1},
    }
    slurm = {
        "SLURM_PROCID": "2",
        "SLURM_STEP_NUM_TASKS": "4",
        "SLURM_STEP_NODELIST": "node[1-2]",
        "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    }
    first = slurm_step.first_port(0, 0, 2)
    addresses = [f"node{node}:{first + place}" for node in (1, 2) for place in (0, 1)]
    named = {"worker": addresses} if engine == "tf" else None
    worker = (of_tensorflow if engine == "tf" else of_jax)(
        [
            ({"TF_CONFIG": tf_config(["a:1", "b:2"], 1)}, 2),
            ({"TF_CONFIG": json.dumps(with_chief)}, 3),
            ({"TF_CONFIG": tf_config(["a:1", "b:2"], 1)}, 4),
            ({"TF_CONFIG": tf_config(["a:1", "b:2"], 2)}, 2),
            (slurm, 4),
            ({**slurm, "SLURM_PROCID": "0"}, 2),
        ]
    )
    assert worker[0] == [1, 2, 0, {"worker": ["a:1", "b:2"]}]
    assert worker[1][:3] == [2, 3, 1]
    assert worker[2] == "workers is 4, but TF_CONFIG names 2 worker(s): start 4, or use workers=2."
    assert "cannot be read from TF_CONFIG" in worker[3]
    assert worker[4] == [2, 4, 0, named]
    assert worker[5] == "workers is 2, but Slurm names 4 worker(s): start 2, or use workers=4."


def test_workers_are_added_to_every_no_proxy_list_of_grpc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    variables = {
        "http_proxy": "http://proxy:3128",
        "no_proxy": "",
        "NO_PROXY": "cern.ch",
        "no_grpc_proxy": "lab",
        "TF_CONFIG": tf_config(["n1:2222", "[fe80::2]:2222"], rank=1),
    }
    environment = dict(variables)
    monkeypatch.setattr(os, "environ", environment)
    Members.from_environment(2, Members.in_tf_config)
    assert environment["no_proxy"] == "cern.ch,n1,fe80::2"
    assert environment["no_grpc_proxy"] == "lab,n1,fe80::2"


def test_each_local_worker_gets_its_share_of_cores_and_gpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    addresses = ["127.0.0.1:1", "127.0.0.1:2"]
    spec = RunSpec.parse({"workers": 2, "replicas": 2, "accelerator": "gpu"})
    on_gpus = [
        workers.environment(spec, "gpu", addresses, rank, {})["CUDA_VISIBLE_DEVICES"]
        for rank in (0, 1)
    ]
    assert on_gpus == ["0,1", "2,3"]
    assert (
        workers.environment(spec, "gpu", addresses, 1, {"CUDA_VISIBLE_DEVICES": "4,5,6,7"})[
            "CUDA_VISIBLE_DEVICES"
        ]
        == "6,7"
    )
    on_cpu = workers.environment(RunSpec.parse({"workers": 2}), "cpu", addresses, 1, {})
    assert on_cpu["TF_NUM_INTRAOP_THREADS"] == "4"
    assert json.loads(on_cpu["TF_CONFIG"])["task"] == {"type": "worker", "index": 1}


def test_other_workers_write_only_their_times_and_failures(tmp_path: Path) -> None:
    times = journal.WorkerTimes(
        rank=1, epoch=1, first_step=2, steps=2, step_s=0.3, compute_s=0.1, wait_s=0.2
    )
    with journal.SideJournalWriter(tmp_path / "journal-1.jsonl", 3) as writer:
        writer.write(
            journal.AttemptStart(resume_step=4),
            journal.AttemptPlan(images=1, steps_per_epoch=1, epochs=1),
        )
        writer.write(journal.StatusChange(status="running", reason="training"), times)
        writer.write(journal.StatusChange(status="failed", reason="worker 1 of 2: no data"))
    kinds = [
        (record.kind, record.attempt) for record in journal.read_all(tmp_path / "journal-1.jsonl")
    ]
    assert kinds == [("attempt", 3), ("worker_times", 3), ("status", 3)]


def test_worker_rank_names_itself_in_messages() -> None:
    assert WorkerRank(1, 2).says("no data") == "worker 1 of 2: no data"
    assert WorkerRank().says("no data") == "no data"


def test_lost_connection_message_mentions_a_possible_stall() -> None:
    gone = UnavailableError("/job:worker/replica:0/task:1 is gone")
    assert (
        worker.crash(gone, WorkerRank(workers=2)).sentence
        == "worker 0 of 2: lost the connection to worker 1 of 2 (UnavailableError),"
        " which exited, is unreachable, or stalled for about 10 s; resume continues from the last"
        " checkpoint"
    )
