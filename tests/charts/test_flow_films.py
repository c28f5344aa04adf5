"""Films of a flow as arrays and the charts next to them as data: colors keep their meaning, frames
are in their places, files open.
"""

from __future__ import annotations

import base64
import inspect
import io
from collections.abc import Generator, Iterator
from datetime import datetime
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from dashboard.domains.flows import charts as flow_charts
from dashboard.domains.flows import curves as flow_curves
from dashboard.domains.flows import film as flow_film
from dashboard.domains.flows import movie, panels, rollouts
from dashboard.evaluation.answers import unique_labels
from gan_runtime.base.errors import PictureError
from gan_runtime.domains.flows import lattice as of_flow
from gan_runtime.engines.tiles import STAGES
from gan_runtime.store.queries import EvaluationRow
from tests.support.measured_flows import frames

VORTICITY = panels.quantity_of("vorticity")
STEPS = 6


def films(quantity: panels.FlowQuantity = VORTICITY) -> tuple[panels.FilmPanel, ...]:
    """The film panels of a small rollout."""
    film = frames(STEPS)
    return panels.panels(film.truth, film.predicted, film.mask[..., 0] > 0.5, quantity)


def rgb(data_address: str) -> np.ndarray:
    """The pixels of an image in a data URL."""
    head, _, body = data_address.partition(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(body))).convert("RGB"))


def test_palette_places_clamp_values_and_center_signed_zero() -> None:
    places = panels.palette_places(
        np.array([-9.0, -5.0, 0.0, 5.0, 9.0, np.nan]), -5.0, 5.0, signed=True
    )
    middle = panels.LEVELS // 2
    assert places.tolist() == [0, 0, middle, panels.LEVELS - 1, panels.LEVELS - 1, middle]
    assert panels.PALETTE[middle].tolist() == [0xF7, 0xF7, 0xF7]
    unsigned = panels.palette_places(np.array([0.0, 2.0]), 0.0, 2.0, signed=False)
    assert unsigned.tolist() == [panels.LEVELS, 2 * panels.LEVELS - 1]
    assert panels.PALETTE[unsigned].tolist() == [[0x44, 0x01, 0x54], [0xFD, 0xE7, 0x25]]


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("vorticity", (0.0, 0.0, 0.4), 2.0),
        ("along", (-1.0, 0.0, 0.0), -1.0),
        ("across", (0.0, -0.25, 0.0), -0.25),
        ("speed", (1.0 / 3.0, 1.0, 0.0), 2.0**0.5),
    ],
)
def test_a_quantity_is_in_the_units_of_the_flow(
    name: str, values: tuple[float, ...], expected: float
) -> None:
    result = panels.quantity_of(name).of(np.array([[values]], np.float32))
    assert result.shape == (1, 1)
    assert result[0, 0] == pytest.approx(expected, abs=1e-6)


def test_the_difference_is_prediction_minus_flow_on_its_own_scale() -> None:
    truth = np.zeros((2, 3, 4, 3), np.float16)
    predicted = truth.copy()
    predicted[1, 2, 3, 2] = 0.125  # ω D / U = 0.625 where the flow has 0
    flow, prediction, less = panels.panels(truth, predicted, np.zeros((3, 4), bool), VORTICITY)
    middle = panels.LEVELS // 2  # 56
    assert (flow.places == middle).all()
    assert prediction.places[1, 2, 3] == middle + 7  # 0.625 of 5, of 56 levels
    assert less.places[1, 2, 3] == middle + 28  # 0.625 of 1.25
    assert (less.places != middle).sum() == 1
    assert (less.scale.low, less.scale.high) == (-1.25, 1.25)


def test_the_obstacle_is_gray_in_every_frame_of_every_film() -> None:
    for panel in films():
        assert (panel.places[:, 5:7, 8:10] == panels.OF_OBSTACLE).all()
        assert (panel.places == panels.OF_OBSTACLE).sum() == (STEPS + 1) * 4


def test_a_sheet_tiles_every_frame_into_a_near_square() -> None:
    panel = films()[1]
    count, height, width = panel.places.shape
    across = panels.across(panel)
    whole = rgb(panels.sheet(panel))
    assert (across, whole.shape) == (2, (4 * height, 2 * width, 3))
    for step in range(count):
        top, column = step // across * height, step % across * width
        block = whole[top : top + height, column : column + width]
        np.testing.assert_array_equal(block, panels.PALETTE[panel.places[step]])


def test_film_data_has_three_panels_color_ticks_and_frame_labels() -> None:
    steps = [rollouts.step(step, 4.0) for step in range(STEPS + 1)]
    film = flow_film.film_data(films(), steps, 4, "a")
    assert [panel["title"] for panel in film["panels"]] == [
        "Flow",
        "Prediction",
        "Prediction − flow",
    ]
    assert film["panels"][0]["ticks"] == ["−5", "ω D / U", "5"]
    assert (film["height"], film["width"], film["across"], film["first"]) == (12, 40, 2, 4)
    assert film["frames_per_s"] == panels.FRAMES_PER_S
    assert film["steps"][0] == "given frame"
    assert film["steps"][6] == "step 6 · 1.5 periods"


def test_a_gif_has_one_frame_per_step_with_consistent_colors() -> None:
    steps = [f"step {step}" for step in range(STEPS + 1)]
    film = Image.open(io.BytesIO(movie.gif(films(), steps, "quick-0001")))
    assert film.n_frames == STEPS + 1
    assert film.info["duration"] == 10 * round(100 / panels.FRAMES_PER_S), (
        "GIF counts hundredths of a second"
    )
    width, height = film.size
    assert (width % 2, height % 2) == (0, 0)
    pictures = []
    for frame in range(film.n_frames):
        film.seek(frame)
        pictures.append(np.asarray(film.convert("RGB")))
    zoom, top = 10, movie.MARGIN + 2 * movie.LINE
    below = pictures[0][top + 12 * zoom :]
    assert all((picture[top + 12 * zoom :] == below).all() for picture in pictures), (
        "scales stay as they are"
    )
    for step, picture in enumerate(pictures):
        block = picture[
            top : top + 12 * zoom : zoom, movie.MARGIN : movie.MARGIN + 40 * zoom : zoom
        ]
        np.testing.assert_array_equal(block, panels.PALETTE[films()[0].places[step]])
    assert all((image != following).any() for image, following in pairwise(pictures))


def test_an_mp4_has_one_frame_per_step_and_leaves_no_temporary_files(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    import imageio_ffmpeg

    folder = tmp_path_factory.mktemp("made")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    steps = [f"step {step}" for step in range(STEPS + 1)]
    film = movie.mp4(films(), steps, "quick-0001")
    assert list(folder.iterdir()) == []
    file = folder / "film.mp4"
    file.write_bytes(film)
    reader = imageio_ffmpeg.read_frames(str(file))
    metadata = next(reader)
    width, height = metadata["size"]
    pictures = [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]
    assert len(pictures) == STEPS + 1 + round(movie.LAST_SECONDS * panels.FRAMES_PER_S)
    zoom, top = 10, movie.MARGIN + 2 * movie.LINE
    middles = pictures[2][
        top + 5 : top + 12 * zoom : zoom, movie.MARGIN + 5 : movie.MARGIN + 40 * zoom : zoom
    ]
    expected = panels.PALETTE[films()[0].places[2]].astype(int)
    # H.264 is slightly lossy; another frame differs by 40 levels or more.
    assert np.abs(middles - expected).mean() < 8.0
    reader.close()


def test_an_encoder_is_closed_when_a_frame_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    import imageio_ffmpeg

    opened: list[Generator[None, object, None]] = []
    real = imageio_ffmpeg.write_frames

    def recording_writer(*arguments: object, **options: object) -> Generator[None, object, None]:
        opened.append(real(*arguments, **options))
        return opened[0]

    def broken(_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(imageio_ffmpeg, "write_frames", recording_writer)
    monkeypatch.setattr("numpy.ascontiguousarray", broken)
    with pytest.raises(MemoryError):
        movie.mp4(films(), ["step 0"], "quick-0001")
    assert inspect.getgeneratorstate(opened[0]) == inspect.GEN_CLOSED


@pytest.fixture
def no_ffmpeg(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/nowhere/ffmpeg")
    movie.missing_encoder.cache_clear()
    yield
    movie.missing_encoder.cache_clear()


@pytest.mark.usefixtures("no_ffmpeg")
def test_mp4_without_ffmpeg_raises_an_error_naming_it() -> None:
    with pytest.raises(PictureError, match="An MP4 needs the program ffmpeg"):
        movie.mp4(films(), ["step 0"], "quick-0001")


def test_step_scores_include_the_baselines_of_the_first_rollout() -> None:
    def numbers(
        *values: float, persistence: tuple[float, ...], replay: tuple[float, ...] = ()
    ) -> pd.DataFrame:
        series = {"prediction": values, "persistence": persistence, "replay": replay}
        expected = [
            ("a", name, step, value)
            for name, line in series.items()
            for step, value in enumerate(line, 1)
        ]
        rows = [*expected, ("b", "prediction", 1, 9.0)]
        return pd.DataFrame(rows, columns=["score", "series", "step", "value"])

    first = numbers(0.1, 0.2, persistence=(0.3, 0.4), replay=(0.2, np.nan))
    other = numbers(0.5, 0.6, persistence=(7.0, 7.0))
    rows = rollouts.by_step({"x": first, "y": other}, "a")
    assert rows.groupby("series", sort=False)["value"].apply(list).to_dict() == {
        flow_charts.COPIED: [0.3, 0.4],
        flow_charts.REPLAYED: [0.2],  # until it ends
        "x": [0.1, 0.2],
        "y": [0.5, 0.6],
    }
    assert rollouts.by_step({"x": first}, "gone").empty


def test_the_probe_spectrum_peaks_at_the_strouhal_number() -> None:
    step = np.arange(200)
    strouhal, solver_steps = 0.17, 24
    per_frame = strouhal * solver_steps * 0.1 / 10.0  # f = St U / D
    probe = pd.DataFrame(
        {"series": "x", "step": step, "value": 0.7 * np.sin(2 * np.pi * per_frame * step)}
    )
    rows = rollouts.spectra(probe, solver_steps, 10.0)
    peak = rows.loc[rows["share"].idxmax()]
    assert peak["share"] == 1.0
    assert peak["frequency"] == pytest.approx(strouhal, abs=0.005)
    assert rows["frequency"].max() <= rollouts.MOST_STROUHAL
    torn = probe[probe["step"] != 7]
    wider = rollouts.spectra(probe, solver_steps, 14.0)
    assert wider.loc[wider["share"].idxmax(), "frequency"] == pytest.approx(
        1.4 * strouhal, abs=0.007
    )
    assert rollouts.spectra(torn, solver_steps, 10.0).empty, (
        "a model that ran away has numbers that are none"
    )


def test_frame_time_excludes_one_time_stages() -> None:
    stages = pd.DataFrame(
        {"stage": STAGES, "number": range(7), "seconds": 0.5, "times": 10, "median_s": 0.05}
    )
    whole, each = rollouts.whole_times({"way": stages}), rollouts.frame_times({"way": stages})
    assert whole["stage"].tolist() == [stage.replace("_", " ").capitalize() for stage in STAGES]
    assert whole["amount"].sum() == pytest.approx(3.5)
    assert each["stage"].tolist() == [
        "Preparation",
        "Transfer in",
        "Execute",
        "Transfer out",
        "Merge",
    ]
    assert each["amount"].unique().tolist() == [pytest.approx(50.0)]
    assert rollouts.whole_times({}).empty


def test_the_horizon_is_drawn_as_a_labeled_line_for_its_rollout() -> None:
    rows = pd.DataFrame(
        {"series": ["x", "x", flow_charts.COPIED], "step": [1, 2, 1], "value": [0.1, 0.2, 0.3]}
    )
    colors = {flow_charts.COPIED: "#7c8798", "x": "#0072b2"}
    spec = flow_charts.by_step(rows, "Error", "Error", colors, {"x": 2.0}).to_dict()
    rule, word = spec["layer"][:2]
    (data,) = (spec["datasets"][layer["data"]["name"]] for layer in [rule])
    assert data == [{"at": 2.0, "series": "x", "word": "horizon 2"}]
    assert word["encoding"]["text"]["field"] == "word"
    assert word["mark"]["align"] == "right", (
        "at the end of the steps there is room on its left only"
    )
    assert len(flow_charts.by_step(rows, "Error", "Error", colors).to_dict()["layer"]) == 2
    near = flow_charts.by_step(rows, "Error", "Error", colors, {"x": 1.0, "y": 1.1}).to_dict()[
        "layer"
    ][1:3]
    assert [word["encoding"]["y"]["value"] for word in near] == [
        2,
        15,
    ], "words of near horizons do not overlap"


def answer(key: str = "a", checkpoint: str = "newest", **changes: object) -> EvaluationRow:
    """A rollout of a run."""
    facts = {
        "iteration": "iterate-0001",
        "way": "map_reduce",
        "cores": 1,
        "tile": [32, 32],
        "overlap": 1,
        "blend": "none",
        "reynolds": 120.0,
        "start": 1,
        "steps": 1,
        "film": "Re 120, width 14",
    }
    return EvaluationRow(
        "a", "rollout", key, datetime(2026, 1, 1), 1, 10, checkpoint, {**facts, **changes}
    )


def names(*rows: EvaluationRow) -> list[str]:
    """Labels in charts of rollouts of the run "a"."""
    return unique_labels(
        ["a"] * len(rows), [rollouts.parts(row) for row in rows], [row.key for row in rows]
    )


def test_rollouts_are_labeled_by_their_differences() -> None:
    assert names(answer()) == ["a"]
    assert names(answer(), answer(way="whole", tile=[80, 192])) == [
        "a · map-reduce · 32 px tiles, 1 px overlap",
        "a · whole image · no tiles",
    ]
    assert flow_curves.bars_of([answer(), answer(way="naive")], {}) == [
        "map-reduce",
        "one core, in turn",
    ]
    assert names(answer("one"), answer("two")) == ["a · one", "a · two"]
    stored = answer(checkpoint="epoch 1")
    assert names(answer(), stored) == ["a", "a · stored weights"]
    assert [rollouts.film_title(name, stored) for name in ("a", "a · weights of epoch 1")] == (
        ["a · weights of epoch 1"] * 2
    )
    many = answer(overlap=8, blend="hann", cores=2, start=0, steps=50)
    assert list(rollouts.parts(many).values()) == [
        "Re 120, width 14",
        "50 steps",
        "map-reduce on 2 cores",
        "32 px tiles, 8 px overlap (Hann)",
    ]


def test_page_scales_cover_the_full_range_of_frame_values() -> None:
    ends = of_flow.physical(np.array([[-1.0] * 3, [1.0] * 3], np.float32))
    for place, name in enumerate(("along", "across", "vorticity")):
        quantity = panels.quantity_of(name)
        assert quantity.low <= ends[0, place]
        assert ends[1, place] <= quantity.high
