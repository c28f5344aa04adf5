"""Model export in the Samples tab of a run: the button, the job, and its file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from gan_runtime.bundles.generator_export import EXPORT, EXPORT_FILE, ExportRequest
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import End, JobDir, JobRequest
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints
from tests.pages.reading import texts

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


@pytest.fixture
def run(trained: Make) -> RunDir:
    """A run with a best checkpoint after step 700, and the newest one."""
    run = trained("quick-0001", workload="mlp_gan")
    for step in (700, 1_050):
        arrays = {"weights": np.zeros(3, np.float32)}
        checkpoints.save(run.checkpoints, arrays, step, 1.0, retained=3, shortfall=step / 1_000)
    return run


def job_of(home: Home, request: ExportRequest) -> JobDir:
    """A job that no process works on."""
    job = JobDir(home.jobs / "export-generator-0001")
    job.results.mkdir(parents=True)
    job.write_request(JobRequest(kind=EXPORT, options=asdict(request), asker="a test"))
    return job


def downloads(app: AppTest) -> list[str]:
    return [element.proto.label for element in app.get("download_button")]


def test_export_button_starts_a_job_for_the_selected_checkpoint(
    show: Show, home: Home, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_queue, "start", lambda _job: None)
    app = show("run", tab="samples", run="quick-0001")
    assert not app.exception
    app.selectbox(key="export.checkpoint.quick-0001").select(("best", None))
    app.button(key="export.start").click().run()
    assert not app.exception
    [look] = job_queue.snapshots(home, EXPORT)
    assert look.request.options == asdict(ExportRequest(run.run_id, "best"))
    assert app.button(key="export.start").disabled


def test_an_export_can_be_downloaded_until_it_is_deleted(
    show: Show, home: Home, run: RunDir
) -> None:
    job = job_of(home, ExportRequest(run.run_id))
    (job.results / EXPORT_FILE).write_bytes(b"zip")
    result: dict[str, Any] = {"step": 1_050, "bytes": 1_200_000, "warnings": []}
    job.write_end(End(state="finished", reason="done", result=result))
    app = show("run", tab="samples", run="quick-0001")
    assert not app.exception
    assert "Newest checkpoint, after step 1,050: 1 MB." in texts(app)
    assert "Download model" in downloads(app)
    (job.results / EXPORT_FILE).unlink()
    assert "The last export was deleted" in texts(app.run())
    assert "Download model" not in downloads(app)


def test_a_failed_export_shows_its_reason(show: Show, home: Home, run: RunDir) -> None:
    job = job_of(home, ExportRequest(run.run_id))
    job.write_end(End(state="failed", reason="twice: Doubled is not a Keras layer."))
    app = show("run", tab="samples", run="quick-0001")
    [error] = app.error
    assert error.value.replace("\\", "") == "twice: Doubled is not a Keras layer."


def test_a_run_without_a_checkpoint_has_no_export_button(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("run", tab="samples", run="quick-0001")
    assert "export.start" not in [button.key for button in app.button]
