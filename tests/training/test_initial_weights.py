"""Runs that start with another run's weights: matching weights, refusals, and exact resume."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gan_runtime.base.errors import CheckpointError, UnknownRunError
from gan_runtime.engines.contract import Arrays
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import JournalWriter
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints, starting_point
from gan_runtime.workloads import mlp_gan
from tests.support.engines.small_engines import assert_equal, tf_engine
from tests.support.engines.toy_runs import PICTURES

STEPS_PER_EPOCH = 2
OPTIONS: dict[str, Any] = {
    **{"workload": "mlp_gan", "batch_size_global": 4, "epochs": 2},
    **{"precision": "float32", "engine": "tensorflow", "ema_decay": 0.9},
}
KERNEL, BIAS, AVERAGE = "generator/out/kernel", "generator/out/bias", "average/out/kernel"


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def source(home: Home, arrays: Arrays, *steps: int, best: int | None = None) -> RunDir:
    """A run with checkpoints after these steps; an epoch has two steps."""
    run = (
        home.run_dir("quick-0001")
        if (home.runs / "quick-0001").exists()
        else RunDir(home.runs / "quick-0001")
    )
    run.path.mkdir(parents=True, exist_ok=True)
    with JournalWriter(run.trainer_journal(), 1) as writer:
        plan = {"images": 8, "steps_per_epoch": STEPS_PER_EPOCH, "epochs": 9, "images_per_step": 4}
        writer.write(journal.AttemptPlan(**plan, updates={}))
    for step in steps:
        checkpoints.save(run.checkpoints, arrays, step, 1.0, retained=3)
    if best is not None:
        checkpoints.replace_best(run.checkpoints, arrays, best, 1.0)
    return run


def test_matching_arrays_are_copied_and_others_are_named() -> None:
    state = {
        KERNEL: ones(2, 3),
        BIAS: ones(3),
        AVERAGE: ones(2, 3),
        "optimizer_generator/m": ones(3),
    }
    weights = {
        **{
            KERNEL: 5 * ones(2, 3),
            BIAS: ones(4),
            AVERAGE: 7 * ones(2, 3),
            "discriminator/odd": ones(1),
        },
        **{"optimizer_generator/m": 9 * ones(3), "step": np.asarray(8), "rate_factor": ones()},
    }
    began = starting_point.fit(state, weights, RunSpec.parse(OPTIONS))
    assert began.copied == (KERNEL,)
    assert began.fresh == (f"{BIAS} ((3,) here, (4,) there)",)
    assert began.unused == ("discriminator/odd",)
    assert began.not_copied == [*began.fresh, "discriminator/odd (only there)"]
    assert_equal(began.state, {**state, KERNEL: 5 * ones(2, 3), AVERAGE: 5 * ones(2, 3)})


@pytest.mark.parametrize(
    ("start_from", "step"), [("quick-0001", 7), ("quick-0001:3", 6), ("quick-0001:1", 2), ("", 0)]
)
def test_start_epoch_is_loaded_from_the_retained_or_best_checkpoints(
    home: Home, start_from: str, step: int
) -> None:
    source(home, {KERNEL: ones(1)}, 4, 6, 7, best=2)
    spec = RunSpec.parse({**OPTIONS, "start_from": start_from})
    starting_point.check(home, spec)
    if start_from:
        assert starting_point.WeightSource.of(start_from, home).checkpoint().step == step


@pytest.mark.parametrize(
    ("start_from", "kind", "sentence"),
    [
        ("quick-0007", UnknownRunError, "run 'quick-0007' is not in"),
        (
            "quick-0001:5",
            CheckpointError,
            (
                "start_from names epoch 5 of quick-0001, whose checkpoints are after epochs 2, 3:"
                " use one"
            ),
        ),
    ],
)
def test_a_missing_run_or_epoch_is_refused_before_the_start(
    home: Home, start_from: str, kind: type[Exception], sentence: str
) -> None:
    source(home, {KERNEL: ones(1)}, 4, 6)
    with pytest.raises(kind) as refused:
        starting_point.check(home, RunSpec.parse({**OPTIONS, "start_from": start_from}))
    assert str(refused.value).startswith(sentence)


def test_source_without_checkpoint_is_refused_unless_the_run_waits_for_it(home: Home) -> None:
    source(home, {})
    spec = RunSpec.parse({**OPTIONS, "start_from": "quick-0001"})
    with pytest.raises(
        CheckpointError, match="quick-0001, which has no checkpoint: train it for an epoch first"
    ):
        starting_point.check(home, spec)
    starting_point.check(home, spec, dependency="quick-0001")


# ---- real engine: whole runs are in tests/full/training/test_fine_tuning.py ----------------------


@pytest.mark.usefixtures("cores")
def test_checkpoint_that_fits_nothing_is_refused_and_mismatches_are_named(
    home: Home,
) -> None:
    source(home, {"generator/other/kernel": ones(2), "step": np.asarray(2)}, 2)
    engine = tf_engine(1, mlp_gan.WORKLOAD, data=PICTURES, batch_size_global=4)
    spec = RunSpec.parse({**OPTIONS, "start_from": "quick-0001"})
    before, run = engine.state(), RunDir(home.runs / "quick-0002")
    with pytest.raises(CheckpointError) as refused:
        starting_point.begin(engine, spec, run)
    assert str(refused.value).startswith(
        "no weights of quick-0001 fit the networks of this run by name and shape: "
    )
    assert str(refused.value).endswith("Use a run of the same networks, or leave out start_from.")
    assert_equal(engine.state(), before)
    source(home, {**before, "generator/generator/hidden/bias": ones(3)}, 4)
    facts, (event,) = starting_point.begin(engine, spec, run)
    count = len([name for name in before if name.startswith(("generator/", "discriminator/"))])
    skipped = facts["start_from"].pop("not_taken")
    assert facts == {"start_from": {"run": "quick-0001", "step": 4, "taken": count - 1}}
    assert skipped == [
        f"generator/generator/hidden/bias ({before['generator/generator/hidden/bias'].shape} here,"
        " (3,) there)"
    ]
    assert (event.level, event.topic) == ("warning", "start_from")
    assert (
        event.message
        == f"Starts with {count - 1} of {count} weight arrays of quick-0001 after step 4. Not"
        f" copied: {skipped[0]}."
    )
