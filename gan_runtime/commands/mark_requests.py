"""What a person may make of a run: tags, a note, pinned or not, hidden or not. Part of `commands`."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from gan_runtime.base.errors import FieldError, SpecError, quoted
from gan_runtime.records import journal
from gan_runtime.records.actors import Asker, for_operators
from gan_runtime.records.columns import MAX_REMARK, MAX_TAGS
from gan_runtime.records.journal import Marked
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import latest_status

_ALLOWED = {
    "tags": f"up to {MAX_TAGS} tags, each of up to 40 letters, digits, '.', '_', '-' and spaces between them",
    "remark": f"up to {MAX_REMARK:,} characters that can be seen",
}
_NAMED = {"tags": "tags", "remark": "note"}


@for_operators
def mark(
    run: RunDir,
    *,
    tags: Sequence[str] | None = None,
    remark: str | None = None,
    pinned: bool | None = None,
    hidden: bool | None = None,
    asker: Asker,
) -> None:
    """Changes what is not None: `tags` are all of them, `remark` a note of some lines. A pinned run stands first and is not deleted; a
    hidden one is left out of lists.

    Raises:
        SpecError: a tag or the note is too long, or has odd characters; nothing is changed.
        HomeError: the home cannot be written.
    """
    wanted = None if tags is None else [tag.strip() for tag in tags]
    given = {"tags": wanted, "remark": remark}
    try:
        record = Marked(tags=wanted, remark=remark, pinned=pinned, hidden=hidden, asker=asker.name)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise SpecError([_refused(name, given[name])]) from None
    journal.append(run.supervisor_journal, latest_status(run).attempt, record)
    run.announce()


def _refused(name: str, given: object) -> FieldError:
    return FieldError(
        _NAMED[name],
        f"{_NAMED[name]} {'are' if name == 'tags' else 'is'} {quoted(given)}, but allowed are {_ALLOWED[name]}.",
    )
