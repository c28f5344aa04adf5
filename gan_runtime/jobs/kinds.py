"""The kinds of jobs, as a literal table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """`entry`: module:function that does the work (jobs/task.py says what it is given).

    `turn`: among the jobs of one turn one works at a time; an accelerator's name is the turn of its trainings as well. Empty:
    it starts at once.
    """

    title: str
    entry: str
    turn: str = ""


KINDS: dict[str, Kind] = {
    "prepare_data": Kind("Prepare a data set", "gan_runtime.jobs.data_work:prepare"),
    "survey_data": Kind("Look through pictures", "gan_runtime.jobs.data_work:look_through"),
    "generate": Kind("Generate images", "gan_runtime.jobs.picture_work:generate"),
}
