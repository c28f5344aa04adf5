"""The Kubernetes manifest of docs/cluster.md is valid for the API and gives each pod its rank."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gan_runtime.records.home import REPOSITORY

API_VERSION = "1.33"


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    """The documents of the file by kind."""
    text = (REPOSITORY / "docs" / "kubernetes-job.yaml").read_text(encoding="utf-8")
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


@pytest.mark.parametrize("kind", ["Service", "Job"])
def test_manifest_matches_the_kubernetes_schema(manifest: dict[str, Any], kind: str) -> None:
    assert kubernetes_validate.validate(manifest[kind], API_VERSION, strict=True) == API_VERSION


def test_each_pod_is_one_worker_named_by_the_service(manifest: dict[str, Any]) -> None:
    job, service = manifest["Job"], manifest["Service"]
    pod = job["spec"]["template"]["spec"]
    shell, option, line = pod["containers"][0]["command"]
    place, _, start = line.rpartition(" && ")
    assert (job["spec"]["completionMode"], job["spec"]["backoffLimit"]) == ("Indexed", 0)
    assert start.startswith("exec python -m gan_runtime.worker /")
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    workers = [
        f"{job['metadata']['name']}-{index}.{pod['subdomain']}:18900"
        for index in range(job["spec"]["completions"])
    ]
    for index in range(job["spec"]["parallelism"]):
        environment = {**os.environ, "JOB_COMPLETION_INDEX": str(index)}
        output = subprocess.run(
            [shell, option, f"{place} && printenv TF_CONFIG"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(output.stdout) == {
            "cluster": {"worker": workers},
            "task": {"type": "worker", "index": index},
        }
