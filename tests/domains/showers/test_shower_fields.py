"""The fields of a shower row, and the angle measured on a shower."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.data.prepared import FieldRecord
from gan_runtime.domains.showers.entry import ANGLE, SHOWERS, shower_fields
from gan_runtime.domains.showers.features import cells_of, measured_angle, values_of
from gan_runtime.engines.inputs import host_value


def test_cell_of_20_mev_has_value_1() -> None:
    assert values_of(np.array([0.0, 0.02, 0.2])).tolist() == pytest.approx([0.0, 1.0, 10**0.85])


def test_values_round_trip_and_negative_ones_are_empty_cells() -> None:
    energies = np.array([1e-6, 0.02, 2.5])
    assert cells_of(values_of(energies)) == pytest.approx(energies, rel=1e-5)
    assert cells_of(np.array([-1.0])).tolist() == [0.0]


def test_float16_showers_are_read_as_float32() -> None:
    field = shower_fields((3, 3, 2, 1))[SHOWERS]
    assert host_value(np.ones((1, 3, 3, 2, 1), np.float16), field).dtype == np.float32


def test_periodic_axes_are_stored_and_absent_from_old_manifests() -> None:
    fields = shower_fields((9, 16, 45, 1), angle=False, periodic=(1,))
    assert ANGLE not in fields
    record = FieldRecord.of(fields[SHOWERS])
    assert FieldRecord.model_validate_json(record.model_dump_json()).field == fields[SHOWERS]
    assert FieldRecord.model_validate({"shape": (3,), "dtype": "uint8"}).field.periodic == ()


def tilted(cells_a_layer: int) -> np.ndarray:
    """One shower (1, 21, 21, 5) with the same energy in each layer, shifted along y by this many
    cells per layer.
    """
    image = np.zeros((1, 21, 21, 5))
    for layer in range(5):
        image[0, 10, 10 + cells_a_layer * (layer - 2), layer] = 1.0
    return image


@pytest.mark.parametrize("step", [-2, -1, 0, 1, 2])
def test_measured_angle_is_that_of_the_line_through_the_layers(step: int) -> None:
    """The layer at the barycenter has no slope and measures 90°, with its weight: 2.5 of 12.5."""
    line, middle = np.pi / 2 - np.arctan(step), np.pi / 2
    assert measured_angle(tilted(step)) == pytest.approx(
        [(10 * line + 2.5 * middle) / 12.5], abs=1e-6
    )


def test_empty_layers_do_not_count_and_empty_images_measure_100() -> None:
    image = np.concatenate([tilted(1), np.zeros((1, 21, 21, 5))])
    image[0, :, :, 0] = image[0, :, :, 4] = 0.0
    image[0, 0, 0, 4] = 1e-9  # GeV: ignored; otherwise it would weigh most, as the deepest
    line, middle = np.pi / 4, np.pi / 2
    assert measured_angle(image) == pytest.approx(
        [(5 * line + 2.5 * middle) / 7.5, 100.0], abs=1e-5
    )


def test_measured_angle_ignores_unit_and_channel_axis() -> None:
    shower = np.random.default_rng(0).gamma(0.1, size=(3, 7, 7, 4))
    assert measured_angle(1e-3 * shower[..., None]) == pytest.approx(
        measured_angle(shower), rel=1e-6
    )
