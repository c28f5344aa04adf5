"""A study in a real browser, from the question to the report."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect

from tests.browser.dashboard_process import Dashboard, open_page, settled


def test_study_is_queued_watched_and_read(browser: Browser, dashboard: Dashboard) -> None:
    page = open_page(browser, f"{dashboard.address}/studies")
    expect(page.get_by_text("No study is stored yet")).to_be_visible()
    page.goto(f"{dashboard.address}/launch?tab=study")
    settled(page)
    typed = {
        "Values to compare": "32, 128",
        "Further options": "workload=mlp_gan",
        "Epochs": "3",
        "Repeats": "1",
    }
    for label, value in typed.items():
        field = page.get_by_role("textbox", name=label)
        field.fill(value)
        field.press("Enter")
        settled(page)
    expect(
        page.get_by_text(
            "study batch_size --values 32,128 --repeats 1 --preset quick --set epochs=3"
        )
    ).to_be_visible()
    page.get_by_role("button", name="Start study").click()

    # The study is one item: one run trains while the other waits; then both are done and the report
    # appears.
    expect(page).to_have_url(re.compile(r"/studies\?study=study-0001"))
    expect(page.get_by_text("0 of 2 runs are finished")).to_be_visible()
    expect(page.get_by_text(re.compile(r"1 of 2 runs are finished"))).to_be_visible(timeout=120_000)
    expect(page.get_by_text("2 of 2 runs are finished")).to_be_visible(timeout=120_000)
    expect(
        page.get_by_text(
            re.compile(r"batch 128 takes \d+% (less|more) time per epoch than batch 32")
        )
    ).to_be_visible()
    expect(page.get_by_text("1 repeat, which says nothing about noise").first).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(2)
    expect(page.get_by_test_id("stImage")).to_have_count(2)

    page.get_by_role("link", name="Compare 2 runs").click()
    expect(page).to_have_url(re.compile(r"/compare\?runs=batch-size-0002"))
    expect(page.get_by_text("What differs")).to_be_visible()
    page.goto(f"{dashboard.address}/studies?tab=paper")
    settled(page)
    expect(page.get_by_text("Fig. 5 · Training time by batch size")).to_be_visible()
    expect(
        page.get_by_text(
            re.compile(
                r"batch 128 takes .* than batch 32 .*the paper compares batch 64 with batch 512"
            )
        )
    ).to_be_visible()
    page.close()
