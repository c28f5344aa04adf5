"""The map of a descent, as data."""

from __future__ import annotations

import numpy as np

from dashboard.paper import charts

X, Y = [-1.0, 0.0, 1.0], [0.0, 2.0]
LOSS = np.array([[1.0, 2.0, 4.0], [2.0, 4.0, 8.0]])


def test_each_grid_point_gets_a_surrounding_rectangle() -> None:
    cells = charts.surface_cells(X, Y, LOSS)
    last = cells.iloc[-1]
    assert len(cells) == 6
    assert (last["left"], last["right"], last["low"], last["high"], last["loss"]) == (
        0.5,
        1.5,
        1.0,
        3.0,
        8.0,
    )


def test_contour_levels_have_equal_ratios() -> None:
    lines = charts.contour_lines(X, Y, LOSS)
    levels = np.sort(lines["loss"].unique())
    np.testing.assert_allclose(levels, np.geomspace(1.0, 8.0, 13)[1:-1])


def test_contour_lines_follow_their_loss_level() -> None:
    lines = charts.contour_lines(X, Y, LOSS)
    near_one = lines[np.isclose(lines["loss"], np.geomspace(1.0, 8.0, 13)[1])]
    # The loss rises linearly from 1 to 2 along the lower edge, so it reaches the level at level - 1
    # of the way from x = -1.
    edge = near_one[near_one["y"] == 0.0]
    np.testing.assert_allclose(edge["x"], -1.0 + np.geomspace(1.0, 8.0, 13)[1] - 1.0)


def test_a_flat_surface_has_no_contour_lines() -> None:
    assert charts.contour_lines(X, Y, np.ones((2, 3))).empty


def test_a_large_surface_has_fewer_than_1500_marks() -> None:
    side = list(np.linspace(-3.0, 3.0, 21))
    across, up = np.meshgrid(side, side)
    bumpy = 2.0 + np.sin(4 * across) * np.sin(4 * up)
    lines = charts.contour_lines(side, side, bumpy)
    assert len(lines) + len(charts.surface_cells(side, side, bumpy)) + 60 < 1500


def test_the_path_has_its_network_color_and_labeled_ends() -> None:
    path = charts.named_path([0, 1], [-1.0, 0.0], [0.0, 0.0], [2.0, 1.0])
    cells, lines = charts.surface_cells(X, Y, LOSS), charts.contour_lines(X, Y, LOSS)
    spec = charts.descent(
        cells, lines, path, "Generator", "Loss from 1 to 8 nats", "#0072B2"
    ).to_dict()
    assert [layer["mark"]["type"] for layer in spec["layer"]] == [
        "rect",
        "line",
        "line",
        "circle",
        "text",
        "text",
    ]
    assert {layer["mark"]["color"] for layer in spec["layer"][2:4]} == {"#0072B2"}
    assert spec["title"]["text"] == "Generator"


def test_path_end_labels_are_on_the_free_side() -> None:
    path = charts.named_path([0, 1, 2], [0.0, 1.0, 2.0], [-1.0, 3.0, 1.0], [3.0, 2.0, 1.0])
    assert list(path["label"]) == ["start", "", "end"]
    assert list(path["side"]) == ["below", "", "below"]
