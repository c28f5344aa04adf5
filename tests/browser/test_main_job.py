"""The main job in a real browser: launch a distributed run, watch it live, lose the browser and the server, find it stored."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from gan_runtime.home import Home
from gan_runtime.store.store import Store
from tests.browser.dashboard_process import Dashboard, open_page, opened, settled

STEPS_PER_EPOCH = 56  # 1,797 digits in batches of 32
EPOCHS_OF_MLP = 20  # long enough to lose a dashboard in the middle


def fill(page: Page, role: Any, label: str, value: str) -> None:
    """Types into a field of the Launch form and waits for the page to take it in."""
    field = page.get_by_role(role, name=label)
    field.fill(value)
    field.press("Enter")
    expect(field).to_have_value(value)
    settled(page)


def launch(page: Page, dashboard: Dashboard, epochs: int, replicas: int, workload: str = "") -> str:
    """Starts the quick preset from the Launch page with some options changed; returns the run's id."""
    page.goto(f"{dashboard.address}/launch")
    settled(page)
    expect(page.get_by_role("button", name=re.compile("Start run|Add to the queue"))).to_be_visible()
    fill(page, "textbox", "Replicas (devices)", str(replicas))
    fill(page, "textbox", "Epochs (passes over the data)", str(epochs))
    if workload:
        opened(page, "Workload")
        page.get_by_role("option", name=workload).click()
        settled(page)
    expect(page.get_by_text(f"--set epochs={epochs}")).to_be_visible()
    page.get_by_role("button", name=re.compile("Start run|Add to the queue")).click()
    expect(page).to_have_url(re.compile(r"/live\?run=quick-\d{4}"))
    return page.url.rpartition("run=")[2]


def step(page: Page) -> int:
    """The step that the Live page shows."""
    text = page.get_by_text(re.compile(r"^step [\d\s]+ of")).inner_text()
    return int(re.sub(r"\D", "", text.partition("of")[0]))


def chart(page: Page, title: str) -> Locator:
    """The chart with this title."""
    return page.get_by_test_id("stVegaLiteChart").filter(has_text=title)


def ticks(shown: Locator) -> set[str]:
    """Whole numbers at a chart's axes, which are steps: losses have a point. They grow with the run unless it is zoomed."""
    return {text for text in shown.locator(".role-axis-label text").all_text_contents() if "." not in text}


def drawn_ticks(shown: Locator, wait_until: Callable[..., Any]) -> set[str]:
    """The same of a chart that may be drawing its axis at this moment, and have none."""
    return set(wait_until(lambda: ticks(shown), "the axis is drawn"))


def zoomed_in(page: Page, shown: Locator, wait_until: Callable[..., Any]) -> set[str]:
    """Drags across a chart; returns the steps at the axis that it has come to."""
    box = shown.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5, steps=4)
    page.mouse.up()
    expect(page.get_by_role("button", name="Show everything")).to_be_visible()

    told = page.get_by_text(re.compile(r"^Steps [\d\s]+ to [\d\s]+$")).inner_text()
    first, last = (int(re.sub(r"\D", "", number)) for number in told.split("to"))
    assert first < last

    def part() -> set[str]:
        """The axis of a run that trains grows by itself: only that of a zoom stays within the steps that the page tells."""
        now = drawn_ticks(shown, wait_until)
        return now if all(first <= int(tick) <= last for tick in now) else set()

    return set(wait_until(part, "the axis shows the part that was dragged across", 20))


def scrolled(page: Page) -> float:
    """How far down the page stands."""
    return float(page.get_by_test_id("stMain").evaluate("node => node.scrollTop"))


def slider_is_put_to_the_first_epoch(page: Page) -> bool:
    """Tries by keyboard; at the very moment in which an epoch ends the slider is a new one, and the key goes astray."""
    page.get_by_role("slider").focus()
    page.keyboard.press("Home")
    page.wait_for_timeout(2_000)
    return page.get_by_role("button", name="Follow the newest epoch").is_visible()


@pytest.mark.timeout(600)  # on a processor without AVX-512 it took longer than the usual 300 s
def test_a_run_is_launched_watched_through_reload_and_reopening_and_compared(
    browser: Browser, dashboard: Dashboard, wait_until: Callable[..., Any]
) -> None:
    page = open_page(browser, dashboard.address)
    expect(page.get_by_role("button", name="Start a quick run")).to_be_visible()
    run_id = launch(page, dashboard, epochs=6, replicas=2)
    expect(page.get_by_text("running", exact=False).first).to_be_visible()

    # Curves, epoch bars and samples appear and move, without the chart being made anew.
    losses = chart(page, "Generator and discriminator loss")
    expect(losses).to_be_visible()
    expect(page.get_by_text("Generated images").first).to_be_visible()
    drawing = losses.locator("svg").first.element_handle()
    before = step(page)
    wait_until(lambda: step(page) > before + 8, "the step moves on")
    assert drawing.evaluate("node => node.isConnected"), (
        "the loss chart was made anew: it flickers and loses its zoom"
    )
    zoomed = zoomed_in(page, losses, wait_until)
    before = step(page)
    wait_until(lambda: step(page) > before + 8, "the step moves on under the zoom")
    assert drawn_ticks(losses, wait_until) == zoomed
    bars = chart(page, "How long does an epoch take?").locator(".mark-rect path")
    expect(bars).to_have_count(1)
    expect(page.get_by_text(f"After epoch 1, step {STEPS_PER_EPOCH}")).to_be_visible()
    assert drawn_ticks(losses, wait_until) == zoomed, "the zoom is lost at the end of an epoch"
    losses.locator("svg").first.dblclick()
    expect(page.get_by_text("Drag across a chart to zoom in.")).to_be_visible()
    place = wait_until(
        lambda: losses.count() == 1 and losses.first.bounding_box(),
        "the loss chart is drawn with every row again",
    )
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.mouse.wheel(0, 300)
    wait_until(lambda: scrolled(page) > 100, "the wheel over a chart scrolls the page")
    expect(page.get_by_text(re.compile(r"^After epoch [2-6],"))).to_be_visible()
    wait_until(lambda: bars.count() >= 2, "there is one more bar")
    expect(chart(page, "How large is one update?").locator(".mark-symbol path").first).to_be_visible()

    # A reload in the middle changes nothing; neither does closing the browser and opening another.
    page.reload()
    settled(page)
    expect(chart(page, "Generator and discriminator loss")).to_be_visible()
    before = step(page)
    page.close()
    page = open_page(browser, f"{dashboard.address}/live?run={run_id}")
    wait_until(lambda: step(page) > before, "the run trained on while no browser was open")

    # The slider stays where a person put it while the run goes on.
    wait_until(lambda: slider_is_put_to_the_first_epoch(page), "the slider stays where it was put", 90)
    expect(page.get_by_text("After epoch 1,")).to_be_visible()
    before = step(page)
    wait_until(lambda: step(page) > before + 8, "the step moves on under the slider")
    expect(page.get_by_text("After epoch 1,")).to_be_visible()

    expect(page.get_by_text("finished").first).to_be_visible(timeout=120_000)
    expect(page.get_by_text("All 6 epochs done ·")).to_be_visible()

    other = launch(page, dashboard, epochs=3, replicas=1, workload="Fully connected GAN")
    expect(page.get_by_text("All 3 epochs done ·")).to_be_visible(timeout=120_000)
    page.goto(f"{dashboard.address}/compare?runs={run_id},{other}")
    settled(page)
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas")).to_have_count(
        4
    )  # two losses, a result, the options
    expect(page.get_by_text("What differs")).to_be_visible()
    expect(page.get_by_test_id("stImage")).to_have_count(2)

    # The networks of a run that has ended make more images, and the page shows them by itself.
    page.goto(f"{dashboard.address}/samples?runs={other}")
    settled(page)
    fill(page, "spinbutton", "Seed", "5")
    page.get_by_role("button", name="Generate", exact=True).click()
    expect(page.get_by_text("This goes on when the page is closed.")).to_be_visible()
    made = f"64 images of {other}, seed 5, by its newest checkpoint"
    expect(page.get_by_text(made)).to_be_visible(timeout=120_000)
    expect(page.get_by_test_id("stImage")).to_have_count(2)
    page.close()


def test_a_killed_dashboard_finds_its_run_still_training(
    browser: Browser, dashboard: Dashboard, wait_until: Callable[..., Any]
) -> None:
    page = open_page(browser, dashboard.address)
    run_id = launch(page, dashboard, epochs=EPOCHS_OF_MLP, replicas=2, workload="Fully connected GAN")
    wait_until(lambda: step(page) > 10, "the run trains")
    run = Home(dashboard.home).run_dir(run_id)
    identity = run.process()
    assert identity is not None

    dashboard.kill()
    assert psutil.pid_exists(identity["pid"]), "the trainer must outlive the dashboard"
    size = run.trainer_journal().stat().st_size
    wait_until(
        lambda: run.trainer_journal().stat().st_size > size, "the trainer writes on without a dashboard"
    )
    dashboard.start_again()

    page = open_page(browser, f"{dashboard.address}/live?run={run_id}")
    expect(page.get_by_text(f"All {EPOCHS_OF_MLP} epochs done ·")).to_be_visible(timeout=120_000)
    process = run.process()
    assert process is not None
    assert process["pid"] == identity["pid"], "the same process trained to the end"
    page.close()
    dashboard.stop()

    store = Store(Home(dashboard.home).database)
    counts = store.rows(
        "SELECT metric, count(*), count(DISTINCT step), min(step), max(step) FROM scalars GROUP BY metric"
    )
    last = EPOCHS_OF_MLP * STEPS_PER_EPOCH
    each_step = {metric: counted for metric, *counted in counts if counted[2] == 1}
    assert {"d_fake", "d_real", "loss_discriminator", "loss_generator"} <= set(each_step)
    assert all(counted == [last, last, 1, last] for counted in each_step.values()), "every step exactly once"
    each_epoch = [counted for metric, *counted in counts if metric not in each_step]
    assert each_epoch == [[EPOCHS_OF_MLP, EPOCHS_OF_MLP, STEPS_PER_EPOCH, last]] * len(each_epoch)
    assert store.rows("SELECT status, attempt FROM runs") == [("finished", 1)]
    store.close()


def test_a_wrong_option_is_told_at_its_field_and_cannot_be_started(
    browser: Browser, dashboard: Dashboard
) -> None:
    page = open_page(browser, f"{dashboard.address}/launch")
    fill(page, "textbox", "Replicas (devices)", "3")
    message = page.get_by_text(
        "Global batch (batch_size_global) is 32, but 3 replicas need a multiple of 3: use 30 or 33."
    )
    expect(message).to_have_count(2)  # below its field, and beside the form
    expect(page.get_by_role("button", name="Start run")).to_be_disabled()
    fill(page, "textbox", "Global batch (images per step)", "33")
    expect(page.get_by_role("button", name="Start run")).to_be_enabled()
    page.close()


def test_a_file_that_is_no_database_is_told_in_one_sentence(browser: Browser, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "results.duckdb").write_text("this is no database " * 1000, encoding="utf-8")
    dashboard = Dashboard(home, tmp_path / "dashboard.log")
    try:
        page = open_page(browser, dashboard.address)
        expect(page.get_by_text("results.duckdb is not a usable DuckDB database")).to_be_visible()
        expect(page.get_by_text("Traceback")).to_have_count(0)
        page.close()
    finally:
        dashboard.stop()
