"""README.md and docs/: links have targets, commands and SQL are valid, and code is tested.

test_document_commands.py runs the commands.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import typer

from gan_runtime.cli.app import app
from gan_runtime.spec import RunSpec, presets
from gan_runtime.store.store import Store
from tests.support import documents, evaluation_page, guide, preparation_page, python_page
from tests.support.called_modules import WALKED, walks
from tests.support.sources import ROOT, file_of, python_files, text

TREES = {  # blocks without a language that are not commands: page → how they start
    "docs/architecture.md": (" browser", " Field", " a loss", "            submit"),
    "docs/data.md": ("photos/", "$GAN_DATA_DIR"),
    "docs/cluster.md": ("TF_CONFIG=",),
    "docs/adding-a-workload.md": ("WORKLOAD = ",),
    "docs/adding-an-evaluation.md": ("# gan_runtime/catalog/evaluations.py",),
}
PROGRAMS = re.compile(
    r"(?:\.venv/bin/)?python -m (?P<module>[\w.]+)|gan-dashboard |make (?P<target>[\w-]+)"
    r"|pip install|mkdir|echo|srun|GAN_DATA_DIR=\S+ examples/\w+\.sh"
)


def commands() -> list[tuple[Path, str]]:
    return [
        (page, line)
        for page in documents.PAGES
        for block in documents.blocks(page)
        if block.language == "" and not block.code.startswith(TREES.get(page.as_posix(), ("\0",)))
        for line in documents.lines(block)
    ]


COMMANDS = commands()


@pytest.mark.parametrize("page", documents.ALL, ids=str)
def test_every_link_has_a_target(page: Path) -> None:
    broken = []
    for link in documents.links(page):
        if re.match(r"https?://|mailto:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page.parent / name).resolve() if name else ROOT / page
        named = target.exists() and (
            not anchor or anchor in documents.anchors(target.relative_to(ROOT))
        )
        if not named:
            broken.append(link)
    assert broken == []


def test_every_page_ends_with_a_next_link() -> None:
    pages = [page for page in documents.PAGES if page.parts[0] == "docs"]
    assert [
        str(page) for page in pages if "Next: [" not in text(page).strip().splitlines()[-1]
    ] == []


def test_every_documented_command_starts_with_an_existing_program() -> None:
    targets = set(re.findall(r"^([\w-]+):", text(Path("Makefile")), re.MULTILINE))
    wrong = []
    for page, line in COMMANDS:
        match = PROGRAMS.match(line)
        module, target = (match["module"], match["target"]) if match else (None, None)
        if (
            not match
            or (module and importlib.util.find_spec(module) is None)
            or (target and target not in targets)
        ):
            wrong.append(f"{page}: {line}")
    assert len(COMMANDS) > 60
    assert wrong == []


def test_every_documented_command_has_valid_arguments_and_options() -> None:
    program = typer.main.get_command(app)
    for page, line in COMMANDS:
        words = documents.program_words(line)
        if words:
            parsed(program, words, f"{page}: {line}")


def parsed(command: Any, words: list[str], where: str) -> None:
    """Parses the words as the command line does, without running the command."""
    while hasattr(command, "commands"):
        name, *words = words
        assert name in command.commands, where
        command = command.commands[name]
    try:
        context = command.make_context(command.name, words, resilient_parsing=False)
    except Exception as error:
        pytest.fail(f"{where}: {error}")
    if command.name == "train":
        values = (
            presets.PRESETS[context.params["preset"]].values if context.params["preset"] else {}
        )
        assignments = presets.parse_assignments(context.params["assignments"] or [])
        if assignments.get("workload") not in (None, "wgan_gp", "spots_gan"):
            RunSpec.parse({**values, **assignments})


@pytest.mark.parametrize(
    "code",
    [
        block.code
        for page in documents.PAGES
        for block in documents.blocks(page)
        if block.language == "sql"
    ],
)
def test_every_documented_sql_query_runs(code: str) -> None:
    store = Store()
    store.rows(code)
    store.close()


def test_all_documented_python_code_is_tested() -> None:
    """Tests of the guides cover their code; the examples of docs/testing.md are tests."""
    of_guides = {
        *guide.BLOCKS.values(),
        *evaluation_page.BLOCKS.values(),
        *preparation_page.BLOCKS.values(),
        *python_page.FILES.values(),
        python_page.PROGRAM,
    }
    tests = "\n".join(text(path) for path in python_files("tests"))
    for page in documents.PAGES:
        for block in documents.blocks(page):
            if block.language in ("python", "toml") and page.name != "sharing.md":
                body = re.sub(r"^# \S+(?:, in \w+)?\n", "", block.code)
                assert body in of_guides or block.code.strip() in tests, f"{page}: {body[:60]}"


def test_every_file_named_in_a_document_exists() -> None:
    """Checks paths in backticks that start with a folder of the project or of gan_runtime."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."}
    below = {path.name for path in (ROOT / "gan_runtime").iterdir() if path.is_dir()}
    missing = []
    for page in documents.PAGES:
        for name in re.findall(r"`([\w./-]+/[\w.-]+\.\w+)(?:::\w+)?`", text(page)):
            first = name.partition("/")[0]
            # The checkout may also be a home, with a folder `jobs`.
            place = ROOT / "gan_runtime" if first in below else ROOT
            if first in folders | below and not (place / name).exists():
                missing.append(f"{page}: {name}")
    assert missing == []


def test_every_page_named_in_a_comment_exists() -> None:
    """In code, requirements and scripts."""
    files = [Path("Makefile"), *(path.relative_to(ROOT) for path in ROOT.glob("requirements*.txt"))]
    files += [path.relative_to(ROOT) for path in ROOT.glob("*/*.sh")] + python_files()
    missing = [
        f"{path}: {name}"
        for path in files
        if path.parts[0] != "tests"
        for name in re.findall(r"\bdocs/[\w/-]+\.md\b", text(path))
        if not (ROOT / name).exists()
    ]
    assert missing == []


def module_of(name: str) -> str:
    """`store/ingest` → gan_runtime.store.ingest; `catalog/` → gan_runtime.catalog."""
    module = name.rstrip("/").replace("/", ".")
    return module if file_of(module) else f"gan_runtime.{module}"


def test_the_four_walks_list_existing_files_and_count_them_correctly() -> None:
    parts = walks()
    assert len(parts) == 4
    for walk in parts:
        files = [name for name in WALKED.findall(walk) if name != "║"]
        assert [name for name in files if file_of(module_of(name)) is None] == []
        assert len(files) == int(walk.split()[-1]), walk
