"""The evaluation page of a rollout as a user sees it, with a stored rollout; part of the visit to
every page.
"""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from gan_runtime.records import image_files, journal
from gan_runtime.records.run_folder import RunDir
from tests.browser.dashboard_process import settled
from tests.support.measured_flows import frames, iteration

STEPS = 20
CHARTS = {"Errors": 2 + 3, "Wake": 2, "Time": 2, "Speed and literature": 1}
FIRST_PIXELS = """canvas => [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data].join()"""  # noqa: E501


def with_an_iteration(run: RunDir) -> RunDir:
    """Adds a rollout and its film to the run."""
    record = iteration(2, "map_reduce", STEPS, 1, 0.02)
    file = image_files.write_film(run, f"{record.iteration}-map_reduce", frames(STEPS))
    journal.append(run.earlier_journal("flow"), 1, record.model_copy(update={"frames": file}))
    return run


def played(page: Page, address: str, run: RunDir) -> None:
    """The film is drawn, plays, follows the slider, keeps its step when the quantity changes, and
    can be downloaded.
    """
    page.goto(f"{address}/run?run={run.run_id}&tab=evaluation")
    settled(page)
    charts = page.get_by_test_id("stVegaLiteChart").filter(visible=True).locator("svg, canvas")
    for tab, count in CHARTS.items():
        page.get_by_role("tab", name=tab).click()
        expect(charts).to_have_count(count)
    page.get_by_role("tab", name="Film").click()
    slider, caption = page.get_by_role("slider", name="Step"), page.locator(".player output")
    prediction = page.locator(".player canvas").nth(1)
    expect(page.locator(".player canvas")).to_have_count(3)
    slider.press("Home")
    expect(caption).to_have_text("given frame")
    first = prediction.evaluate(FIRST_PIXELS)
    page.get_by_role("button", name="Play", exact=True).click()
    expect(caption).to_have_text(re.compile("step [3-9]"))
    page.get_by_role("button", name="Pause").click()
    slider.press("End")
    expect(caption).to_have_text(re.compile(f"^step {STEPS}"))
    assert prediction.evaluate(FIRST_PIXELS) != first
    last = prediction.evaluate(FIRST_PIXELS)
    page.get_by_text("Speed |u|", exact=True).click()
    expect(page.get_by_text("|u| / U").first).to_be_visible()
    expect(caption).to_have_text(re.compile(f"^step {STEPS}"))
    assert prediction.evaluate(FIRST_PIXELS) != last
    with page.expect_download() as download:
        page.get_by_role("button", name="GIF").click()
    assert (
        download.value.suggested_filename == f"flow-{run.run_id}-iterate-0001-map_reduce-speed.gif"
    )
    assert Path(download.value.path()).read_bytes().startswith(b"GIF89a")
