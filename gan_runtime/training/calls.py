"""One epoch as a list of host calls, one of which may run under the profiler."""

from __future__ import annotations

from dataclasses import dataclass

WARM_STEPS = 10  # steady steps, after the first one, that an attempt makes before it is profiled


@dataclass(frozen=True)
class Call:
    """Some steps that the device makes before it reports."""

    steps: int
    profiled: bool = False


def plain_calls(lengths: list[int]) -> list[Call]:
    """Calls of so many steps each, none of them profiled."""
    return [Call(steps) for steps in lengths]


def with_profile(lengths: list[int], steps_done: int, profile_steps: int) -> list[Call] | None:
    """The calls with a profiled one put in as soon as the attempt is warm; None when that is not before the last call.

    `steps_done`: by this attempt, before these calls. The last call of an epoch is never the profiled one, so an epoch
    always has steps that are timed. with_profile([1, 10, 6, 1], 0, 5) profiles 5 steps between the 10 and the 6.
    """
    for index in range(len(lengths)):
        if steps_done + sum(lengths[:index]) > WARM_STEPS:
            return [
                *plain_calls(lengths[:index]),
                Call(profile_steps, profiled=True),
                *plain_calls(lengths[index:]),
            ]
    return None
