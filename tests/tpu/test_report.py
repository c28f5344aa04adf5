"""Values derived from the compiler's numbers, compared with manual calculations."""

from __future__ import annotations

import json

import pytest

from gan_runtime.tpu import estimates
from gan_runtime.tpu.estimates import TOPOLOGIES, Point
from tests.tpu.examples import estimate


def test_step_time_is_cycles_divided_by_the_clock() -> None:
    assert estimate().step_s == pytest.approx(1e-3)


def test_share_of_peak_is_relative_to_one_core() -> None:
    assert estimate().share_of_peak == pytest.approx(0.25)


def test_share_of_peak_is_unknown_without_an_operation_count() -> None:
    assert estimate(flops=None).share_of_peak is None


def test_exchange_time_is_that_of_a_ring_of_eight_over_two_links() -> None:
    # 2 · 7/8 · 8.2 MB over 2 · 82 GB/s is 87.5 µs, plus 10 µs of latency.
    assert estimate().exchange_s == pytest.approx(97.5e-6)


def test_one_core_exchanges_nothing() -> None:
    assert estimate(Point("v3:2x2", 1, 512, "float32")).exchange_s == 0.0


def test_epoch_time_is_its_steps_plus_the_overhead_of_its_calls() -> None:
    # 60,000 images are 117 steps of 512 in 12 calls of ten.
    seconds = estimate().epoch_s(117, steps_per_call=10, overhead_s=2e-3)
    assert seconds == pytest.approx(117 * (1e-3 + 97.5e-6) + 12 * 2e-3)


def test_memory_is_compared_with_that_of_one_core() -> None:
    assert estimate().memory.total == 135_000_000
    assert estimate().share_of_memory == pytest.approx(135e6 / (16 * 2**30))


def test_answer_round_trips_through_json() -> None:
    assert estimates.from_json(json.loads(json.dumps(estimates.to_json(estimate())))) == estimate()


def test_an_answer_of_another_version_is_not_read() -> None:
    with pytest.raises(TypeError):
        estimates.from_json({**estimates.to_json(estimate()), "unknown_field": 1})


def test_every_topology_has_the_compilers_device_count() -> None:
    assert {name: topology.devices for name, topology in TOPOLOGIES.items()} == {
        "v2:2x2": 8,
        "v3:2x2": 8,
        "v4:2x2x1": 8,
        "v5e:2x4": 8,
        "v5p:2x2x1": 4,
        "v6e:2x4": 8,
        "tpu7x:2x2x1": 8,
    }


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_peak_rate_is_a_whole_number_of_matrix_units_times_the_clock(name: str) -> None:
    chip = TOPOLOGIES[name].chip
    units = chip.peak_flops / (chip.clock_hz * 2 * 128**2)
    assert units == pytest.approx(round(units), rel=0.03)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_every_chip_number_names_its_source(name: str) -> None:
    assert set(TOPOLOGIES[name].chip.sources) == {
        "peak_flops",
        "memory",
        "clock_hz",
        "link_bytes_per_s",
    }
    assert all(TOPOLOGIES[name].chip.sources.values())
