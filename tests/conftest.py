"""Shared parts of the tests: a home in a temporary folder, hand-written runs, small IDX
files, cores, JAX, waiting.
"""

from __future__ import annotations

import gzip
import itertools
import os
import resource
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gan_runtime.device_locks.locks import FOLDER_VARIABLE
from gan_runtime.engines.tf import process as tf_process
from gan_runtime.evaluation.jobs import MEASURE_VARIABLE
from gan_runtime.hardware import machine
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import journal
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.journal import Created, StatusChange, StudyPlace
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.spec import RunSpec
from tests.support import own_time
from tests.support.engines.jax_process import JaxProcess
from tests.support.hosts import CORES, stated_host

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf_process.keep_jax_out()  # tests of JAX have processes of their own

POLL_SECONDS = 0.1  # conditions ask the store or a browser, and what is awaited needs the processor
# Files of tests run two at a time (Makefile): these take longest and begin, so that at the end none
# is left alone for long. One that waits for other processes stands before one that computes: both
# kinds then run at a time.
LONGEST = (
    *("test_karman_preset.py", "test_jax_parity.py"),
    *("test_own_pictures.py", "test_check.py"),
    *("test_load.py", "test_jax_engine.py"),
    *("test_live_page.py", "test_showers_on_engines.py"),
    *("test_workers.py", "test_adding_a_workload.py"),
    *("test_killed_dashboard.py", "test_three_workloads.py"),
    *("test_jax_runs.py", "test_every_page.py"),
    *("test_processes.py", "test_pix2pix_on_engines.py"),
    *("test_pix2pix_runs.py", "test_tf_compiled.py"),
    *("test_document_commands.py", "test_main_job.py", "test_keras_pix2pix_on_jax.py"),
    *("test_strangers.py", "test_tf_objectives.py"),
    *("test_studies.py", "test_tf_distribution.py"),
)
FULL = REPOSITORY / "tests" / "full"
START = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def pytest_configure(config: pytest.Config) -> None:
    """Each test's own time is measured."""
    config.pluginmanager.register(own_time.OwnTime())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m "not full"` does not even load tests/full."""
    return True if collection_path == FULL and config.option.markexpr == "not full" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what is in tests/full, and puts the files that take longest first."""
    for item in items:
        if item.path.is_relative_to(FULL):
            item.add_marker("full")
    items.sort(
        key=lambda item: (
            LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST)
        )
    )


@pytest.fixture(autouse=True)
def bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Presets start in the precision they are written in, whatever processor the tests run on."""
    monkeypatch.setattr(machine, "has_bfloat16", lambda: True)


@pytest.fixture(scope="session", autouse=True)
def unmeasured() -> Iterator[None]:
    """No owner, in this process or one that a test starts, begins a job that would outlive the test
    and slow down all others.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MEASURE_VARIABLE, "off")
        yield


@pytest.fixture(scope="session", autouse=True)
def lock_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iterator[Path]]:
    """Folders for locks of devices, none of which exists yet.

    The first one is of what lives longer than one test.
    """
    place = tmp_path_factory.mktemp("locks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(place / "session"))
        yield (place / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_devices(lock_folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for a device that a training of this host has, or of another test."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(next(lock_folders)))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Its own home, ready to be written."""
    return Home(tmp_path / "home").prepare()


@pytest.fixture
def host() -> Host:
    """A machine with eight CPU cores and nothing else."""
    return stated_host()


@pytest.fixture
def at() -> Callable[[float], datetime]:
    """The moment so many seconds after noon of 1 January 2026, UTC."""
    return lambda seconds: START + timedelta(seconds=seconds)


@pytest.fixture
def new_run(home: Home, at: Callable[[float], datetime]) -> Callable[..., RunDir]:
    """Makes the folder of a queued run by hand: `new_run("quick-0001", replicas=2)`."""

    def make(
        run_id: str, seconds: float = 0.0, study: StudyPlace | None = None, **options: Any
    ) -> RunDir:
        run = RunDir(home.runs / run_id)
        run.path.mkdir()
        spec = RunSpec.parse(options).model_dump()
        write_json(run.spec_path, spec)
        journal.append(
            run.supervisor_journal,
            1,
            Created(
                at=at(seconds),
                spec=spec,
                accelerator="cpu",
                color=0,
                preset=run_id.rpartition("-")[0],
                study=study,
            ),
            StatusChange(
                at=at(seconds),
                status="queued",
                reason="waiting for the accelerator",
                queue_rank=seconds,
            ),
        )
        return run

    return make


@pytest.fixture
def write_idx() -> Callable[[Path, np.ndarray], Path]:
    """Writes uint8 (images, height, width) or (labels,) as an IDX file; a name that ends in
    .gz is compressed.
    """

    def write(path: Path, values: np.ndarray) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        header = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
        content = header + values.astype(np.uint8).tobytes()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path

    return write


@contextmanager
def _files_end_at(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def files_end_at() -> Callable[[int], AbstractContextManager[None]]:
    """`with files_end_at(500):` the system takes no more than 500 bytes of a file, the
    beginning of a write alone if need be.
    """
    return _files_end_at


@pytest.fixture
def wait_until() -> Callable[..., Any]:
    """Waits until `condition()` is true and returns its value; fails after `seconds`, saying
    what was awaited.
    """

    def wait(condition: Callable[[], Any], awaited: str, seconds: float = 120.0) -> Any:
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {awaited}"
            time.sleep(POLL_SECONDS)
        return value

    return wait


@pytest.fixture(scope="session")
def cores() -> int:
    """Eight simulated CPU cores in this process; TensorFlow fixes their number when it
    starts, so they come first.
    """
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")
    machine = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        machine, [tf.config.LogicalDeviceConfiguration()] * CORES
    )
    assert len(tf.config.list_logical_devices("CPU")) == CORES
    return CORES


@pytest.fixture(scope="session")
def jax() -> Iterator[JaxProcess]:
    """The process with JAX, started when first asked."""
    process = JaxProcess()
    yield process
    process.close()
