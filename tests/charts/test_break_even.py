"""When a longer compile time pays off, as a number and as a sentence."""

from __future__ import annotations

import pytest

from dashboard import words
from gan_runtime.studies.statistics import Cost, break_even_steps

USUAL = Cost(compile_s=1.0, step_s=0.1)


def test_cost_after_steps_includes_compile_time() -> None:
    assert Cost(2.0, 0.25).after(8) == 4.0


@pytest.mark.parametrize(
    ("other", "steps"),
    [
        (Cost(3.0, 0.05), 40.0),  # (3 − 1) / (0.1 − 0.05)
        (Cost(1.0, 0.05), 0.0),
        (Cost(0.5, 0.15), 10.0),  # ahead at first, behind later
        (Cost(3.0, 0.15), None),
        (Cost(3.0, 0.1), None),
        (Cost(0.5, 0.05), None),
    ],
)
def test_costs_are_equal_after_the_break_even_steps(other: Cost, steps: float | None) -> None:
    assert break_even_steps(USUAL, other) == (None if steps is None else pytest.approx(steps))
    if steps is not None:
        assert USUAL.after(steps) == pytest.approx(other.after(steps))


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (
            Cost(3.0, 0.05),
            (
                "**jit** has paid back its compiling after 40 steps (5.0 s) against off: it"
                " compiles 2 s longer, and each step takes 50 ms less."
            ),
        ),
        (
            Cost(1.03, 0.05),
            (
                "**jit** has paid back its compiling within its first step against off: it compiles"
                " 30 ms longer, and each step takes 50 ms less."
            ),
        ),
        (
            Cost(3.0, 0.15),
            (
                "**jit** never pays back against off: it compiles 2 s longer, and each step takes"
                " 50 ms more."
            ),
        ),
        (
            Cost(3.0, 0.1),
            (
                "**jit** never pays back against off: it compiles 2 s longer, and each step takes 0"
                " ms more."
            ),
        ),
        (
            Cost(0.5, 0.05),
            (
                "**jit** is ahead of off from the first step: it compiles 500 ms shorter, and each"
                " step takes 50 ms less."
            ),
        ),
        (
            Cost(0.5, 0.15),
            (
                "**jit** is ahead of off at first and behind it after 10 steps (2.0 s): it compiles"
                " 500 ms shorter, but each step takes 50 ms more."
            ),
        ),
    ],
)
def test_the_sentence_states_whether_and_when_compiling_pays_back(
    other: Cost, sentence: str
) -> None:
    assert words.break_even(("off", USUAL), ("jit", other)) == sentence
