"""docs/reference/: the pages are current and describe every view."""

from __future__ import annotations

import pytest

from scripts.reference import columns, pages

NOT_PUBLIC = {"runs_live"}  # only for the supervisor


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return pages.pages()


@pytest.mark.parametrize("name", ["options.md", "metrics.md", "sql.md", "commands.md"])
def test_a_page_of_the_reference_is_current(written: dict[str, str], name: str) -> None:
    page = (pages.FOLDER / name).read_text(encoding="utf-8")
    assert page == written[name], "run make docs"


def test_the_reference_describes_exactly_the_public_views() -> None:
    assert set(columns.VIEWS) == set(pages.view_columns()) - NOT_PUBLIC


def test_described_columns_exist() -> None:
    existing = pages.view_columns()
    described = {
        (view, column)
        for view, about in columns.VIEWS.items()
        for names in about.meanings
        for column in names.split()
    }
    assert {(v, column) for v, column in described if column not in existing[v]} == set()
