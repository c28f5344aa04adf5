"""Queries of the Paper page over stored runs, compared with manually computed numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from gan_runtime.records import journal
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from gan_runtime.store.store import Store

NewRun = Callable[..., RunDir]
HERE = {"cpu_model": "Xeon", "cores": 2, "hostname": "here"}


@pytest.fixture
def measured(new_run: NewRun) -> Callable[..., RunDir]:
    """Stores a run with these epoch rates: `measured("a-0001", [1.0, 100.0], replicas=2)`."""

    def make(
        run_id: str,
        rates: list[float],
        facts: dict[str, object] | None = None,
        images: int = 1_797,
        end: str = "finished",
        **options: object,
    ) -> RunDir:
        run = new_run(run_id, seconds=float(run_id[-4:]), **options)
        done = [
            journal.EpochDone(
                epoch=epoch, step=epoch, seconds=1.0, images=images, images_per_s=rate
            )
            for epoch, rate in enumerate(rates, 1)
        ]
        journal.append(
            run.trainer_journal(),
            1,
            journal.HostFacts(facts=HERE if facts is None else facts),
            journal.AttemptPlan(images=images, steps_per_epoch=1, epochs=len(rates)),
            *done,
            StatusChange(status=end, reason="done"),  # type: ignore[arg-type]
        )
        return run

    return make


def test_loss_quartiles_give_the_middle_half_of_each_epoch(
    store: Store, new_run: NewRun, take_in: Callable[[], None]
) -> None:
    """1, 2, 3, 4, 5 have quartiles 2 and 4; 0, 1, 2, 3 and a NaN have 0.75 and 2.25.

    Other metrics and other runs are ignored.
    """
    first, second = new_run("a-0001"), new_run("a-0002", seconds=1.0)
    for run, epochs in (
        (first, [[1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 1.0, 2.0, 3.0, math.nan]]),
        (second, [[7.0] * 5]),
    ):
        for epoch, losses in enumerate(epochs, 1):
            values = {"loss_discriminator": losses, "loss_generator": [9.0] * 5}
            times = [float(step) for step in range(1, 6)]
            journal.append(
                run.trainer_journal(),
                1,
                journal.Scalars(epoch=epoch, first_step=5 * epoch - 4, wall_s=times, values=values),
            )
    take_in()
    both = queries.loss_quartiles(store, ["a-0001", "a-0002"], "loss_discriminator")
    assert both.to_dict("list") == {
        "run_id": ["a-0001", "a-0001", "a-0002"],
        "epoch": [1, 2, 1],
        "mean": [3.0, 1.5, 7.0],
        "width": [2.0, 1.5, 0.0],
    }
    quartiles = queries.loss_quartiles(store, ["a-0002"], "loss_generator")
    assert quartiles.to_dict("list") == {
        "run_id": ["a-0002"],
        "epoch": [1],
        "mean": [9.0],
        "width": [0.0],
    }
    assert queries.loss_quartiles(store, [], "loss_generator").empty


def test_rates_by_device_exclude_the_first_epoch_and_other_workloads(
    store: Store, measured: Callable[..., RunDir], take_in: Callable[[], None]
) -> None:
    """The first epoch includes compilation, so 1 and 2 images/s do not count. Three runs with one
    replica have 100, 110 and 300 images/s.
    """
    measured("a-0001", [1.0, 90.0, 110.0], seed=1)
    measured("a-0002", [2.0, 110.0], seed=2)
    measured("a-0003", [1.0, 300.0], seed=3, name="third", epochs=7)
    measured("a-0004", [1.0, 500.0], replicas=2, workers=2)
    measured("a-0005", [1.0])  # no epoch after its first
    measured("a-0006", [1.0, 50.0], end="stopped")
    measured("a-0007", [1.0, 50.0], workload="mlp_gan")
    take_in()
    rates = queries.rates_by_device(store, "dcgan_mnist")
    columns = [
        "accelerator",
        "devices",
        "precision",
        "batch_size_global",
        "dataset",
        "images",
        "engine",
        "xla",
        "cpu_model",
    ]
    same = ("mixed_bfloat16", 256, "digits", 1_797, "auto", "off", "Xeon", False)
    assert list(
        rates[[*columns, "imported", "runs", "images_per_s"]].itertuples(index=False, name=None)
    ) == [
        ("cpu", 1, *same, 3, 110.0),
        ("cpu", 4, *same, 1, 500.0),
    ]
    assert rates["settings"].nunique() == 1


@pytest.mark.parametrize(
    "other",
    [
        {"batch_size_global": 64},
        {"dataset": "mnist"},
        {"images": 10_000},
        {"precision": "float32"},
        {"engine": "jax"},
        {"xla": "jit"},
        {"r1_weight": 1.0},
        {"discriminator_steps": 2, "updates": "in_turn"},
        {"facts": {**HERE, "cpu_model": "EPYC"}},
        {"facts": {"cpu_model": "Xeon", "cores": 2}},
    ],
    ids=str,
)
def test_runs_that_differ_in_speed_settings_are_not_grouped(
    store: Store,
    measured: Callable[..., RunDir],
    take_in: Callable[[], None],
    other: dict[str, object],
) -> None:
    measured("a-0001", [1.0, 100.0])
    measured("a-0002", [1.0, 300.0], **other)
    take_in()
    assert sorted(queries.rates_by_device(store, "dcgan_mnist")["images_per_s"]) == [100.0, 300.0]


def test_conditions_of_runs_include_images_and_host(
    store: Store, measured: Callable[..., RunDir], new_run: NewRun, take_in: Callable[[], None]
) -> None:
    measured("a-0001", [1.0], epochs=2, engine="tensorflow", replicas=2)
    measured("a-0002", [1.0], epochs=2, engine="tensorflow", replicas=2, seed=2)
    given_away = {"cpu_model": "EPYC", "cores": 8}
    measured("a-0003", [1.0], given_away, 10_000, epochs=4, engine="tensorflow", dataset="mnist")
    new_run("a-0004", seconds=9.0, engine="tensorflow", replicas=8, epochs=1)
    take_in()
    conditions = queries.conditions(store, [f"a-000{number}" for number in range(1, 5)])
    assert conditions == [
        queries.Conditions("mnist", 10_000, "cpu", "tensorflow", 1, 4, "EPYC", 8, True, "here"),
        queries.Conditions("digits", 1_797, "cpu", "tensorflow", 2, 2, "Xeon", 2, False, "here"),
        queries.Conditions("digits", None, "cpu", "tensorflow", 8, 1, "", None, False, "here"),
    ]
