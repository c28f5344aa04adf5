"""What may be asked of a run that makes pictures of pictures: feed its model with its own."""

from __future__ import annotations

from dataclasses import asdict

from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.base.fields import SOURCE, TARGET
from gan_runtime.commands.commands import Commands
from gan_runtime.domains.flows import evaluation
from gan_runtime.domains.flows.evaluation import NAME, read_fields, tile_of, trajectories
from gan_runtime.domains.flows.rollout_request import Wanted
from gan_runtime.evaluation import requests
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.jobs.picture_job import checkpoints_of
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import trained
from gan_runtime.training.checkpoints import Which

__all__ = ["epochs", "iterable", "iterate", "newest_iteration", "tile_of", "trajectories", "translates"]

ITERATE = NAME


def iterate(commands: Commands, wanted: Wanted) -> JobDir:
    """Asks for a rollout. Raises as `evaluation.requests.request`."""
    values = asdict(wanted)
    return commands.evaluate(values.pop("run_id"), NAME, values)


def translates(home: Home, run_id: str) -> bool:
    """Whether a run's workload reads pictures in pairs, whatever its name is; not that of a run that is gone."""
    try:
        read = read_fields(home, home.run_dir(run_id))
    except GanRuntimeError:
        return False
    return SOURCE in read and TARGET in read


def iterable(home: Home, run_id: str) -> tuple[Which, ...]:
    """The checkpoints from which a run can be iterated here; none for one that has left none, such as an imported one."""
    return tuple(checkpoints_of(home, run_id))


def epochs(home: Home, run_id: str) -> list[int]:
    """The epochs whose weights a run can be iterated with here, in their order; none where what it shows is a moving average."""
    return trained.kept_epochs(RunDir(home.runs / run_id)) if iterable(home, run_id) else []


def usual_steps(home: Home, run_id: str, trajectory: int, start: int) -> int:
    """Steps of an iteration of a run where nobody says how many: of a short film all that it has. UnknownRunError: the run is gone."""
    known = trajectories(home, home.run_dir(run_id))
    there = [film.steps - start for film in known if film.number == trajectory]
    return evaluation.usual_steps(there[0]) if there else evaluation.USUAL_STEPS


def usual_overlap(home: Home, run_id: str) -> int:
    """Pixels that tiles of a run share where nobody says how many. Raises UnknownRunError, and SpecError for options that cannot be read."""
    return evaluation.usual_overlap(tile_of(home.run_dir(run_id)))


def newest_iteration(home: Home, run_id: str) -> JobLook | None:
    """The newest job that iterates or has iterated a run's model; None before the first."""
    return requests.newest_request(home, run_id, NAME)
