"""Screenshots of every page and tab with real runs, light and dark, wide and narrow, for review and
for the README.

make screenshots            trains short runs, loads the example runs, and captures one run while it
                            trains
docs/screenshots/<view>-<light|dark>[-narrow].png
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from gan_runtime import bundles
from gan_runtime.hardware.hosts import Host, probe
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.record import operator
from gan_runtime.spec import RunSpec
from gan_runtime.spec.presets import PRESETS
from tests.browser.dashboard_process import Dashboard, chromium, open_page, settled
from tests.support.asking import ask
from tests.support.own_pictures import zipped

TARGET = REPOSITORY / "docs" / "screenshots"
WIDE, NARROW = (1280, 800), (390, 844)
TRAINING_MS = 900_000.0
STORING_SECONDS = 300.0  # for the example runs, while the dashboard draws pages
COMPILING_SECONDS = 1_800.0  # eight programs, 10 to 60 s each on an idle machine
ASKER = operator("the photographer")
OWN_PICTURES = {
    "workload": "dcgan",
    "dataset": "shapes",
    "batch_size_global": 40,
    "epochs": 40,
    "dcgan.base_channels": 32,
}
SHOWERS = {"epochs": 12, "weight_snapshots": "yes"}
Views = Mapping[str, tuple[str, int]]  # name → address, and height of the wide window in pixels
USUAL = WIDE[1]
WHILE_TRAINING: Views = {"run": ("run?run={training}", USUAL), "home": ("", USUAL)}
AFTER_TRAINING: Views = {
    "finished": ("run?run={first}", 1_500),
    "samples": ("run?run={first}&tab=samples", 1_300),
    "histograms": ("run?run={first}&tab=histograms", 1_300),
    "evaluation": ("run?run={first}&tab=evaluation", 1_500),
    "options": ("run?run={first}&tab=options", 1_300),
    "log": ("run?run={first}&tab=log", USUAL),
    "pictures": ("run?run={labelled}", USUAL),
    "physics": ("run?run={showers}&tab=evaluation", 2_000),
    "launch": ("launch", 1_500),
    "launch-study": ("launch?tab=study", USUAL),
    "launch-paper": ("launch?tab=paper", USUAL),
    "data": ("data", 1_300),
    "runs": ("runs", USUAL),
    "compare": ("compare?runs={first},{second}", 1_500),
    "compare-curves": ("compare?runs={first},{second}&tab=curves", 1_300),
    "compare-samples": ("compare?runs={first},{second}&tab=samples", USUAL),
    "compare-histograms": ("compare?runs={first},{second}&tab=histograms", USUAL),
}
WITH_EXAMPLES: Views = {
    "compare-examples": ("compare?runs={several}", 1_500),
    "studies": ("studies", 1_800),
    "studies-xla": ("studies?tab=xla&run={compiled}", 1_300),
    "studies-precision": ("studies?tab=precision&run={precise}", 1_300),
    "paper": ("studies?tab=paper", 6_400),
    "flow": ("run?run={flowing}&tab=evaluation", 1_600),
    "film": ("run?run={flowing}&tab=evaluation&view=Film", USUAL),
    "tpu": ("tpu", 2_400),
}


def main() -> None:
    """Trains, waits and takes the screenshots."""
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        home = Home(Path(folder) / "home").prepare()
        host = probe()
        quick = PRESETS["quick"].values

        def queued(**changes: object) -> str:
            spec = RunSpec.parse({**quick, **changes})
            return ask(home, host, actor=ASKER).submit(spec, "quick").run_id

        runs = {
            "first": queued(),
            "second": queued(learning_rate_generator=1e-3, replicas=2, epochs=10),
        }
        prepare_pictures(home, Path(folder))
        runs["labelled"] = queued(**OWN_PICTURES)
        runs["showers"] = queue_showers(home, host)
        dashboard = Dashboard(home.path, Path(folder) / "dashboard.log")
        try:
            finished(browser, dashboard, runs["labelled"])
            wait_for_quality(browser, dashboard, runs["first"])
            measure_showers(browser, dashboard, home, runs["showers"])
            runs["training"] = queued(epochs=150)  # until its screenshots are taken
            page = open_page(browser, f"{dashboard.address}/run?run={runs['training']}")
            expect(page.get_by_text(re.compile(r"After epoch [2-9],"))).to_be_visible(
                timeout=120_000
            )
            page.close()
            photograph(browser, dashboard, WHILE_TRAINING, runs)
            ask(home, host, actor=ASKER).stop(runs["training"])
            photograph(browser, dashboard, AFTER_TRAINING, runs)
            examples = load_examples(browser, dashboard, home)
            check_tpu(browser, dashboard)
            photograph(browser, dashboard, WITH_EXAMPLES, {**runs, **examples})
        finally:
            dashboard.stop()


# ---- page contents -------------------------------------------------------------------------------


def prepare_pictures(home: Home, folder: Path) -> None:
    """Requests a data set `shapes` of disks and squares; the dashboard's owner prepares it, and the
    run waits for it.
    """
    bundle = folder / "shapes.zip"
    bundle.write_bytes(zipped(200))
    options = {"pixels": 32, "color": "rgb"}
    ask(home, actor=ASKER).prepare_data("pictures", "shapes", bundle, options)


def queue_showers(home: Home, host: Host) -> str:
    """Requests simulated showers and queues a run on them, which waits for its data."""
    fewer = {"events": 1_000, "held_out_percent": 30}
    ask(home, actor=ASKER).prepare_data("showers_tiny", options=fewer)
    spec = RunSpec.parse({**PRESETS["showers"].values, **SHOWERS})
    return ask(home, host, actor=ASKER).submit(spec, "showers").run_id


def wait_for_quality(browser: Browser, dashboard: Dashboard, run_id: str) -> None:
    """Waits for the image quality of a run, which is measured at its end."""
    page = open_page(browser, f"{dashboard.address}/run?run={run_id}&tab=evaluation")
    expect(page.get_by_text("All scores")).to_be_visible(timeout=TRAINING_MS)
    page.close()


def measure_showers(browser: Browser, dashboard: Dashboard, home: Home, run_id: str) -> None:
    """Waits for a run to end, measures its showers after each epoch, generates some of one energy,
    and waits for the results.
    """
    finished(browser, dashboard, run_id)
    ask(home, actor=ASKER).evaluate(run_id, "physics", {"checkpoint": "every", "showers": 300})
    page = open_page(browser, f"{dashboard.address}/run?run={run_id}&tab=evaluation")
    expect(page.get_by_text("All scores")).to_be_visible(timeout=TRAINING_MS)
    page.get_by_role("tab", name="Any energy").click()
    page.get_by_role("button", name="Generate showers").click()
    expect(page.get_by_text("100 showers by")).to_be_visible(timeout=TRAINING_MS)
    page.close()


def finished(browser: Browser, dashboard: Dashboard, run_id: str) -> None:
    """Waits on the page of a run until the run ends."""
    page = open_page(browser, f"{dashboard.address}/run?run={run_id}")
    expect(page.get_by_text("epochs done ·")).to_be_visible(timeout=TRAINING_MS)
    page.close()


def load_examples(browser: Browser, dashboard: Dashboard, home: Home) -> dict[str, str]:
    """Loads the example runs and waits until they are stored; returns the ids used in the views."""
    runs = [run for file in bundles.examples() for run in bundles.unpack(file, home)]
    page = open_page(browser, f"{dashboard.address}/studies")
    deadline = time.monotonic() + STORING_SECONDS
    while page.get_by_text("No study is stored yet").is_visible():
        assert time.monotonic() < deadline, (
            f"no study of the example runs is stored after {STORING_SECONDS:.0f} s. The dashboard"
            f" printed: {dashboard.printed()}"
        )
        page.reload()
        settled(page)
    expect(page.get_by_text("runs are finished")).to_be_visible(timeout=30_000)
    page.close()
    parts = {"compiled": "-xla-", "precise": "-precision-", "flowing": "-karman-"}
    chosen = {name: next(run for run in runs if part in run) for name, part in parts.items()}
    return {**chosen, "several": ",".join(runs[:4])}


def check_tpu(browser: Browser, dashboard: Dashboard) -> None:
    """Compiles for a TPU: the run, the other precision, the paper's batches and fewer cores."""
    page = open_page(browser, f"{dashboard.address}/tpu")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("button", name="All compiled")).to_be_visible(
        timeout=COMPILING_SECONDS * 1_000
    )
    page.close()


# ---- screenshots ---------------------------------------------------------------------------------


def photograph(
    browser: Browser, dashboard: Dashboard, views: Views, runs: Mapping[str, str]
) -> None:
    """Takes each view in both themes, wide and narrow."""
    for name, (path, height) in views.items():
        address = f"{dashboard.address}/{path.format(**runs)}"
        for theme in ("light", "dark"):
            for suffix, width, tall in (("", WIDE[0], height), ("-narrow", *NARROW)):
                page = open_page(browser, address, width=width, height=tall, theme=theme)
                wait_for_drawing(page)
                page.screenshot(path=TARGET / f"{name}-{theme}{suffix}.png")
                page.close()
        print(f"photographed {name}", flush=True)


def wait_for_drawing(page: Page) -> None:
    """Waits for fragments, charts and images: Vega draws after Streamlit has settled."""
    settled(page)
    page.wait_for_timeout(1_500)  # fragments start after the page and show nothing yet
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0, timeout=30_000)
    page.wait_for_function("() => [...document.images].every(image => image.complete)")
    page.wait_for_timeout(1_500)  # Vega's fade-in has no event to wait for


if __name__ == "__main__":
    main()
