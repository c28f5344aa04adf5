"""The XLA and Precision pages for runs that differ only in that option."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from gan_runtime.bundles import event_files, tensorboard
from gan_runtime.bundles.event_files import StepEvent
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from tests.pages.reading import charts, shown_commands, texts, titles

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


@pytest.fixture
def measured(trained: Make) -> Make:
    """Creates a finished run with the phases of an attempt: `measured("quick-0001", compile=2.0,
    steady=0.1, xla="jit")`.
    """

    def make(
        run_id: str, compile: float, steady: float, profiled: bool = False, **options: object
    ) -> RunDir:
        run = trained(run_id, seconds=float(run_id[-1]), **options)
        times = {"first_call": compile + steady, "compile": compile, "steady_step": steady}
        journal.append(
            run.trainer_journal(),
            1,
            *(journal.PhaseSeconds(phase=phase, seconds=value) for phase, value in times.items()),
        )
        if profiled:
            share = journal.TimeShare(
                network="generator", category="forward", seconds=1.0, share=1.0
            )
            journal.append(
                run.trainer_journal(),
                1,
                journal.Profile(step=18, steps=5, seconds=1.0, shares=[share]),
            )
        return run

    return make


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("studies/xla", "once with XLA off and once with XLA jit"),
        ("studies/precision", "once with float32 and once with mixed bfloat16"),
    ],
)
def test_an_empty_page_names_the_runs_to_start(show: Show, page: str, sentence: str) -> None:
    app = show(page)
    assert not app.exception
    assert sentence in texts(app)
    assert charts(app) == []


def test_a_run_without_a_counterpart_shows_the_command_for_one(show: Show, measured: Make) -> None:
    run = measured("quick-0001", compile=1.0, steady=0.1)
    app = show("studies/xla")
    assert not app.exception
    assert shown_commands(app)[0].endswith(f"train --spec {run.spec_path} --set xla=jit")


@pytest.mark.parametrize(
    ("page", "setting"), [("xla", "xla=jit"), ("precision", "precision=mixed_bfloat16")]
)
def test_imported_run_is_not_offered_as_a_partner(
    show: Show, home: Home, measured: Make, tmp_path: Path, page: str, setting: str
) -> None:
    run = measured("quick-0001", compile=1.0, steady=0.1, precision="float32")
    with (tmp_path / "events.out.tfevents.1.host").open("wb") as file:
        event_files.write(file, [StepEvent(1.8e9, 1, {"loss": 1.0})])  # later than the other run
    tensorboard.import_folder(tmp_path, home)
    app = show(f"studies/{page}")
    assert not app.exception
    assert shown_commands(app)[0].endswith(f"train --spec {run.spec_path} --set {setting}")


def test_xla_page_shows_after_how_many_steps_compiling_pays_off(show: Show, measured: Make) -> None:
    measured("quick-0001", compile=1.0, steady=0.1, losses=(0.9, 1.1))
    measured("quick-0002", compile=3.0, steady=0.05, losses=(0.8, 1.1), xla="jit")
    app = show("studies/xla")
    assert not app.exception
    assert titles(app) == ["When is compiling paid back?", "Generator loss", "Discriminator loss"]
    assert (
        "**XLA jit** has paid back its compiling after 40 steps (5.0 s) against XLA off"
        in texts(app)
    )
    assert app.dataframe[0].value.to_dict("list") == {
        "Variant": ["XLA off", "XLA jit"],
        "Runs": ["1", "1"],
        "Trace": ["900 ms", "900 ms"],
        "First call": ["1.1 s", "3.05 s"],
        "Compile": ["1 s", "3 s"],
        "Steady step": ["100 ms", "50 ms"],
        "Images/s": ["320", "640"],
        "Speed": ["1.00 ×", "2.00 ×"],
        "Memory, peak": ["–", "–"],
    }
    assert (
        "XLA jit against XLA off, 20 steps: 0.1 nats apart on average, at most 0.1 at step 1."
        in texts(app)
    )
    assert "'Profile steps' on Launch" in texts(app)


def test_slower_precision_never_pays_off(show: Show, measured: Make) -> None:
    measured("quick-0001", compile=1.0, steady=0.1, precision="float32", profiled=True)
    measured("quick-0002", compile=1.5, steady=0.2, precision="mixed_bfloat16", seed=7)
    app = show("studies/precision")
    assert not app.exception
    assert "**mixed bfloat16** never pays back against float32" in texts(app)
    assert "Where does a step's time go?" in titles(app)
    assert "No two of these runs have the same seed" in texts(app)


def test_a_tab_begins_with_the_answer_to_its_question(show: Show, measured: Make) -> None:
    measured("quick-0001", compile=1.0, steady=0.1, precision="float32")
    measured("quick-0002", compile=1.5, steady=0.2, precision="mixed_bfloat16")
    app = show("studies/precision")
    assert not app.exception
    assert titles(app) == ["Generator loss", "Discriminator loss", "When is compiling paid back?"]


def test_the_address_selects_the_set_of_runs(show: Show, measured: Make) -> None:
    for number, (replicas, xla) in enumerate(
        [(2, "off"), (2, "jit"), (1, "off"), (1, "jit")], start=1
    ):
        measured(f"quick-000{number}", compile=1.0, steady=0.1 * number, xla=xla, replicas=replicas)
    newest, page = show("studies/xla"), show("studies/xla", run="quick-0002")
    assert newest.dataframe[0].value["Steady step"].tolist() == ["300 ms", "400 ms"]
    assert page.dataframe[0].value["Steady step"].tolist() == ["100 ms", "200 ms"]
    assert newest.selectbox[0].value == "quick-0003"


def test_kernel_counts_are_shown_once_recorded(show: Show, measured: Make) -> None:
    plain = measured("quick-0001", compile=1.0, steady=0.1)
    jit = measured("quick-0002", compile=3.0, steady=0.05, xla="jit")
    none = {"kernels_before": None, "kernels_after": None, "fusions": None}
    journal.append(plain.trainer_journal(), 1, journal.KernelCounts(operations=1_800, **none))  # type: ignore[arg-type]
    counts = journal.KernelCounts(
        operations=1_900, kernels_before=420, kernels_after=96, fusions=71
    )
    journal.append(jit.trainer_journal(), 1, counts)
    app = show("studies/xla")
    assert not app.exception
    assert app.dataframe[1].value.to_dict("list") == {
        "Variant": ["XLA off", "XLA jit"],
        "Operations traced": ["1,800", "1,900"],
        "Kernels before XLA": ["–", "420"],
        "Kernels after XLA": ["–", "96"],
        "Of these, fusions": ["–", "71"],
    }
