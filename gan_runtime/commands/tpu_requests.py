"""What may be asked of the TPU's compiler: compile what is not known yet of a plan, and how far that is. Part of `commands`."""

from __future__ import annotations

from gan_runtime.base.errors import AcceleratorError
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.records.actors import Asker, for_operators
from gan_runtime.records.home import Home
from gan_runtime.tpu import check
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.check import Progress
from gan_runtime.tpu.plan import Plan

CHECK = "check_tpu"


@for_operators
def check_on_tpu(home: Home, plan: Plan, *, asker: Asker) -> JobDir | None:
    """Asks for a job that compiles those points of a plan that have no answer yet; None when all have one.

    Raises:
        AcceleratorError: the compiler is not installed here.
        HomeError: the answers cannot be kept.
    """
    if not check.unknown(home, plan):
        return None
    lacking = planning.missing_library()
    if lacking:
        raise AcceleratorError(lacking)
    return job_queue.ask(home, CHECK, check.as_options(home, plan), asker.name)


def live_checks(home: Home, asker: Asker) -> list[JobLook]:
    """The checks that are under way and were asked for by somebody."""
    return [look for look in job_queue.looks(home, CHECK) if look.is_live and look.asked.asker == asker.name]


def newest_check(home: Home, plan: Plan) -> JobLook | None:
    """The newest job that works or has worked through this plan; None before the first."""
    looks = job_queue.looks(home, CHECK)
    return next((look for look in looks if look.asked.options.get("plan") == plan.keys), None)


def progress(home: Home, plan: Plan) -> Progress:
    """How far a check is, and the answers that are known by now, from this one or from others."""
    return check.progress(home, plan, newest_check(home, plan))
