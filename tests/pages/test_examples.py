"""The example runs that come with the project: what they are, and that every page has something to show of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from gan_runtime import bundles
from gan_runtime.home import Home
from gan_runtime.records.rundir import RunDir
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from tests.pages.test_pages import charts, texts, titles

Show = Callable[..., AppTest]


@pytest.fixture
def examples(home: Home) -> list[str]:
    """Loaded into the home of the test; their ids."""
    return [run for file in bundles.examples() for run in bundles.unpack(file, home)]


def test_the_bundles_are_small_and_hold_what_the_paper_varies(examples: list[str], home: Home) -> None:
    assert sum(file.stat().st_size for file in bundles.examples()) < 15_000_000
    assert len(examples) >= 12
    store = Store()
    Ingestor(home, store).catch_up()
    assert {row.status for row in queries.runs(store)} == {"finished"}
    rows = [row for row in queries.runs(store) if row.dataset == "mnist"]
    assert {row.batch_size_global for row in rows} == {64, 128, 256, 512}
    assert {row.precision for row in rows} == {"float32", "mixed_bfloat16"}
    assert store.rows("SELECT DISTINCT xla FROM runs ORDER BY 1") == [("autocluster",), ("jit",), ("off",)]
    assert store.rows("SELECT replicas, count(*) > 10 FROM runs GROUP BY 1 ORDER BY 1") == [
        (1, True),
        (8, True),
    ]
    studies = {row.question: row.runs for row in queries.studies(store)}
    assert studies == {"batch_size": 12, "precision": 6, "replicas": 6, "schedule": 2, "xla": 9}, (
        "3 repeats but for one"
    )


@pytest.mark.usefixtures("examples")
def test_the_showers_of_three_seeds_are_measured_through_their_epochs(home: Home) -> None:
    store = Store()
    Ingestor(home, store).catch_up()
    seeds = store.rows("SELECT seed FROM runs WHERE workload = 'shower_3dgan' ORDER BY 1")
    assert seeds == [(1,), (2,), (3,)]
    told = "SELECT epoch, max(value), count(*) FROM physics WHERE score = 'sampling_fraction' GROUP BY 1 ORDER BY 1"
    epochs = store.rows(told)
    assert [(epoch, runs) for epoch, _, runs in epochs] == [(0, 3), (2, 3), (4, 3), (6, 3)]
    assert epochs[-1][1] < 0.05 < 0.5 < epochs[0][1]


@pytest.mark.usefixtures("examples")
def test_live_tells_the_losses_of_a_network_that_takes_two_steps_together(show: Show, home: Home) -> None:
    run = next(run for run in home.run_dirs() if run.spec().workload == "shower_3dgan")
    figures = {metric.label: (metric.value, metric.help) for metric in show("live", run=run.run_id).metric}
    assert {"Loss G", "Loss D"} <= set(figures)
    value, meaning = figures["Loss G"]
    assert value.count(" / ") == 1
    assert meaning.startswith("G, first / G, second. ")


@pytest.mark.usefixtures("examples")
def test_none_of_them_raised_an_alarm(home: Home) -> None:
    store = Store()
    Ingestor(home, store).catch_up()
    assert store.rows("SELECT run_id, kind FROM events WHERE level <> 'info'") == []


@pytest.mark.usefixtures("examples")
def test_the_descent_of_the_long_run_is_drawn(show: Show) -> None:
    app = show("paper")
    text = texts(app)
    assert "loss along each path: Generator from 0.36 to 0.89 nats" in text
    assert "From before the first epoch to after epoch 30." in text
    assert "10\u2009000 of its 60\u2009000 images" in text
    assert "imported, so the times are those of the host it came from" in text
    assert {"Generator", "Discriminator"} <= set(titles(app))


def test_they_are_offered_until_they_are_all_there(
    show: Show, new_run: Callable[..., RunDir], home: Home
) -> None:
    new_run("quick-0001")
    app = show("home")
    app.button(key="examples.home").click().run()
    assert "examples.home" not in [button.key for button in app.button]
    assert len(home.run_dirs()) >= 12
    runs = show("runs")
    assert "examples.runs" not in [button.key for button in runs.button]


def test_one_press_loads_them(show: Show, home: Home) -> None:
    app = show("home")
    assert home.run_dirs() == []
    app.button(key="examples.home").click().run()
    assert not app.exception
    assert len(home.run_dirs()) >= 12
    assert "finished" in texts(app)


@pytest.mark.usefixtures("examples")
@pytest.mark.parametrize(
    "page",
    ["home", "live", "runs", "compare", "samples", "histograms", "studies", "xla", "precision", "paper"],
)
def test_every_page_shows_them(show: Show, home: Home, page: str) -> None:
    some = ",".join(run.run_id for run in home.run_dirs()[:2])
    app = show(page, runs=some)
    assert not app.exception
    assert not app.error
    if page not in ("home", "runs", "samples"):
        assert charts(app)
