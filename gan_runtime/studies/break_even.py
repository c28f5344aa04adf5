"""When a longer start is paid back by shorter steps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What a way to train costs: seconds before its first step runs at speed, and seconds of each step."""

    compile_s: float
    step_s: float

    def after(self, steps: float) -> float:
        """Seconds until so many steps are done."""
        return self.compile_s + steps * self.step_s


def break_even_steps(usual: Cost, other: Cost) -> float | None:
    """The steps after which both have taken the same time: (compile of other − of usual) / (step of usual − of other).

    None when there is no such moment: one of them is ahead from the start and stays so.
    """
    longer_start, shorter_step = other.compile_s - usual.compile_s, usual.step_s - other.step_s
    if shorter_step == 0 or longer_start / shorter_step < 0:
        return None
    return longer_start / shorter_step
