"""The Paper page: figures next to the paper's claims, every sentence computed from stored runs."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.paper import verdicts
from gan_runtime.hardware.hosts import Host
from gan_runtime.jobs import job_queue
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.studies import references
from gan_runtime.studies.design import StudyDesign
from tests.evaluation.hand_made import keep_three, surface
from tests.pages.reading import charts, texts, titles
from tests.studies.hand_written import At, from_now, train
from tests.support.asking import ask

Show = Callable[..., AppTest]
BASE = {"workload": "dcgan_mnist", "epochs": 3}


@pytest.fixture
def at() -> At:
    """See `from_now`."""
    return from_now()


@pytest.fixture
def studies(home: Home, host: Host, at: At) -> None:
    """Batch 64 and 512, XLA off and jit, twice each.

    Batch 512 takes 3 s an epoch instead of 4 s; XLA steps take 0.5 s, not 0.4 s.
    """
    batches = ask(home, host).submit_study(StudyDesign.parse("batch_size", BASE, ["64", "512"], 2))
    compiled = ask(home, host).submit_study(StudyDesign.parse("xla", BASE, ["off", "jit"], 2))
    second = (1, 2)  # the runs of the second variant: the order is A B B A
    for number, run in enumerate(batches):
        train(run, at, 100.0 * number, 3.0 if number in second else 4.0)
    for number, run in enumerate(compiled):
        train(run, at, 1000.0 + 100.0 * number, 5.0 if number in second else 4.0)


@pytest.fixture
def _whole_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keras' cache contains an empty MNIST file, since pages only check that it exists."""
    (tmp_path / "keras" / "datasets").mkdir(parents=True)
    (tmp_path / "keras" / "datasets" / "mnist.npz").touch()
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    monkeypatch.delenv("GAN_DATA_DIR", raising=False)


@pytest.fixture
def _test_images_only(
    tmp_path: Path, write_idx: Callable[[Path, np.ndarray], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_idx(tmp_path / "t10k-images-idx3-ubyte.gz", np.zeros((10_000, 28, 28), np.uint8))
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path))


def test_an_empty_page_explains_how_to_start_and_shows_published_results(show: Show) -> None:
    app = show("studies/paper")
    assert not app.exception
    text = texts(app)
    assert "No batch-size study is stored yet" in text
    assert "**Not enough runs yet:** no study of the question XLA has a finished run here" in text
    assert "no study of the question Rate schedule has finished a run with cycles" in text
    assert "**Not enough runs yet:** no study of the question Devices" in text
    assert (
        "The paper, section 5.3: “After enabling XLA, the models run around 1.15 times quicker than"
        " before" in text
    )
    assert titles(app) == ["How does it scale?"]
    assert [element.value.columns[0] for element in app.dataframe[-2:]] == ["System", "Batch"]


@pytest.mark.usefixtures("studies")
def test_each_figure_shows_the_quotation_and_verdict(show: Show) -> None:
    app = show("studies/paper")
    assert not app.exception
    text = texts(app)
    assert [f"Fig. {number} ·" in text for number in range(5, 14)] == [True] * 9
    assert "The paper, section 5.1: “The different batch sizes" in text
    assert "The two sentences contradict each other" in text
    assert (
        "**Not judged:** batch 512 takes 25% less time per epoch than batch 64 (× 0.75, 0.75 to"
        " 0.75: clear); the paper has × 0.21, outside 0.75 to 0.75. A likely reason: one small"
        " batch already keeps a CPU busy" in text
    )
    assert (
        "**Not judged:** mean times of the epochs after the first: batch 64 4 s, batch 512 3 s"
        in text
    )
    assert "batch 64: G 3.00, D 1.50; batch 512: G 3.00, D 1.50" in text
    assert (
        "G's loss in the last epoch, batch 512 over batch 64, the lowest of the others: × 1.00,"
        " 1.00 to 1.00: may be noise" in text
    )
    assert (
        "**Not judged:** with XLA a run takes 25% more time per step than without (× 1.25, 1.25 to"
        " 1.25: clear)" in text
    )
    assert "3 epochs of at least 30; 2 repeats of at least 3" in text
    assert "Differs from the paper" not in text
    assert (
        "From Batch size (study-0001): Digits (embedded), 640 of its 1,797 images · CPU · " in text
    )
    assert all(chart.get("layer") or chart.get("mark") for chart in charts(app))


@pytest.mark.usefixtures("studies")
def test_a_newer_toy_study_does_not_replace_a_suitable_one(
    show: Show, home: Home, host: Host, at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older study has the data, epochs and repeats required here; the newer one is listed with
    its shortfalls.
    """
    toy = StudyDesign.parse("batch_size", {**BASE, "epochs": 2}, ["64", "512"], 1, "A toy")
    for number, run in enumerate(ask(home, host).submit_study(toy)):
        train(run, at, 5000.0 + 100.0 * number, 4.0, epochs=2)
    monkeypatch.setattr(references, "PAPER_DATASET", "digits")
    monkeypatch.setattr(references, "PAPER_IMAGES", 640)
    monkeypatch.setitem(verdicts.MINIMUMS, "batch_size", verdicts.Minimum(epochs=3, repeats=2))
    app = show("studies/paper")
    assert not app.exception
    assert app.selectbox(key="paper.study").options[0] == "Batch size (study-0001)"
    text = texts(app)
    assert (
        "**Differs from the paper:** batch 512 takes 25% less time per epoch than batch 64" in text
    )
    assert "Not drawn: A toy (study-0011): 2 epochs of at least 3, 1 repeat of at least 2." in text


@pytest.mark.usefixtures("_test_images_only")
def test_no_dataset_is_selected_by_default_without_whole_mnist(show: Show, home: Home) -> None:
    app = show("launch/paper")
    images = app.radio(key="paper.images")
    assert (images.value, images.options) == (None, ["MNIST", "Digits (embedded)"])
    assert "Pick the images above to see what is queued." in texts(app)
    assert all(button.key != "paper.start" for button in app.button)
    images.set_value("digits").run()
    table = app.table[0].value
    assert [
        "Data",
        "Digits (embedded), 1,797 images",
        "MNIST, 60,000 images",
        "all",
    ] in table.to_numpy().tolist()
    app.radio(key="paper.images").set_value("mnist").run()
    assert ["Data", "MNIST, 10,000 images", "MNIST, 60,000 images", "all"] in app.table[
        0
    ].value.to_numpy().tolist()
    assert home.run_dirs() == []


@pytest.mark.usefixtures("_whole_mnist")
def test_whole_mnist_is_preselected_and_the_button_queues_the_studies(
    show: Show, home: Home
) -> None:
    app = show("launch/paper")
    assert app.radio(key="paper.images").value == "mnist"
    assert (
        "Queues 5 studies with 32 runs (batch size 12, rate schedule 2, precision 6, XLA 6, devices"
        " 6): duration unknown" in texts(app)
    )
    assert "gave strokes instead of digits" in app.warning[0].value
    app.radio(key="paper.images").set_value("digits").run()
    assert [warning.value for warning in app.warning] == []
    app.button(key="paper.start").click().run()
    specs = [run.spec() for run in home.run_dirs()]
    assert len(specs) == 32
    assert {spec.dataset for spec in specs} == {"digits"}
    assert {
        (spec.learning_rate_schedule, spec.batch_size_global)
        for spec in specs
        if spec.restart_epochs == 1
    } == {
        ("constant", 512),
        ("cosine_restarts", 512),
    }
    assert {
        (spec.replicas, spec.batch_size_global) for spec in specs if spec.batch_size_global == 32
    } == {
        (1, 32),
        (8, 32),
    }


def test_the_descent_is_drawn_with_computed_sentences(
    show: Show, trained: Callable[..., RunDir]
) -> None:
    run = trained("paper-0001", seconds=-120.0, weight_snapshots="yes")
    journal.append(
        run.earlier_journal("surface"), 1, surface("generator", 1.0), surface("discriminator", 2.0)
    )
    app = show("studies/paper")
    assert not app.exception
    text = texts(app)
    assert (
        "From before the first epoch to after epoch 3. Generator: the map contains 88% of its"
        " movement" in text
    )
    assert "**Not judged:** loss along each path: Generator from 2.50 to 0.50" in text
    assert titles(app)[:2] == ["Generator", "Discriminator"]
    assert all(
        button.key != "paper.11.start" for button in app.button
    )  # this home has no weight snapshots


@pytest.mark.usefixtures("stalled_jobs")
def test_a_button_starts_the_loss_surface_and_another_cancels_it(
    show: Show, trained: Callable[..., RunDir], home: Home, wait_until: Callable[..., Any]
) -> None:
    run = trained("paper-0001", seconds=-120.0, weight_snapshots="yes")
    keep_three(run)
    app = show("studies/paper")
    app.button(key="paper.11.start").click().run()
    assert not app.exception
    assert "You can close the page: it continues." in app.get("progress")[0].proto.text
    app.button(key="paper.11.stop").click().run()
    assert "stopping …" in texts(app)
    [job] = job_queue.job_dirs(home)
    job_queue.signal_group(job, signal.SIGCONT)
    wait_until(lambda: job.process() is None, "the job ends")
    said = "No surface was computed: cancelled on request; nothing was stored."
    assert said in [warning.value for warning in app.run().warning]


def test_the_page_explains_how_to_store_weights_when_none_exist(
    show: Show, trained: Callable[..., RunDir]
) -> None:
    trained("paper-0001")
    assert (
        "no run here has stored its weights. Start one with the option 'Weight snapshots' on"
        in texts(show("studies/paper"))
    )
