"""`evaluate RUN [NAME]`, a command for each older name of an evaluation, and `generate`: what is
asked of a trained run.

Options of an evaluation come from its declaration.
"""

from __future__ import annotations

import contextlib
import inspect
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin

import typer

from gan_runtime.base import options, output_files
from gan_runtime.base.errors import ExportError, TargetError
from gan_runtime.base.options import Option
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.cli import following, output, tables
from gan_runtime.cli.arguments import (
    AssignmentsOption,
    HomeOption,
    JsonOption,
    OverwriteOption,
    RunArgument,
    commands,
)
from gan_runtime.evaluation import requests
from gan_runtime.evaluation.catalog import Report, evaluation, evaluations, report_of
from gan_runtime.jobs.picture_job import ARRAYS_FILE, GENERATE, MOST_IMAGES, PICTURE_FILE, Wanted
from gan_runtime.records.home import Home, command_line
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import presets
from gan_runtime.training.checkpoints import Which

SETTABLE = "\n\n".join(
    f"Options for --set of {declared.name}: "
    + "; ".join(
        f"{option.name}: {option.allowed}" for option in options.of(declared.options).values()
    )
    for declared in evaluations().values()
)


def evaluate(
    run: RunArgument,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Which evaluation; without it those that apply are listed."
        ),
    ] = "",
    assignments: AssignmentsOption = None,
    overwrite: OverwriteOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a trained run by one of its evaluations, and print what was found; or list
    those that apply to it.
    """
    chosen = Home.choose(home)
    if not name:
        return _listed(chosen, chosen.run_dir(run), as_json)
    given = presets.parse_assignments(assignments or [])
    return make(chosen, run, evaluation(name), given, overwrite, as_json)


def _listed(home: Home, run: RunDir, as_json: bool) -> None:
    known = requests.evaluations_of(home, run)
    if as_json:
        return output.print_json(
            [
                {
                    "name": each.name,
                    "title": each.title,
                    "options": list(options.of(each.options)),
                    "why_not": why,
                }
                for each, why in known
            ]
        )
    if not known:
        return output.say(f"no evaluation applies to run {run.run_id}.")
    table = tables.table("name", "title", "options", "why not now")
    for each, why in known:
        table.add_row(each.name, each.title, ", ".join(options.of(each.options)), why)
    output.answers().print(table)
    return output.say(
        f"Make one: `{command_line()} evaluate {run.run_id} {known[0][0].name}{home.flag}`"
    )


def make(
    home: Home,
    run_id: str,
    asked: Evaluation,
    given: Mapping[str, Any],
    overwrite: bool,
    as_json: bool,
) -> None:
    """Asks for the job, waits for its end, copies the files that were asked for, and prints what
    was found.

    Raises:
        TargetError, ExportError: nothing may be written to a file that was named; then nothing is
        asked for.
        JobError: the job has failed. Others as `Commands.evaluate`.
    """
    files = {
        name: Path(given[name]) for name in asked.files if _is_path(asked, name, given.get(name))
    }
    for path in files.values():
        with _blamed(path):
            output_files.check([path], overwrite)
    values = {**given, **dict.fromkeys(files, "yes")}
    job = commands(home).evaluate(run_id, asked.name, values)
    result = following.to_its_end(home, job)
    for name, path in files.items():
        with _blamed(path), output_files.whole_file(path, overwrite) as aside:
            shutil.copyfile(job.results / asked.files[name], aside)
    _print(report_of(asked, home, home.run_dir(run_id), result), result, as_json)


def _print(report: Report, result: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        return output.print_json(report.document)
    for warning in result.get("warnings", ()):
        output.note(warning)
    for part in report.parts:
        if isinstance(part, str):
            output.say(part)
        else:
            table = tables.table(*part.columns)
            for row in part.rows:
                table.add_row(*row)
            output.answers().print(table)
    return None


def _is_path(asked: Evaluation, name: str, value: Any) -> bool:
    """Whether a file was named for an option that is else one of its choices."""
    return value is not None and str(value) not in options.of(asked.options)[name].choices


@contextlib.contextmanager
def _blamed(path: Path) -> Iterator[None]:
    """Raises ExportError for what the file system refuses."""
    try:
        yield
    except OSError as error:
        raise ExportError(
            f"{path} cannot be written ({error.strerror}): choose another place."
        ) from None


def aliases() -> dict[str, Callable[..., None]]:
    """A command for each older name of an evaluation: `surface RUN --size 21` for `evaluate
    RUN loss_surface --set size=21`.
    """
    return {
        name: _alias(declared, name)
        for declared in evaluations().values()
        for name in declared.aliases
    }


def _alias(declared: Evaluation, name: str) -> Callable[..., None]:
    known = options.of(declared.options)

    def command(**given: Any) -> None:
        values = {option: given[option] for option in known if given[option] not in (None, [])}
        overwrite = given.get("overwrite", False)
        make(
            Home.choose(given["home"]), given["run"], declared, values, overwrite, given["as_json"]
        )

    annotations: dict[str, Any] = {"run": RunArgument}
    annotations |= {option.name: _annotation(option, declared) for option in known.values()}
    annotations |= {"overwrite": OverwriteOption} if declared.files else {}
    annotations |= {"home": HomeOption, "as_json": JsonOption}
    defaults = {"run": inspect.Parameter.empty, "overwrite": False, "as_json": False}
    parameters = [
        inspect.Parameter(
            each, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(each), annotation=annotation
        )
        for each, annotation in annotations.items()
    ]
    command.__name__, command.__doc__ = (
        name,
        f"{declared.summary} As `evaluate RUN {declared.name}`.",
    )
    command.__annotations__ = annotations
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def _annotation(option: Option, declared: Evaluation) -> Any:
    """The option as Typer reads it; None where it is not given."""
    field = declared.options.model_fields[option.name].annotation
    flag = f"--{option.name.replace('_', '-')}"
    if option.name in declared.files:
        return Annotated[Path | None, typer.Option(flag, metavar="FILE", help=option.help)]
    if get_origin(field) is tuple:  # several values: --way naive --way whole
        many = f"{option.help} May be given again."
        return Annotated[
            list[str] | None, typer.Option(flag.removesuffix("s"), metavar="NAME", help=many)
        ]
    if option.choices:
        return Annotated[Literal[option.choices] | None, typer.Option(flag, help=option.help)]  # type: ignore[valid-type]
    kind: Any = int if option.kind is str and option.minimum is not None else option.kind
    return Annotated[kind | None, typer.Option(flag, metavar="N", help=option.help)]


FILES = {".png": PICTURE_FILE, ".npz": ARRAYS_FILE}


def generate(
    run: RunArgument,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="A .png for one picture of all, or a .npz for NumPy arrays."
        ),
    ],
    count: Annotated[
        int, typer.Option(metavar="N", help=f"How many: 1 to {MOST_IMAGES}.")
    ] = Wanted.count,
    label: Annotated[
        str,
        typer.Option(
            "--class", metavar="NAME", help="Of this class alone, where the run has classes."
        ),
    ] = "",
    seed: Annotated[
        int, typer.Option(metavar="N", help="The same seed gives the same images.")
    ] = 0,
    checkpoint: Annotated[
        Which,
        typer.Option(help="'best': of the epoch whose images were hardest to tell from real ones."),
    ] = "newest",
    overwrite: OverwriteOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make more images with a trained run, from one of its checkpoints.

    Ctrl-C leaves nothing half-made.
    """
    wanted = Wanted(run, count, seed, label, checkpoint)
    result = made(Home.choose(home), wanted, out, overwrite)
    if as_json:
        return output.print_json({**vars(wanted), **result, "file": out})
    for warning in result["warnings"]:
        output.note(warning)
    return output.say(
        f"{out} holds {count} images of {run}, by its {checkpoint} checkpoint (after step"
        f" {result['step']:,})."
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
        result = following.to_its_end(home, job)
        with output_files.whole_file(out, overwrite) as aside:
            shutil.copyfile(job.results / FILES[out.suffix.lower()], aside)
    except OSError as error:
        raise ExportError(
            f"{out} cannot be written ({error.strerror}): choose another place."
        ) from None
    return result
