"""Example runs are shrunk, loaded into a home, and offered until they are loaded."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from dashboard.domains.flows import rollouts
from dashboard.frame import session
from examples import smaller_runs
from gan_runtime import bundles
from gan_runtime.records import image_files, journal
from gan_runtime.records.earlier_records import answer_of, rollout_key
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from tests.pages.reading import evaluation, texts
from tests.support.measured_flows import frames, iteration

Show = Callable[..., AppTest]


def test_a_flow_run_is_shrunk_to_a_copy_that_plays_after_loading(
    show: Show, trained: Callable[..., RunDir], tmp_path: Path
) -> None:
    """Shrinks runs as examples/record_karman.sh does, and loads them into the page's home."""
    home = Home(tmp_path / "recorded")
    page_home = trained("quick-0001").path
    run = RunDir(home.prepare().runs / "karman-0001")
    page_home.rename(run.path)
    for epoch in (1, 10):  # in addition to epoch 2
        Image.effect_mandelbrot((60, 40), (-2, -1, 1, 1), 100).save(
            run.sample_file("samples", epoch)
        )
        file = f"samples/samples-{epoch:05d}.png"
        sample = journal.Sample(epoch=epoch, step=epoch, sample_kind="samples", file=file, meta={})
        journal.append(run.trainer_journal(), 1, sample)
    for number, way in ((1, "map_reduce"), (2, "map_reduce"), (2, "naive")):
        record = iteration(number, way, 8, number)
        film = image_files.write_film(run, f"{record.iteration}-{way}", frames(8))
        answer = answer_of(record.model_copy(update={"frames": film}))
        journal.append(run.evaluations_journal, 1, answer)
    before = content(run)
    smaller_runs.main(home, ["karman-0001"], Home(tmp_path / "small"))
    assert content(run) == before
    small = Home(tmp_path / "small").run_dir("karman-0001")
    assert sorted(path.name for path in small.samples.iterdir()) == [
        "samples-00001.png",
        "samples-00010.png",
    ]
    assert [path.name for path in image_files.referenced_films(small)] == [
        "iterate-0002-map_reduce.npz"
    ]
    bundles.pack([small], tmp_path / "flows.zip", "example-")
    bundles.unpack(tmp_path / "flows.zip", Home(page_home.parent.parent))
    app = evaluation(show, "example-karman-0001", view="Film")
    assert not app.exception
    assert app.get("bidi_component"), "the film of the first iteration"
    assert rollouts.NO_FRAMES not in texts(app)
    app = app.multiselect(key="evaluation.answers.example-karman-0001").set_value(
        [f"example-karman-0001.{rollout_key(iteration(2, 'naive', 8, 2))}"]
    )
    assert rollouts.NO_FRAMES in texts(app.run())


def content(run: RunDir) -> dict[Path, bytes]:
    """The content of every file of a run."""
    return {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


@pytest.fixture
def two_bundles(
    new_run: Callable[..., RunDir], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> set[str]:
    """Replaces the examples, which take seconds to load; returns the IDs of the replacing runs."""
    files = [tmp_path / f"{name}.zip" for name in ("paper", "karman")]
    for file in files:
        run = new_run(f"{file.stem}-0001")
        journal.append(
            run.trainer_journal(), 1, journal.StatusChange(status="finished", reason="all done")
        )
        bundles.pack([run], file, "example-")
        shutil.rmtree(run.path)
    monkeypatch.setattr(bundles, "examples", lambda: files)
    return {"example-paper-0001", "example-karman-0001"}


def test_examples_are_offered_until_one_click_loads_them_all(
    show: Show, new_run: Callable[..., RunDir], home: Home, two_bundles: set[str]
) -> None:
    app = show("home")
    assert home.run_dirs() == []
    assert "examples.home" in [button.key for button in app.button], "of an empty home"
    new_run("quick-0001")
    session.shared_runtime().refresh()
    app = show("home")
    app.button(key="examples.home").click().run()
    assert not app.exception
    assert "examples.home" not in [button.key for button in app.button]
    assert {run.run_id for run in home.run_dirs()} == {"quick-0001", *two_bundles}
    assert "finished" in texts(app)
    runs = show("runs")
    assert "examples.runs" not in [button.key for button in runs.button]
