"""The example runs of the project: their contents, and that every page shows them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from gan_runtime import bundles
from gan_runtime.records import image_files
from gan_runtime.records.home import Home
from gan_runtime.store import ingest, queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from tests.pages.reading import charts, texts, titles

Show = Callable[..., AppTest]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """One home with the examples for all tests here: reading and ingesting them takes seconds, and
    no test changes them.
    """
    loaded = Home(tmp_path_factory.mktemp("examples") / "home").prepare()
    for file in bundles.examples():
        bundles.unpack(file, loaded)
    taken_in = Store(loaded.database)
    Ingestor(loaded, taken_in).catch_up()
    taken_in.close()
    return loaded


@pytest.fixture(scope="module")
def store(home: Home) -> Store:
    """The database of the example runs."""
    return ingest.store_of(home)


def test_bundles_are_small_and_cover_the_options_of_the_paper(home: Home, store: Store) -> None:
    assert sum(file.stat().st_size for file in bundles.examples()) < 15_000_000
    assert len(home.run_dirs()) >= 12
    assert {row.status for row in queries.runs(store)} == {"finished"}
    rows = [row for row in queries.runs(store) if row.dataset == "mnist"]
    assert {row.batch_size_global for row in rows} == {64, 128, 256, 512}
    assert {row.precision for row in rows} == {"float32", "mixed_bfloat16"}
    assert store.rows("SELECT DISTINCT xla FROM runs ORDER BY 1") == [
        ("autocluster",),
        ("jit",),
        ("off",),
    ]
    assert store.rows("SELECT replicas, count(*) > 10 FROM runs GROUP BY 1 ORDER BY 1") == [
        (1, True),
        (8, True),
    ]
    studies = {row.question: row.runs for row in queries.studies(store)}
    assert studies == {
        "batch_size": 12,
        "precision": 6,
        "replicas": 6,
        "schedule": 2,
        "xla": 9,
    }, "3 repeats but for one"


def test_showers_of_three_seeds_improve_over_their_epochs(store: Store) -> None:
    seeds = store.rows("SELECT seed FROM runs WHERE workload = 'shower_3dgan' ORDER BY 1")
    assert seeds == [(1,), (2,), (3,)]
    statement = (
        "SELECT epoch, max(value), count(*) FROM physics WHERE score = 'sampling_fraction' GROUP BY"
        " 1 ORDER BY 1"
    )
    epochs = store.rows(statement)
    assert [(epoch, runs) for epoch, _, runs in epochs] == [(0, 3), (2, 3), (4, 3), (6, 3)]
    assert epochs[-1][1] < 0.05 < 0.5 < epochs[0][1]


def test_karman_runs_beat_the_replay_on_every_held_out_flow(
    store: Store,
) -> None:
    rows = store.rows(
        "SELECT seed, film, s.value, s.replay, s.reference FROM flow_scores s JOIN flow f USING"
        " (run_id, iteration, way) JOIN runs USING (run_id) WHERE way = 'map_reduce' AND score ="
        " 'rmse_period' ORDER BY trajectory, seed"
    )
    flows = ("Re 140", "Re 60", "Re 230", "Re 140, shift 12", "Re 140, width 14")
    assert [(film, seed) for seed, film, *_ in rows] == [
        (film, seed) for film in flows for seed in (1, 2, 3)
    ]
    assert all(error < replay < copied for *_, error, replay, copied in rows)


def test_flow_runs_include_readable_films(home: Home) -> None:
    flows = [run for run in home.run_dirs() if run.spec().workload == "pix2pix"]
    films = [
        (run, f"flow/{file.name}") for run in flows for file in image_files.referenced_films(run)
    ]
    assert [len(flows), len(films)] == [3, 3]
    for run, file in films:
        assert len(image_files.read_film(run, file).steps) > 50


def test_live_shows_two_losses_for_a_network_with_two_steps(show: Show, home: Home) -> None:
    run = next(run for run in home.run_dirs() if run.spec().workload == "shower_3dgan")
    figures = {
        metric.label: (metric.value, metric.help) for metric in show("run", run=run.run_id).metric
    }
    assert {"Loss G", "Loss D"} <= set(figures)
    value, meaning = figures["Loss G"]
    assert value.count(" / ") == 1
    assert meaning.startswith("G, first / G, second. ")


def test_no_example_run_raised_an_alarm(store: Store) -> None:
    assert store.rows("SELECT run_id, kind FROM events WHERE level <> 'info'") == []


def test_paper_page_draws_the_descent_of_the_long_run(show: Show) -> None:
    app = show("studies/paper")
    text = texts(app)
    assert "loss along each path: Generator from 0.36 to 0.89" in text
    assert "From before the first epoch to after epoch 30." in text
    assert "10,000 of its 60,000 images" in text
    assert "imported, so the times are those of the host it came from" in text
    assert {"Generator", "Discriminator"} <= set(titles(app))


@pytest.mark.parametrize(
    ("page", "tab"),
    [
        *((page, "") for page in ("home", "runs")),
        *(("run", tab) for tab in ("overview", "samples", "histograms", "log", "options")),
        *(("studies", tab) for tab in ("reports", "xla", "precision", "paper")),
        *(("compare", tab) for tab in ("results", "curves", "samples", "histograms")),
    ],
)
def test_every_page_shows_the_example_runs(show: Show, home: Home, page: str, tab: str) -> None:
    some = ",".join(run.run_id for run in home.run_dirs()[:2])
    app = show(page, runs=some, **({"tab": tab} if tab else {}))
    assert not app.exception
    assert not app.error
    if (
        page not in ("home", "runs")
        and tab not in ("log", "options")
        and (page, tab) != ("run", "samples")
    ):
        assert charts(app)
