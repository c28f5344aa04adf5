"""The Live page: zoom, actions after a run has ended, and damaged or deleted runs."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from dashboard import rendering
from dashboard.frame import session
from dashboard.run import overview, record_view
from dashboard.run import view as run_view
from dashboard.samples import sample_images
from gan_runtime.records import journal
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import folder_watcher
from gan_runtime.supervision import recovery
from tests.pages.launch_fields import filled_in
from tests.pages.reading import charts, rows_of, shown_commands, texts, titles

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]
HOSTILE = "![x](http://127.0.0.1:9/x.png)"


def test_zoom_draws_only_its_range_and_a_button_resets_it(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("run", run="quick-0001")
    title = "Generator and discriminator loss"
    assert sorted(set(rows_of(app, title)["step"])) == list(range(1, 21))
    assert "Drag across a chart to zoom in." in texts(app)
    app.session_state["run.quick-0001.window"] = (4.6, 9.3)
    app.run()
    assert sorted(set(rows_of(app, title)["step"])) == [5, 6, 7, 8, 9]
    assert sorted(set(rows_of(app, "Scores of the discriminator")["step"])) == [5, 6, 7, 8, 9]
    assert "Steps 5 to 9" in texts(app)
    next(button for button in app.button if button.label == "Show everything").click().run()
    assert sorted(set(rows_of(app, title)["step"])) == list(range(1, 21))


@pytest.mark.parametrize(
    ("page", "tab", "pictured"),
    [
        ("run", "overview", ["quick-0001"]),
        ("run", "samples", ["quick-0001"]),
        ("run", "histograms", []),
        ("compare", "results", []),
        ("compare", "curves", []),
        ("compare", "samples", ["quick-0001", "quick-0002"]),
        ("compare", "histograms", []),
    ],
)
def test_charts_and_images_have_text_alternatives(
    show: Show, trained: Make, page: str, tab: str, pictured: list[str]
) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show(
        page,
        tab=tab,
        **({"run": "quick-0001"} if page == "run" else {"runs": "quick-0001,quick-0002"}),
    )
    assert all(len(str(chart.get("description", ""))) > 20 for chart in charts(app))
    pictures = [picture for element in app.get("image") for picture in element.proto.imgs]
    assert [picture.alt for picture in pictures] == [
        f"Generated images of {name} after epoch 2." for name in pictured
    ]


def test_a_stalled_run_shows_a_warning(show: Show, running: RunDir) -> None:
    sentence = "It lives and does not train: nothing new for 201 s. Look at its log."
    journal.append(
        running.supervisor_journal,
        1,
        journal.Event(level="warning", topic=recovery.STALLED, message=sentence),
    )
    assert [warning.value for warning in show("run", run=running.run_id).warning] == [sentence]


def test_viewers_share_cached_charts_until_a_run_ends(
    show: Show, running: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "OLD", 1e6)  # age alone rebuilds nothing
    monkeypatch.setattr(folder_watcher, "TRAINING_SECONDS", 0.0)

    def trained(first_step: int, *records: StatusChange) -> None:
        values = {name: [1.0, 2.0] for name in ("loss_generator", "loss_discriminator")}
        wall_s = [float(first_step), first_step + 1.0]
        numbers = journal.Scalars(epoch=1, first_step=first_step, wall_s=wall_s, values=values)
        journal.append(running.trainer_journal(), 1, numbers, *records)

    def steps(app: AppTest) -> list[int]:
        assert not app.exception
        return sorted(set(rows_of(app, "Generator and discriminator loss")["step"]))

    journal.append(
        running.trainer_journal(), 1, journal.AttemptPlan(images=64, steps_per_epoch=6, epochs=1)
    )
    trained(1)
    app = show("run", run=running.run_id)
    assert steps(app) == [1, 2]
    trained(3)
    session.shared_runtime().refresh()
    assert steps(app.run()) == [1, 2]
    trained(5, StatusChange(status="finished", reason="its one epoch is done"))
    session.shared_runtime().refresh()
    assert steps(app.run()) == [1, 2, 3, 4, 5, 6]
    assert "step 6 of 6" in [bar.proto.text for bar in app.get("progress")]


def test_a_finished_run_offers_rerun_and_comparison_with_the_previous(
    show: Show, trained: Make
) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10, learning_rate_generator=0.00123456789, seed=7)
    app = show("run", run="quick-0002")
    link = next(
        link.proto
        for link in app.get("page_link")
        if link.proto.label == "Compare with the previous run"
    )
    assert link.query_string == "runs=quick-0001%2Cquick-0002"
    next(button for button in app.button if button.label == "Run again with changes").click().run()
    assert not app.exception
    assert app.title[0].value == "Launch"
    assert "--set seed=7" in shown_commands(app)[0]
    assert filled_in(app, "seed") == "7"
    assert float(filled_in(app, "learning_rate_generator")) == 0.00123456789


def test_a_run_deleted_while_its_page_is_open_is_reported(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("run", run="quick-0001")
    runtime = session.runtime()
    assert run_view.current(runtime.store, "quick-0001") is not None
    runtime.commands.delete("quick-0001")
    assert run_view.current(runtime.store, "quick-0001") is None
    app.run()
    assert not app.exception
    assert "'quick-0001' is not stored here. This page shows quick-0002" in texts(app)


def test_markup_in_an_address_is_escaped(show: Show, trained: Make) -> None:
    trained("quick-0001")
    for page, query in (("run", {"run": HOSTILE}), ("compare", {"runs": HOSTILE})):
        app = show(page, **query)
        assert not app.exception
        assert "not stored here" in texts(app).lower()
        assert "![x](" not in texts(app)


def test_compare_names_unknown_runs_and_merges_duplicates(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", runs="quick-0001,quick-0001,quick-0099,quick-0002")
    assert not app.exception
    assert app.multiselect(key="compare.runs").value == ["quick-0001", "quick-0002"]
    assert "Not stored here: quick-0099." in texts(app)


def test_a_damaged_sample_grid_is_reported_on_every_page(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    assert not show("run", run="quick-0001").exception
    with session.runtime().store.transaction() as writer:
        writer.execute("UPDATE ingest.samples SET png = ?", [b"\x89PNG\r\n\x1a\n no picture"])
    for page, query in (
        ("home", {}),
        ("run", {"run": "quick-0001"}),
        ("run", {"run": "quick-0001", "tab": "samples"}),
        ("compare", {"runs": "quick-0001,quick-0002", "tab": "samples"}),
    ):
        app = show(page, **query)
        assert not app.exception
        assert "are damaged" in texts(app), page


def test_is_image_requires_a_complete_png_of_drawable_size() -> None:
    file = io.BytesIO()
    Image.fromarray(np.arange(900, dtype=np.uint8).reshape(30, 30)).save(file, format="PNG")
    whole = file.getvalue()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    huge = io.BytesIO()
    Image.new("1", (30_000, 30_000)).save(huge, format="PNG")
    judged = [
        sample_images.is_image(png)
        for png in (whole, whole[:-30], bytes(flipped), b"text", b"", huge.getvalue())
    ]
    assert judged == [True, False, False, False, False, False]


def test_host_facts_are_readable() -> None:
    facts = {
        "cores": 2,
        "memory_bytes": 25_276_502_016,
        "versions": {"numpy": "2.4.6", "ml_dtypes": "0.6.0"},
        "uncommitted_changes": False,
        "parameters": {"generator": 2_330_944},
        "devices": ["CPU:0", "CPU:1"],
        "something_new": None,
    }
    assert record_view.host_facts(facts) == [
        ("Cores", "2"),
        ("Memory", "25.3 GB"),
        ("Packages", "numpy 2.4.6, ml dtypes 0.6.0"),
        ("Changes since the commit", "no"),
        ("Weights", "generator 2,330,944"),
        ("Devices", "CPU:0, CPU:1"),
        ("Something new", "–"),
    ]


def test_the_log_omits_startup_noise_unless_all_lines_are_requested(
    show: Show, trained: Make
) -> None:
    run = trained("quick-0001")
    noise = [
        "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
        "I0000 00:00:1795341020.543478   19548 port.cc:153] oneDNN custom operations are on.",
        (
            "E0000 00:00:1795341027.728657   19548 cuda_platform.cc:52] failed call to cuInit:"
            " INTERNAL: CUDA error"
        ),
        (
            "2026-11-22 10:00:00.123456: I tensorflow/core/platform/cpu_feature_guard.cc:210] This"
            " TensorFlow binary"
        ),
    ]
    messages = [
        "digits: 1797 images",
        "E0000 00:00:1795341027.7 1 gpu.cc:1] out of memory",
        "ValueError: I0000 is no number",
    ]
    assert record_view.without_noise([*noise, *messages]) == messages
    run.log.write_text("\n".join([*noise, *messages]), encoding="utf-8")
    app = show("run", run="quick-0001", tab="log")
    assert app.code[0].value == "\n".join(messages)
    app.toggle(key="all_lines.quick-0001").set_value(True).run()
    assert app.code[0].value == "\n".join([*noise, *messages])


def test_event_times_use_the_time_zone_of_the_browser(show: Show, trained: Make) -> None:
    run = trained("quick-0001")
    recorded = journal.Event(
        at=datetime(2026, 7, 1, 12, tzinfo=UTC), level="info", topic="note", message="noon"
    )
    journal.append(run.trainer_journal(), 1, recorded)
    app = show("run", run="quick-0001", tab="log")
    app.context["timezone"] = "Europe/Berlin"
    app.run()
    events = app.dataframe[0].value
    assert list(events.columns) == ["Time (Europe/Berlin)", "Level", "Kind", "Message", "Attempt"]
    assert "2026-07-01 14:00:00" in set(events["Time (Europe/Berlin)"])


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "a\0b"])
def test_event_times_are_in_utc_for_a_zone_that_no_browser_names(
    show: Show, trained: Make, zone: str
) -> None:
    trained("quick-0001")
    app = show("run", run="quick-0001", tab="log")
    app.context["timezone"] = zone
    app.run()
    assert not app.exception
    assert app.dataframe[0].value.columns[0] == "Time (UTC)"


def test_scores_of_each_class_are_drawn_on_live_and_offered_on_compare(
    show: Show, trained: Make
) -> None:
    scores = {f"score/{side}/{name}": 0.5 for side in ("real", "fake") for name in ("cat", HOSTILE)}
    records = (
        journal.EpochScores(epoch=epoch, step=10 * epoch, wall_s=10.0 * epoch, values=scores)
        for epoch in (1, 2)
    )
    journal.append(trained("quick-0001").trainer_journal(), 1, *records)
    trained("quick-0002", seconds=10)
    app = show("run", run="quick-0001")
    assert not app.exception
    for side in ("real", "generated"):
        rows = rows_of(app, f"Scores of {side} images, by class", name="")
        assert sorted(zip(rows["epoch"], rows["series"], strict=True)) == [
            (epoch, name) for epoch in (1, 2) for name in (HOSTILE, "cat")
        ]
    assert not any("by class" in title for title in titles(show("run", run="quick-0002")))
    compare = show("compare", tab="curves", runs="quick-0001,quick-0002")
    compare.multiselect(key="compare.metrics").set_value(["score/real/cat"]).run()
    assert not compare.exception
    assert titles(compare)[2] == "Scores of real images: cat"


def test_a_run_lost_in_its_first_epoch_still_shows_its_steps(show: Show, new_run: Make) -> None:
    run = new_run("quick-0001")
    journal.append(
        run.trainer_journal(),
        1,
        StatusChange(status="running", reason="training"),
        journal.Scalars(
            epoch=1,
            first_step=1,
            wall_s=[1.0, 2.0],
            values={"loss_generator": [0.9, 0.8], "loss_discriminator": [1.1, 1.2]},
        ),
        StatusChange(status="lost", reason="the trainer process is gone without a word"),
    )
    app = show("run", run="quick-0001")
    assert not app.exception
    assert "Generator and discriminator loss" in titles(app)
    assert overview.NOT_RECORDED in texts(app), "no epoch has ended"
    assert "first step" not in texts(app)


def test_chart_space_is_reserved_before_the_first_rows(show: Show, running: RunDir) -> None:
    app = show("run", run=running.run_id)
    assert not app.exception
    heights = {block.proto.height_config.pixel_height for block in app.get("container")} - {0}
    assert heights == {
        34,
        260,
        400,
        580,
    }, "a line for the zoom, three small charts, the losses, two rows of Health"


@pytest.mark.parametrize(("highest", "scale"), [(2.0, "linear"), (12_000.0, "log")])
def test_a_spike_does_not_flatten_the_losses(
    show: Show, running: RunDir, highest: float, scale: str
) -> None:
    losses = [1.0 + step / 100 for step in range(40)] + [highest]
    steps = [float(step) for step in range(1, 42)]
    values = dict.fromkeys(("loss_generator", "loss_discriminator"), losses)
    scalars = journal.Scalars(epoch=1, first_step=1, wall_s=steps, values=values)
    journal.append(running.trainer_journal(), 1, scalars)
    [spec] = [
        str(chart) for chart in charts(show("run")) if "Generator and discriminator" in str(chart)
    ]
    assert ("'type': 'log'" in spec) == ("(log)" in spec) == (scale == "log")
