"""Which programs a check compiles, and when a kept answer counts."""

from __future__ import annotations

import pytest

from gan_runtime.errors import AcceleratorError, SpecError
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.report import Point

PAPER = {"dataset": "mnist", "batch_size_global": 512}


def test_a_check_begins_with_the_run_and_goes_on_to_precision_batches_and_cores() -> None:
    points = planning.make(PAPER, "v3:2x2").points
    assert points[0] == Point("v3:2x2", 8, 512, "mixed_bfloat16")
    assert points[1] == Point("v3:2x2", 8, 512, "float32")
    assert [one.batch_size_global for one in points[2:5]] == [64, 128, 256]
    assert [one.devices for one in points[5:]] == [1, 2, 4]


def test_without_a_sweep_only_the_run_itself_is_compiled() -> None:
    assert len(planning.make(PAPER, "v5e:2x4", sweep=False).points) == 1


def test_an_unknown_topology_names_those_there_are() -> None:
    with pytest.raises(AcceleratorError, match=r"topology is 'v9:1x1', but allowed is v2:2x2, v3:2x2"):
        planning.make(PAPER, "v9:1x1")


def test_a_batch_that_the_cores_cannot_share_is_refused() -> None:
    with pytest.raises(SpecError, match=r"is 100, but 8 replicas need a multiple of 8"):
        planning.make({"batch_size_global": 100}, "v3:2x2")


def test_float16_is_refused() -> None:
    with pytest.raises(SpecError, match="a TPU has no float16 arithmetic"):
        planning.make({**PAPER, "precision": "mixed_float16"}, "v3:2x2")


def name(**options: object) -> str:
    plan = planning.make({**PAPER, **options}, "v3:2x2")
    return planning.key(plan.spec, plan.point)


@pytest.mark.parametrize(
    "option",
    [{"seed": 9}, {"name": "other"}, {"epochs": 2}, {"keep_checkpoints": 9}, {"alarm_action": "stop"}],
)
def test_an_option_that_changes_no_step_keeps_the_answer(option: dict[str, object]) -> None:
    assert name(**option) == name()


@pytest.mark.parametrize(
    "option",
    [
        {"ema_decay": 0.9},
        {"steps_per_loop": 20},
        {"updates": "in_turn"},
        {"dataset": "digits"},
        {"optimizer": "sgd"},
    ],
)
def test_an_option_that_changes_the_step_asks_anew(option: dict[str, object]) -> None:
    assert name(**option) != name()


def test_another_version_of_the_compiler_asks_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    before = name()
    monkeypatch.setattr(planning, "versions", lambda: {"libtpu": "9.9"})
    assert name() != before


def test_where_the_compiler_is_missing_it_is_said_in_plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_version", lambda name: "" if name in ("jax", "libtpu") else "1.0")
    assert planning.missing_library() == (
        "jax and libtpu are not installed here: the TPU's compiler exists for Linux on x86-64 only. On such a machine run `make setup`."
    )
