"""Runs that differ in one option only, and the cost of each value; the journals are written for
these tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.queries import Parity
from gan_runtime.store.store import Store

NewRun = Callable[..., RunDir]
Stored = Callable[[], Store]
OPTIONS = {"batch_size_global": 32, "precision": "float32"}


@pytest.fixture
def stored(home: Home) -> Stored:
    """Returns a database with everything in the journals so far."""

    def call() -> Store:
        store = Store()
        Ingestor(home, store).catch_up()
        return store

    return call


@pytest.fixture
def measured(new_run: NewRun) -> NewRun:
    """Stores a run whose first attempt has phases: `measured("quick-0001", steady=0.1, compile=2.0,
    xla="jit")`.
    """
    runs: list[RunDir] = []

    def make(
        run_id: str,
        steady: float = 0.1,
        compile: float = 1.0,
        cpu: str = "a processor",
        **options: object,
    ) -> RunDir:
        run = new_run(run_id, seconds=len(runs), **{**OPTIONS, **options})
        runs.append(run)
        times = {
            "trace": 0.5,
            "first_call": compile + steady,
            "compile": compile,
            "steady_step": steady,
        }
        journal.append(
            run.trainer_journal(),
            1,
            journal.HostFacts(facts={"cpu_model": cpu, "cores": 8}),
            *(
                journal.PhaseSeconds(phase=phase, seconds=seconds)
                for phase, seconds in times.items()
            ),
        )
        return run

    return make


def sets(store: Store, option: str) -> list[dict[str, list[str]]]:
    return [comparable.variants for comparable in queries.comparable_sets(store, option)]


# ---- comparable sets -----------------------------------------------------------------------------


def test_runs_that_differ_only_in_option_and_seed_are_comparable(
    measured: NewRun, stored: Stored
) -> None:
    measured("quick-0001", xla="jit", seed=1)
    measured("quick-0002", xla="off", seed=1, name="plain", profile_steps=5)
    measured("quick-0003", xla="jit", seed=2)
    measured("quick-0004", xla="off", batch_size_global=64)
    assert sets(stored(), "xla") == [{"off": ["quick-0002"], "jit": ["quick-0003", "quick-0001"]}]
    assert sets(stored(), "precision") == []


def test_comparable_runs_with_the_newest_run_come_first(measured: NewRun, stored: Stored) -> None:
    for number, (batch, xla) in enumerate(
        [(32, "off"), (64, "off"), (64, "jit"), (32, "jit")], start=1
    ):
        measured(f"quick-000{number}", xla=xla, batch_size_global=batch)
    assert sets(stored(), "xla") == [
        {"off": ["quick-0001"], "jit": ["quick-0004"]},
        {"off": ["quick-0002"], "jit": ["quick-0003"]},
    ]


def test_runs_of_other_machines_and_unmeasured_runs_are_not_compared(
    measured: NewRun, new_run: NewRun, stored: Stored
) -> None:
    measured("quick-0001", xla="off")
    measured("quick-0002", xla="jit", cpu="another processor")
    new_run("quick-0003", seconds=9, xla="jit", **OPTIONS)
    assert sets(stored(), "xla") == []


def test_curves_are_compared_between_runs_of_one_seed(measured: NewRun, stored: Stored) -> None:
    measured("quick-0001", precision="float32", seed=1)
    measured("quick-0002", precision="mixed_bfloat16", seed=1)
    measured("quick-0003", precision="mixed_bfloat16", seed=2)
    (comparable,) = queries.comparable_sets(stored(), "precision")
    assert {value: row.run_id for value, row in comparable.of_one_seed().items()} == {
        "float32": "quick-0001",
        "mixed_bfloat16": "quick-0002",
    }


def test_runs_of_different_seeds_have_no_curves_to_compare(
    measured: NewRun, stored: Stored
) -> None:
    measured("quick-0001", precision="float32", seed=1)
    measured("quick-0002", precision="mixed_bfloat16", seed=2)
    assert queries.comparable_sets(stored(), "precision")[0].of_one_seed() == {}


# ---- medians -------------------------------------------------------------------------------------


def test_variant_medians_keep_the_order_of_the_variants(measured: NewRun, stored: Stored) -> None:
    for number, steady in enumerate((0.125, 0.25, 0.5), start=1):
        measured(f"quick-000{number}", steady=steady, compile=float(number), seed=number)
    plain = measured("quick-0004", steady=1.0, discriminator_steps=2, updates="in_turn")
    sizes = {"process_bytes": 1, "device_bytes": None, "device_peak_bytes": None}
    peaks = [
        journal.MemoryUse(epoch=epoch, step=epoch, process_peak_bytes=900 * epoch, **sizes)
        for epoch in (1, 2)
    ]  # type: ignore[arg-type]
    journal.append(plain.trainer_journal(), 1, *peaks)
    variants = {
        "two": ["quick-0004"],
        "one": ["quick-0001", "quick-0002", "quick-0003"],
        "none": [],
    }
    frame = queries.variant_medians(stored(), variants)
    assert list(frame.columns) == [
        *("variant", "runs", "trace", "first_call", "compile", "steady_step", "images_per_s"),
        *("process_peak_bytes", "device_peak_bytes"),
    ]
    assert frame[
        ["variant", "runs", "compile", "steady_step", "images_per_s"]
    ].to_numpy().tolist() == [
        ["two", 1, 1.0, 1.0, 64.0],
        ["one", 3, 2.0, 0.25, 128.0],
    ]
    assert frame["first_call"].tolist() == [2.0, 2.25]
    assert frame["process_peak_bytes"].iloc[0] == 1800
    assert math.isnan(frame["process_peak_bytes"].iloc[1])


def test_the_newest_measured_attempt_counts(measured: NewRun, stored: Stored) -> None:
    run = measured("quick-0001", steady=0.5)
    journal.append(
        run.trainer_journal(),
        2,
        *(journal.PhaseSeconds(phase=phase, seconds=0.25) for phase in ("compile", "steady_step")),
    )
    journal.append(run.trainer_journal(), 3, journal.PhaseSeconds(phase="trace", seconds=9.0))
    frame = queries.variant_medians(stored(), {"one": ["quick-0001"]})
    assert frame[["compile", "steady_step"]].to_numpy().tolist() == [[0.25, 0.25]]
    assert math.isnan(frame["trace"].iloc[0])


def test_no_runs_give_no_medians(stored: Stored) -> None:
    assert queries.variant_medians(stored(), {"one": []}).empty
    assert queries.variant_medians(stored(), {}).empty


def test_variant_kernels_are_medians_of_runs_with_counts(measured: NewRun, stored: Stored) -> None:
    for number, operations in ((1, 900), (2, 1_000)):
        run = measured(f"quick-000{number}", seed=number)
        counts = {"kernels_before": 100 * number, "kernels_after": 40, "fusions": 30}
        journal.append(
            run.trainer_journal(), 1, journal.KernelCounts(operations=operations, **counts)
        )
    plain = measured("quick-0003", seed=3)
    unknown = {"kernels_before": None, "kernels_after": None, "fusions": None}
    journal.append(plain.trainer_journal(), 1, journal.KernelCounts(operations=800, **unknown))  # type: ignore[arg-type]
    measured("quick-0004", seed=4)
    variants = {
        "off": ["quick-0003"],
        "jit": ["quick-0001", "quick-0002", "quick-0004"],
        "none": ["quick-0004"],
    }
    frame = queries.variant_kernels(stored(), variants)
    assert list(frame.columns) == [
        "variant",
        "operations",
        "kernels_before",
        "kernels_after",
        "fusions",
    ]
    assert frame["variant"].tolist() == ["off", "jit"]
    assert frame.iloc[1].tolist() == ["jit", 950.0, 150.0, 40.0, 30.0]
    assert frame["kernels_after"].isna().tolist() == [True, False]


# ---- profiles and parity -------------------------------------------------------------------------


def profile(*shares: tuple[str, str, float]) -> journal.Profile:
    phase_shares = [
        journal.TimeShare(network=network, category=category, seconds=share, share=share)
        for network, category, share in shares
    ]
    return journal.Profile(step=5, steps=2, seconds=1.0, shares=phase_shares)


def test_variant_profile_is_the_mean_of_its_profiled_runs(measured: NewRun, stored: Stored) -> None:
    first, second = measured("quick-0001"), measured("quick-0002", seed=2)
    measured("quick-0003", seed=3)
    journal.append(
        first.trainer_journal(),
        1,
        profile(("g", "forward", 0.25), ("d", "forward", 0.25), ("g", "backward", 0.5)),
    )
    journal.append(second.trainer_journal(), 1, profile(("g", "forward", 1.0)))
    frame = queries.variant_profiles(
        stored(), {"plain": ["quick-0001", "quick-0002", "quick-0003"], "other": []}
    )
    assert list(frame.columns) == ["variant", "category", "share", "runs"]
    assert frame.to_numpy().tolist() == [
        ["plain", "backward", 0.25, 2],
        ["plain", "forward", 0.75, 2],
    ]


def test_parity_compares_only_common_steps(measured: NewRun, stored: Stored) -> None:
    for run_id, values in (
        ("quick-0001", [1.0, 1.0, 1.0, math.nan, 9.0]),
        ("quick-0002", [1.0, 1.5, 0.75, 2.0]),
    ):
        run = measured(run_id)
        wall_s = [float(step) for step in range(len(values))]
        journal.append(
            run.trainer_journal(),
            1,
            journal.Scalars(
                epoch=1, first_step=1, wall_s=wall_s, values={"loss_generator": values}
            ),
        )
    store = stored()
    assert queries.parity(store, "quick-0001", "quick-0002", "loss_generator") == Parity(
        3, 0.25, 0.5, 2
    )
    assert queries.parity(store, "quick-0001", "quick-0002", "loss_discriminator") is None
