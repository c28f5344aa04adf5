"""`physics`: asks for the job that measures a run's showers, waits for its end, and prints the scores."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gan_runtime.base import output_files
from gan_runtime.base.errors import ExportError, JobError
from gan_runtime.cli import output, progress_line, tables
from gan_runtime.cli.arguments import HomeOption, JsonOption, OverwriteOption, RunArgument, commands
from gan_runtime.domains.showers import physics_requests
from gan_runtime.domains.showers.requests import SUBMISSION_FILE, Measured, Wanted
from gan_runtime.domains.showers.score_metrics import SCORES, value_words
from gan_runtime.domains.showers.score_metrics import Score as ShowerScore
from gan_runtime.evaluation.answers import answers_of
from gan_runtime.jobs.folder import JobDir
from gan_runtime.records.answer import Answer, Score
from gan_runtime.records.home import Home


def physics(
    run: RunArgument,
    checkpoint: Annotated[
        Measured | None,
        typer.Option(help="Which of the run's; 'every': the weights after each epoch, where they were kept."),
    ] = None,
    showers: Annotated[int, typer.Option(metavar="N", help="How many are compared.")] = Wanted.showers,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same showers.")] = 0,
    submission: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the generated showers as a submission to the CaloChallenge (HDF5).",
        ),
    ] = None,
    overwrite: OverwriteOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the showers that a trained run generates, beside real ones. The Physics page draws what was measured."""
    chosen = Home.choose(home)
    there = physics_requests.measurable(chosen, chosen.run_dir(run).run_id)
    picked = checkpoint or ("best" if "best" in there else "newest")
    wanted = Wanted(run, picked, showers, seed, submission is not None)
    job, result = _done(chosen, wanted, submission, overwrite)
    measured = answers_of(chosen.run_dir(run), "physics")
    if not measured:
        raise JobError(f"job {job.job_id} has written no measurement: look into {job.log}.")
    if as_json:
        return output.print_json(
            {"run_id": run, **result, "scores": [_document(score) for score in measured[-1].scores]}
        )
    for warning in result["warnings"]:
        output.note(warning)
    return _print(run, measured[-1])


def _done(
    home: Home, wanted: Wanted, submission: Path | None, overwrite: bool
) -> tuple[JobDir, dict[str, Any]]:
    """The job, and what it found.

    Raises:
        TargetError, ExportError: nothing may be written to `submission`; then nothing is asked for.
        JobError: the job has ended without a measurement. Others as `Commands.evaluate`.
    """
    if submission:
        with _blamed(submission):
            output_files.check([submission], overwrite)
    job = physics_requests.measure_physics(commands(home), wanted)
    result = progress_line.to_its_end(home, job)
    if submission:
        with _blamed(submission), output_files.whole_file(submission, overwrite) as aside:
            shutil.copyfile(job.results / SUBMISSION_FILE, aside)
    return job, result


@contextlib.contextmanager
def _blamed(submission: Path) -> Iterator[None]:
    """Raises ExportError for what the file system refuses."""
    try:
        yield
    except OSError as error:
        raise ExportError(
            f"{submission} cannot be written ({error.strerror}): choose another place."
        ) from None


def _document(score: Score) -> dict[str, Any]:
    return score.model_dump(include={"name", "value", "error", "floor", "floor_error"})


def _print(run: str, measured: Answer) -> None:
    """A table of the scores, the last checkpoint's where several were measured."""
    known = {score.name: score for score in SCORES}
    rows = [_row(known[one.name], one, measured) for one in measured.scores if one.name in known]
    output.say(
        f"{run} after epoch {measured.epoch} ({measured.checkpoint}), {measured.facts['showers']:,} showers:"
    )
    table = tables.table("Score", "Generated", "Real ones among themselves")
    for row in rows:
        table.add_row(*row)
    output.answers().print(table)


def _row(score: ShowerScore, one: Score, measured: Answer) -> tuple[str, str, str]:
    sides = ((one.value, one.error), (one.floor, one.floor_error))
    generated, real = (
        value_words(score, *side, measured.facts["showers"], measured.facts["grid"][2]) for side in sides
    )
    return score.title, generated, real
