"""The TensorFlow engine on simulated cores: the same complete results on any number of replicas."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.base.errors import AcceleratorError
from gan_runtime.engines.tf.strategy import make_strategy, tpu_advice
from gan_runtime.spec import RunSpec
from tests.support.engines.small_engines import (
    MakeEngine,
    assert_close,
    assert_equal,
    copies_in_use,
    trained,
)

pytestmark = pytest.mark.usefixtures("cores")


@pytest.mark.usefixtures("exchange")
@pytest.mark.parametrize("replicas", [2, 4])
def test_replicas_match_one_replica_on_the_whole_batch(make: MakeEngine, replicas: int) -> None:
    single, several = make(1), make(replicas)
    expected, result = trained(single, 1, 6), trained(several, 1, 6)
    assert {metric: len(values) for metric, values in result.items()} == dict.fromkeys(
        (
            "d_fake",
            "d_real",
            "learning_rate_discriminator",
            "learning_rate_generator",
            "loss_discriminator",
            "loss_generator",
        ),
        7,
    )
    assert_close(result, expected, 1e-5)
    assert_close(several.state(), single.state(), 1e-5)


def test_training_changes_every_weight_of_both_networks(make: MakeEngine) -> None:
    engine = make(2)
    before = engine.state()
    numbers = trained(engine, 7)
    after = engine.state()
    assert [
        name
        for name in before
        if np.array_equal(before[name], after[name]) and name != "rate_factor"
    ] == []
    assert np.isfinite(numbers["loss_discriminator"]).all()
    assert after["step"] == 7


@pytest.mark.usefixtures("exchange")
def test_all_replicas_have_the_same_weights(make: MakeEngine) -> None:
    engine = make(4)
    trained(engine, 5)
    in_use = copies_in_use(engine)
    assert {
        len(values) for name, values in in_use.items() if not name.startswith("optimizer_")
    } == {4}
    for name, values in in_use.items():
        assert all(np.array_equal(value, values[0]) for value in values), name


def test_steps_per_call_do_not_change_results(make: MakeEngine) -> None:
    expected, result = trained(make(1), 7), trained(make(1), 1, 2, 4)
    assert_equal(result, expected)


def test_another_seed_gives_different_results(make: MakeEngine) -> None:
    first, second = trained(make(1), 2), trained(make(1, seed=2), 2)
    assert not np.array_equal(first["loss_generator"], second["loss_generator"])


def test_compiled_steps_match_uncompiled_ones(make: MakeEngine) -> None:
    off, jit = make(1), make(1, xla="jit")
    assert_close(trained(jit, 1, 6), trained(off, 1, 6), 1e-4)
    assert_close(jit.state(), off.state(), 1e-4)


# ---- devices -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "strategy"), [(1, "OneDeviceStrategy"), (8, "SharedMemoryMirroredStrategy")]
)
def test_engine_describes_its_devices(make: MakeEngine, replicas: int, strategy: str) -> None:
    description = make(replicas).describe()
    assert description["strategy"] == strategy
    assert [str(device)[-5:] for device in description["devices"]] == [
        f"CPU:{index}" for index in range(replicas)
    ]
    assert description["parameters"] == {"generator": 105_360, "discriminator": 100_609}


def test_more_replicas_than_simulated_cores_are_refused() -> None:
    with pytest.raises(AcceleratorError) as refused:
        make_strategy(RunSpec.parse({"replicas": 16}), "cpu")
    assert (
        str(refused.value)
        == "this process already runs TensorFlow with 8 CPU core(s), but the run needs 16: start it"
        " in a new process."
    )


def test_more_replicas_than_gpus_are_refused() -> None:
    with pytest.raises(
        AcceleratorError,
        match=(
            r"the run needs 1024 GPU\(s\), but TensorFlow sees \d+: lower replicas, use"
            r" accelerator=cpu"
        ),
    ):
        make_strategy(RunSpec.parse({"replicas": 1_024, "batch_size_global": 1_024}), "gpu")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            "No OpKernel was registered to support Op 'ConfigureDistributedTPU'",
            (
                "the TPU at 'local' cannot be used (this TensorFlow was built without TPU support:"
                " run `make clean setup` on the TPU host, or use engine=jax); or choose"
                " accelerator=cpu or gpu."
            ),
        ),
        (
            "No TPU platform found",
            (
                "the TPU at 'local' cannot be used (libtpu finds no TPU: check that no other"
                " process uses it, and that libtpu matches the framework (docs/tpu.md)); or choose"
                " accelerator=cpu or gpu."
            ),
        ),
        (
            "first line\nsecond",
            "the TPU at 'local' cannot be used (first line); or choose accelerator=cpu or gpu.",
        ),
        ("", "the TPU at 'local' cannot be used (ValueError); or choose accelerator=cpu or gpu."),
    ],
)
def test_unusable_tpu_is_explained(error: str, sentence: str) -> None:
    assert tpu_advice("local", ValueError(error)) == sentence


# ---- profiles ------------------------------------------------------------------------------------


def test_real_profile_includes_the_work_of_both_networks(make: MakeEngine) -> None:
    engine = make(2)
    trained(engine, 4)
    profile = engine.profile(5)
    assert profile.numbers.values["loss_generator"].shape == (5,)
    assert sum(entry.share for entry in profile.shares) == pytest.approx(1.0)
    assert sum(entry.seconds for entry in profile.shares) == pytest.approx(
        profile.numbers.seconds, rel=0.1
    )
    work = {
        (name, part)
        for name in ("generator", "discriminator")
        for part in ("forward", "backward", "optimizer")
    }
    assert work <= {(entry.network, entry.category) for entry in profile.shares}
    assert {entry.phase for entry in profile.shares if (entry.network, entry.category) in work} == {
        "both"
    }
    assert engine.state()["step"] == 9


def test_cpu_reports_no_device_memory(make: MakeEngine) -> None:
    assert make(2).device_memory() is None
