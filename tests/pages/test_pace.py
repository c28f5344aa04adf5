"""How often Live is redrawn before one viewer, and before many."""

from __future__ import annotations

import pytest

from dashboard.live.pace import SEEN_SECONDS, Audience, is_kept


@pytest.mark.parametrize(("viewers", "seconds"), [(1, 1.0), (10, 1.0), (11, 1.5), (30, 3.0)])
def test_viewers_are_drawn_about_ten_times_a_second_together_and_nobody_more_than_once(
    viewers: int, seconds: float
) -> None:
    audience = Audience(clock=lambda: 0.0)
    for viewer in range(viewers):
        audience.note(str(viewer))
        audience.note(str(viewer))
    assert audience.interval == seconds


def test_whoever_has_left_counts_no_more() -> None:
    now = [0.0]
    audience = Audience(clock=lambda: now[0])
    for viewer in range(30):
        audience.note(str(viewer))
    now[0] = SEEN_SECONDS + 0.1
    audience.note("the last one")
    assert audience.interval == 1.0


def test_one_more_viewer_does_not_change_the_pace_of_all_others() -> None:
    assert is_kept(3.0, right=3.5)
    assert is_kept(1.0, right=1.0)
    assert not is_kept(3.0, right=1.0)
    assert not is_kept(1.0, right=2.5)
