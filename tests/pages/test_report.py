"""The report about runs: one self-contained HTML file that fetches nothing."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import words
from dashboard.compare import report
from gan_runtime.base.errors import ExportError
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Renamed, StudyPlace
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import ingest, queries
from tests.pages.hostile import TEXTS
from tests.support import measured_images

Make = Callable[..., RunDir]
FORBIDDEN = ("src", "href", "action", "data", "poster", "srcset", "background")


@pytest.fixture(autouse=True)
def few_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits curves: checking a chart against the Vega-Lite schema takes longer than the report."""
    monkeypatch.setattr(report, "MOST_CURVES", 2)


class Parts(HTMLParser):
    """Headings, cells, scripts and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.cells: list[str] = []
        self.texts: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append((tag, dict(attrs)))
        self.tags.append(tag)
        self.addresses += [str(value) for name, value in attrs if name in FORBIDDEN]

    def handle_endtag(self, _tag: str) -> None:
        self._open.append(("", {}))

    def handle_data(self, data: str) -> None:
        if not self._open:
            return
        tag, attributes = self._open[-1]
        if tag == "h2":
            self.headings.append(data)
        if tag in ("td", "th"):
            self.cells.append(data)
        if tag == "script":
            self.scripts.append((attributes, data))
        else:
            self.texts.append(data)


def report_about(home: Home, *run_ids: str) -> tuple[str, Parts]:
    store = ingest.store_of(home)
    text = report.report(store, [queries.run(store, run_id) for run_id in run_ids])
    return text, Parts(text)


def drawings(parts: Parts) -> list[dict[str, Any]]:
    """The specifications of the report's charts."""
    text = next(text for attributes, text in parts.scripts if attributes.get("id") == "charts")
    specifications: list[dict[str, Any]] = json.loads(text)
    return specifications


def test_a_report_shows_results_quality_curves_samples_and_options(
    home: Home, trained: Make
) -> None:
    first = trained("quick-0001", losses=(0.9, 1.1))
    trained("quick-0002", losses=(0.8, 1.2), seconds=10, seed=7)
    measured = measured_images.answer(2, fcd=4.0, kcd=0.5, warning="Compare with care.")
    journal.append(first.evaluations_journal, 1, measured)
    document, parts = report_about(home, "quick-0001", "quick-0002")
    sentence = (
        "quick-0001 after epoch 2 (898 images). Classifier ce7f46d27d5b3506: 99.4% accurate."
        " Seed 0, protocol 1. Compare with care.</p>"
    )
    assert sentence in document
    assert re.search(r"Not drawn: [1-9]\d* more recorded numbers\.</p>", document)
    assert parts.headings == [
        "Final numbers",
        "Quality of images",
        "Curves",
        "Samples",
        "Options that differ",
    ]
    assert {"0.900", "1.100", "0.800", "1.200"} <= set(parts.cells)
    assert "0.5 (0.3 to 0.7) · real 0.001" in parts.cells
    assert "4 (3 to 5) · real 1 · noise 90" in parts.cells
    assert {"Seed", "7"} <= set(parts.cells)
    for spec in drawings(parts):
        assert f"<p class='note'>{html.escape(spec['description'])}</p>" in document
    losses = next(spec for spec in drawings(parts) if spec["title"] == "Generator loss")
    assert {(row["run"], row["mean"]) for row in losses["datasets"]["rows"]} == {
        ("quick-0001", 0.9),
        ("quick-0002", 0.8),
    }
    zoom = next(param for param in losses["params"] if param["name"] == "zoom")
    assert zoom["bind"] == "scales"
    assert [address[:22] for address in parts.addresses] == ["data:image/png;base64,"] * 2


def test_a_report_keeps_score_names_next_to_a_run_named_score(home: Home, trained: Make) -> None:
    run = trained("quick-0001", name="Score")
    journal.append(run.evaluations_journal, 1, measured_images.answer(2, fcd=4.0))
    _, parts = report_about(home, "quick-0001")
    scores = parts.cells[parts.cells.index("Score (run)") - 1 :]
    assert scores[:3] == ["Score", "Score (run)", "KCD ↓"]
    assert "4 (3 to 5) · real 1 · noise 90" in scores


def test_a_report_fetches_nothing(home: Home, trained: Make) -> None:
    """Scripts are embedded, the policy forbids all requests, and no address is external."""
    trained("quick-0001")
    text, parts = report_about(home, "quick-0001")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert policy[1].startswith("default-src 'none'; ")
    assert set(re.findall(r"[\w-]+(?=:)|https?\b", policy[1])) == {"data", "blob"}
    assert all(address.startswith("data:") for address in parts.addresses)
    assert {"link", "iframe", "object", "base"} & set(parts.tags) == set()
    modules = json.loads(
        next(text for attributes, text in parts.scripts if attributes.get("type") == "importmap")
    )["imports"]
    assert {"embed", "vega-interpreter"} <= modules.keys()
    assert all(url.startswith("data:text/javascript;base64,") for url in modules.values())


def test_run_texts_are_escaped_in_a_report(home: Home, new_run: Make) -> None:
    for number, text in enumerate(TEXTS, start=1):
        run = new_run(f"quick-{number:04d}")
        journal.append(run.supervisor_journal, 1, Renamed(name=text))
    values = {"<script>alert(1)</script>": [1.0], "</script><b>": [1.0]}
    scalars = journal.Scalars(epoch=1, first_step=1, wall_s=[1.0], values=values)
    journal.append(run.trainer_journal(), 1, scalars)
    page, parts = report_about(home, *(f"quick-{place + 1:04d}" for place in range(len(TEXTS))))
    assert [attributes.get("type") for attributes, _ in parts.scripts] == [
        "importmap",
        "application/json",
        "module",
    ]
    assert [text for text in TEXTS if html.escape(words.cell(text)) not in page] == []
    assert {"b", "h1", "h2"} >= {tag for tag in parts.tags if tag in ("b", "h1", "h2", "em", "a")}
    assert parts.addresses == []
    assert len(drawings(parts)) == 2


def test_a_report_computes_study_intervals_from_the_selected_runs(
    home: Home, new_run: Make
) -> None:
    for number in range(6):
        place = StudyPlace(
            study_id="study-0001",
            question="batch_size",
            title="Batch size",
            variant=f"batch {64 * (1 + number % 2)}",
            variant_index=number % 2,
            repeat=1 + number // 2,
        )
        run = new_run(f"quick-{number + 1:04d}", study=place, epochs=2, seconds=float(number))
        epochs = [
            journal.EpochDone(
                epoch=epoch,
                step=epoch,
                seconds=(4.0 if number % 2 == 0 else 2.0) + number / 100,
                images=64,
                images_per_s=16.0,
            )
            for epoch in (1, 2)
        ]
        journal.append(run.trainer_journal(), 1, *epochs)
    _, parts = report_about(home, *(f"quick-{number:04d}" for number in (1, 2, 3, 4)))
    assert parts.headings[-1] == "Study: Batch size"
    row = parts.cells[parts.cells.index("batch 128") :][:4]
    assert row[1] == "0", "no run has a step"
    assert row[2].startswith("× 0.50, ")
    assert row[2].endswith(": clear")
    assert any(text.startswith("4 runs. In brackets: the 95% interval") for text in parts.texts)


def test_a_report_refuses_an_unsupported_streamlit(monkeypatch: pytest.MonkeyPatch) -> None:
    report.vega.cache_clear()
    monkeypatch.setattr("dashboard.frame.front_page.files", lambda *_: [])
    with pytest.raises(ExportError, match="run `make setup`"):
        report.vega()


def test_compare_offers_the_report_for_download(
    show: Callable[..., AppTest], trained: Make
) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", runs="quick-0001,quick-0002")
    assert not app.exception
    assert [button.proto.label for button in app.get("download_button")] == ["Download report"]
