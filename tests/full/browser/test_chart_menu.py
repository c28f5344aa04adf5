"""A chart's toolbar in a real browser: PNG, SVG and CSV of the drawn data."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

from dashboard import words
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Renamed
from tests.browser.dashboard_process import Dashboard, open_page
from tests.browser.stored_runs import STEPS, queued, stored

FORMULA = "=HYPERLINK(A1)"


@pytest.fixture(scope="module")
def with_a_formula(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A dashboard on a home with two runs, one with a formula as its name and as a metric name."""
    folder = tmp_path_factory.mktemp("charts")
    for loss in (0.5, 1.5):
        stored(queued(Home(folder / "home")), loss)
    run = Home(folder / "home").run_dir("quick-0002")
    journal.append(run.supervisor_journal, 1, Renamed(name=FORMULA))
    wall_s = [float(step) for step in range(1, STEPS + 1)]
    values = {FORMULA: [0.25] * STEPS}
    journal.append(
        run.trainer_journal(),
        1,
        journal.Scalars(epoch=1, first_step=1, wall_s=wall_s, values=values),
    )
    started = Dashboard(folder / "home", folder / "dashboard.log")
    yield started
    started.stop()


def downloaded(page: Page, chart: Locator, kind: str) -> Path:
    """Clicks a chart's download button and returns the file."""
    chart.hover()
    with page.expect_download() as download:
        button(chart, kind).click()
    return download.value.path().rename(
        download.value.path().with_name(download.value.suggested_filename)
    )


def button(chart: Locator, kind: str) -> Locator:
    """Returns a chart's download button for one kind of file."""
    frame = chart.locator("xpath=ancestor::*[@data-testid='stFullScreenFrame']")
    return frame.get_by_role("button", name=f"Download as {kind}")


def size(chart: Locator) -> tuple[int, int]:
    """Returns the width and height of the drawing in page pixels."""
    box = chart.locator("canvas, svg").first.bounding_box()
    assert box is not None
    return round(box["width"]), round(box["height"])


def test_no_mark_of_a_chart_has_a_role_without_a_name(
    browser: Browser, with_a_formula: Dashboard
) -> None:
    page = open_page(browser, f"{with_a_formula.address}/run?run=quick-0001")
    charts = page.get_by_test_id("stVegaLiteChart")
    expect(charts.locator("svg .zoom_brush").first).to_be_attached()
    nameless = "[role=graphics-symbol]:not([aria-label]):not([aria-hidden=true])"
    expect(charts.locator(nameless)).to_have_count(0)
    page.close()


def test_chart_downloads_as_png_svg_and_csv(browser: Browser, with_a_formula: Dashboard) -> None:
    page = open_page(
        browser, f"{with_a_formula.address}/compare?runs=quick-0001,quick-0002&tab=curves"
    )
    chart = page.get_by_test_id("stVegaLiteChart").first
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas")).to_have_count(2)
    width, height = size(chart)

    png = Image.open(downloaded(page, chart, "PNG"))
    assert png.size == pytest.approx((2 * width, 2 * height), abs=2)  # for print

    path = downloaded(page, chart, "SVG")
    assert path.name == "generator-loss.svg"
    svg = ET.parse(path).getroot()
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    drawn = float(svg.attrib["width"]), float(svg.attrib["height"])
    assert drawn == pytest.approx((width, height), abs=2)
    assert "Generator loss" in {text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")}

    text = downloaded(page, chart, "CSV").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {(row["run"], float(row["mean"])) for row in rows} == {
        ("quick-0001", 0.5),
        (words.cell(FORMULA), 1.5),
    }
    steps = [int(row["step"]) for row in rows if row["run"] == "quick-0001"]
    assert steps == list(range(1, STEPS + 1))
    page.close()


def test_each_chart_has_its_buttons_once_and_downloads_its_rows(
    browser: Browser, with_a_formula: Dashboard
) -> None:
    page = open_page(browser, f"{with_a_formula.address}/run?run=quick-0002")
    charts = page.get_by_test_id("stVegaLiteChart")
    expect(charts.first.locator("svg").first).to_be_visible()
    for chart in charts.all():
        for _ in range(2):
            chart.hover()
            page.mouse.move(0, 0)
        for kind in ("PNG", "SVG", "CSV"):
            expect(button(chart, kind)).to_have_count(1)
    of_formula = charts.filter(has_text=FORMULA.capitalize())
    text = downloaded(page, of_formula, "CSV").read_text(encoding="utf-8")
    assert {(row["metric"], row["mean"]) for row in csv.DictReader(io.StringIO(text))} == {
        (f"'{FORMULA}", "0.25")
    }
    page.close()
