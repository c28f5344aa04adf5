"""Workload options: their place in a spec, and their errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gan_runtime import catalog
from gan_runtime.base.errors import DatasetError, FieldError, SpecError
from gan_runtime.base.fields import Fields
from gan_runtime.base.metrics import Network
from gan_runtime.base.options import OptionRecord, option
from gan_runtime.catalog import pairs
from gan_runtime.catalog.entries import Judgement, Picture, Size, WorkloadEntry
from gan_runtime.data import loading
from gan_runtime.spec import RunSpec, nesting
from gan_runtime.studies.design import StudyDesign
from gan_runtime.supervision.queue import changeable


class CriticOptions(OptionRecord):
    """Options of a third-party workload: other networks, other batches per step, one name that
    pairs also have.
    """

    stranger_steps: int = option(5, label="Stranger steps", help="k.", error="use 5.", ge=1, le=100)
    label_smoothing: float = option(0.2, label="Smoothing", help="s.", error="use 0.2.", ge=0, le=1)
    learning_rate_critic: float = option(
        1e-3, label="Rate, critic", help="r.", error="use 1e-3.", gt=0, le=1
    )
    learning_rate_painter: float = option(
        1e-4, label="Rate, painter", help="r.", error="use 1e-4.", gt=0, le=1
    )


def critic_is_not_rushed(stranger_steps: int, batch_size_global: int) -> FieldError | None:
    """A rule that reads a workload option and a shared option."""
    if stranger_steps * batch_size_global <= 10_000:
        return None
    return FieldError(
        "stranger_steps", f"stranger_steps is {stranger_steps}, but the batch is large: use fewer."
    )


def reads_nothing(_options: Any, _offered: Fields) -> Fields:
    raise DatasetError("it reads spectra, and the data set has none: choose another.")


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> str:
    """A third-party workload."""
    entry = WorkloadEntry(
        title="A critic and a painter",
        summary="",
        source="",
        module="nowhere",
        options=CriticOptions,
        networks=(Network("critic", "Critic"), Network("painter", "Painter")),
        metrics=(),
        judgements=(Judgement("real", "", ""),),
        pictures=(Picture("samples", "", "grey_grid", ("images",)),),
        averaged="painter",
        reads=reads_nothing,
        batches=lambda options: int(options.stranger_steps),
        size=lambda _options, _fields: Size(1, 1),
        rules=(critic_is_not_rushed,),
    )
    monkeypatch.setitem(catalog.WORKLOADS, "stranger", entry)
    return "stranger"


def messages(values: dict[str, Any]) -> dict[str, str]:
    """The error messages for an invalid spec, by field."""
    with pytest.raises(SpecError) as refused:
        RunSpec.parse(values)
    return refused.value.by_field()


# ---- nested and flat options ---------------------------------------------------------------------


def test_workload_options_are_nested_under_the_workload_name() -> None:
    spec = RunSpec.parse({"workload": "mlp_gan", "mlp_gan": {"label_smoothing": 0.1}})
    assert spec.of_workload == pairs.PairOptions(label_smoothing=0.1)
    assert spec.model_dump()["mlp_gan"]["label_smoothing"] == 0.1
    assert "label_smoothing" not in spec.model_dump()
    assert RunSpec.parse(spec.model_dump()) == spec == RunSpec(**spec.model_dump())


@pytest.mark.parametrize(
    "document",
    [
        {"label_smoothing": "0.1"},
        {"dcgan_mnist.label_smoothing": "0.1"},
        {"dcgan_mnist": {"label_smoothing": 0.1}},
        {"dcgan_mnist": {"label_smoothing": 0.3}, "label_smoothing": 0.1},
    ],
)
def test_flat_dotted_and_nested_options_are_equivalent(document: dict[str, Any]) -> None:
    assert RunSpec.parse(document) == RunSpec.parse({"dcgan_mnist": {"label_smoothing": 0.1}})


def test_an_option_is_read_by_its_plain_or_qualified_name() -> None:
    spec = RunSpec.parse({"label_smoothing": 0.1, "epochs": 3})
    assert (spec.value("epochs"), spec.value("label_smoothing")) == (3, 0.1)
    assert spec.value("dcgan_mnist.label_smoothing") == 0.1
    with pytest.raises(KeyError):
        spec.value("stranger_steps")


def test_a_copy_keeps_the_workload_options() -> None:
    spec = RunSpec.parse({"label_smoothing": 0.1})
    assert spec.model_copy(update={"seed": 7}).of_workload.label_smoothing == 0.1
    assert spec.changed_from_default() == {"label_smoothing": 0.1}


def test_a_custom_workload_defines_its_networks_batches_and_rules(stranger: str) -> None:
    spec = RunSpec.parse({"workload": stranger, "stranger_steps": 3, "batch_size_global": 64})
    assert (spec.learning_rate("critic"), spec.learning_rate("painter")) == (1e-3, 1e-4)
    assert (spec.batches_per_step, spec.images_per_step, spec.steps_per_epoch(1_797)) == (3, 192, 9)
    assert changeable(stranger) == ("learning_rate_critic", "learning_rate_painter", "clip_norm")
    rushed = {"workload": stranger, "stranger_steps": 100, "batch_size_global": 512}
    assert messages(rushed) == {
        "stranger_steps": "stranger_steps is 100, but the batch is large: use fewer."
    }


def test_a_workload_can_have_no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = replace(catalog.WORKLOADS["mlp_gan"], options=OptionRecord, rules=())
    monkeypatch.setitem(catalog.WORKLOADS, "plain", plain)
    spec = RunSpec.parse({"workload": "plain"})
    assert RunSpec.parse(spec.model_dump()) == spec
    assert messages({"workload": "plain", "plain": 3})["plain"].startswith(
        "plain is not an option of a run"
    )


def test_a_learning_rate_study_sets_the_rates_of_the_workload_networks(stranger: str) -> None:
    design = StudyDesign.parse("learning_rate", {"workload": stranger}, [0.1, 0.2])
    assert [run.spec.learning_rate("critic") for run in design.runs] == [0.1, 0.2]
    assert [run.variant for run in design.runs] == ["rate 0.1", "rate 0.2"]


# ---- errors --------------------------------------------------------------------------------------


def test_all_errors_are_reported_together() -> None:
    wrong = {
        "epochs": 0,
        "dcgan_mnist": {"label_smoothing": 2, "updates": "often"},
        "mlp_gan": {},
        "zzz": 1,
    }
    assert set(messages(wrong)) == {"epochs", "label_smoothing", "updates", "mlp_gan", "zzz"}


@pytest.mark.parametrize(
    ("document", "field", "sentence"),
    [
        (
            {"labl_smoothing": 0.1},
            "labl_smoothing",
            "labl_smoothing is not an option of a run: did you mean label_smoothing?",
        ),
        (
            {"dcgan_mnist.labl_smoothing": 0.1},
            "dcgan_mnist.labl_smoothing",
            (
                "dcgan_mnist.labl_smoothing is not an option of a run: did you mean"
                " dcgan_mnist.label_smoothing?"
            ),
        ),
        (
            {"dcgan_mnist": {"labl_smoothing": 0.1}},
            "dcgan_mnist.labl_smoothing",
            (
                "dcgan_mnist.labl_smoothing is not an option of a run: did you mean"
                " dcgan_mnist.label_smoothing?"
            ),
        ),
        (
            {"dcgan_mnist.epochs": 3},
            "dcgan_mnist.epochs",
            "dcgan_mnist.epochs is not an option of a run: did you mean epochs?",
        ),
        (
            {"dcgan_mnist": 3},
            "dcgan_mnist",
            (
                "dcgan_mnist is 3, but it is an object of the workload's options: set one of them,"
                " such as dcgan_mnist.learning_rate_generator."
            ),
        ),
        (
            {"mlp_gan": {"label_smoothing": 0.1}},
            "mlp_gan",
            (
                "mlp_gan belongs to workload mlp_gan, but workload is dcgan_mnist: leave it out, or"
                " use workload=mlp_gan."
            ),
        ),
        (
            {"mlp_gan.label_smoothing": 0.1},
            "mlp_gan.label_smoothing",
            (
                "mlp_gan.label_smoothing belongs to workload mlp_gan, but workload is dcgan_mnist:"
                " leave it out, or use workload=mlp_gan."
            ),
        ),
        (
            {"of_workload": {}},
            "of_workload",
            "of_workload is not an option of a run: did you mean workload?",
        ),
        (
            {"dcgan_mnist": {"a b": 1}},
            "spec",
            "'dcgan_mnist.a b' is not an option of a run: the options are",
        ),
        ({"dcgan_mnist": {"\ud800": 1}}, "spec", "'dcgan_mnist.\\ud800' is not an option of a run"),
        (
            {"workload": "later_gan", "later_gan": {"beauty": 1}, "label_smoothing": 0.1},
            "workload",
            f"workload is 'later_gan', but allowed is {', '.join(catalog.WORKLOADS)}",
        ),
        (
            {"workload": ["x"]},
            "workload",
            f"workload is ['x'], but allowed is {', '.join(catalog.WORKLOADS)}",
        ),
    ],
)
def test_a_misplaced_option_is_refused_with_a_suggestion(
    document: dict[str, Any], field: str, sentence: str
) -> None:
    sentences = messages(document)
    assert set(sentences) == {field}
    assert sentences[field].startswith(sentence)


def test_an_option_of_another_workload_is_refused_with_a_suggestion(stranger: str) -> None:
    assert messages({"stranger_steps": 3}) == {
        "stranger_steps": (
            "stranger_steps belongs to workload stranger, but workload is dcgan_mnist: leave it"
            " out, or use workload=stranger."
        )
    }
    assert messages({"workload": stranger, "r1_weight": 1}) == {
        "r1_weight": (
            "r1_weight belongs to workload dcgan_mnist, dcgan and mlp_gan, but workload is"
            " stranger: leave it out, or use workload=dcgan_mnist."
        )
    }


@pytest.mark.parametrize("value", [True, "much", float("nan"), -1, None])
def test_workload_options_are_validated_like_shared_ones(value: Any) -> None:
    [sentence] = messages({"r1_weight": value}).values()
    assert sentence.startswith(
        f"R1 penalty (r1_weight) is {value!r}, but allowed is at least 0 and at most 1000"
    )


# ---- overrides -----------------------------------------------------------------------------------


def test_assignments_override_a_file_and_a_file_overrides_a_preset() -> None:
    base = {"label_smoothing": 0.1, "epochs": 3, "r1_weight": 1.0}
    file = {"dcgan_mnist": {"label_smoothing": 0.2, "r1_weight": 2.0}}
    both = nesting.overlaid(nesting.overlaid(base, file), {"dcgan_mnist.r1_weight": "3"})
    spec = RunSpec.parse(both)
    assert (spec.value("label_smoothing"), spec.value("r1_weight"), spec.epochs) == (0.2, 3.0, 3)


def test_switching_workloads_keeps_common_options(stranger: str) -> None:
    file = RunSpec.parse({"label_smoothing": 0.1, "r1_weight": 1.0, "epochs": 3}).model_dump()
    spec = RunSpec.parse(nesting.overlaid(file, {"workload": stranger, "stranger_steps": "2"}))
    assert (spec.value("label_smoothing"), spec.value("stranger_steps"), spec.epochs) == (0.1, 2, 3)
    assert RunSpec.parse(nesting.overlaid(file, {"workload": "mlp_gan"})).value("r1_weight") == 1.0


@pytest.mark.parametrize(
    "values", [{"epochs": 3}, {"label_smoothing": 0.1}, {"workload": "mlp_gan"}]
)
def test_flattening_a_spec_matches_its_form_values(values: dict[str, Any]) -> None:
    spec = RunSpec.parse(values)
    assert nesting.flat(spec.model_dump()) == spec.flat()
    assert RunSpec.parse(spec.flat()) == spec


def test_options_of_an_unknown_workload_are_flattened() -> None:
    assert nesting.flat({"workload": "later_gan", "epochs": 3, "later_gan": {"beauty": 1}}) == {
        "workload": "later_gan",
        "epochs": 3,
        "beauty": 1,
    }


@pytest.mark.parametrize(
    ("values", "images"),
    [
        ({"workload": "dcgan_mnist", "batch_size_global": 64}, 64),
        ({"workload": "dcgan_mnist", "batch_size_global": 64, "discriminator_steps": 3}, 192),
        (
            {"workload": "mlp_gan", "batch_size_global": 64, "mlp_gan": {"discriminator_steps": 3}},
            192,
        ),
        (
            {
                "workload": "later_gan",
                "batch_size_global": 64,
                "later_gan": {"discriminator_steps": 3},
            },
            64,
        ),
    ],
)
def test_images_per_step_are_computed_from_a_stored_run(
    values: dict[str, Any], images: int
) -> None:
    assert nesting.images_per_step(values) == images


def test_a_dataset_that_does_not_fit_is_refused_with_a_reason(stranger: str) -> None:
    with pytest.raises(DatasetError) as refused:
        loading.check(RunSpec.parse({"workload": stranger}))
    assert (
        str(refused.value)
        == "data set digits does not fit workload stranger: it reads spectra, and the data set has"
        " none: choose another."
    )
    with pytest.raises(
        DatasetError, match=r"^there is no data set 'minst', only .*: did you mean mnist\?$"
    ):
        loading.check(RunSpec.parse({"dataset": "minst"}))
    assert set(loading.check(RunSpec())) == {"images"}
