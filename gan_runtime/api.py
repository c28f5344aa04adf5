"""The Python API, for notebooks and programs: the functions of `gan_runtime` (docs/python.md).

All of them work next to an open dashboard on the same home. Trainings and evaluations run in
separate processes. Errors that the user can correct are `GanRuntimeError`s (base/errors.py); the
message says what is wrong and what is allowed.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gan_runtime import catalog
from gan_runtime.base.errors import JobError, PictureError, QueryError, RunStateError, quoted
from gan_runtime.catalog.table import Table
from gan_runtime.records.home import Home
from gan_runtime.records.record import operator
from gan_runtime.spec import RunSpec

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

PYTHON = operator("Python")
SECONDS = 60.0  # time limit of an SQL statement
MOST_ROWS = 1_000_000  # of an SQL answer
POLL_SECONDS = 0.2
SCORES = (
    "SELECT * FROM evaluation_scores JOIN evaluations USING (run_id, evaluation, key, epoch, step)"
)


def open_home(path: str | Path | None = None) -> Home:
    """The home folder of runs, data sets and results; created if it is missing.

    `path`: None for $GAN_RUNTIME_HOME, or else the project folder, or ~/gan-dashboard for an
    installed program.

    Raises:
        HomeError: the folder cannot be used or written.
    """
    return Home.choose(None if path is None else Path(path)).prepare()


def train(
    home: Home, spec: RunSpec | Mapping[str, Any], tell: Callable[[str], None] | None = None
) -> str:
    """Trains a run to its end and returns its id, such as "run-0007". Ctrl-C saves and stops the
    run.

    `spec`: the options of the run, or their values by name, as numbers or text. `tell`: called with
    one line for each new state and each epoch, for example `print`. The run waits in the queue
    while another run trains on the device.

    Raises:
        SpecError, DatasetError, AcceleratorError: an option is wrong, or this host cannot train the
            run; nothing is queued.
        StoreError, HomeError: the home cannot be used.
        RunStateError: the run failed or was lost; the message has the reason.
    """
    from gan_runtime.cli import following, training

    def show(snapshot: Any) -> None:
        if tell is not None:
            tell(following.in_words(snapshot))

    end = training.train_run(
        home,
        spec if isinstance(spec, RunSpec) else RunSpec.parse(spec),
        "",
        following.Lines(show),
        actor=PYTHON,
    ).row
    if end.status in ("failed", "lost"):
        raise RunStateError(f"run {end.run_id} is {end.status}: {end.note}")
    return end.run_id


def runs(home: Home) -> pd.DataFrame:
    """All runs, the newest first, with the columns of the view `runs` (docs/schema.md)."""
    return sql(home, "SELECT * FROM runs ORDER BY created_at DESC, run_id DESC")


def sql(home: Home, statement: str) -> pd.DataFrame:
    """The answer to one read-only SQL statement over the views of docs/schema.md.

    Reads new journal lines first, and changes nothing in the home. Columns with equal names become
    a, a_2, …; NULL in a column of numbers becomes NaN.

    Raises:
        QueryError: the statement is wrong or writes, takes more than 60 s, or has more than
            1,000,000 rows.
    """
    import pandas as pd

    from gan_runtime.store import ingest
    from gan_runtime.store.user_sql import Limits

    answer = ingest.store_of(home).user_answer(statement, Limits(SECONDS, MOST_ROWS))
    if answer.cut:
        raise QueryError(f"the answer has more than {MOST_ROWS:,} rows: use LIMIT or aggregate.")
    return pd.DataFrame(answer.rows, columns=answer.names)


def images(home: Home, run_id: str, epoch: int | None = None, kind: str = "") -> NDArray[np.uint8]:
    """Sample images of a run as one image: uint8 (height, width, 3), RGB from 0 to 255.

    `epoch`: the newest image at or before it; None for the newest. `kind`: a kind of image of the
    run's workload, such as "samples" or "by_class"; "" for the first kind.

    Raises:
        UnknownRunError: there is no such run.
        PictureError: the run has no such image.
    """
    import numpy as np
    from PIL import Image

    from gan_runtime.store import ingest, queries

    store = ingest.store_of(home, [home.run_dir(run_id)])
    epochs = queries.sample_epochs(store, [run_id], kind)
    if not epochs or (epoch is not None and epoch < epochs[0]):
        kinds = ", ".join(queries.sample_kinds(store, [run_id])) or "none"
        named = f" {quoted(kind)}" if kind else ""
        limit = "" if epoch is None else f" of epoch {epoch} or before"
        raise PictureError(
            f"run {run_id} has no image{named}{limit}: its images are {kinds}, of epochs"
            f" {epochs or 'to come'}."
        )
    grid = queries.sample(store, run_id, epochs[-1] if epoch is None else epoch, kind)
    assert grid is not None, "epochs[0] is at or before that epoch"
    return np.asarray(Image.open(io.BytesIO(grid.png)).convert("RGB"))


def evaluate(home: Home, run_id: str, name: str, **options: Any) -> pd.DataFrame:
    """Evaluates a run, waits for the result, and returns one row per score.

    `name`: the evaluation, such as "loss_surface". `options`: its options by name. Columns:
    evaluation, epoch, score, value; error (one standard deviation), low and high (95%), floor
    (held-out rows against training rows), ceiling (noise against held-out rows); NaN where missing.
    Curves and arrays are in the views `evaluation_curves` and `evaluation_arrays`.

    Raises:
        UnknownRunError, CheckpointError, RunStateError: there is no such run, or it lacks the
            checkpoint.
        SpecError, DatasetError: an option is wrong, or the evaluation does not apply to this run.
        JobError: there is no such evaluation, it is already running for this run, or it failed; the
            message has the reason.
    """
    from gan_runtime.catalog.evaluations import evaluation
    from gan_runtime.commands import Commands

    requested_at = datetime.now(UTC)
    job = Commands(home, PYTHON).evaluate(run_id, name, options)
    while (snapshot := job.snapshot()) is not None and snapshot.is_live:
        time.sleep(POLL_SECONDS)
    end = snapshot.end if snapshot is not None else None
    if end is None:
        raise JobError(f"the folder of job {job.job_id} was deleted: start the evaluation again.")
    if end.state != "finished":
        raise JobError(end.reason)
    scores = sql(home, SCORES)
    is_new = (
        (scores.run_id == run_id)
        & (scores.evaluation == evaluation(name).name)
        & (scores.measured_at >= requested_at)
    )
    return scores[is_new].reset_index(drop=True)


def register_workload(name: str, place: str) -> None:
    """Registers a GAN as a workload, for this process and the trainings that it starts.

    `name`: up to 40 small letters, digits and '_'. `place`: "module:NAME" of its `WorkloadEntry`,
    in a module that loads no framework. The dashboard and the command line find workloads of
    installed packages through the entry-point group `gan_runtime.workloads`.

    Raises:
        PackageError: the name is taken or invalid, or there is no such entry.
    """
    _table(catalog.WORKLOADS).register(name, place)


def register_data_set(name: str, place: str) -> None:
    """Registers a data set, for this process and the trainings that it starts.

    `place`: "module:NAME" of its `DatasetEntry`, whose `load` returns the rows. Otherwise as
    `register_workload`; the entry-point group is `gan_runtime.data_sets`.

    Raises:
        PackageError: the name is taken or invalid, or there is no such entry.
    """
    _table(catalog.DATASETS).register(name, place)


def _table(table: Any) -> Table[Any]:
    assert isinstance(table, Table)
    return table
