"""Images of every page with real runs, light and dark, wide and narrow, for looking at and for
the README.

make screenshots            trains three short runs, one on pictures with labels, one on simulated
showers, and one that is photographed while it trains;
                            loads the example runs
docs/screenshots/<page>-<light|dark>[-narrow].png
"""

from __future__ import annotations

import re
import tempfile
import time
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
LONG, TALL, TALLER = 2900, 6400, 8800
TRAINING_MS = 900_000.0
ASKER = operator("the photographer")
OWN_PICTURES = {
    "workload": "dcgan",
    "dataset": "shapes",
    "batch_size_global": 40,
    "epochs": 40,
    "dcgan.base_channels": 32,
}
TAKING_IN_SECONDS = 300.0  # of the example runs, by a dashboard that draws pages meanwhile
SHOWERS = {"epochs": 12, "weight_snapshots": "yes"}
COMPILING_SECONDS = 1_800.0  # eight programs, 10 to 60 s each on an idle machine


def main() -> None:
    """Trains, waits, photographs."""
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        home = Home(Path(folder) / "home").prepare()
        host = probe()
        quick = PRESETS["quick"].values

        def queued(**changes: object) -> str:
            spec = RunSpec.parse({**quick, **changes})
            return ask(home, host, actor=ASKER).submit(spec, "quick").run_id

        first = queued()
        second = queued(learning_rate_generator=1e-3, replicas=2, epochs=10)
        prepare_pictures(home, Path(folder))
        labelled = queued(**OWN_PICTURES)
        simulated = showers(home, host)
        dashboard = Dashboard(home.path, Path(folder) / "dashboard.log")
        try:
            finished(browser, dashboard, labelled)
            measured(browser, dashboard, home, simulated)
            third = queued()
            page = open_page(browser, f"{dashboard.address}/run?run={third}")
            expect(page.get_by_text(re.compile(r"After epoch [2-9],"))).to_be_visible(
                timeout=120_000
            )
            page.close()
            for theme in ("light", "dark"):
                photograph(browser, dashboard, "home", "", (theme,))
                photograph(browser, dashboard, "run", f"run?run={third}", (theme,))
            photograph(browser, dashboard, "finished", f"run?run={first}", ("light", "dark"))
            photograph(browser, dashboard, "pictures", f"run?run={labelled}", ("light", "dark"))
            photograph(
                browser,
                dashboard,
                "physics",
                f"run?run={simulated}&tab=evaluation",
                ("light", "dark"),
                height=LONG,
            )
            photograph(browser, dashboard, "data", "data", ("light", "dark"))
            photograph(browser, dashboard, "launch", "launch", ("light", "dark"))
            photograph(browser, dashboard, "runs", "runs", ("light", "dark"))
            photograph(
                browser, dashboard, "compare", f"compare?runs={first},{second}", ("light", "dark")
            )
            photograph(
                browser,
                dashboard,
                "samples",
                f"compare?runs={first},{second}&tab=samples",
                ("light", "dark"),
            )
            photograph(
                browser,
                dashboard,
                "curves",
                f"compare?runs={first},{second}&tab=curves",
                ("light", "dark"),
            )
            photograph(
                browser,
                dashboard,
                "histograms",
                f"run?run={first}&tab=histograms",
                ("light", "dark"),
            )
            examples(browser, dashboard, home)
        finally:
            dashboard.stop()


def prepare_pictures(home: Home, folder: Path) -> None:
    """Asks for disks and squares as the data set `shapes`; the dashboard's owner prepares it,
    and the run waits for it.
    """
    bundle = folder / "shapes.zip"
    bundle.write_bytes(zipped(200))
    options = {"pixels": 32, "color": "rgb"}
    ask(home, actor=ASKER).prepare_data("pictures", "shapes", bundle, options)


def showers(home: Home, host: Host) -> str:
    """Asks for simulated showers, and for a run that learns from them; it waits for its data."""
    fewer = {"events": 1_000, "held_out_percent": 30}
    ask(home, actor=ASKER).prepare_data("showers_tiny", options=fewer)
    spec = RunSpec.parse({**PRESETS["showers"].values, **SHOWERS})
    return ask(home, host, actor=ASKER).submit(spec, "showers").run_id


def measured(browser: Browser, dashboard: Dashboard, home: Home, run_id: str) -> None:
    """Waits for the end of a run, has its showers measured after each epoch and some made of
    one energy, and waits for that.
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
    """Waits for the end of a run on its Live page."""
    page = open_page(browser, f"{dashboard.address}/run?run={run_id}")
    expect(page.get_by_text("epochs done ·")).to_be_visible(timeout=TRAINING_MS)
    page.close()


def examples(browser: Browser, dashboard: Dashboard, home: Home) -> None:
    """The pages about many runs, with the example runs that come with the project; the Paper
    page in its whole length.
    """
    runs = [run for file in bundles.examples() for run in bundles.unpack(file, home)]
    taken_in(browser, dashboard)
    both = ("light", "dark")
    checked(browser, dashboard)
    photograph(browser, dashboard, "tpu", "tpu", both, height=2400)
    compiled, precise = (
        next(run for run in runs if f"-{question}-" in run) for question in ("xla", "precision")
    )
    photograph(browser, dashboard, "compare-examples", f"compare?runs={','.join(runs[:4])}", both)
    photograph(browser, dashboard, "studies", "studies", both)
    photograph(browser, dashboard, "paper", "paper", both, height=TALL)
    flowing = next(run for run in runs if "-karman-" in run)
    photograph(browser, dashboard, "flow", f"run?run={flowing}&tab=evaluation", both, height=LONG)
    photograph(browser, dashboard, "xla", f"xla?run={compiled}", both)
    photograph(browser, dashboard, "precision", f"precision?run={precise}", both)


def taken_in(browser: Browser, dashboard: Dashboard, seconds: float = TAKING_IN_SECONDS) -> None:
    """Waits until the Studies page knows the example runs: it looks for its first study only
    when it is opened.
    """
    page = open_page(browser, f"{dashboard.address}/studies")
    deadline = time.monotonic() + seconds
    while page.get_by_text("No study is stored yet").is_visible():
        assert time.monotonic() < deadline, (
            f"no study of the example runs is stored after {seconds:.0f} s. The dashboard printed:"
            f" {dashboard.printed()}"
        )
        page.reload()
        settled(page)
    expect(page.get_by_text("runs are finished")).to_be_visible(timeout=30_000)
    page.close()


def checked(browser: Browser, dashboard: Dashboard) -> None:
    """Lets the TPU's compiler answer about the run, the other precision, the paper's batches
    and fewer cores: all of the page.
    """
    page = open_page(browser, f"{dashboard.address}/tpu")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("button", name="All compiled")).to_be_visible(
        timeout=COMPILING_SECONDS * 1_000
    )
    page.close()


def photograph(
    browser: Browser,
    dashboard: Dashboard,
    name: str,
    path: str,
    themes: tuple[str, ...],
    height: int | None = None,
) -> None:
    """One page in some themes, wide and narrow.

    `height`: of the wide window, where the page is to be seen further down.
    """
    for theme in themes:
        for width, usual in (WIDE, NARROW):
            tall = height if height and width == WIDE[0] else usual
            page = open_page(
                browser, f"{dashboard.address}/{path}", width=width, height=tall, theme=theme
            )
            complete(page)
            page.screenshot(
                path=TARGET / f"{name}-{theme}{'' if width == WIDE[0] else '-narrow'}.png"
            )
            page.close()
    print(f"photographed {name}", flush=True)


def complete(page: Page) -> None:
    """Waits for charts and images: Vega draws after Streamlit has settled."""
    settled(page)
    page.wait_for_function("() => [...document.images].every(image => image.complete)")
    page.wait_for_timeout(1_500)  # Vega's fade-in has no event to wait for


if __name__ == "__main__":
    main()
