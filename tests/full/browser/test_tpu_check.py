"""The TPU check in a real browser, on a machine without a TPU."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

from gan_runtime.records.home import Home
from gan_runtime.tpu import plan as planning
from tests.browser.dashboard_process import Dashboard, open_page, opened, settled
from tests.tpu.examples import keep_all


def test_stored_tpu_check_is_shown_and_follows_the_overhead(
    browser: Browser, dashboard: Dashboard
) -> None:
    keep_all(
        Home(dashboard.home),
        planning.make(
            {"workload": "dcgan_mnist", "dataset": "mnist", "batch_size_global": 512}, "v3:2x2"
        ),
    )
    page = open_page(browser, f"{dashboard.address}/tpu")
    epoch = page.get_by_test_id("stMetric").filter(has_text="Epoch, est.")
    expect(epoch).to_contain_text("140 ms")
    expect(page.get_by_test_id("stVegaLiteChart").locator("svg, canvas")).to_have_count(2)
    page.get_by_role("slider").press("Home")  # no overhead at all
    settled(page)
    expect(epoch).to_contain_text("128 ms")
    opened(page, "TPU")
    page.get_by_role("option").filter(has_text="v5e").first.click()
    settled(page)
    expect(page.get_by_text("Nothing is compiled for this selection yet")).to_be_visible()

    # Check runs the real compiler: the answer about the run comes first, and answers from before a
    # Cancel are kept.
    opened(page, "Workload")
    page.get_by_role("option", name="Fully connected GAN").click()
    settled(page)
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.get_by_text("programs compiled · now")).to_be_visible()
    expect(page.get_by_test_id("stMetric").filter(has_text="Compiles")).to_contain_text(
        "yes", timeout=200_000
    )
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("The check ended early: cancelled")).to_be_visible()
    expect(page.get_by_role("button", name="Compile the missing")).to_be_enabled()
    page.close()
