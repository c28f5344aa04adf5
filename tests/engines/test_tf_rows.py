"""The images that each step reads: an order for each epoch, for any number of replicas, also after
a resume.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gan_runtime.data.contract import DataSet, picture_set
from gan_runtime.engines.task import StepPlan
from gan_runtime.engines.tf.inputs import distributed_batches, rows_of_pipeline
from gan_runtime.engines.tf.strategy import make_strategy
from gan_runtime.spec import RunSpec
from tests.support.engines.small_engines import Streamed, keep_alive

NUMBERED = picture_set("numbered", np.arange(21, dtype=np.uint8).reshape(21, 1, 1, 1), "test")
pytestmark = pytest.mark.usefixtures("cores")


@pytest.fixture
def batches(new_group: Callable[[], None]) -> Callable[..., list[list[int]]]:
    """The image numbers of each global batch: 21 images in batches of 4 are 5 steps per epoch, with
    one image left out.
    """

    def call(
        steps: int,
        replicas: int = 1,
        first_step: int = 0,
        seed: int = 1,
        data: DataSet | None = None,
    ) -> list[list[int]]:
        new_group()
        spec = RunSpec.parse({"batch_size_global": 4, "replicas": replicas, "seed": seed})
        strategy = make_strategy(spec, "cpu")
        plan = StepPlan(batches=1, batch_size_global=4, rows=21, updates={})
        iterator = keep_alive(
            distributed_batches(strategy, spec, plan, data or NUMBERED, first_step)
        )
        shares = [
            strategy.experimental_local_results(next(iterator)["images"]) for _ in range(steps)
        ]
        assert {share.shape for step in shares for share in step} == {(4 // replicas, 1, 1, 1)}
        return [
            np.concatenate([share.numpy().ravel() for share in step]).tolist() for step in shares
        ]

    return call


def test_epoch_visits_no_row_twice(batches: Callable[..., list[list[int]]]) -> None:
    rows = batches(15)
    for epoch in (rows[:5], rows[5:10], rows[10:]):
        assert len({image for batch in epoch for image in batch}) == 20


def test_row_order_differs_by_epoch_and_seed(
    batches: Callable[..., list[list[int]]],
) -> None:
    rows = batches(10)
    assert rows[:5] != rows[5:]
    assert rows[:5] != batches(5, seed=2)
    assert rows[:5] != [list(range(first, first + 4)) for first in range(0, 20, 4)]


def test_every_row_is_seen_over_many_epochs(batches: Callable[..., list[list[int]]]) -> None:
    assert {image for batch in batches(50) for image in batch} == set(range(21))


@pytest.mark.parametrize("replicas", [2, 4])
def test_global_batches_do_not_depend_on_the_replicas(
    batches: Callable[..., list[list[int]]], replicas: int
) -> None:
    assert batches(7, replicas) == batches(7)


@pytest.mark.parametrize("first_step", [1, 4, 5, 6, 12])
@pytest.mark.parametrize("replicas", [1, 2])
def test_resumed_run_continues_with_the_same_rows(
    batches: Callable[..., list[list[int]]], first_step: int, replicas: int
) -> None:
    assert batches(7, replicas, first_step) == batches(20)[first_step : first_step + 7]


@pytest.mark.parametrize("replicas", [1, 2])
def test_streamed_rows_keep_the_same_order(
    batches: Callable[..., list[list[int]]], replicas: int
) -> None:
    streamed = Streamed(NUMBERED)
    assert batches(7, replicas, 3, data=streamed) == batches(7, replicas, 3)
    assert {len(numbers) for numbers in streamed.reads} == {4 // replicas}


def test_each_worker_reads_its_share_of_the_same_batches(
    batches: Callable[..., list[list[int]]],
) -> None:
    """Two workers with two replicas each, and two batches per step: their shares, side by side, are
    the batches of one replica.
    """
    plan = StepPlan(batches=2, batch_size_global=4, rows=21, updates={})
    options = {"batch_size_global": 4, "updates": "in_turn", "discriminator_steps": 2}
    alone = RunSpec.parse(options)
    whole = np.stack(
        [
            rows["images"].numpy().ravel()
            for rows in rows_of_pipeline(alone, plan, NUMBERED, 1, 1, 0).take(4)
        ]
    ).reshape(4, 2, 4)
    spec = RunSpec.parse({**options, "workers": 2, "replicas": 2})
    shares = []
    for worker in (0, 1):
        parts = rows_of_pipeline(spec, plan, NUMBERED, 1, 2, worker).take(8)
        rows = [part["images"].numpy().ravel() for part in parts]
        shares.append(np.stack(rows).reshape(4, 2, 2, 1))  # step, replica, batch of the step, image
    together = np.concatenate([share.transpose(0, 2, 1, 3) for share in shares], axis=2).reshape(
        4, 2, 4
    )
    assert together.tolist() == whole.tolist()
    assert whole.reshape(-1)[:4].tolist() == [image for batch in batches(4)[2:3] for image in batch]
