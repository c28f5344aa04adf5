"""`mark`: what a person makes of runs: tags, a note, pinned or not, hidden or not."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from gan_runtime.cli import output
from gan_runtime.cli.arguments import HomeOption, JsonOption, commands
from gan_runtime.records import tags_and_notes
from gan_runtime.records.home import Home


def mark(
    run: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids of runs; `runs` lists them.")],
    tag: Annotated[
        list[str] | None, typer.Option("--tag", metavar="TAG", help="Add it; may be repeated.")
    ] = None,
    untag: Annotated[
        list[str] | None, typer.Option("--untag", metavar="TAG", help="Take it away; may be repeated.")
    ] = None,
    note: Annotated[
        str | None, typer.Option("--note", metavar="TEXT", help="Takes the place of the note; '' removes it.")
    ] = None,
    pin: Annotated[
        bool | None, typer.Option("--pin/--unpin", help="First in lists, and not to be deleted.")
    ] = None,
    hide: Annotated[bool | None, typer.Option("--hide/--unhide", help="Left out of lists.")] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tag, note, pin or hide runs; without options say how they are marked."""
    chosen = Home.choose(home)
    folders = [chosen.run_dir(run_id) for run_id in dict.fromkeys(run)]
    for folder in folders if any(one is not None for one in (tag, untag, note, pin, hide)) else ():
        own = [one for one in tags_and_notes.of_run(folder).tags if one not in (untag or ())]
        tags = None if tag is None and untag is None else [*own, *(tag or ())]
        commands(chosen).mark([folder.run_id], tags=tags, remark=note, pinned=pin, hidden=hide)
    found = {folder.run_id: tags_and_notes.of_run(folder) for folder in folders}
    if as_json:
        return output.print_json({run_id: asdict(one) for run_id, one in found.items()})
    for run_id, one in found.items():
        kinds = [name for name in ("pinned", "hidden") if getattr(one, name)]
        said = ", ".join([*kinds, *(f"#{tag}" for tag in one.tags)]) or "no marks"
        output.say(f"{run_id}: {said}{f' – {one.remark}' if one.remark else ''}")
    return None
