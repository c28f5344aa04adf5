"""One's own pictures in a real browser: dropped, looked at, prepared; what cannot be used gets a sentence."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, expect

from gan_runtime.data import loading
from gan_runtime.home import Home
from gan_runtime.jobs import uploads
from tests.browser.dashboard_process import Dashboard, open_page, settled
from tests.own_pictures import zipped


def drop(page: Page, name: str, content: bytes) -> None:
    page.get_by_test_id("stFileUploaderDropzone").locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": "application/zip", "buffer": content}
    )
    expect(page.get_by_role("button", name="Preview")).to_be_visible()


def take_back(page: Page, name: str) -> None:
    page.get_by_role("button", name=f"Remove {name}").click()
    expect(page.get_by_text("A preview appears here as soon as there are pictures")).to_be_visible()
    expect(page.get_by_role("button", name="Preview")).to_have_count(
        0
    )  # that of the file before is gone, too
    settled(page)


def test_a_zip_is_dropped_looked_at_and_prepared(browser: Browser, dashboard: Dashboard) -> None:
    home = Home(dashboard.home)
    page = open_page(browser, f"{dashboard.address}/data")
    drop(page, "broken.zip", b"no zip at all")
    (received,) = (home.jobs / uploads.FOLDER).glob("*/content")
    assert received.read_bytes() == b"no zip at all"  # on the disk, not in the memory of the dashboard
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("broken.zip is no zip file, or damaged")).to_be_visible()
    take_back(page, "broken.zip")
    assert not received.exists()

    drop(page, "out.zip", zipped(1, {"../outside.png": b"x"}))
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("leads out of the folder, so nothing of it is read")).to_be_visible()
    take_back(page, "out.zip")

    drop(page, "shapes.zip", zipped())
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_test_id("stMetric").filter(has_text="Pictures")).to_contain_text("40")
    assert not home.data.exists()
    page.get_by_role("button", name="Prepare shapes").click()
    expect(page.get_by_text("Data set shapes is ready: 40 pictures.")).to_be_visible()
    expect(page.get_by_text("64 × 64 RGB · 2 classes: disks, squares")).to_be_visible()
    assert loading.load("shapes", home).rows == 40

    page.get_by_role("button", name="Remove", exact=True).click()
    page.get_by_role("button", name="Remove for good").click()
    expect(page.get_by_text("64 × 64 RGB · 2 classes: disks, squares")).to_have_count(0)
    assert not (home.data / "shapes").exists()
    page.close()
