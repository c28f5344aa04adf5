"""A step of Slurm as its tasks see it: the members by Slurm's variables, and how often the job was
requeued.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping

from gan_runtime.base.cluster import PORTS, Members

TIME_LIMIT = "time-limit"  # asks for a stop in the place of a user
RESTARTS_VARIABLE = "SLURM_RESTART_COUNT"  # unset in the first life of a job
PORTS_OF_A_STEP = 16  # at least; jobs on one node get other ports, since their ids differ
_STEPS_APART = 97  # blocks of ports between two steps of one job
_HOSTS = re.compile(r"(?:[^,\[\]]|\[[^\]]*\])+")
_TASKS = re.compile(r"(\d+)(?:\(x(\d+)\))?")


def members(environment: Mapping[str, str] = os.environ) -> Members:
    """The members of the step, with ranks that fill one node after another (Slurm's default).

    Raises KeyError or ValueError if the variables are missing or not understood.
    """
    hosts = host_names(environment["SLURM_STEP_NODELIST"])
    counts = task_counts(environment["SLURM_STEP_TASKS_PER_NODE"])
    first = first_port(
        int(environment.get("SLURM_JOB_ID", 0)),
        int(environment.get("SLURM_STEP_ID", 0)),
        max(counts),
    )
    addresses = tuple(
        f"{host}:{first + place}"
        for host, count in zip(hosts, counts, strict=True)
        for place in range(count)
    )
    return Members(int(environment["SLURM_PROCID"]), addresses)


def first_port(job: int, step: int, tasks: int) -> int:
    """The port of the first task on each node; the others follow. `tasks`: the most on a node."""
    width = max(PORTS_OF_A_STEP, tasks)
    return PORTS.start + (job + _STEPS_APART * step) % (len(PORTS) // width) * width


def host_names(text: str) -> list[str]:
    """`"n[1-2,05],gpu3"` → `["n1", "n2", "n05", "gpu3"]`."""
    names: list[str] = []
    for word in _HOSTS.findall(text):
        parts = re.split(r"\[([^\]]*)\]", word)  # literal, numbers, literal, …
        choices = [_numbers(part) if place % 2 else [part] for place, part in enumerate(parts)]
        names += map("".join, itertools.product(*choices))
    return names


def _numbers(text: str) -> list[str]:
    """`"1-2,05"` → `["1", "2", "05"]`."""
    numbers: list[str] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers += [
            str(number).zfill(len(first)) for number in range(int(first), int(last or first) + 1)
        ]
    return numbers


def task_counts(text: str) -> list[int]:
    """The tasks of each node: `"2(x2),1"` → `[2, 2, 1]`."""
    return [int(count) for count, times in _TASKS.findall(text) for _ in range(int(times or 1))]


def restarts(environment: Mapping[str, str] = os.environ) -> int:
    """How often Slurm has requeued the job of this process; 0 outside of Slurm."""
    text = environment.get(RESTARTS_VARIABLE, "")
    return int(text) if text.isdecimal() else 0


def is_task(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether Slurm has started this process."""
    return "SLURM_PROCID" in environment


def tasks(environment: Mapping[str, str] = os.environ) -> int:
    """The tasks of this process's step; 1 outside of Slurm."""
    text = environment.get("SLURM_STEP_NUM_TASKS", "")
    return int(text) if is_task(environment) and text.isdecimal() else 1
