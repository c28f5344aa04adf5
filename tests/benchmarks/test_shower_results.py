"""The table and the image of the example showers, from the measurements of a job."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import shower_results
from gan_runtime.domains.showers.score_metrics import Estimate
from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir
from tests.support.measured_showers import measured


@pytest.fixture
def run(new_run: Callable[..., RunDir]) -> RunDir:
    """A run of two epochs of half a minute each, measured before training, after the first epoch,
    and twice after the second.
    """
    run_folder = new_run("showers-0001", workload="shower_3dgan", dataset="showers_tiny", seed=3)
    epochs = [
        journal.EpochDone(epoch=epoch, step=10 * epoch, seconds=30.0, images=80, images_per_s=2.7)
        for epoch in (1, 2)
    ]
    journal.append(run_folder.trainer_journal(), 1, *epochs)
    measured(run_folder, 0, 1, 2, fault=0.3)
    measured(run_folder, 2, fault=0.1)
    return run_folder


def test_the_newest_measurement_is_next_to_untrained_noise_and_floor(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shower_results, "noise", lambda: {"fpd": Estimate(7.0, 0.5)})
    lines = [line.split(" | ") for line in shower_results.table([run]).splitlines()]
    assert [line[0] for line in lines[2:]] == [
        "| seed 3, epoch 2",
        "| untrained, mean",
        "| noise",
        "| floor",
    ]
    assert [line[1] for line in lines[2:4]] == ["1.0", "0"]
    fraction = [line[2] for line in lines[2:]]
    last, untrained = shower_results.measurements(run)[-1], shower_results.measurements(run)[0]
    of_fraction = [record.scores[0] for record in (last, untrained)]
    assert [score.name for score in of_fraction] == ["sampling_fraction"] * 2
    assert fraction[0].startswith(f"{of_fraction[0].value:.2%}")
    assert fraction[1] == f"{of_fraction[1].value:.2%}"
    assert fraction[2] == "–"
    assert "7.0 ± 0.5" in lines[4]


def test_noise_has_correct_energies_but_wrong_profiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shower_results, "SHOWERS", 50)
    noise = shower_results.noise()
    assert noise["sampling_fraction"].value < 0.05
    assert noise["profile_x"].value > 0.3


def test_the_image_shows_simulated_and_generated_showers_side_by_side(run: RunDir) -> None:
    picture = shower_results.image_of(shower_results.measurements(run)[-1])
    assert picture.width > 400
    assert picture.getcolors(1_000) is not None
    assert len(picture.getcolors(1_000)) > 20
