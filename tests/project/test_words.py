"""No text, document, docstring or comment uses a term that docs/glossary.md forbids.

Texts are string literals with several words: of pages, errors and help. Code, names and URLs in
documents, docstrings and comments do not count.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sources import ROOT, nodes, python_files, text

GLOSSARY = Path("docs/glossary.md")
HELP = Path("gan_runtime/cli")  # the docstrings of its commands are their help
# How many forbidden terms a file still has. Only lower these numbers; an unlisted file has none.
STILL: dict[str, int] = {
    "gan_runtime/records/earlier_records.py": 1,
    "gan_runtime/records/states.py": 5,
}

CODE = re.compile(
    r"```.*?```|`[^`\n]*(?:\n[^`\n]+)?`|\]\([^)\n]*\)|<[^>\n]*>|https?://\S+", re.DOTALL
)
# In docstrings and comments: a command with its options, and quoted literals.
COMMANDS = re.compile(r"^ *(?:\$ )?python -m .*(?:\n +[-\[].*)*|`[^`]*`|\"[^\"\n]*\"", re.MULTILINE)
SQL = re.compile(r"\b(?:SELECT|FROM|WHERE|CREATE|INSERT|UPDATE|DELETE|VALUES|ORDER BY)\b")
PERCENT = r"(?<=\d) %"
MOST_WORDS = 20  # of a sentence, or of a part of one up to a colon or semicolon
ENDS = re.compile(r"(?<=[.!?:;])[\"')*”]*\s+|\n\s*\n|\n[-*|] ?|\n(?=\s*\|)")
ABBREVIATIONS = re.compile(r"\b(et al|Fig|Figs|Nos?)\.")
OF_OTHERS = {  # long sentences that cannot be shortened
    "gan_runtime/studies/references.py": 4,  # quotes of the paper
    "gan_runtime/records/states.py": 1,  # a sentence of an earlier version
}
DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
KINDS = (*DEFINITIONS, ast.Constant, ast.JoinedStr)
PROSE = re.compile(r"[A-Za-z]{2,}[,;:.]? [A-Za-z0]{2,}")


@functools.cache
def forbidden() -> re.Pattern[str]:
    """The forbidden terms of the glossary, and a space before a percent sign."""
    table = text(GLOSSARY).partition("## Words not used")[2]
    rows = re.findall(r"^\| (`.+?) \| ", table, re.MULTILINE)
    words = [word for row in rows for word in re.findall(r"`([^`]+)`", row)]
    words.sort(key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(words)})\b|{PERCENT}", re.IGNORECASE)


def documents() -> list[Path]:
    """Every Markdown document in git, except the glossary."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "*.md"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [Path(name) for name in answer.stdout.split("\n") if name]
    return [path for path in paths if path != GLOSSARY and (ROOT / path).exists()]


def of_document(document: str) -> Iterator[str]:
    """A document without code, names and URLs."""
    yield CODE.sub(" ", document)


def of_module(path: Path) -> Iterator[str]:
    """The string literals of a module that are prose; an f-string has a 0 for each value."""
    of_file = [node for node in nodes(path) if isinstance(node, KINDS)]
    skipped = {id(text) for node in of_file for text in docstrings(node, path)}
    for node in of_file:
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in ast.walk(node) if part is not node}
            parts = [p.value if isinstance(p, ast.Constant) else "0" for p in node.values]
            texts = "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts = node.value
        else:
            continue
        if id(node) not in skipped and PROSE.search(texts) and not SQL.search(texts):
            yield re.sub(r"`[^`\n]*`", " ", texts)


def long_parts(words: str) -> list[str]:
    """The sentences, or parts of sentences, with more than MOST_WORDS words."""
    parts = ENDS.split(ABBREVIATIONS.sub(r"\1", words))
    return [part for part in parts if len(re.findall(r"\S*\w\S*", part)) > MOST_WORDS]


def docstrings(node: ast.AST, path: Path) -> Iterator[ast.AST]:
    """The docstring of a node, unless it is the help of a command."""
    if isinstance(node, DEFINITIONS):
        is_help = path.is_relative_to(HELP) and getattr(node, "decorator_list", [])
        for statement in node.body:
            if isinstance(statement, ast.Expr) and not is_help:
                yield statement.value


def counts() -> dict[str, list[str]]:
    """The forbidden terms of every file that uses any."""
    files = {path: of_document(text(path)) for path in documents()}
    places = python_files("app.py", "pages", "dashboard", "gan_runtime")
    files |= {path: of_module(path) for path in places}
    assert len(files) > 300, "this rule looks in the wrong place"
    words = {
        path.as_posix(): [word for part in parts for word in forbidden().findall(part)]
        for path, parts in files.items()
    }
    return {path: several for path, several in words.items() if several}


def of_reader(path: Path) -> Iterator[str]:
    """The docstrings and comments of a module."""
    for node in nodes(path):
        if isinstance(node, DEFINITIONS) and (docstring := ast.get_docstring(node)):
            yield COMMANDS.sub(" ", docstring)
    for token in tokenize.generate_tokens(io.StringIO(text(path)).readline):
        if token.type == tokenize.COMMENT:
            yield COMMANDS.sub(" ", token.string)


def test_no_docstring_or_comment_uses_a_forbidden_term() -> None:
    places = python_files("app.py", "pages", "dashboard", "gan_runtime", "benchmarks")
    words = {
        path.as_posix(): [word for part in of_reader(path) for word in forbidden().findall(part)]
        for path in places
    }
    more = {path: several for path, several in words.items() if several}
    assert more == {}, "docs/glossary.md says what to write"


def test_code_in_docstrings_and_comments_is_ignored(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""It stands here.\n\npython -m tool picture\n    [--picture PATH]\n"""\n'
        'PLACE = "beside"  # gone, `told`\n',
        encoding="utf-8",
    )
    words = [word for part in of_reader(module) for word in forbidden().findall(part)]
    assert words == ["stands", "gone"]


def test_no_text_or_document_uses_a_forbidden_term() -> None:
    more = {path: words for path, words in counts().items() if len(words) > STILL.get(path, 0)}
    assert more == {}, "docs/glossary.md says what to write"


def test_no_sentence_is_longer_than_twenty_words() -> None:
    places = python_files("app.py", "pages", "dashboard", "gan_runtime")
    parts = {
        path.as_posix(): [part for words in of_module(path) for part in long_parts(words)]
        for path in places
    }
    more = {path: long for path, long in parts.items() if len(long) > OF_OTHERS.get(path, 0)}
    assert more == {}


def test_a_long_sentence_is_detected_but_short_ones_are_not() -> None:
    short = "One two three four five six seven eight nine ten eleven"
    assert len(long_parts(f"{short} and {short}")) == 1
    assert long_parts(f"{short}. {short}; {short}: {short}") == []
    assert long_parts(f"{short}, Krizhevsky et al. 2014, {short}") != []


@pytest.mark.parametrize(
    "sentence", ["It stands beside the list.", "95 % of a person", "The store is gone"]
)
def test_a_forbidden_term_is_detected(sentence: str) -> None:
    assert len(forbidden().findall(sentence)) == 2


@pytest.mark.parametrize("sentence", ["Open the image: 95% is next to it.", "bestsides outstands"])
def test_a_plain_sentence_has_no_forbidden_term(sentence: str) -> None:
    assert forbidden().findall(sentence) == []


def test_code_and_urls_in_a_document_are_ignored() -> None:
    page = "`beside` [image](picture.png)\n```\ntold\n```\nhttps://x.org/aside"
    assert forbidden().findall("".join(of_document(page))) == []
