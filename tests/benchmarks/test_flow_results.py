"""The table and the image of the example flows, from the measurements of a job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import flow_results
from gan_runtime.records import image_files, journal
from gan_runtime.records.answer import ArrayFile
from gan_runtime.records.run_folder import RunDir
from tests.support.measured_flows import frames, iteration


@pytest.fixture
def run(new_run: Callable[..., RunDir]) -> RunDir:
    """A run with two map-reduce rollouts of one held-out flow, one of another flow, and one
    whole-image rollout.
    """
    run_folder = new_run("karman-0001", workload="pix2pix", dataset="karman_small", tile=16, seed=3)
    for number, way, trajectory, error in (
        (1, "map_reduce", 0, 0.3),
        (2, "map_reduce", 0, 0.1),
        (3, "map_reduce", 1, 0.2),
        (4, "whole", 1, 0.4),
    ):
        flow = iteration(2, way, number=number, error=error)
        file = image_files.write_film(run_folder, f"{flow.iteration}-{way}", frames())
        facts = {
            "trajectory": trajectory,
            "film": f"Re {100 + 20 * trajectory}",
            "frames": file,
        }
        journal.append(run_folder.earlier_journal("flow"), 1, flow.model_copy(update=facts))
    return run_folder


def test_each_flow_has_a_row_with_its_newest_map_reduce_rollout(run: RunDir) -> None:
    assert [answer.facts["iteration"] for answer in flow_results.rollouts(run)] == [
        "iterate-0002",
        "iterate-0003",
    ]
    head, _, *lines = (
        line[2:-2].split(" | ") for line in flow_results.table([run, run]).splitlines()
    )
    assert head[0] == "Flow (seeds 3, 3)"
    assert [line[0] for line in lines] == ["Re 100", "Re 120"]
    assert lines[0][1:] == [
        *("0.050, 0.050", "0.150", "0.250"),
        *("0.50, 0.50", "0.15", "0.10"),
        "8.0, 8.0",
        *("5.9%, 5.9%", "nan%"),
    ]


def test_the_image_shows_true_and_predicted_flow_side_by_side(run: RunDir) -> None:
    frame_set = frames()
    image_files.write_film(run, "other", replace(frame_set, predicted=-frame_set.predicted))
    flow = flow_results.rollouts(run)[0].model_copy(
        update={"arrays": [ArrayFile(name="frames", file="flow/other.npz")]}
    )
    picture = np.asarray(flow_results.image_of(run, flow))
    height, width = frame_set.truth.shape[1:3]
    rows = [step for step in flow_results.STEPS if step <= 20]
    assert picture.shape[:2] == (
        len(rows) * (height + flow_results.MARGIN) * flow_results.PIXELS,
        2 * (width + flow_results.MARGIN) * flow_results.PIXELS,
    )
    left, right = np.split(picture, 2, axis=1)
    assert not np.array_equal(left, right)
