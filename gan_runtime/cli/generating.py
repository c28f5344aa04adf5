"""`generate`: asks for the job that makes images with a trained run, waits for its end, and copies what it made."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from gan_runtime.base import output_files
from gan_runtime.base.errors import ExportError, TargetError
from gan_runtime.cli import output, progress_line
from gan_runtime.cli.arguments import HomeOption, JsonOption, OverwriteOption, RunArgument, commands
from gan_runtime.jobs.picture_job import ARRAYS_FILE, GENERATE, MOST_IMAGES, PICTURE_FILE, Wanted
from gan_runtime.records.home import Home
from gan_runtime.training.checkpoints import Which

FILES = {".png": PICTURE_FILE, ".npz": ARRAYS_FILE}


def generate(
    run: RunArgument,
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="A .png for one picture of all, or a .npz for NumPy arrays."),
    ],
    count: Annotated[int, typer.Option(metavar="N", help=f"How many: 1 to {MOST_IMAGES}.")] = Wanted.count,
    label: Annotated[
        str, typer.Option("--class", metavar="NAME", help="Of this class alone, where the run has classes.")
    ] = "",
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same images.")] = 0,
    checkpoint: Annotated[
        Which, typer.Option(help="'best': of the epoch whose images were hardest to tell from real ones.")
    ] = "newest",
    overwrite: OverwriteOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make more images with a trained run, from one of its checkpoints. Ctrl-C leaves nothing half-made."""
    wanted = Wanted(run, count, seed, label, checkpoint)
    result = made(Home.choose(home), wanted, out, overwrite)
    if as_json:
        return output.print_json({**vars(wanted), **result, "file": out})
    for warning in result["warnings"]:
        output.note(warning)
    return output.say(
        f"{out} holds {count} images of {run}, by its {checkpoint} checkpoint (after step {result['step']:,})."
    )


def made(home: Home, wanted: Wanted, out: Path, overwrite: bool) -> dict[str, Any]:
    """Writes the file; returns what the job found.

    Raises:
        TargetError, ExportError: nothing may be written to `out`; then nothing is asked for.
        JobError: the job has ended without images. Others as `picture_job.check`.
    """
    if out.suffix.lower() not in FILES:
        raise TargetError(f"{out} does not end in {' or '.join(FILES)}: choose another name.")
    try:
        output_files.check([out], overwrite)
        if not out.parent.is_dir():
            raise FileNotFoundError(2, "No such file or directory")
        job = commands(home).request_job(GENERATE, wanted)
        result = progress_line.to_its_end(home, job)
        with output_files.whole_file(out, overwrite) as aside:
            shutil.copyfile(job.results / FILES[out.suffix.lower()], aside)
    except OSError as error:
        raise ExportError(f"{out} cannot be written ({error.strerror}): choose another place.") from None
    return result
