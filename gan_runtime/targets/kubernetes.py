"""Kubernetes as a target: an Indexed Job per run, with a headless Service by which its pods meet,
and the states of these jobs as `kubectl` shows them.

The home is on a claim that all pods mount under its path here (ReadWriteMany).
Sources: the API reference of batch/v1 and core/v1, version 1.33.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gan_runtime.records import processes
from gan_runtime.records.home import Home
from gan_runtime.targets.configuration import KubernetesTarget
from gan_runtime.targets.target import NoAnswerError, Offer, Seen, Submitted, TargetJob
from gan_runtime.targets.transport import NO_MESSAGE, Done, Transport

PORT = 18900
LABEL = "gan-dashboard"
GPU = "nvidia.com/gpu"
STOP_SECONDS = 90  # a stop is obeyed at the end of a call and then saves
FINISHED_SECONDS = 24 * 3_600  # until an ended job is removed
QUERY_SECONDS = 60.0
# `kubectl` exits with 1 for every failure; these may pass.
_UNCERTAIN = (
    *("timeout", "timed out", "refused", "unable to connect", "no route", "serviceunavailable"),
)
_PRESENT = "(AlreadyExists)"
# Reasons of a waiting container that only a user can change.
_NEVER = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError")
_PREEMPTED = ("Evicted", "Preempting", "NodeShutdown", "Terminated")
_NAME_LENGTH = 46  # of at most 63 with the number of a pod


def name_of(token: str) -> str:
    """The name of a job in Kubernetes: lower-case letters, digits and hyphens, a letter first."""
    name = re.sub(r"[^a-z0-9-]", "-", token.lower().removeprefix("gan-"))
    return f"gan-{name[-_NAME_LENGTH:].strip('-')}"


@dataclass(frozen=True)
class Kubernetes:
    """A cluster that `kubectl` reaches through `transport`, with runs of `home`."""

    options: KubernetesTarget
    transport: Transport
    home: Home

    def offer(self) -> Offer:
        """The number of its nodes and what they have together."""
        try:
            nodes = self._listed("nodes")
        except NoAnswerError as error:
            return Offer(refusal=f"{error}.")
        resources = [node["status"].get("allocatable", {}) for node in nodes]
        gpus = sum(int(each.get(GPU, 0)) for each in resources)
        return Offer((f"{len(nodes)} nodes, {gpus} GPUs", f"image {self.options.image}"))

    def set_up(self) -> Offer:
        """Nothing: the project is in the image."""
        return Offer(refusal="the project is in the image: build and push it (docs/cluster.md).")

    def script(self, job: TargetJob) -> str:
        """Applies the manifest."""
        manifest = json.dumps(self.manifest(job), indent=2)
        return f"#!/bin/sh\n{shlex.join(self._words('apply'))} -f - <<'END'\n{manifest}\nEND\n"

    def submit(self, job: TargetJob) -> Submitted:
        """Creates the job, unless there is one of its name."""
        words, manifest = self._words("create", "-f", "-"), json.dumps(self.manifest(job))
        done = self.transport.run(words, manifest, QUERY_SECONDS)
        message = done.last_error or NO_MESSAGE
        if done.code and any(text in message.lower() for text in _UNCERTAIN):
            raise NoAnswerError(message)
        if done.code and _PRESENT not in message:
            return Submitted(refusal=message)
        return Submitted(name_of(job.token))

    def observe(self, tokens: Sequence[str]) -> Mapping[str, Seen]:
        """From one query for all jobs and pods."""
        if not tokens:
            return {}
        items = self._listed("jobs,pods", "--selector", f"app={LABEL}")
        jobs = {each["metadata"]["name"]: each for each in items if each["kind"] == "Job"}
        pods: dict[str, list[dict[str, Any]]] = {}
        for each in items:
            if each["kind"] == "Pod":
                pods.setdefault(each["metadata"]["labels"].get("job-name", ""), []).append(each)
        names = {token: name_of(token) for token in tokens}
        return {
            token: _seen(jobs[name], pods.get(name, []))
            for token, name in names.items()
            if name in jobs
        }

    def cancel(self, token: str) -> None:
        """Deletes job, pods and service; each pod gets STOP_SECONDS."""
        name = name_of(token)
        words = self._words("delete", "--ignore-not-found", "--wait=false", f"job/{name}")
        self._checked(self.transport.run([*words, f"service/{name}"], seconds=QUERY_SECONDS))

    def manifest(self, job: TargetJob) -> dict[str, Any]:
        """The Service and the Indexed Job of an attempt."""
        name = name_of(job.token)
        metadata = {"name": name, "labels": {"app": LABEL}}
        service = {
            "clusterIP": "None",  # headless: gives each pod a name, such as NAME-0.NAME
            "publishNotReadyAddresses": True,  # the workers wait for each other
            "selector": {"job-name": name},
            "ports": [{"name": "grpc", "port": PORT}],
        }
        pod = {
            "subdomain": name,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": STOP_SECONDS,
            "containers": [self._container(job, name)],
            "volumes": [
                {"name": "home", "persistentVolumeClaim": {"claimName": self.options.claim}}
            ],
        }
        indexed = {
            "completionMode": "Indexed",  # each pod knows its number: JOB_COMPLETION_INDEX
            "completions": job.workers,
            "parallelism": job.workers,
            # One worker that exits ends all; a pod that came back alone would wait for ever.
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": FINISHED_SECONDS,
            "template": {"metadata": {"labels": {"app": LABEL}}, "spec": pod},
        }
        items = [
            {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": indexed},
        ]
        return {"apiVersion": "v1", "kind": "List", "items": items}

    def _container(self, job: TargetJob, name: str) -> dict[str, Any]:
        workers = [f"{name}-{index}.{name}:{PORT}" for index in range(job.workers)]
        cluster = json.dumps({"worker": workers})
        # Bash joins the quoted parts; the number is of the pod.
        place = f'{{"cluster": {cluster}, "task": {{"type": "worker", "index": INDEX}}}}'
        begin, _, end = place.partition("INDEX")
        trainer = processes.command(
            processes.TRAINER, str(job.folder), str(job.attempt), job.accelerator
        )
        lines = [
            f'export TF_CONFIG={shlex.quote(begin)}"$JOB_COMPLETION_INDEX"{shlex.quote(end)}',
            *self.options.prelude,
            shlex.join(["exec", "python", *trainer[1:]]),
        ]
        limits = {"memory": self.options.memory, **({GPU: str(job.gpus)} if job.gpus else {})}
        return {
            "name": "worker",
            "image": self.options.image,
            "command": ["sh", "-c", "\n".join(lines)],
            "resources": {"requests": {"cpu": self.options.cpus, **limits}, "limits": limits},
            "volumeMounts": [{"name": "home", "mountPath": str(self.home.path)}],
        }

    def _words(self, *words: str) -> list[str]:
        return ["kubectl", f"--namespace={self.options.namespace}", *words]

    def _listed(self, kinds: str, *words: str) -> list[dict[str, Any]]:
        done = self.transport.run(
            self._words("get", kinds, *words, "--output=json"), seconds=QUERY_SECONDS
        )
        self._checked(done)
        try:
            return list(json.loads(done.output)["items"])
        except (ValueError, KeyError, TypeError):
            raise NoAnswerError("kubectl did not answer as expected") from None

    def _checked(self, done: Done) -> None:
        if done.code:
            raise NoAnswerError(f"Kubernetes did not answer: {done.last_error or NO_MESSAGE}")


def _seen(job: dict[str, Any], pods: list[dict[str, Any]]) -> Seen:
    """The state of a job from its conditions and those of its pods, in Slurm's words."""
    name = job["metadata"]["name"]
    nodes = ",".join(sorted({pod["spec"].get("nodeName", "") for pod in pods} - {""}))
    conditions = {
        each["type"]: each.get("reason", "")
        for each in job.get("status", {}).get("conditions", [])
        if each["status"] == "True"
    }
    if "Complete" in conditions:
        return Seen("ended", "COMPLETED", job=name, nodes=nodes)
    if "Failed" in conditions:
        return Seen("ended", _failure(conditions["Failed"], pods), job=name, nodes=nodes)
    phases = {pod["status"].get("phase", "Pending") for pod in pods}
    if pods and "Pending" not in phases:
        return Seen("running", "RUNNING", job=name, nodes=nodes)
    return Seen("waiting", "PENDING", reason=_wait(pods), job=name)


def _failure(reason: str, pods: list[dict[str, Any]]) -> str:
    if reason == "DeadlineExceeded":
        return "TIMEOUT"
    if any(each.get("reason") == "OOMKilled" for each in _ends(pods)):
        return "OUT_OF_MEMORY"
    if any(pod["status"].get("reason") in _PREEMPTED for pod in pods):
        return "PREEMPTED"
    return "FAILED"


def _ends(pods: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for pod in pods:
        for container in pod["status"].get("containerStatuses", []):
            yield container.get("state", {}).get("terminated") or {}


def _wait(pods: list[dict[str, Any]]) -> str:
    """Why a job waits, for people."""
    for pod in pods:
        for container in pod["status"].get("containerStatuses", []):
            reason = (container.get("state", {}).get("waiting") or {}).get("reason", "")
            if reason in _NEVER:
                return f"cannot start unless it is changed ({reason})"
        for each in pod["status"].get("conditions", []):
            if each["type"] == "PodScheduled" and each["status"] == "False":
                return f"waits for a node: {each.get('message', each.get('reason', ''))}"
    return "starts its pods" if pods else "just submitted"
