"""Text on the pages of an empty home and of stored runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir
from tests.pages.reading import charts, texts, titles
from tests.support.small_pictures import write_grid

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("home", "Nothing has been trained here yet"),
        ("run", "No run is stored yet"),
        ("runs", "No run is stored yet"),
        ("compare", "Pick two or more runs"),
    ],
)
def test_an_empty_page_explains_what_to_do(show: Show, page: str, sentence: str) -> None:
    app = show(page)
    assert not app.exception
    assert sentence in texts(app)
    assert charts(app) == []


def test_home_shows_recent_runs_with_their_status(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("home")
    assert not app.exception
    assert "finished" in texts(app)
    assert "quick-0001" in texts(app)


def test_compare_shows_final_results_and_only_differing_options(show: Show, trained: Make) -> None:
    trained("quick-0001", losses=(0.9, 1.1), seed=1)
    trained("quick-0002", losses=(0.8, 1.2), seconds=10, seed=2)
    app = show("compare", runs="quick-0001,quick-0002")
    assert not app.exception
    numbers, _, differing = (table.value for table in app.dataframe)
    assert list(numbers["Loss G"]) == ["0.900", "0.800"]
    assert list(numbers["Images/s"]) == ["120", "120"]
    assert differing.to_dict("list") == {
        "Option": ["Seed"],
        "quick-0001": ["1"],
        "quick-0002": ["2"],
    }
    curves = show("compare", tab="curves", runs="quick-0001,quick-0002")
    assert titles(curves)[:2] == ["Generator loss", "Discriminator loss"]


def test_compare_shows_readable_option_names_and_values(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained(
        "quick-0002",
        seconds=10,
        learning_rate_schedule="cosine_restarts",
        learning_rate_generator=3e-4,
        warmup_epochs=2,
    )
    differing = show("compare", runs="quick-0001,quick-0002").dataframe[2].value
    assert differing.to_dict("list") == {
        "Option": ["Learning rate, generator", "Rate schedule", "Warm-up (epochs)"],
        "quick-0001": ["1e-4", "constant", "0"],
        "quick-0002": ["3e-4", "cosine with restarts", "2"],
    }


def test_compare_offers_every_recorded_metric(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", tab="curves", runs="quick-0001,quick-0002")
    more = app.multiselect(key="compare.metrics")
    assert "Spread of generated images" in more.options
    assert "Loss scale of the generator (float16)" not in more.options, "no run has recorded one"
    more.set_value(["spread_fake", "update_ratio_generator"]).run()
    assert not app.exception
    assert titles(app)[:4] == [
        "Generator loss",
        "Discriminator loss",
        "Spread of generated images",
        "Update size of the generator",
    ]


def test_a_local_sgd_run_is_labeled_on_every_page(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10, replicas=2, sync_every_steps=5)
    mark = "local SGD, weights averaged every 5 steps"
    assert mark in texts(show("run", run="quick-0002"))
    assert mark not in texts(show("run", run="quick-0001"))
    assert "· local SGD" in texts(show("home"))
    assert list(show("runs").dataframe[0].value["algorithm"]) == ["local SGD", "synchronous"]


def test_samples_tab_shows_all_runs_under_one_slider(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", tab="samples", runs="quick-0001,quick-0002")
    assert len(app.slider) == 1
    assert texts(app).count("After epoch 2, step 20") == 2


def test_play_advances_one_epoch_at_a_time_and_pause_stops_it(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("run", tab="samples", run="quick-0001")
    next(button for button in app.button if button.label == "Play").click().run()
    assert app.slider[0].value == 1
    app.run()
    assert app.slider[0].value == 2
    next(button for button in app.button if button.label == "Pause").click().run()
    assert app.slider[0].value == 2, "a pause stops at the epoch that is seen"
    assert "After epoch 2," in texts(app)
    app.run()
    assert app.slider[0].value == 2


def test_a_single_epoch_cannot_be_played(show: Show, new_run: Make) -> None:
    run = new_run("quick-0001", epochs=1)
    write_grid(run.samples / "epoch-00001.png")
    sample = journal.Sample(
        epoch=1, step=10, sample_kind="fixed_latents", file="samples/epoch-00001.png", meta={}
    )
    journal.append(
        run.trainer_journal(),
        1,
        sample,
        StatusChange(status="finished", reason="all 1 epochs done"),
    )
    app = show("run", tab="samples", run="quick-0001")
    assert not app.exception
    assert "After epoch 1, step 10" in texts(app)
    assert "Play" not in [button.label for button in app.button]


def test_a_home_folder_owned_by_another_process_is_reported(show: Show, home: Home) -> None:
    from filelock import FileLock

    with FileLock(home.owner_lock):
        app = show("home")
    assert not app.exception
    assert "is in use by" in texts(app)
