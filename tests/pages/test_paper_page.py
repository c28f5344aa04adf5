"""The Paper page: each figure beside what the paper says, every sentence computed from stored runs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import paper_devices, paper_words
from gan_runtime import commands, journal
from gan_runtime.home import Home
from gan_runtime.hosts import Host
from gan_runtime.rundir import RunDir
from gan_runtime.store.queries import Conditions
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


@pytest.fixture
def _whole_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keras' cache holds MNIST, as far as a page looks."""
    (tmp_path / "keras" / "datasets").mkdir(parents=True)
    (tmp_path / "keras" / "datasets" / "mnist.npz").touch()
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    monkeypatch.delenv("GAN_DATA_DIR", raising=False)


@pytest.fixture
def _test_images_only(tmp_path: Path, write_idx: Callable[[Path, np.ndarray], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    write_idx(tmp_path / "t10k-images-idx3-ubyte.gz", np.zeros((10_000, 28, 28), np.uint8))
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path))


def test_an_empty_page_says_how_to_begin_and_shows_what_others_published(show: Show) -> None:
    app = show("paper")
    assert not app.exception
    text = texts(app)
    assert "No batch-size study is stored here yet" in text
    assert "**Not enough runs yet:** no study of the question XLA has a finished run here" in text
    assert "**Not enough runs yet:** the paper's rate has cycles, at batch 512" in text
    assert "**Not enough runs yet:** no study of the question Devices" in text
    assert "After enabling XLA, models run around 1.15 times as fast." in text
    assert titles(app) == ["How does it scale?"]
    assert [item.value.columns[0] for item in app.dataframe[-2:]] == ["System", "Batch"]


@pytest.mark.usefixtures("studies")
def test_each_figure_stands_beside_what_the_paper_says_and_whether_it_agrees(show: Show) -> None:
    app = show("paper")
    assert not app.exception
    text = texts(app)
    assert [f"Fig. {number} ·" in text for number in range(5, 14)] == [True] * 9
    assert "79 % less training time with batch 512 than with batch 64." in text
    assert (
        "**Differs from the paper:** batch 512 takes 25 % less time per epoch than batch 64 (× 0.75, 0.75 to 0.75: clear); the "
        "paper has × 0.21, outside 0.75 to 0.75. A likely reason: a CPU is busy with one small batch already" in text
    )
    assert "**Agrees with the paper:** mean times of the epochs after the first: batch 64 4 s, batch 512 3 s" in text
    assert "batch 64: G 3.00, D 1.50; batch 512: G 3.00, D 1.50" in text
    assert "in 0 of 4 runs D's loss is lowest in an epoch before the last one" in text
    assert "G's loss with batch 512 over that with batch 64 × 1.00, 1.00 to 1.00: may be noise" in text
    assert (
        "**Differs from the paper:** with XLA a run takes 25 % more time per step than without (× 1.25, 1.25 to 1.25: clear); the "
        "paper's 1.15 times as fast is × 0.87, outside 1.25 to 1.25. On a CPU without XLA this program uses hand-laid kernels"
        in text
    )
    assert "From Batch size (study-0001): Digits (embedded), 640 of its 1\u2009797 images · CPU · " in text
    assert all(chart.get("layer") or chart.get("mark") for chart in charts(app))


def opened(app: AppTest) -> AppTest:
    """With the section on reproducing the paper open."""
    app.session_state["paper.reproduce"] = True
    return app.run()


@pytest.mark.usefixtures("_test_images_only")
def test_no_data_set_is_taken_that_nobody_chose(show: Show, home: Home) -> None:
    app = opened(show("paper"))
    images = app.radio(key="paper.images")
    assert (images.value, images.options) == (None, ["MNIST", "Digits (embedded)"])
    assert "Pick the images: nothing is taken in their place by itself." in texts(app)
    assert all(button.key != "paper.start" for button in app.button)
    images.set_value("digits").run()
    table = app.table[0].value
    assert ["Data", "Digits (embedded), 1\u2009797 images", "MNIST, 60\u2009000 images", "all"] in table.to_numpy().tolist()
    app.radio(key="paper.images").set_value("mnist").run()
    assert ["Data", "MNIST, 10\u2009000 images", "MNIST, 60\u2009000 images", "all"] in app.table[0].value.to_numpy().tolist()
    assert home.run_dirs() == []


@pytest.mark.usefixtures("_whole_mnist")
def test_whole_mnist_is_picked_and_the_button_queues_what_the_page_says(show: Show, home: Home) -> None:
    app = opened(show("paper"))
    assert app.radio(key="paper.images").value == "mnist"
    assert (
        "Queues 5 studies with 32 runs (batch size 12, rate schedule 2, precision 6, XLA 6, devices 6): for how long is unknown"
        in texts(app)
    )
    app.radio(key="paper.images").set_value("digits").run()
    app.button(key="paper.start").click().run()
    specs = [run.spec() for run in home.run_dirs()]
    assert len(specs) == 32
    assert {spec.dataset for spec in specs} == {"digits"}
    assert {(spec.learning_rate_schedule, spec.batch_size_global) for spec in specs if spec.restart_epochs == 1} == {
        ("constant", 512),
        ("cosine_restarts", 512),
    }
    assert {(spec.replicas, spec.batch_size_global) for spec in specs if spec.batch_size_global == 32} == {(1, 32), (8, 32)}


def test_rates_that_rise_abruptly_are_counted() -> None:
    constant = pd.DataFrame({"variant": "a", "x": [0.0, 1.0, 2.0], "mean": [1e-4] * 3})
    cycles = pd.DataFrame({"variant": "b", "x": [0.0, 1.0, 2.0, 3.0], "mean": [1e-4, 1e-5, 1e-4, 1e-5]})
    both = pd.concat([constant, cycles])
    assert paper_words.rates(both) == "a: constant 0.0001; b: 1e-05 to 0.0001 with 1 abrupt rise."
    assert paper_words.rate_cycles(both, {512}).agrees is True
    assert paper_words.rate_cycles(constant, {512}).agrees is False
    assert "these runs have batch 64" in paper_words.rate_cycles(both, {64}).why


def test_concentration_compares_the_first_epoch_with_the_last() -> None:
    frame = pd.DataFrame({"variant": ["a", "a", "b"], "epoch": [1, 2, 1], "width": [0.5, 0.25, 9.0]})
    assert paper_words.concentration(frame).endswith("a: from 0.50 to 0.25.")
    assert "no run has finished its second epoch" in paper_words.concentration(frame[frame["variant"] == "b"])


def two_variants(names: tuple[str, str], first: list[float], second: list[float], **columns: list[float]) -> pd.DataFrame:
    """Results of a study as far as a verdict reads them; the numbers are epoch_seconds."""
    rows = [
        {"variant": name, "variant_index": index, "repeat": repeat, "run_id": f"{name} {repeat}", "epoch_seconds": seconds}
        for index, (name, numbers) in enumerate(zip(names, (first, second), strict=True))
        for repeat, seconds in enumerate(numbers, 1)
    ]
    return pd.DataFrame(rows).assign(**columns)


BATCHES = ("batch 64", "batch 512")


@pytest.mark.parametrize(
    ("seconds", "agrees", "part"),
    [
        ([2.1, 2.12, 2.05], True, "79 % less time per epoch than batch 64 (× 0.21, 0.20 to 0.22: clear)"),
        ([7.5, 7.6, 7.4], False, "25 % less time per epoch than batch 64"),
        ([1.0, 1.01, 0.99], False, "90 % less"),
        ([2.1], None, "1 repeat, which says nothing about noise"),
        ([0.5, 30.0], None, "which the interval holds, but it holds no difference at all as well"),
    ],
)
def test_figure_5_agrees_where_the_interval_holds_the_papers_number(seconds: list[float], agrees: bool | None, part: str) -> None:
    verdict = paper_words.time_by_batch(two_variants(BATCHES, [10.0] * len(seconds), seconds), {"gpu"})
    assert verdict.agrees is agrees
    assert part in verdict.why
    assert "a CPU is busy" not in verdict.why


def test_figure_5_needs_the_papers_batches() -> None:
    found = paper_words.time_by_batch(two_variants(("batch 32", "batch 64"), [2.0, 2.0], [1.0, 1.1]), {"cpu"})
    assert (found.agrees, found.word) == (None, "Not enough runs yet")
    assert "the paper compares batch 64 with batch 512" in found.why


@pytest.mark.parametrize(
    ("later", "agrees"),
    [({"batch 64": [4.0, 4.1], "batch 512": [3.0, 3.1]}, True), ({"batch 64": [4.0, 6.0], "batch 512": [3.0, 4.5]}, False)],
)
def test_figure_6_asks_for_shorter_and_steady_epochs(later: dict[str, list[float]], agrees: bool) -> None:
    epochs = pd.DataFrame(
        [
            {"variant": variant, "run_id": f"{variant} {repeat}", "epoch": epoch, "seconds": seconds}
            for variant, numbers in later.items()
            for repeat in (1, 2)
            for epoch, seconds in enumerate([20.0, *numbers], 1)
        ]
    )
    results = two_variants(BATCHES, [4.0, 4.1], [3.0, 3.1])
    assert paper_words.time_by_epoch(epochs, results).agrees is agrees
    assert paper_words.time_by_epoch(epochs[epochs["epoch"] < 3], results).agrees is None


def test_figure_7_asks_whether_the_generator_improves_once_the_discriminator_stops_winning() -> None:
    epochs = {"run_id": ["a"] * 3, "epoch": [1, 2, 3]}
    d = pd.DataFrame({**epochs, "mean": [1.2, 0.6, 1.0]})
    assert paper_words.generator_improves(pd.DataFrame({**epochs, "mean": [0.8, 2.0, 1.1]}), d).agrees is True
    assert paper_words.generator_improves(pd.DataFrame({**epochs, "mean": [0.8, 2.0, 2.2]}), d).agrees is False
    still_winning = pd.DataFrame({**epochs, "mean": [1.2, 1.0, 0.6]})
    assert paper_words.generator_improves(pd.DataFrame({**epochs, "mean": [0.8, 2.0, 1.1]}), still_winning).agrees is False
    assert paper_words.generator_improves(d[:1], d[:1]).agrees is None


def test_figure_8_asks_for_a_clear_difference_between_batches() -> None:
    results = two_variants(BATCHES, [1.0, 1.0], [1.0, 1.0])
    widths = pd.DataFrame(
        {"run_id": results["run_id"], "epoch": 3, "width": [0.5, 0.51, 0.2, 0.204], "variant": results["variant"]}
    )
    assert paper_words.concentrated_differently(widths, results).agrees is True
    assert paper_words.concentrated_differently(widths.assign(width=[0.5, 0.51, 0.6, 0.3]), results).agrees is None


def test_figure_10_asks_for_the_lowest_losses_at_the_papers_batches() -> None:
    results = two_variants(BATCHES, [1.0, 1.0], [1.0, 1.0])
    best_at_512 = results.assign(loss_generator=[1.0, 1.01, 0.5, 0.505], loss_discriminator=[1.4, 1.41, 0.7, 0.705])
    assert paper_words.optimised_best(best_at_512).agrees is True
    best_at_64 = best_at_512.assign(loss_generator=[0.5, 0.505, 1.0, 1.01])
    assert paper_words.optimised_best(best_at_64).agrees is False
    scattered = best_at_512.assign(loss_generator=[1.0, 0.5, 0.6, 0.9])
    assert paper_words.optimised_best(scattered).agrees is None
    assert paper_words.optimised_best(best_at_512[best_at_512["variant"] == "batch 64"]).agrees is None


def place(accelerator: str, engine: str = "tensorflow") -> Conditions:
    return Conditions("digits", 1_797, accelerator, engine, 1, 3, "test processor", 2, False)


@pytest.mark.parametrize(
    ("where", "agrees", "part"),
    [
        (place("cpu"), False, "hand-laid kernels"),
        (place("gpu"), False, "outside"),
        (place("tpu"), None, "a TPU compiles every step whatever the option says, so both are the same program"),
        (place("cpu", "jax"), None, "JAX compiles every step whatever the option says"),
    ],
)
def test_figure_12_blames_kernels_of_the_cpu_on_a_cpu_only(where: Conditions, agrees: bool | None, part: str) -> None:
    results = two_variants(("xla off", "xla jit"), [1.0, 1.0], [5.0, 5.01]).rename(columns={"epoch_seconds": "steady_step"})
    verdict = paper_words.xla(results, [where])
    assert verdict.agrees is agrees
    assert "with XLA a run takes 5.0 × as long per step as without" in verdict.why
    assert part in verdict.why
    assert ("hand-laid" in verdict.why) == (where == place("cpu"))


def test_figure_13_names_what_is_missing_and_compares_with_the_papers_shares() -> None:
    rows = [
        {"variant": variant, "variant_index": index, "repeat": repeat, "epoch_seconds": seconds * (1 + 0.001 * index * repeat)}
        for index, (variant, seconds) in enumerate({"cpu x1": 100.0, "gpu x1": 54.5, "tpu x1": 58.1, "tpu x8": 43.8}.items())
        for repeat in (1, 2, 3)
    ]
    whole = pd.DataFrame(rows)
    assert paper_words.accelerators(whole).agrees is True
    assert paper_words.accelerators(whole.assign(epoch_seconds=whole["epoch_seconds"] ** 2)).agrees is False
    some = paper_words.accelerators(whole[whole["variant"].isin(["cpu x1", "gpu x1"])])
    assert (some.agrees, some.why.endswith("missing here: tpu x8, tpu x1.")) == (None, True)


def test_a_study_without_a_second_variant_says_nothing() -> None:
    rows = [{"variant": "a", "variant_index": 0, "repeat": 1, "epoch_seconds": 2.0, "steady_step": 0.1}]
    assert paper_words.time_by_batch(pd.DataFrame(rows), {"cpu"}).agrees is None
    assert paper_words.xla(pd.DataFrame(rows), []).agrees is None


ONE, OTHER = '{"r1_weight": 0.0}', '{"r1_weight": 2.0, "batch_size_global": 7, "unknown": 1}'


def test_only_runs_that_differ_in_devices_alone_are_joined_to_a_line() -> None:
    """Two lines with a point each are none; 200 images/s on 2 devices of another batch are no speed-up of 100 on 1."""
    columns = ["accelerator", "devices", "precision", "batch_size_global", "dataset", "images", "engine", "xla", "cpu_model"]
    rows = [
        ("cpu", 1, "float32", 64, "digits", 1_797, "tensorflow", "off", "A", False, ONE, 1, 100.0),
        ("cpu", 2, "float32", 64, "digits", 1_797, "tensorflow", "off", "A", False, ONE, 1, 150.0),
        ("cpu", 2, "float32", 256, "digits", 1_797, "tensorflow", "off", "A", False, OTHER, 1, 200.0),
        ("cpu", 4, "float32", 64, "digits", 1_797, "tensorflow", "off", "B", True, ONE, 1, 900.0),
        ("cpu", 4, "float32", 64, "digits", 1_797, "tensorflow", "off", "B", False, ONE, 1, 950.0),
    ]
    rates = pd.DataFrame(rows, columns=[*columns, "imported", "settings", "runs", "images_per_s"])
    ours = paper_devices.speed_ups(rates).query("ours")
    name = "CPU, batch 64, Digits (embedded), 1\u2009797 images, float32, XLA off, TensorFlow, A"
    assert ours[["system", "devices", "speed_up"]].to_numpy().tolist() == [[name, 1, 1.0], [name, 2, 1.5]]
    assert list(paper_devices.rate_table(rates)["Host"]) == ["A", "A", "A", "B (imported)", "B"]
    assert list(paper_devices.rate_table(rates)["Other options"]) == ["–", "–", "R1 penalty 2.0", "–", "–"]


def test_the_descent_is_drawn_beside_sentences_computed_from_it(show: Show, trained: Callable[..., RunDir]) -> None:
    run = trained("paper-0001", seconds=-120.0, weight_snapshots="yes")
    journal.append(run.surface_journal, 1, surface("generator", 1.0), surface("discriminator", 2.0))
    app = show("paper")
    assert not app.exception
    text = texts(app)
    assert "From before the first epoch to after epoch 3. Generator: the map holds 88 % of its movement" in text
    assert "**Agrees with the paper:** loss along each path: Generator from 2.50 to 0.50 nats" in text
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
    assert "no run here has kept its weights. Start one with the option 'Weight snapshots' on" in texts(show("paper"))
