"""The modern objective on both engines: relativistic pairs, both penalties and differentiable
augmentation match PyTorch's numbers and gradients.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from gan_runtime.data.contract import picture_set
from gan_runtime.engines.contract import Arrays
from tests.full.engines import r3gan_reference as reference
from tests.support.engines import tf_same_noise
from tests.support.engines.golden import with_begin
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.small_engines import tf_engine
from tests.support.engines.three_ways import PAIR, rates
from tests.support.engines.tiny_gan import TINY_GAN

pytestmark = pytest.mark.usefixtures("cores")  # before TensorFlow initializes its devices
FIGURES = json.loads(reference.FIGURES.read_text(encoding="utf-8"))
OPTIONS = {
    "loss": "relativistic",
    "r1_weight": reference.R1_WEIGHT,
    "r2_weight": reference.R2_WEIGHT,
    "augmentation": "color_translation_cutout",
    "optimizer": "sgd",  # with rate 1, a step is the gradient
    **rates(1.0, *PAIR),
    "replicas": 1,
    "seed": reference.SEED,
}
TOLERANCE = 2e-5  # relative, for each number; float32 against PyTorch's float64


def assert_as_in_pytorch(numbers: Arrays, begin: Arrays, end: Arrays) -> None:
    measured = {name: float(numbers[name][0]) for name in FIGURES["numbers"]}
    assert measured == pytest.approx(FIGURES["numbers"], rel=TOLERANCE)
    gradients = reference.summary({name: begin[name] - end[name] for name in reference.SHAPES})
    for name, figures in FIGURES["gradients"].items():
        length = max(figures[0], 1e-2)
        assert gradients[name] == pytest.approx(figures, abs=1e-4 * length), name


def test_step_of_both_engines_matches_pytorch(
    monkeypatch: pytest.MonkeyPatch, jax: JaxProcess
) -> None:
    tf_same_noise.hand_to_engines(monkeypatch)
    rows = picture_set("random", reference.images(), "test")
    engine = tf_engine(workload=TINY_GAN, data=rows, **OPTIONS)
    begin = with_begin(engine.state(), reference.weights())
    engine.load(begin)
    assert_as_in_pytorch(engine.run(1).values, begin, engine.state())
    (numbers, _), (end, _), _, _ = jax("trained_from", "tiny", rows, OPTIONS, begin, 1)
    assert_as_in_pytorch(numbers, begin, end)


def test_reference_has_the_stated_version_and_all_loss_parts_matter() -> None:
    assert FIGURES["torch"] == "2.13.0"
    assert min(abs(value) for value in FIGURES["numbers"].values()) > 1e-2
    lengths = {name: figures[0] for name, figures in FIGURES["gradients"].items()}
    # adding a constant to all logits does not change their differences
    assert lengths.pop("discriminator/discriminator/logit/bias") < 1e-9
    assert np.min(list(lengths.values())) > 1e-3
