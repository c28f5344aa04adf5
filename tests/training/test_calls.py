"""The position of the profiled call in an epoch."""

from __future__ import annotations

import pytest

from gan_runtime.training.loop import Call, plain_calls, with_profile


@pytest.mark.parametrize(
    ("lengths", "steps_done", "before"),
    [
        ([1, 10, 10, 6], 0, [1, 10]),
        ([1, 5, 5, 5], 0, [1, 5, 5]),
        ([10, 10], 11, []),
        ([10, 10], 5, [10]),
    ],
)
def test_profiled_call_follows_the_first_step_and_ten_more(
    lengths: list[int], steps_done: int, before: list[int]
) -> None:
    after = lengths[len(before) :]
    assert with_profile(lengths, steps_done, 4) == [
        *plain_calls(before),
        Call(4, profiled=True),
        *plain_calls(after),
    ]


@pytest.mark.parametrize(("lengths", "steps_done"), [([1, 27], 0), ([1, 10], 0), ([4], 7)])
def test_profiled_call_is_never_the_last_of_an_epoch(lengths: list[int], steps_done: int) -> None:
    assert with_profile(lengths, steps_done, 4) is None
