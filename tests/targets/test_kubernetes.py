"""The manifest of a Kubernetes target is valid for the API and gives each pod its rank, and answers
of `kubectl` become states. No cluster was at hand: the answers are made from the API reference.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gan_runtime.records.home import Home
from gan_runtime.targets.configuration import KubernetesTarget
from gan_runtime.targets.kubernetes import LABEL, Kubernetes, name_of
from gan_runtime.targets.target import NoAnswerError, Seen, TargetJob, token_of
from gan_runtime.targets.transport import Done

API_VERSION = "1.33"
TOKEN = "gan-quick-0001-2-0a1b2c"
OPTIONS = KubernetesTarget(kind="kubernetes", image="registry.example.org/gan:1", claim="gan-runs")


@dataclass
class FakeKubectl:
    """Answers every command alike, and remembers its words."""

    done: Done = field(default_factory=lambda: Done(0, '{"items": []}', ""))
    words: list[str] = field(default_factory=list)

    def run(self, words: Sequence[str], stdin: str = "", seconds: float = 30.0) -> Done:  # noqa: ARG002
        self.words = list(words)
        return self.done

    def stream(self, *_: Any) -> Done:
        raise AssertionError("the home is shared")


def target(answer: object = None, **options: Any) -> Kubernetes:
    done = Done(0, json.dumps({"items": answer or []}), "")
    home = Home(Path("/shared/a home"))
    return Kubernetes(OPTIONS.model_copy(update=options), FakeKubectl(done), home)


def job(workers: int = 2, gpus: int = 0) -> TargetJob:
    folder = Path("/shared/a home/runs/quick-0001")
    return TargetJob(TOKEN, folder, 2, "gpu" if gpus else "cpu", workers, gpus)


@pytest.mark.parametrize("each", [job(1), job(2), job(4, gpus=2)])
def test_each_document_matches_the_kubernetes_schema(each: TargetJob) -> None:
    for document in target().manifest(each)["items"]:
        assert kubernetes_validate.validate(document, API_VERSION, strict=True) == API_VERSION


def test_each_pod_is_one_worker_named_by_the_service(tmp_path: Path) -> None:
    service, indexed = target(prelude=("export A=1",)).manifest(job())["items"]
    pod, name = indexed["spec"]["template"]["spec"], name_of(TOKEN)
    assert (indexed["spec"]["completionMode"], indexed["spec"]["backoffLimit"]) == ("Indexed", 0)
    assert pod["subdomain"] == service["metadata"]["name"] == name
    assert service["spec"]["selector"] == {"job-name": name}
    shell, option, lines = pod["containers"][0]["command"]
    python = tmp_path / "python"  # in place of a trainer
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$TF_CONFIG" "$A" "$@"\n')
    python.chmod(0o755)
    for index in range(indexed["spec"]["parallelism"]):
        path = f"{tmp_path}:{Path(shutil.which('sh') or '').parent}"
        environment = {"PATH": path, "JOB_COMPLETION_INDEX": str(index)}
        shown = subprocess.run(
            [shell, option, lines], env=environment, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        assert json.loads(shown[0]) == {
            "cluster": {"worker": [f"{name}-0.{name}:18900", f"{name}-1.{name}:18900"]},
            "task": {"type": "worker", "index": index},
        }
        assert shown[1] == "1"
        assert shown[-3:] == ["/shared/a home/runs/quick-0001", "2", "cpu"]


def test_gpus_and_memory_are_limits_of_the_pod() -> None:
    _, indexed = target(memory="8Gi").manifest(job(2, gpus=4))["items"]
    container = indexed["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"] == {"memory": "8Gi", "nvidia.com/gpu": "4"}
    assert container["volumeMounts"] == [{"name": "home", "mountPath": "/shared/a home"}]


def test_the_script_of_a_run_applies_the_manifest() -> None:
    script = target(namespace="physics").script(job())
    first, *lines, last = script.splitlines()[1:]
    assert first == "kubectl --namespace=physics apply -f - <<'END'"
    assert (yaml.safe_load("\n".join(lines)), last) == (target().manifest(job()), "END")


def test_names_are_valid_and_differ() -> None:
    first, second = token_of("A_long.Name-" + "x" * 80, 1), token_of("A_long.Name-" + "x" * 80, 1)
    assert name_of(first) != name_of(second)
    for name in (name_of(first), name_of(TOKEN)):
        document = target().manifest(job())["items"][0]
        document["metadata"]["name"] = name
        assert len(name) <= 50
        assert kubernetes_validate.validate(document, API_VERSION, strict=True)


def of_job(*conditions: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name_of(TOKEN), "labels": {"app": LABEL}}
    return {"kind": "Job", "metadata": metadata, "status": {"conditions": list(conditions)}}


def of_pod(**status: Any) -> dict[str, Any]:
    metadata = {"name": "p", "labels": {"app": LABEL, "job-name": name_of(TOKEN)}}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n1"}, "status": status}


def condition(name: str, reason: str = "") -> dict[str, str]:
    return {"type": name, "status": "True", "reason": reason}


FAILED = of_job(condition("Failed", "BackoffLimitExceeded"))
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "message": "0/3 nodes: Insufficient cpu",
}


@pytest.mark.parametrize(
    ("items", "seen"),
    [
        ([of_job()], ("waiting", "PENDING", "just submitted")),
        ([of_job(), of_pod(phase="Pending")], ("waiting", "PENDING", "starts its pods")),
        (
            [of_job(), of_pod(phase="Pending", conditions=[UNSCHEDULABLE])],
            ("waiting", "PENDING", "waits for a node: 0/3 nodes: Insufficient cpu"),
        ),
        (
            [
                of_job(),
                of_pod(
                    phase="Pending",
                    containerStatuses=[{"state": {"waiting": {"reason": "ImagePullBackOff"}}}],
                ),
            ],
            ("waiting", "PENDING", "cannot start unless it is changed (ImagePullBackOff)"),
        ),
        ([of_job(), of_pod(phase="Running")], ("running", "RUNNING", "")),
        (
            [of_job(), of_pod(phase="Running"), of_pod(phase="Pending")],
            ("waiting", "PENDING", None),
        ),
        ([of_job(condition("Complete")), of_pod(phase="Succeeded")], ("ended", "COMPLETED", "")),
        ([FAILED, of_pod(phase="Failed")], ("ended", "FAILED", "")),
        ([FAILED, of_pod(phase="Failed", reason="Evicted")], ("ended", "PREEMPTED", "")),
        ([of_job(condition("Failed", "DeadlineExceeded"))], ("ended", "TIMEOUT", "")),
        (
            [
                FAILED,
                of_pod(
                    phase="Failed",
                    containerStatuses=[{"state": {"terminated": {"reason": "OOMKilled"}}}],
                ),
            ],
            ("ended", "OUT_OF_MEMORY", ""),
        ),
    ],
)
def test_the_state_of_a_job_is_that_of_its_conditions_and_pods(
    items: list[Any], seen: tuple[str, str, str | None]
) -> None:
    shown = target(items).observe([TOKEN])[TOKEN]
    assert (shown.stage, shown.state) == seen[:2]
    assert seen[2] is None or shown.reason == seen[2]
    assert shown.job == name_of(TOKEN)


def test_a_job_that_is_not_listed_is_unknown() -> None:
    assert target([]).observe([TOKEN]) == {}


@pytest.mark.parametrize(
    ("errors", "is_refused"),
    [
        ('error: the namespace "phyics" not found', True),
        ("Unable to connect to the server: dial tcp: i/o timeout", False),
    ],
)
def test_only_a_clear_refusal_is_one(errors: str, is_refused: bool) -> None:
    place = Kubernetes(OPTIONS, FakeKubectl(Done(1, "", errors)), Home(Path("/shared")))
    if is_refused:
        assert place.submit(job()).refusal == errors
    else:
        with pytest.raises(NoAnswerError):
            place.submit(job())
    with pytest.raises(NoAnswerError, match="Kubernetes did not answer"):
        place.observe([TOKEN])
    assert errors in place.offer().refusal


def test_a_job_that_exists_is_not_created_again() -> None:
    errors = f'Error from server (AlreadyExists): jobs.batch "{name_of(TOKEN)}" already exists'
    place = Kubernetes(OPTIONS, FakeKubectl(Done(1, "", errors)), Home(Path("/shared")))
    assert place.submit(job()).job == name_of(TOKEN)


def test_a_submitted_job_has_its_name_and_is_deleted_by_it() -> None:
    place = target()
    assert place.submit(job()).job == name_of(TOKEN)
    place.cancel(TOKEN)
    assert isinstance(place.transport, FakeKubectl)
    assert place.transport.words[-2:] == [f"job/{name_of(TOKEN)}", f"service/{name_of(TOKEN)}"]


def test_nodes_of_running_pods_are_shown() -> None:
    shown = target([of_job(), of_pod(phase="Running")]).observe([TOKEN])[TOKEN]
    assert shown == Seen("running", "RUNNING", job=name_of(TOKEN), nodes="n1")
