"""Pages drawn by Streamlit's test runner on a real database of journals written for these tests."""

from __future__ import annotations

import functools
import gc
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import altair as alt
import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner import script_cache
from streamlit.testing.v1 import AppTest

from dashboard import plots
from dashboard.frame import access, places, session
from gan_runtime.hardware.hosts import Host
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir
from gan_runtime.records import journal
from gan_runtime.records.home import HOME_VARIABLE, REPOSITORY, Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir, TrainerProcess
from gan_runtime.store.store import Store
from gan_runtime.supervision import owner_thread, standby
from tests.support import explanations
from tests.support.small_pictures import write_grid

SCRIPT = REPOSITORY / "dashboard" / "navigation.py"
NEVER = 1e6  # seconds
SCORES = {
    "d_accuracy_real": 0.75,
    "d_accuracy_fake": 0.5,
    "probe_score_real": 0.6,
    "probe_score_fake": 0.4,
    "spread_real": 0.2,
    "spread_fake": 0.1,
    "gradient_norm_generator": 0.5,
    "gradient_norm_discriminator": 2.0,
    "update_ratio_generator": 0.001,
    "update_ratio_discriminator": 0.002,
}


@pytest.fixture(scope="session", autouse=True)
def scanned_once() -> Iterator[None]:
    """Scans for components once: each AppTest scans all installed packages, a tenth of a second for
    the same answer.
    """
    with pytest.MonkeyPatch.context() as patch:
        scan = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", scan)
        yield


@pytest.fixture(scope="session", autouse=True)
def compiled_once() -> Iterator[None]:
    """Compiles each page once, as a server does: an AppTest compiles its pages at every run."""
    with pytest.MonkeyPatch.context() as patch:
        shared = script_cache.ScriptCache()
        patch.setattr(script_cache.ScriptCache, "__new__", lambda _: shared)
        patch.setattr(script_cache.ScriptCache, "__init__", lambda _: None)
        yield


@pytest.fixture(scope="module", autouse=True)
def older_objects_are_left_alone() -> Iterator[None]:
    """Hides older objects from Streamlit's garbage collection after each script.

    Other tests have left millions of TensorFlow objects in this process, where one collection takes
    a second.
    """
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def charts_are_checked() -> Iterator[None]:
    """Validates each chart of each page against the Vega-Lite schema, which the pages leave to
    these tests, and its explanation of two sentences.
    """
    specification, put = plots.specification, plots._put
    valid: set[str] = set()

    def explained(spec: dict[str, Any], *arguments: Any, **named: Any) -> None:
        explanations.check(spec)
        put(spec, *arguments, **named)

    @functools.wraps(specification)
    def checked(chart: alt.Chart | alt.LayerChart) -> dict[str, Any]:
        made = specification(chart)
        if (content := repr(made)) not in valid:
            chart.to_dict(validate=True)
            valid.add(content)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "specification", checked)
        patch.setattr(plots, "_put", explained)
        yield


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """results.duckdb of a home without runs: creating its tables takes longer than drawing most
    pages.
    """
    path = tmp_path_factory.mktemp("empty") / "results.duckdb"
    Store(path).close()
    return path


@pytest.fixture
def home(tmp_path: Path, empty_database: Path) -> Home:
    """A home that was opened before."""
    home = Home(tmp_path / "home").prepare()
    shutil.copy(empty_database, home.database)
    return home


@pytest.fixture
def show(
    home: Home, host: Host, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., AppTest]]:
    """`show("run", run="quick-0001")` draws a page of this home, `show("run/log", …)` with this tab
    open, on a real runtime with a fixed host.

    Queued runs stay queued: a trainer would outlive the test and slow down all others. The runtime
    acts when it is opened and on request, not by itself.
    """
    monkeypatch.setattr("gan_runtime.supervision.supervisor.Supervisor._start", lambda *_: None)
    monkeypatch.setattr(owner_thread, "TICK_SECONDS", NEVER)
    monkeypatch.setenv(HOME_VARIABLE, str(home.path))
    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", lambda: host)
    monkeypatch.setattr(
        "dashboard.frame.session.prepare_other_pages", lambda: None
    )  # its thread would outlive the test
    monkeypatch.setenv(standby.SWITCH, "off")  # Launch would load TensorFlow in a further process
    monkeypatch.setattr(access, "guards", access.Guards())
    st.cache_data.clear()  # charts of an earlier test with equal rows

    def draw(place: str, **query: str) -> AppTest:
        page, _, tab = place.partition("/")
        query = {"tab": tab, **query} if tab else query
        app = AppTest.from_file(str(SCRIPT), default_timeout=30)
        for name, value in query.items():
            app.query_params[name] = value
        app.switch_page(str(getattr(places, page.upper())))
        return app.run()

    yield draw
    session.close()


@pytest.fixture
def wait_until(wait_until: Callable[..., Any]) -> Callable[..., Any]:
    """Waits as elsewhere, and the owner of the home acts at each check: it does not by itself."""

    def wait(condition: Callable[[], Any], awaited: str, seconds: float = 120.0) -> Any:
        def acted() -> Any:
            session.shared_runtime().refresh()
            return condition()

        return wait_until(acted, awaited, seconds)

    return wait


@pytest.fixture
def stalled_jobs(monkeypatch: pytest.MonkeyPatch, home: Home) -> Iterator[None]:
    """Suspends jobs at their start: none ends before a test has pressed Stop or Cancel, nor is
    killed for ending late.
    """
    monkeypatch.setattr(job_queue, "GRACE_SECONDS", float("inf"))
    begin = job_queue.start

    def start_and_hold(job: JobDir) -> None:
        begin(job)
        job_queue.signal_group(job, signal.SIGSTOP)

    monkeypatch.setattr(job_queue, "start", start_and_hold)
    yield
    for job in job_queue.job_dirs(home):
        job_queue.signal_group(job, signal.SIGKILL)


@pytest.fixture
def running(new_run: Callable[..., RunDir]) -> Iterator[RunDir]:
    """A run whose trainer is a process that does nothing and ignores stop requests."""
    run = new_run("quick-0001")
    with subprocess.Popen(["sleep", "60"]) as process:
        run.write_process(TrainerProcess.of(process.pid, attempt=1))
        journal.append(
            run.trainer_journal(),
            1,
            StatusChange(status="running", reason="training"),
            journal.AttemptStart(resume_step=0),
        )
        yield run
        process.kill()


@pytest.fixture
def trained(new_run: Callable[..., RunDir]) -> Callable[..., RunDir]:
    """Creates a finished run of two epochs with ten steps each: `trained("quick-0001", losses=(0.9,
    1.1))`.

    `after_epoch_1`: records that precede those of epoch 2 in the journal.
    """

    def make(
        run_id: str,
        losses: tuple[float, float] = (0.9, 1.1),
        seconds: float = 0.0,
        after_epoch_1: tuple[journal.Sample | journal.Histogram, ...] = (),
        **options: object,
    ) -> RunDir:
        run = new_run(run_id, seconds=seconds, epochs=2, batch_size_global=32, **options)
        write_grid(run.samples / "epoch-00002.png")
        steps = [float(step) for step in range(1, 21)]
        values = {
            "loss_generator": [losses[0]] * 20,
            "loss_discriminator": [losses[1]] * 20,
            "d_real": [0.6] * 20,
            "d_fake": [0.4] * 20,
        }
        bins = {"bin_left": [0.0, 0.5], "bin_right": 1.0, "count": [48, 16], "epoch": 2, "step": 20}
        names = [
            "score/real",
            "score/fake",
            *(
                f"{kind}/{network}"
                for kind in ("weight", "gradient")
                for network in ("generator", "discriminator")
            ),
        ]
        journal.append(
            run.trainer_journal(),
            1,
            StatusChange(status="running", reason="training"),
            journal.AttemptStart(resume_step=0),
            journal.AttemptPlan(images=320, steps_per_epoch=10, epochs=2),
            journal.Scalars(epoch=1, first_step=1, wall_s=steps, values=values),
            journal.EpochDone(epoch=1, step=10, seconds=4.0, images=320, images_per_s=80.0),
            *after_epoch_1,
            *(
                journal.EpochScores(
                    epoch=epoch, step=10 * epoch, wall_s=10.0 * epoch, values=SCORES
                )
                for epoch in (1, 2)
            ),
            journal.EpochDone(epoch=2, step=20, seconds=2.0, images=320, images_per_s=160.0),
            *(journal.Histogram(name=name, **bins) for name in names),  # type: ignore[arg-type]
            journal.Sample(
                epoch=2,
                step=20,
                sample_kind="fixed_latents",
                file="samples/epoch-00002.png",
                meta={"inputs": f"those of {run.spec().workload}"},
            ),
            journal.PhaseSeconds(phase="trace", seconds=0.9),
            StatusChange(status="finished", reason="all 2 epochs done"),
        )
        Path(run.log).write_text("all 2 epochs done\n", encoding="utf-8")
        return run

    return make
