"""With k updates of D per step, a step uses k batches: rates, estimates and epochs count all of
them (k = 4, batch 64).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dashboard.tpu import charts as tpu_frames
from gan_runtime.base.errors import DatasetError
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.tpu import plan as planning
from gan_runtime.training import watch
from tests.tpu import examples

FOUR = {"batch_size_global": 64, "updates": "in_turn", "discriminator_steps": 4}


def test_an_epoch_is_one_pass_for_any_images_per_step() -> None:
    spec = RunSpec.parse(FOUR)
    assert (spec.images_per_step, spec.steps_per_epoch(60_000)) == (256, 234)


def test_the_live_rate_counts_all_images_of_a_step(
    new_run: Callable[..., RunDir], home: Home
) -> None:
    run = new_run("quick-0001", **FOUR)
    walls = [0.1 * step for step in range(1, 11)]
    scalars = journal.Scalars(
        epoch=1, first_step=1, wall_s=walls, values={"loss_generator": [0.7] * 10}
    )
    journal.append(
        run.trainer_journal(),
        1,
        journal.AttemptPlan(images=60_000, steps_per_epoch=234, epochs=1),
        scalars,
    )
    store = Store()
    Ingestor(home, store).catch_up()
    assert queries.progress(store, "quick-0001").images_per_s == pytest.approx(2_560.0), "not 640"


def test_the_time_estimate_counts_all_images() -> None:
    spec = RunSpec.parse({**FOUR, "epochs": 10})
    # 39 steps of 256 images, 10 times, at 2,560 images/s.
    assert watch.estimated_seconds(spec, images=39 * 256, images_per_s=2_560.0) == pytest.approx(
        39.0
    ), "not 9.75"


def test_a_tpu_epoch_has_as_many_steps_as_the_run() -> None:
    plan = planning.make({**FOUR, "dataset": "mnist"}, "v3:2x2")
    point = plan.point
    assert plan.steps_per_epoch(point) == 234
    answer = examples.estimate(
        point, cycles=940_000.0 / 6, exchanges=0.0, exchange_bytes=0
    )  # a sixth of a millisecond per step
    assert answer.epoch_s(
        plan.steps_per_epoch(point), steps_per_call=10, overhead_s=0.0
    ) == pytest.approx(0.039), "not 0.156"
    rows = tpu_frames.device_rows(
        plan, [examples.estimate(case, exchanges=0.0) for case in plan.points], overhead_s=0.0
    )
    computing = rows[(rows["devices"] == 8) & (rows["part"] == "computing")]["seconds"]
    assert computing.item() == pytest.approx(0.234)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {**FOUR, "batch_size_global": 512},
            (
                "Global batch (batch_size_global) is 512 and a step takes 4 batches, 2048 images,"
                " but digits has only 1797 images: use a smaller batch, or fewer batches per step."
            ),
        ),
        (
            {"batch_size_global": 2000},
            (
                "Global batch (batch_size_global) is 2000, but digits has only 1797 images: use a"
                " smaller batch."
            ),
        ),
    ],
)
def test_a_step_larger_than_the_data_set_is_refused_with_its_cause(
    options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(DatasetError) as refused:
        RunSpec.parse(options).check_set(1_797)
    assert str(refused.value) == sentence
