"""How often Live is redrawn for one viewer, and for many."""

from __future__ import annotations

import pytest

from dashboard.rendering import SEEN_SECONDS, Audience, interval_of, is_close, rest_interval_of


@pytest.mark.parametrize(
    ("viewers", "cores", "seconds"),
    [(1, 2, 1.0), (24, 2, 1.0), (25, 2, 1.25), (30, 1, 2.5), (30, 2, 1.25), (48, 64, 2.0)],
)
def test_refresh_interval_is_at_least_one_second_and_grows_with_viewers(
    viewers: int, cores: int, seconds: float
) -> None:
    audience = Audience(clock=lambda: 0.0, cores=cores)
    for viewer in range(viewers):
        audience.note(str(viewer))
        audience.note(str(viewer))
    assert audience.interval("gpu") == seconds


@pytest.mark.parametrize(
    ("accelerator", "cores", "seconds"),
    [("cpu", 2, 1.5), ("cpu", 4, 1.5), ("cpu", 8, 1.0), ("gpu", 2, 1.0), ("tpu", 2, 1.0)],
)
def test_pages_refresh_less_often_during_training_on_few_cores(
    accelerator: str, cores: int, seconds: float
) -> None:
    assert interval_of(1, accelerator, cores) == seconds
    assert interval_of(100, accelerator, cores) == interval_of(100, "gpu", cores)


@pytest.mark.parametrize(
    ("viewers", "accelerator", "cores", "seconds"),
    [
        (1, "gpu", 2, 3.0),
        (1, "cpu", 2, 6.0),
        (1, "cpu", 8, 3.0),
        (30, "cpu", 2, 10.0),
        (30, "gpu", 1, 20.0),
    ],
)
def test_per_epoch_charts_take_at_most_an_eighth_of_refreshes(
    viewers: int, accelerator: str, cores: int, seconds: float
) -> None:
    assert rest_interval_of(viewers, accelerator, cores) == seconds


def test_a_viewer_who_left_is_not_counted() -> None:
    now = [0.0]
    audience = Audience(clock=lambda: now[0], cores=2)
    for viewer in range(30):
        audience.note(str(viewer))
    now[0] = SEEN_SECONDS + 0.1
    audience.note("the last one")
    assert audience.interval("gpu") == 1.0


def test_one_more_viewer_does_not_change_the_pace() -> None:
    assert is_close(3.0, right=3.5)
    assert is_close(1.0, right=1.0)
    assert not is_close(3.0, right=1.0)
    assert not is_close(1.0, right=2.5)
