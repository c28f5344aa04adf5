"""`evaluate RUN [NAME]`, a command for each older name of an evaluation, `generate`, and
`export-model`.

The options of an evaluation come from its declaration.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from gan_runtime.base import disk, formats, options
from gan_runtime.base.errors import ExportError, TargetError
from gan_runtime.bundles.generator_export import EXPORT, EXPORT_FILE, ExportRequest
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.catalog.evaluations import evaluation, evaluations
from gan_runtime.cli import (
    AssignmentsOption,
    HomeOption,
    JsonOption,
    OverwriteOption,
    RunArgument,
    allowed_values,
    commands,
    following,
    output,
)
from gan_runtime.evaluation import jobs, training_requests
from gan_runtime.evaluation.catalog import EvaluationReport, report_of
from gan_runtime.jobs.image_job import (
    ARRAYS_FILE,
    FILM_FILE,
    GENERATE,
    MOST_IMAGES,
    PICTURE_FILE,
    USUAL_FRAMES,
    ImageRequest,
    seeds_of,
)
from gan_runtime.records.home import Home, command_line
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import presets
from gan_runtime.training.checkpoints import Which
from gan_runtime.training.latents import Layout

SETTABLE = "\n\n".join(
    f"Options for --set of {declared.name}: {allowed_values(options.of(declared.options))}"
    for declared in evaluations().values()
)
FILES = {".png": PICTURE_FILE, ".gif": FILM_FILE, ".npz": ARRAYS_FILE}


def evaluate(
    run: RunArgument,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The evaluation. Default: list those that apply to the run."
        ),
    ] = "",
    assignments: AssignmentsOption = None,
    overwrite: OverwriteOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a trained run and print the result, or list the evaluations that apply to it."""
    folder = Home.choose(home)
    if not name:
        return _list(folder, folder.run_dir(run), as_json)
    values = presets.parse_assignments(assignments or [])
    return evaluate_run(folder, run, evaluation(name), values, overwrite, as_json)


def _list(home: Home, run: RunDir, as_json: bool) -> None:
    applicable = jobs.evaluations_of(home, run)
    if as_json:
        return output.print_json(
            [
                {
                    "name": declared.name,
                    "title": declared.title,
                    "options": list(options.of(declared.options)),
                    "obstacle": obstacle,
                }
                for declared, obstacle in applicable
            ]
        )
    if not applicable:
        return output.say(f"no evaluation applies to run {run.run_id}.")
    table = output.table("name", "title", "options", "why not now")
    for declared, obstacle in applicable:
        names = ", ".join(options.of(declared.options))
        table.add_row(declared.name, declared.title, names, obstacle)
    output.answers().print(table)
    if possible := [declared.name for declared, obstacle in applicable if not obstacle]:
        example = f"{command_line()} evaluate {run.run_id} {possible[0]}{home.flag}"
        output.say(f"Start one: `{example}`")
    return None


def evaluate_run(
    home: Home,
    run_id: str,
    declared: Evaluation,
    values: Mapping[str, Any],
    overwrite: bool,
    as_json: bool,
) -> None:
    """Runs the job of an evaluation, copies its files to the paths in `values`, and prints the
    result.

    Raises:
        TargetError, ExportError: a file cannot be written; then no job starts.
        JobError: the job has failed. Others as `Commands.evaluate`.
    """
    files = {
        name: Path(values[name])
        for name in declared.files
        if _is_path(declared, name, values.get(name))
    }
    for path in files.values():
        with _export_errors(path):
            disk.check_targets([path], overwrite)
    wait_for_the_last_epochs(home, home.run_dir(run_id), declared)
    job = commands(home).evaluate(run_id, declared.name, {**values, **dict.fromkeys(files, "yes")})
    result = following.to_its_end(home, job)
    for name, path in files.items():
        with _export_errors(path), disk.whole_target(path, overwrite) as scratch:
            shutil.copyfile(job.results / declared.files[name], scratch)
    _print(report_of(declared, home, home.run_dir(run_id), result), result, as_json)


def wait_for_the_last_epochs(home: Home, run: RunDir, declared: Evaluation) -> None:
    """Waits until the job that measured an ended run while it trained has finished."""
    newest = jobs.newest_request(home, run.run_id, declared.name)
    if newest is None or not newest.is_live or not training_requests.is_while_training(newest):
        return
    if not following.snapshot_of(home, run).row.is_live:
        output.note(f"job {newest.job.job_id} measures the last epochs: waiting for its end.")
        with following.one_line() as progress:
            following.followed(home, newest.job, progress)


def _print(report: EvaluationReport, result: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        return output.print_json(report.document)
    for warning in result.get("warnings", ()):
        output.note(warning)
    for part in report.parts:
        if isinstance(part, str):
            output.say(part)
        else:
            table = output.table(*part.columns)
            for row in part.rows:
                table.add_row(*row)
            output.answers().print(table)
    return None


def _is_path(declared: Evaluation, name: str, value: Any) -> bool:
    """Whether the value of an option is a path, and not one of its choices."""
    return value is not None and str(value) not in options.of(declared.options)[name].choices


@contextlib.contextmanager
def _export_errors(path: Path) -> Iterator[None]:
    """Raises ExportError when the file system refuses to write the file."""
    try:
        yield
    except OSError as error:
        raise ExportError(
            f"{path} cannot be written ({error.strerror}): choose another place."
        ) from None


def generate(
    run: RunArgument,
    to: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="A .png with all images, a .gif of a strip or a plane, or a .npz of NumPy arrays.",
        ),
    ],
    count: Annotated[
        int, typer.Option(metavar="N", help=f"The number of images: 1 to {MOST_IMAGES}.")
    ] = ImageRequest.count,
    label: Annotated[
        str,
        typer.Option("--class", metavar="NAME", help="The class of the images. Default: all."),
    ] = "",
    seed: Annotated[
        int, typer.Option(metavar="N", help="The same seed generates the same images.")
    ] = 0,
    seeds: Annotated[
        str,
        typer.Option(
            metavar="SEEDS",
            help="A seed for each image instead of --count and --seed, such as 3,17,40-47.",
        ),
    ] = "",
    layout: Annotated[
        Layout,
        typer.Option(
            help="The images of the seeds; a strip from one seed to the next; or a plane through"
            " three seeds."
        ),
    ] = "grid",
    frames: Annotated[
        int | None,
        typer.Option(metavar="N", help="Images per pair of a strip (8), or side of a plane (9)."),
    ] = None,
    truncation: Annotated[
        float,
        typer.Option(metavar="X", help="The largest number of a latent; 0: none."),
    ] = 0.0,
    checkpoint: Annotated[
        Which,
        typer.Option(help="The newest checkpoint, or that of the epoch with the best quality."),
    ] = "newest",
    epoch: Annotated[
        int | None,
        typer.Option(metavar="N", help="An epoch with stored weights instead."),
    ] = None,
    overwrite: OverwriteOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Generate images with a checkpoint of a trained run.

    A background job does it. Ctrl-C cancels it and leaves no files.
    """
    named = seeds_of(seeds) if seeds else []
    request = ImageRequest(
        run,
        count,
        seed,
        label,
        checkpoint,
        epoch,
        named,
        layout,
        USUAL_FRAMES[layout] if frames is None else frames,
        truncation=truncation,
    )
    result = generate_images(Home.choose(home), request, to, overwrite)
    if as_json:
        return output.print_json({**vars(request), **result, "file": to})
    for warning in result["warnings"]:
        output.note(warning)
    images = formats.quantity(result["count"], "image")
    weights = f"its {checkpoint} checkpoint" if epoch is None else f"the weights of epoch {epoch}"
    return output.say(
        f"{to} holds {images} of {run}, from {weights} (after step {result['step']:,})."
    )


def generate_images(
    home: Home, request: ImageRequest, out: Path, overwrite: bool
) -> dict[str, Any]:
    """Writes the file; returns the result of the job.

    Raises:
        TargetError, ExportError: `out` cannot be written; then no job starts.
        JobError: the job has ended without images. Others as `image_job.check`.
    """
    if out.suffix.lower() not in FILES:
        raise TargetError(f"{out} does not end in {' or '.join(FILES)}: choose another name.")
    if out.suffix.lower() == ".gif" and request.layout == "grid":
        raise TargetError(f"{out} needs a strip or a plane: add --layout strip, or write a .png.")
    return _file_of_job(home, GENERATE, request, FILES[out.suffix.lower()], out, overwrite)


def _file_of_job(
    home: Home, kind: str, request: object, file: str, out: Path, overwrite: bool
) -> dict[str, Any]:
    """Runs a job and writes one file of its results to `out`; returns the result of the job.

    Raises:
        TargetError, ExportError: `out` cannot be written; then no job starts.
        JobError: the job has failed. Others as the job's own check.
    """
    with _export_errors(out):
        disk.check_targets([out], overwrite)
        if not out.parent.is_dir():
            raise FileNotFoundError(2, "No such file or directory")
        job = commands(home).request_job(kind, request)
        result = following.to_its_end(home, job)
        with disk.whole_target(out, overwrite) as scratch:
            shutil.copyfile(job.results / file, scratch)
    return result


def export_model(
    run: RunArgument,
    to: Annotated[Path, typer.Option(metavar="FILE", help="The zip file to write.")],
    checkpoint: Annotated[
        Which,
        typer.Option(help="The newest checkpoint, or that of the epoch with the best quality."),
    ] = "newest",
    epoch: Annotated[
        int | None,
        typer.Option(metavar="N", help="An epoch with stored weights instead."),
    ] = None,
    overwrite: OverwriteOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export the generator of a run as Keras file, SavedModel and ONNX.

    The zip has a README that loads each format without this program, example inputs and outputs,
    and a model card. A background job does it. Ctrl-C cancels it and leaves no files.
    """
    folder, request = Home.choose(home), ExportRequest(run, checkpoint, epoch)
    result = _file_of_job(folder, EXPORT, request, EXPORT_FILE, to, overwrite)
    if as_json:
        return output.print_json({**vars(request), **result, "file": to})
    for warning in result["warnings"]:
        output.note(warning)
    return output.say(
        f"{to} holds the model of {run} after step {result['step']:,} as Keras file, SavedModel and"
        f" ONNX, {formats.size(result['bytes'])}."
    )
