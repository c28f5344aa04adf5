"""Stage times of images."""

from __future__ import annotations

from collections.abc import Iterator

from gan_runtime.engines.tiles import COMPILE, EXECUTE, MERGE, STAGES, StageTime, Stopwatch


def test_stopwatch_sums_tiles_per_image_and_counts_compilation_once() -> None:
    moments: Iterator[float] = iter([0.0, 5.0, 10.0, 11.0, 20.0, 22.0, 30.0, 30.5, 40.0, 44.0])
    watch = Stopwatch(lambda: next(moments))
    with watch.of(COMPILE):
        pass
    watch.next_image()
    for _ in range(2):  # two tiles: 1 s and 2 s
        with watch.of(EXECUTE):
            pass
    with watch.of(MERGE):
        pass
    watch.next_image()
    with watch.of(EXECUTE):
        pass
    times = {time.stage: time for time in watch.times()}
    assert tuple(times) == STAGES
    assert times["compile"] == StageTime("compile", 5.0, 1, 5.0)
    assert times["execute"] == StageTime("execute", 7.0, 2, 3.5)
    assert times["merge"] == StageTime("merge", 0.5, 2, 0.25)
    assert watch.image_s() == (3.5 + 4.0) / 2
