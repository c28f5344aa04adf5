"""Shared fixtures: a home in a temporary folder, runs written for tests, small IDX files, cores,
JAX, waiting.
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
from gan_runtime.evaluation.training_requests import SWITCH
from gan_runtime.hardware import machine
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import journal
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.journal import Created, StatusChange, StudyPlace
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.spec import RunSpec
from tests.support import own_time
from tests.support.engines import program_cache
from tests.support.engines.jax_process import JaxProcess
from tests.support.hosts import CORES, stated_host

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf_process.keep_jax_out()  # JAX tests have their own processes

POLL_SECONDS = 0.1  # conditions query the store or a browser, and the awaited work needs the CPU
# Test files run two at a time (Makefile): these take longest and start first, so that none runs
# alone for long at the end. A file that waits for other processes precedes one that computes, so
# that both kinds run at the same time.
LONGEST = (
    *("test_karman_preset.py", "test_jax_parity.py"),
    *("test_own_pictures.py", "test_check.py"),
    *("test_load.py", "test_jax_engine.py"),
    *("test_slurm_target.py", "test_live_page.py", "test_showers_on_engines.py"),
    *("test_workers.py", "test_adding_a_workload.py"),
    *("test_killed_dashboard.py", "test_three_workloads.py"),
    *("test_jobs_by_hand.py", "test_jax_runs.py", "test_every_page.py"),
    *("test_processes.py", "test_pix2pix_on_engines.py"),
    *("test_pix2pix_runs.py", "test_tf_compiled.py"),
    *("test_document_commands.py", "test_main_job.py", "test_keras_pix2pix_on_jax.py"),
    *("test_from_launch.py", "test_tiles.py"),
    *("test_strangers.py", "test_tf_objectives.py"),
    *("test_studies.py", "test_tf_distribution.py"),
)
FULL = REPOSITORY / "tests" / "full"
START = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def pytest_configure(config: pytest.Config) -> None:
    """Measures each test's own time."""
    config.pluginmanager.register(own_time.OwnTime())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skips tests/full for `-m "not full"`, without even importing it."""
    return True if collection_path == FULL and config.option.markexpr == "not full" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests in tests/full and puts the slowest files first."""
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
    """Presets keep their written precision, whatever processor the tests run on."""
    monkeypatch.setattr(machine, "has_bfloat16", lambda: True)


@pytest.fixture(scope="session", autouse=True)
def unmeasured() -> Iterator[None]:
    """Keeps owners, in this process or in one that a test starts, from starting a job that would
    outlive the test and slow down all others.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, "off")
        yield


@pytest.fixture(scope="session", autouse=True)
def stored_programs() -> Iterator[None]:
    """Keeps what trainers with JAX compile apart from the user's own programs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(program_cache.folder() / "of-trainers"))
        yield


@pytest.fixture(scope="session", autouse=True)
def lock_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iterator[Path]]:
    """Folders for device locks, none of which exists yet.

    The session folder is for anything that outlives a test.
    """
    place = tmp_path_factory.mktemp("locks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(place / "session"))
        yield (place / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_devices(lock_folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps tests from waiting for devices in use by training on this host or by another test."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(next(lock_folders)))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home of its own, ready for writing."""
    return Home(tmp_path / "home").prepare()


@pytest.fixture
def host() -> Host:
    """A machine with eight CPU cores and nothing else."""
    return stated_host()


@pytest.fixture
def at() -> Callable[[float], datetime]:
    """Returns the time `seconds` after noon UTC on January 1, 2026."""
    return lambda seconds: START + timedelta(seconds=seconds)


@pytest.fixture
def new_run(home: Home, at: Callable[[float], datetime]) -> Callable[..., RunDir]:
    """Creates the folder of a queued run directly: `new_run("quick-0001", replicas=2)`."""

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


@pytest.fixture(scope="session")
def write_idx() -> Callable[[Path, np.ndarray], Path]:
    """Writes uint8 (images, height, width) or (labels,) as an IDX file; compressed if the name ends
    in .gz.
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
    """`with files_end_at(500):` limits each file to 500 bytes; a write may be cut off."""
    return _files_end_at


@pytest.fixture
def wait_until() -> Callable[..., Any]:
    """Waits until `condition()` is true and returns its value; fails after `seconds` and names the
    awaited condition.
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
    """Eight simulated CPU cores in this process; TensorFlow fixes their number at startup, so they
    come first.
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
    """The JAX process, started on first use."""
    process = JaxProcess()
    yield process
    process.close()
