"""Rule 9 of docs/architecture.md: the core names no domain.

Names, strings, comments and docstrings of every file count.

Only a domain's folder, its pages and views, and the tables that list the domains and their pages
can name it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from gan_runtime.catalog.domain import MODULES
from tests.support.sources import ROOT

KINDS = {".py", ".sql", ".css", ".js", ".html"}
OF_DOMAINS = (
    "gan_runtime/domains",
    "dashboard/domains",
)
# Names from version 0.2.0: records and journals on disk. Its public views are in the folders of the
# domains.
OF_THE_RELEASE = ("gan_runtime/records/earlier_records.py", "gan_runtime/records/run_files.py")
# How often a file still names a domain. Only lower these numbers; an unlisted file has none.
STILL: dict[str, int] = {
    "gan_runtime/catalog/domain.py": len(MODULES),  # one folder name per domain
}

WORDS = re.compile(r"showers?|calorimeters?|physics|k[aá]rm[aá]n|pix2pix", re.IGNORECASE)
# The flow of the domain is a whole word or a whole part of a name: flow, flows, FlowScore,
# flow_steps, FLOW. Parts of other words (workflow, overflow, inflow), TensorFlow and the control
# flow of a program do not count.
OTHER_FLOWS = re.compile(r"tensorflow|control[ _]flow", re.IGNORECASE)
PART_OF_A_NAME = re.compile(r"[A-Z]?[a-zá]+|[A-Z]+(?![a-z])")


def domain_words(text: str) -> list[str]:
    """Every word of a text that belongs to a domain, in lowercase."""
    named = [word.lower() for word in WORDS.findall(text)]
    parts = PART_OF_A_NAME.findall(OTHER_FLOWS.sub(" ", text))
    return named + [part.lower() for part in parts if part.lower() in ("flow", "flows")]


def shared_files() -> Iterator[str]:
    """Every source file of the core and of the dashboard's shared parts."""
    for place in ("gan_runtime", "dashboard", "pages", "app.py"):
        paths = [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*"))
        for path in paths:
            name = path.relative_to(ROOT)
            if path.suffix in KINDS and not any(
                name.is_relative_to(folder) for folder in OF_DOMAINS
            ):
                yield name.as_posix()


def test_the_core_names_no_domain() -> None:
    files = [name for name in shared_files() if name not in OF_THE_RELEASE]
    assert len(files) > 200, "this rule looks in the wrong place"
    counts = {name: len(domain_words((ROOT / name).read_text(encoding="utf-8"))) for name in files}
    named = {name: count for name, count in counts.items() if count}
    more = {name: count for name, count in named.items() if count > STILL.get(name, 0)}
    assert more == {}, "these files name a domain"


@pytest.mark.parametrize(
    "text",
    [
        "a shower",
        "SHOWERS",
        "Kármán street",
        "karman_small",
        "Pix2PixOptions",
        "calorimeters",
        "measure_physics",
        "flow",
        "past flows",
        "FlowScore",
        "flow_steps",
        "FLOW",
        "run.flow_journal",
        "MadeOfFlow",
        "iterate-flow",
    ],
)
def test_a_domain_term_is_detected(text: str) -> None:
    assert len(domain_words(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "workflow",
        "overflow-wrap",
        "InflowRate",
        "TensorFlow",
        "tensorflow",
        "the control flow",
        "lower_control_flow",
        "flowing",
        "followed",
        "flower",
        "Physicist",
    ],
)
def test_an_unrelated_term_is_not_detected(text: str) -> None:
    assert domain_words(text) == []
