"""The Paper page: each figure beside what the paper says, every sentence computed from stored runs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import paper_words
from gan_runtime import commands, journal
from gan_runtime.home import Home
from gan_runtime.hosts import Host
from gan_runtime.rundir import RunDir
from gan_runtime.studies import paper
from gan_runtime.studies.design import StudyDesign
from gan_runtime.surface import runner
from tests.pages.test_pages import charts, texts, titles
from tests.studies.hand_written import At, from_now, train
from tests.surface.hand_made import keep_three, surface

Show = Callable[..., AppTest]
BASE = {"workload": "dcgan_mnist", "epochs": 3}


@pytest.fixture
def at() -> At:
    """See `from_now`."""
    return from_now()


@pytest.fixture
def studies(home: Home, host: Host, at: At) -> None:
    """Batch 64 and 512, XLA off and jit, twice each. Batch 512 takes 3 s an epoch instead of 4 s; XLA steps take 0.5 s, not 0.4 s."""
    batches = commands.submit_study(home, StudyDesign.parse("batch_size", BASE, ["64", "512"], 2), host)
    compiled = commands.submit_study(home, StudyDesign.parse("xla", BASE, ["off", "jit"], 2), host)
    for number, run in enumerate(batches):
        train(run, at, 100.0 * number, 4.0 if number % 2 == 0 else 3.0)
    for number, run in enumerate(compiled):
        train(run, at, 1000.0 + 100.0 * number, 4.0 if number % 2 == 0 else 5.0)


def test_an_empty_page_says_how_to_begin_and_shows_what_others_published(show: Show) -> None:
    app = show("paper")
    assert not app.exception
    assert "No batch-size study is stored here yet" in texts(app)
    assert "No XLA study is stored here yet" in texts(app)
    assert titles(app) == ["How does it scale?"]
    assert len(app.dataframe) == 2  # CERN's and KIT's tables


@pytest.mark.usefixtures("studies")
def test_each_figure_stands_beside_what_the_paper_says(show: Show) -> None:
    app = show("paper")
    assert not app.exception
    text = texts(app)
    assert [f"Fig. {number} ·" in text for number in (5, 6, 7, 8, 9, 10, 12, 13)] == [True] * 8
    assert "An epoch of batch 512 takes 25 % less time than one of batch 64 (× 0.75, 0.75 to 0.75: clear)" in text
    assert "Less is saved than in the paper" in text
    assert "the epochs of a run differ by 0 % from the fastest to the slowest" in text
    assert "batch 64: G 3.00, D 1.50; batch 512: G 3.00, D 1.50" in text
    assert "With XLA a run takes 25 % more time per step than without (× 1.25, 1.25 to 1.25: clear)" in text
    assert "No run on GPU or TPU is stored here" in text
    assert all(chart.get("layer") or chart.get("mark") for chart in charts(app))


def test_one_button_queues_the_studies_of_the_paper_and_says_what_is_reduced(
    show: Show, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.paper_view._dataset", lambda: "digits")
    app = show("paper")
    assert "A reduced form for this host (8 CPU cores, no GPU or TPU): 4 epochs instead of 30, 2 repeats" in texts(app)
    app.button(key="paper.start").click().run()
    assert len(home.run_dirs()) == 16
    assert {run.spec().dataset for run in home.run_dirs()} == {"digits"}


def test_a_host_with_a_tpu_runs_the_paper_in_full(host: Host) -> None:
    tpu = host.devices["cpu"].model_copy(update={"count": 8, "name": "TPU v3"})
    plan = paper.plan(host.model_copy(update={"devices": {**host.devices, "tpu": tpu}}), "mnist")
    spec = plan.studies[0].runs[0].spec
    assert (spec.accelerator, spec.replicas, spec.epochs, spec.dataset, plan.reduced) == ("tpu", 8, 30, "mnist", "")
    assert plan.runs == 24


def test_rates_that_rise_abruptly_are_counted() -> None:
    constant = pd.DataFrame({"variant": "a", "x": [0.0, 1.0, 2.0], "mean": [1e-4] * 3})
    cycles = pd.DataFrame({"variant": "b", "x": [0.0, 1.0, 2.0, 3.0], "mean": [1e-4, 1e-5, 1e-4, 1e-5]})
    assert paper_words.rates(pd.concat([constant, cycles])) == "a: constant 0.0001; b: 1e-05 to 0.0001 with 1 abrupt rise."


def test_concentration_compares_the_first_epoch_with_the_last() -> None:
    frame = pd.DataFrame({"variant": ["a", "a", "b"], "epoch": [1, 2, 1], "width": [0.5, 0.25, 9.0]})
    assert paper_words.concentration(frame).endswith("a: from 0.50 to 0.25.")
    assert "Not measured here yet" in paper_words.concentration(frame[frame["variant"] == "b"])


def test_a_study_without_a_second_variant_says_nothing() -> None:
    rows = [{"variant": "a", "variant_index": 0, "repeat": 1, "epoch_seconds": 2.0, "steady_step": 0.1}]
    assert paper_words.time_by_batch(pd.DataFrame(rows), "cpu") == paper_words.NOT_YET
    assert "Not measured here yet" in paper_words.xla(pd.DataFrame(rows))


def test_the_descent_is_drawn_beside_sentences_computed_from_it(show: Show, trained: Callable[..., RunDir]) -> None:
    run = trained("paper-0001", seconds=-120.0, weight_snapshots="yes")
    journal.append(run.surface_journal, 1, surface("generator", 1.0), surface("discriminator", 2.0))
    app = show("paper")
    assert not app.exception
    text = texts(app)
    assert (
        "from before the first epoch to after epoch 3. Generator: from 2.50 to 0.50 nats; the map holds 88 % of its movement."
        in text
    )
    assert titles(app)[:2] == ["Generator", "Discriminator"]
    assert all(button.key != "paper.11.start" for button in app.button)  # the snapshots are not in this home


@pytest.fixture
def _held(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Jobs that stand still from their start: none ends before a test has pressed Stop."""
    begin, held = runner.start, []

    def start_and_hold(run: RunDir) -> None:
        job = begin(run)
        assert job is not None
        job.send_signal(signal.SIGSTOP)
        held.append(job)

    monkeypatch.setattr(runner, "start", start_and_hold)
    yield
    for job in held:
        job.kill()
        job.wait()


@pytest.mark.usefixtures("_held")
def test_the_loss_surface_of_a_run_is_computed_at_a_press(show: Show, trained: Callable[..., RunDir]) -> None:
    run = trained("paper-0001", seconds=-120.0, weight_snapshots="yes")
    keep_three(run)
    app = show("paper")
    app.button(key="paper.11.start").click().run()
    assert not app.exception
    assert "This goes on when the page is closed." in app.get("progress")[0].proto.text
    app.button(key="paper.11.stop").click().run()
    assert "No surface was computed: stopped on request." in [warning.value for warning in app.warning]


def test_without_kept_weights_the_page_says_how_to_keep_them(show: Show, trained: Callable[..., RunDir]) -> None:
    trained("paper-0001")
    assert "No run here has kept its weights. Start one with the option 'Weight snapshots' on" in texts(show("paper"))
