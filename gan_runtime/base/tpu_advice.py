"""Causes of the usual errors of a TPU that does not start, and what to do. Loads no framework.

The texts are those of libtpu 0.0.42.1, JAX 0.10 and TensorFlow 2.20, and of reports on GitHub;
docs/tpu.md has the table.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """`marks`: parts of a message in lower case; any of them identifies it. `sentence`: the cause,
    and what to do.
    """

    marks: tuple[str, ...]
    sentence: str


ADVICE = (  # the first match wins, so the specific ones come first
    Advice(
        ("multi-process lockfile",),
        "libtpu's lock file is left over from a process that was killed: end other TPU processes,"
        " then `sudo rm /tmp/libtpu_lockfile`",
    ),
    Advice(
        ("already in use by", "libtpu.so already in use", "device or resource busy"),
        "another process uses the TPU, and only one can: find it with `sudo lsof -w /dev/accel0"
        " /dev/vfio/0`, end it, and try again",
    ),
    Advice(
        (
            "failed to open libtpu.so",
            "libtpu.so: cannot open",
            "could not find libtpu",
            "libtpu is not installed",
        ),
        "libtpu is not installed in this environment: run `make clean setup` on the TPU host",
    ),
    Advice(
        ("configuredistributedtpu", "no opkernel"),
        "this TensorFlow was built without TPU support: run `make clean setup` on the TPU host, or"
        " use engine=jax",
    ),
    Advice(
        ("permission denied", "operation not permitted"),
        "this user cannot open the TPU: run as the user who owns /dev/accel0 or /dev/vfio, or"
        " start the container with --privileged",
    ),
    Advice(
        (
            "failed to get tpu metadata",
            "failed to fetch url",
            "agent-worker-number",
            "could not determine tpu accelerator type",
        ),
        "libtpu gets no answer from the cloud's metadata server. Inside a container use the host's"
        " network; without a metadata server, set"
        " TPU_SKIP_MDS_QUERY=1, TPU_ACCELERATOR_TYPE (such as v3-8) and"
        " TPU_WORKER_HOSTNAMES=localhost",
    ),
    Advice(
        ("struct size", "pjrt api version", "pjrt plugin pjrt"),
        "libtpu does not match this framework: install the versions that requirements-tpu.txt pins"
        " (`make clean setup`)",
    ),
    Advice(
        (
            "no tpu platform",
            "no tpu devices found",
            "no tpu cores available",
            "failed to get global tpu topology",
        ),
        "libtpu finds no TPU: check that no other process uses it, and that libtpu matches the"
        " framework (docs/tpu.md)",
    ),
    Advice(
        (
            "not in the list of known backends",
            "unknown backend",
            "unable to initialize backend 'tpu'",
            "libtpu",
        ),
        "the framework cannot start the TPU: run `make clean setup` on the TPU host, and check that"
        " no other process uses it",
    ),
)


def advice(message: str) -> str:
    """The cause and what to do; empty for an unusual message."""
    text = message.lower()
    rows = (row.sentence for row in ADVICE if any(mark in text for mark in row.marks))
    return next(rows, "")


def cause(message: str) -> str:
    """The advice, or the first line of an unusual message; "no message" when it is empty."""
    return advice(message) or next(
        (line.strip()[:160] for line in message.splitlines() if line.strip()), "no message"
    )
