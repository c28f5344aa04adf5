"""The report in a real browser: downloaded from Compare and opened offline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from tests.browser.dashboard_process import Dashboard, open_page
from tests.browser.stored_runs import STEPS, queued, stored
from tests.support import measured_images
from tests.support.command_line import run as command
from tests.support.small_pictures import png


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with two runs with samples of two epochs, one of them with a measured quality."""
    home = Home(tmp_path_factory.mktemp("report") / "home")
    for number, loss in enumerate((0.5, 1.5), start=1):
        run = queued(home)
        stored(run, loss)
        for epoch in (1, 2):
            name = f"samples/samples-{epoch:05d}.png"
            (run.path / name).parent.mkdir(exist_ok=True)
            (run.path / name).write_bytes(png(10 * number + epoch))
            sample = journal.Sample(
                epoch=epoch, step=epoch * STEPS, sample_kind="samples", file=name, meta={}
            )
            journal.append(run.trainer_journal(), 1, sample)
    answer = measured_images.answer(1)
    journal.append(home.run_dir("quick-0001").evaluations_journal, 1, answer)
    return home


@pytest.fixture(scope="module")
def of_two_runs(home: Home) -> Iterator[Dashboard]:
    """A dashboard on that home."""
    started = Dashboard(home.path, home.path.with_name("dashboard.log"))
    yield started
    started.stop()


def opened_offline(browser: Browser, file: Path) -> tuple[Page, list[str]]:
    """Opens the file in an offline window; returns the page and its requests, console messages and
    errors.
    """
    page = browser.new_context(offline=True, viewport={"width": 1280, "height": 800}).new_page()
    noted: list[str] = []
    page.on("request", lambda request: noted.append(request.url))
    page.on("console", lambda message: noted.append(message.text))
    page.on("pageerror", lambda error: noted.append(str(error)))
    page.goto(file.as_uri())
    return page, noted


def shown_images(page: Page) -> list[int]:
    """Returns the widths of the visible images."""
    images = page.locator(".samples img:visible")
    return [int(width) for width in images.evaluate_all("all => all.map(one => one.naturalWidth)")]


def domain(page: Page) -> list[float]:
    """Returns the first and last step of the first loss chart."""
    ends: list[float] = page.evaluate("window.views[0].scale('x').domain()")
    return ends


def test_compare_report_opens_offline(
    browser: Browser, of_two_runs: Dashboard, tmp_path: Path
) -> None:
    page = open_page(browser, f"{of_two_runs.address}/compare?runs=quick-0001,quick-0002")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download report").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    page.close()
    assert file.name == "report-quick-0001-quick-0002.html"

    report, noted = opened_offline(browser, file)
    charts = report.locator(".chart canvas, .chart svg.marks")
    expect(charts).to_have_count(5)  # two losses and three scores
    expect(report.get_by_role("cell", name="4 (3 to 5) · real 1 · noise 90")).to_be_visible()

    assert domain(report) == [1, STEPS]
    report.locator(".chart").first.scroll_into_view_if_needed()
    box = report.locator(".chart").first.bounding_box()
    assert box is not None
    report.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    report.keyboard.down("Shift")
    report.mouse.wheel(0, -400)
    report.keyboard.up("Shift")
    report.wait_for_function("window.views[0].scale('x').domain()[0] > 1")
    first, last = domain(report)
    assert 1 < first < last < STEPS
    report.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    report.wait_for_function("window.views[0].scale('x').domain()[0] === 1")

    assert shown_images(report) == [12, 22]
    report.get_by_role("slider").fill("0")
    assert shown_images(report) == [11, 21]
    assert [text for text in noted if not text.startswith("data:")] == [file.as_uri()]
    report.context.close()


def test_command_line_writes_the_report_without_a_dashboard(
    browser: Browser, home: Home, tmp_path: Path
) -> None:
    file = tmp_path / "runs.html"
    words = ["report", "quick-0001", "quick-0002", "--to", str(file), "--home", str(home.path)]
    result = command(*words)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"{file} holds 2 runs, ")
    report, noted = opened_offline(browser, file)
    expect(report.locator(".chart canvas, .chart svg.marks")).to_have_count(5)
    expect(report.get_by_role("heading", level=2)).to_have_text(
        ["Final numbers", "Quality of images", "Curves", "Samples", "Options that differ"]
    )
    assert [text for text in noted if not text.startswith("data:")] == [file.as_uri()]
    report.context.close()
    again = command(*words)
    assert (again.exit_code, again.stdout) == (2, "")
    assert again.stderr.endswith("exists already: choose another path, or add --overwrite.\n")
