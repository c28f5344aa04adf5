"""Hostile URLs: every page answers with a message, and shows their content only as text."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from gan_runtime.hardware.hosts import Host
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.studies.design import StudyDesign
from tests.hostile.cases import kinds
from tests.pages import whole_page
from tests.pages.test_hostile_names import ESCAPED, page_texts
from tests.support.asking import ask
from tests.support.sources import ROOT, python_files

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]

# A lone surrogate is not valid Unicode: a browser sends the replacement character instead.
LINKS = [re.sub("[\ud800-\udfff]", "\ufffd", text) for text in dict(kinds())["deep links"].values()]
MORE_THAN_TEXT = re.compile(
    r"\]\(http|https?://evil|www\.evil|<img|<script|:material/home:|:red\[", re.IGNORECASE
)
MOST_LETTERS = 3_000  # per element: a URL of 10,000 is not shown in full
# Pages whose parameter is read by the same function share the links.
READ = [
    (page, name, slice(place, None, len(pages)))
    for name, pages in (
        ("run", ("run",)),
        ("run", ("tpu", "gpu")),
        ("run", ("studies/xla", "studies/precision")),
        ("tab", ("run", "studies", "launch", "compare")),
        ("study", ("studies",)),
        ("runs", ("compare",)),
    )
    for place, page in enumerate(pages)
]
BOUND = ("x", "smoothing", "y", "by")  # parameters bound to the controls of Compare
PAIR = "quick-0001,quick-0002"


def is_text(app: AppTest) -> None:
    """Checks for no exception, and that the URL appears only as text, and not too much of it."""
    assert not app.exception
    shown_here = [
        (kind, text)
        for kind, text in page_texts(whole_page.tree(app))
        if not text.startswith("<style>")
    ]
    texts = [text if kind == "Html" else ESCAPED.sub("", text) for kind, text in shown_here]
    assert [text for text in texts if MORE_THAN_TEXT.search(text)] == []
    assert max(map(len, texts), default=0) < MOST_LETTERS


def open_with_all(app: AppTest, name: str, links: list[str] = LINKS) -> None:
    """Opens the links one after the other, in one session."""
    for link in links:
        app.query_params[name] = link
        is_text(app.run())


def test_these_tests_cover_every_query_parameter_that_pages_read() -> None:
    sources = [
        (ROOT / path).read_text(encoding="utf-8")
        for path in python_files("app.py", "pages", "dashboard")
    ]
    read = {
        name
        for source in sources
        for name in re.findall(r"query_params(?:\.get\(|\[)\"(\w+)\"", source)
    }
    assert read == {name for _, name, _ in READ} - {"tab"}, "and TAB of address.py"


@pytest.mark.parametrize(("page", "name", "part"), READ)
def test_a_hostile_address_is_shown_only_as_text(
    show: Show, trained: Make, home: Home, host: Host, page: str, name: str, part: slice
) -> None:
    if page in ("run", "studies"):  # with queued runs, which are drawn quickly
        design = StudyDesign.parse("batch_size", {"workload": "mlp_gan"}, ["64", "128"], 1)
        ask(home, host).submit_study(design)
    else:
        trained("quick-0001")
    open_with_all(show(page), name, LINKS[part])


def picker_of(page: str) -> None:
    """The part of a slow page that reads the URL."""
    from dashboard.frame import session
    from dashboard.studies import variants_view

    runtime = session.runtime()
    variants_view.pick_set(runtime.store, page)


@pytest.mark.parametrize("page", ["xla"])
def test_a_hostile_address_falls_back_to_stored_runs(show: Show, trained: Make, page: str) -> None:
    for number, xla in ((1, "off"), (2, "jit")):
        run = trained(f"quick-000{number}", seconds=number, xla=xla)
        journal.append(
            run.trainer_journal(), 1, journal.PhaseSeconds(phase="steady_step", seconds=0.1)
        )
    show("runs")
    app = AppTest.from_function(picker_of, args=(page,))
    open_with_all(app, "run")
    assert app.selectbox[0].value


def test_a_hostile_address_leaves_controls_at_their_defaults(show: Show, trained: Make) -> None:
    """Each session uses another link for each control, as only a new session reads them."""
    for number in (1, 2):
        trained(f"quick-000{number}", seconds=number)
    assert (
        show("compare", tab="curves", runs=PAIR, smoothing="Strong")
        .selectbox(key="smoothing")
        .value
        == "strong"
    )
    usual = ["step", "light", "auto", "each run"]
    for place in range(0, len(LINKS), len(BOUND)):
        query = dict(zip(BOUND, LINKS[place:], strict=False))
        app = show("compare", tab="curves", runs=PAIR, **query)
        is_text(app)
        assert [app.selectbox(key=name).value for name in BOUND] == usual
        assert not set(query) & set(app.query_params), "the address is put right"


def test_compare_opens_the_run_in_the_address(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    assert show("compare", run="quick-0001").multiselect(key="compare.runs").value == ["quick-0001"]
    app = show("compare", run="quick-0009")
    assert "Not stored here: quick-0009." in [warning.value for warning in app.warning]
