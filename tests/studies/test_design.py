"""Study designs: their runs, the order of the runs, and refused designs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gan_runtime import catalog
from gan_runtime.base.errors import SpecError
from gan_runtime.spec import RunSpec
from gan_runtime.studies.design import QUESTIONS, StudyDesign
from gan_runtime.studies.statistics import level_of_each, student_interval

SMALL = {"workload": "mlp_gan", "epochs": 2, "seed": 5}


def test_every_other_repeat_is_reversed_and_each_has_its_own_seed() -> None:
    design = StudyDesign.parse("batch_size", SMALL, ["64", "128"], repeats=2)
    assert [
        (run.variant, run.index, run.repeat, run.spec.batch_size_global, run.spec.seed)
        for run in design.runs
    ] == [
        ("batch 64", 0, 1, 64, 5),
        ("batch 128", 1, 1, 128, 5),
        ("batch 128", 1, 2, 128, 6),
        ("batch 64", 0, 2, 64, 6),
    ]
    assert [run.spec.name for run in design.runs] == [
        "batch 64 seed 5",
        "batch 128 seed 5",
        "batch 128 seed 6",
        "batch 64 seed 6",
    ]
    assert {(run.spec.workload, run.spec.epochs) for run in design.runs} == {("mlp_gan", 2)}


@pytest.mark.parametrize("repeats", [2, 3, 8])
@pytest.mark.parametrize("values", [["64", "128"], ["64", "128", "256"]])
def test_machine_that_slows_down_steadily_makes_no_variant_clearly_slower(
    values: list[str], repeats: int
) -> None:
    """Each run is 1% slower than the one before, with 1% of noise; in the order A B A B 41% of
    studies of two equal variants are clear at 8 repeats.
    """
    design = StudyDesign.parse("batch_size", SMALL, values, repeats)
    places = {(run.index, run.repeat): place for place, run in enumerate(design.runs)}
    noise = np.random.default_rng(repeats).normal(0.0, 0.01, (len(values), 20_000, repeats))
    for index in range(1, len(values)):
        behind = [places[index, repeat] - places[0, repeat] for repeat in range(1, repeats + 1)]
        log_ratios = 0.01 * np.asarray(behind) + noise[index] - noise[0]
        _, low, high = student_interval(log_ratios, level_of_each(len(values) - 1))
        clear = np.mean((low > 0.0) | (high < 0.0))
        assert clear <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 20_000)


def test_learning_rates_of_both_networks_vary_together() -> None:
    design = StudyDesign.parse("learning_rate", SMALL, ["0.0001", "3e-4"])
    rates = [
        (run.spec.learning_rate("generator"), run.spec.learning_rate("discriminator"))
        for run in design.runs
    ]
    assert rates == [(1e-4, 1e-4), (3e-4, 3e-4)]
    assert [run.variant for run in design.runs] == ["rate 0.0001", "rate 0.0003"]


def test_compound_value_sets_each_option() -> None:
    design = StudyDesign.parse("devices", SMALL, ["cpu:1", "tpu:8"])
    assert [(run.variant, run.spec.accelerator, run.spec.replicas) for run in design.runs] == [
        ("cpu x1", "cpu", 1),
        ("tpu x8", "tpu", 8),
    ]
    for wrong in ("cpu", "cpu:", "cpu:1:1"):
        with pytest.raises(SpecError) as refused:
            StudyDesign.parse("devices", SMALL, ["cpu:1", wrong])
        assert "replicas is" in refused.value.by_field()["values"]


def test_questions_vary_existing_options_and_have_valid_default_values() -> None:
    for name, question in QUESTIONS.items():
        assert set(question.varied(catalog.WORKLOADS["mlp_gan"])) <= set(RunSpec.options("mlp_gan"))
        design = StudyDesign.parse(name, {**SMALL, "batch_size_global": 64})
        assert len(design.runs) == len(question.values) >= 2
        assert design.title == question.title
        for run in design.runs:  # their names, built from the labels, are valid too
            assert RunSpec.parse(run.spec.model_dump(mode="json")) == run.spec


@pytest.mark.parametrize(
    ("question", "values", "repeats", "field", "sentence"),
    [
        (
            "batch",
            ["1", "2"],
            1,
            "question",
            (
                "question is 'batch', but allowed is batch_size, batch_updates, xla, precision,"
                " replicas, workers, loop, learning_rate, schedule, devices, seed: pick one of"
                " them."
            ),
        ),
        (
            "batch_size",
            ["64"],
            1,
            "values",
            "values has 1 value(s), but a study compares at least 2: try 64,128,256,512.",
        ),
        (
            "batch_size",
            ["64", "064"],
            1,
            "values",
            "values has batch 64 twice: give each value once.",
        ),
        (
            "batch_size",
            ["64", "128"],
            0,
            "repeats",
            "repeats is 0, but allowed is 1 to 20: 2 give an interval, and more make it narrower.",
        ),
        (
            "seed",
            ["1", "2"],
            2,
            "repeats",
            "repeats is 2, but each seed is a repeat already: use repeats=1.",
        ),
        (
            "batch_size",
            [str(number) for number in range(1, 102)],
            2,
            "values",
            "the study has 202 runs, but allowed are 200: use fewer values or repeats.",
        ),
        (
            "batch_size",
            ["64", "many"],
            1,
            "values",
            (
                "Global batch (batch_size_global) is 'many', but allowed is a whole number from 1"
                " to 65536: use a multiple of replicas × workers."
            ),
        ),
        (
            "replicas",
            ["1", "3"],
            1,
            "batch_size_global",
            (
                "Global batch (batch_size_global) is 256, but 3 replicas need a multiple of 3: use"
                " 255 or 258."
            ),
        ),
    ],
)
def test_invalid_study_is_refused_with_an_explanation(
    question: str, values: list[Any], repeats: int, field: str, sentence: str
) -> None:
    with pytest.raises(SpecError) as refused:
        StudyDesign.parse(question, SMALL, values, repeats)
    assert refused.value.by_field() == {field: sentence}


def test_loop_question_requires_tensorflow() -> None:
    design = StudyDesign.parse("loop", SMALL)
    assert [(run.variant, run.spec.loop) for run in design.runs] == [
        ("keras loop", "keras"),
        ("custom loop", "custom"),
    ]
    with pytest.raises(SpecError, match="is keras, but engine=jax has its own loop"):
        StudyDesign.parse("loop", {**SMALL, "engine": "jax"})


def test_xla_question_is_refused_for_jax() -> None:
    with pytest.raises(SpecError) as refused:
        StudyDesign.parse("xla", {**SMALL, "engine": "jax"})
    assert refused.value.by_field()["question"].startswith(
        "question is xla, but engine=jax compiles every step"
    )
