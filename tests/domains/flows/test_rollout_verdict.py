"""What a rollout says of its model."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from gan_runtime.domains.flows.rollout_verdict import verdict
from gan_runtime.records import journal
from gan_runtime.records.answer import Score
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import ingest, queries
from gan_runtime.training.verdict import Finding, MeasuredAnswer
from tests.support.measured_flows import iteration


def answer(value: float, spectrum: float = math.nan, **baselines: float) -> MeasuredAnswer:
    scores = {
        "rmse": Score(name="rmse", value=value, baselines=baselines),
        "spectrum": Score(name="spectrum", value=spectrum, baselines={"replay": 0.084}),
    }
    return MeasuredAnswer("rollout", 3, scores)


@pytest.mark.parametrize(
    ("value", "finding"),
    [
        (0.31, Finding.UNLIKE),
        (0.30, Finding.UNLIKE),
        (0.29, Finding.PARTIAL),
        (0.15, Finding.PARTIAL),
        (0.14, Finding.MEASURED),
    ],
)
@pytest.mark.parametrize("copied", ["reference", "persistence"])
def test_a_model_is_judged_against_predictions_without_one(
    value: float, finding: Finding, copied: str
) -> None:
    said = verdict(answer(value, replay=0.15, **{copied: 0.3}))
    assert said is not None
    assert said.finding is finding


def test_a_replay_worse_than_the_copied_frame_does_not_make_a_model_good() -> None:
    said = verdict(answer(0.35, reference=0.3, replay=0.4))
    assert said is not None
    assert said.finding is Finding.UNLIKE
    assert said.sentence() == (
        "Unlike the data after epoch 3: Root mean square error 0.3500, not below that of the copied"
        " start frame (0.3000), below that of the replay (0.4000)."
    )


def test_an_error_of_the_spectrum_above_that_of_the_replay_counts() -> None:
    good, bad = (verdict(answer(0.1, spectrum, reference=0.3)) for spectrum in (0.08, 0.439))
    assert good is not None
    assert bad is not None
    assert (good.finding, bad.finding) == (Finding.MEASURED, Finding.PARTIAL)
    assert bad.evidence == (
        "Root mean square error 0.1000, below that of the copied start frame (0.3000);"
        " Error of the spectrum 0.439, not below that of the replay (0.084)"
    )


def test_without_other_predictions_the_error_is_given_alone() -> None:
    said = verdict(answer(0.14))
    assert said is not None
    assert (said.finding, said.evidence) == (Finding.MEASURED, "Root mean square error 0.1400")
    assert verdict(answer(math.nan)) is None
    assert verdict(MeasuredAnswer("rollout", 3, {})) is None


@pytest.mark.parametrize(
    ("error", "finding"), [(0.4, Finding.UNLIKE), (0.2, Finding.PARTIAL), (0.1, Finding.MEASURED)]
)
def test_the_verdict_of_a_stored_run_reads_them(
    home: Home, new_run: Callable[..., RunDir], error: float, finding: Finding
) -> None:
    run = new_run("karman-0001", workload="pix2pix")
    measured = iteration(steps=1, error=error)
    short = [score for score in measured.scores if score.name not in ("rmse_period", "spectrum")]
    journal.append(run.earlier_journal("flow"), 1, measured.model_copy(update={"scores": short}))
    verdicts = queries.verdicts(ingest.store_of(home), ("karman-0001",))
    assert verdicts["karman-0001"].finding is finding
