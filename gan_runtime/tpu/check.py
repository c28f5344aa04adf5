"""A compile check as the dashboard and the command line see it: a child process that works through a plan, and its answers.

Answers lie in `<home>/tpu-checks`, one file a program, named by what the program is made of: the same question is answered
at once. The child writes each answer as it comes; a check that is cancelled keeps those it has.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gan_runtime.errors import AcceleratorError, HomeError
from gan_runtime.home import Home
from gan_runtime.records.rundir import write_json
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu import report
from gan_runtime.tpu.plan import Plan
from gan_runtime.tpu.report import Point, StepEstimate
from gan_runtime.tpu_advice import advice

FOLDER = "tpu-checks"
# Keeps libtpu from asking the cloud for the machine it thinks it runs on. JAX itself stays on the CPU: only the compiler is used.
ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "KERAS_BACKEND": "jax",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # beside another check, or a training on this host's TPU: it touches no device
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v3-8",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


@dataclass(frozen=True)
class Progress:
    """How far a check is. `point`: the run itself; `points`: how many are asked about; `answers` in the order of the plan, as far as known; `trouble`: why it ended early, "" if it did not or has not begun."""

    point: Point
    answers: tuple[StepEstimate, ...]
    points: int
    running: bool
    trouble: str

    @property
    def first(self) -> StepEstimate | None:
        """The answer about the run itself; others may be known before it."""
        return next((one for one in self.answers if one.point == self.point), None)


class Check:
    """One check. `start` it, ask for its `progress`, `cancel` it. Answers that are kept from before need no child."""

    def __init__(self, home: Home, plan: Plan) -> None:
        self.plan = plan
        self._folder = home.path / FOLDER
        self._keys = {point: planning.key(plan, point) for point in plan.points}
        self._child: subprocess.Popen[bytes] | None = None
        self._log: Path | None = None
        self._trouble = ""

    def start(self) -> Check:
        """Begins to compile what is not known yet.

        Raises:
            AcceleratorError: the compiler is not installed here.
            HomeError: the answers cannot be kept.
        """
        if not self._unknown():
            return self
        lacking = planning.missing_library()
        if lacking:
            raise AcceleratorError(lacking)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix="log-", suffix=".txt", dir=self._folder)
        except OSError as error:
            raise HomeError.not_written(self._folder, error) from None
        self._log = Path(name)
        asked = {self._keys[point]: vars(point) for point in self._unknown()}
        spec, reading = self.plan.spec.model_dump(), self.plan.reading.to_json()
        request = json.dumps({"spec": spec, "reading": reading, "points": asked})
        command = [sys.executable, "-m", "gan_runtime.tpu.child", str(self._folder), request]
        with os.fdopen(handle, "wb") as log:
            self._child = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,
            )
        return self

    def progress(self) -> Progress:
        """How far it is now."""
        running = self._child is not None and self._child.poll() is None
        answers = tuple(answer for one in self.plan.points if (answer := kept(self._folder, self._keys[one])))
        if not running and self._log is not None and self._log.exists():
            self._trouble = self._trouble or self._last_words(self._log)
            self._log.unlink()
        trouble = "" if running or self._done(answers) else self._trouble
        return Progress(self.plan.point, answers, len(self.plan.points), running, trouble)

    def cancel(self) -> None:
        """Ends the child; what it has answered stays."""
        if self._child is not None and self._child.poll() is None:
            self._trouble = "cancelled; what was compiled by then is kept."
            os.killpg(
                self._child.pid, signal.SIGKILL
            )  # it leads its own group, and holds nothing that could be lost
            self._child.wait()

    def _unknown(self) -> list[Point]:
        return [one for one in self.plan.points if kept(self._folder, self._keys[one]) is None]

    def _done(self, answers: tuple[StepEstimate, ...]) -> bool:
        return len(answers) == len(self.plan.points)

    def _last_words(self, log: Path) -> str:
        last = (
            [line for line in log.read_text(errors="replace").splitlines() if line.strip()] or ["no message"]
        )[-1]
        code = self._child.returncode if self._child else None
        return f"the compiler's process ended with {code}: {advice(last) or last[:300]}"


def kept(folder: Path, name: str) -> StepEstimate | None:
    """An answer from before; None where there is none that this version can read."""
    try:
        return report.from_json(json.loads((folder / f"{name}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def keep(folder: Path, name: str, answer: StepEstimate) -> None:
    """Keeps an answer for the next who asks."""
    write_json(folder / f"{name}.json", report.to_json(answer))


def document(plan: Plan, progress: Progress) -> dict[str, Any]:
    """Everything that is known, as one JSON document."""
    return {
        "topology": plan.point.topology,
        "spec": plan.spec.changed_from_default(),
        "versions": planning.versions(),
        "label": report.ESTIMATE,
        "label_of_exchange_s": report.EXCHANGE_ESTIMATE,
        "chip": vars(plan.topology.chip),
        "images": plan.images,
        "trouble": progress.trouble,
        "answers": [
            {
                **report.to_json(one),
                "step_s": one.step_s,
                "exchange_s": one.exchange_s,
                "share_of_peak": one.share_of_peak,
                "share_of_memory": one.share_of_memory,
                "epoch_s": one.epoch_s(plan.steps_per_epoch(one.point), plan.spec.steps_per_loop)
                if one.compiled
                else None,
                "assumed_overhead_per_call_s": report.HOST_OVERHEAD_S,
            }
            for one in progress.answers
        ],
    }
