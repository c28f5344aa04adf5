"""What a bundle may hold, and how much of it.

bundle.json                            {"format": 2, "program": "0.2.0"}; the first bundles have
none
quick-0007/spec.json                   the options
quick-0007/journal-supervisor.jsonl    the journals, without names of hosts and folders
quick-0007/samples/samples-00001.png   the pictures: their kind, and the epoch; epoch-00001.png in
older runs
quick-0007/…/rollout-0001-naive.npz   the films of its rollouts, unless they were left out
"""

from __future__ import annotations

import collections
import re
import zipfile
from pathlib import Path

from gan_runtime.base.errors import JournalError, RunStateError, SpecError
from gan_runtime.catalog.domains import DOMAINS
from gan_runtime.records import film_files, journal
from gan_runtime.records import sample_files as pictures
from gan_runtime.records.earlier_kinds import FILMS_FOLDER
from gan_runtime.records.home import SHARE, SUBMITTED_NAME
from gan_runtime.records.journal import ENDED
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import latest_status

MANIFEST = "bundle.json"
FORMAT = 4  # with answers; raised when a program of today could not read what a later one packs
MAX_BYTES = 2_000_000_000  # unpacked, so that a wrong file cannot fill the disk
# of all films, whose files are packed once more: looking through them takes some 10 s
MAX_FILM_BYTES = 2_000_000_000
MAX_MEMBERS = 100_000
# Unpacked over packed, of a file of more than RATIO_BYTES. Journals of trainings come to 6; what
# comes to hundreds measures nothing.
MAX_RATIO, RATIO_BYTES = 100, 1_000_000
_FILES = re.compile(
    r"(?P<spec>spec\.json)|(?P<decisions>journal-(?:supervisor|launcher)\.jsonl)|(?P<journal>journal-[a-z0-9]{1,20}\.jsonl)|samples/(?P<picture>[a-z][a-z0-9_]{0,39}-[0-9]{5,9}\.png)"
    rf"|{FILMS_FOLDER}/(?P<film>{film_files.FILE_NAME.pattern})"
)
_MAX_BYTES_OF = {
    "manifest": 10_000,
    "spec": 100_000,
    "decisions": 20_000_000,  # of owner and launcher; those of an hour take some kilobytes
    "journal": 1_000_000_000,
    "picture": pictures.MAX_BYTES,
    "film": film_files.MAX_BYTES,
}


def examples() -> list[Path]:
    """The bundles that come with the project; none where a copy of it lacks them."""
    names = ("paper", *(name for domain in DOMAINS for name in domain.examples))
    return [file for file in map(example, names) if file.exists()]


def example(name: str) -> Path:
    """The file of one of them."""
    return SHARE / "examples" / f"{name}.zip"


def most_bytes(name: str) -> int | None:
    """How large a member of that name may be, unpacked; None when it belongs into no bundle."""
    if name == MANIFEST:
        return _MAX_BYTES_OF["manifest"]
    run_id, _, file = name.partition("/")
    known = _FILES.fullmatch(file) if SUBMITTED_NAME.fullmatch(run_id) else None
    return _MAX_BYTES_OF[str(known.lastgroup)] if known else None


def is_bloated(member: zipfile.ZipInfo) -> bool:
    """Whether a small file would become a large one that says next to nothing."""
    return member.file_size > max(RATIO_BYTES, MAX_RATIO * member.compress_size)


def is_whole(run: RunDir) -> bool:
    """Whether the run has readable options, journals, and a history from its creation to an end."""
    try:
        run.spec()
        for path in run.journals():
            collections.deque(journal.chunks(path), maxlen=0)
        first = journal.first(run.supervisor_journal)
        return isinstance(first, journal.Created) and latest_status(run).status in ENDED
    except (SpecError, RunStateError, JournalError, OSError, ValueError):
        return False
