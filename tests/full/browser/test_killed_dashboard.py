"""A dashboard is killed during a real training run with two replicas, and the run ends normally."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psutil
from playwright.sync_api import Browser, Page, expect

from gan_runtime.records.home import Home
from gan_runtime.store.store import Store
from tests.browser.dashboard_process import Dashboard, open_page, settled
from tests.browser.launch_page import fill, launch
from tests.browser.live_page import sheet_images, step

STEPS_PER_EPOCH = 56  # 1,797 digits in batches of 32
EPOCHS = 20  # long enough to lose a dashboard in the middle


def more_images_are_made(page: Page, address: str, run_id: str) -> None:
    """Generates an image from an ended run; the page shows it by itself, to be picked by click."""
    page.goto(f"{address}/run?run={run_id}&tab=samples")
    settled(page)
    fill(page, "textbox", "Seeds", "5")
    page.get_by_role("button", name="Generate", exact=True).click()
    sentence = f"1 image of {run_id}, seed 5, by its newest checkpoint"
    expect(page.get_by_text(sentence)).to_be_visible(timeout=120_000)
    expect(sheet_images(page)).to_have_count(1, timeout=60_000)


def check_rows(home: Home) -> None:
    """Checks that each step and each epoch is stored once."""
    store = Store(home.database)
    counts = store.rows(
        "SELECT metric, count(*), count(DISTINCT step), min(step), max(step) FROM scalars GROUP BY"
        " metric"
    )
    last = EPOCHS * STEPS_PER_EPOCH
    each_step = {metric: counted for metric, *counted in counts if counted[2] == 1}
    assert {"d_fake", "d_real", "loss_discriminator", "loss_generator"} <= set(each_step)
    assert all(counted == [last, last, 1, last] for counted in each_step.values()), (
        "every step exactly once"
    )
    each_epoch = [counted for metric, *counted in counts if metric not in each_step]
    assert each_epoch == [[EPOCHS, EPOCHS, STEPS_PER_EPOCH, last]] * len(each_epoch)
    assert store.rows("SELECT status, attempt FROM runs") == [("finished", 1)]
    store.close()


def test_restarted_dashboard_sees_its_run_still_training(
    browser: Browser, dashboard: Dashboard, wait_until: Callable[..., Any]
) -> None:
    page = open_page(browser, dashboard.address)
    run_id = launch(page, dashboard.address, EPOCHS, replicas=2, workload="Fully connected GAN")
    wait_until(lambda: step(page) > 10, "the run trains")
    run = Home(dashboard.home).run_dir(run_id)
    identity = run.process()
    assert identity is not None

    dashboard.kill()
    assert psutil.pid_exists(identity.pid), "the trainer must outlive the dashboard"
    size = run.trainer_journal().stat().st_size
    wait_until(
        lambda: run.trainer_journal().stat().st_size > size,
        "the trainer writes on without a dashboard",
    )
    dashboard.start_again()

    page = open_page(browser, f"{dashboard.address}/run?run={run_id}")
    expect(page.get_by_text("finished").first).to_be_visible(timeout=120_000)
    expect(page.get_by_text(f"All {EPOCHS} epochs done ·")).to_be_visible(timeout=120_000)
    process = run.process()
    assert process is not None
    assert process.pid == identity.pid, "the same process trained to the end"
    more_images_are_made(page, dashboard.address, run_id)
    page.close()
    dashboard.stop()

    check_rows(Home(dashboard.home))
