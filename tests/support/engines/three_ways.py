"""Trains a workload three ways on one engine: on one replica, on two, and on two with a stop in
between.

Both engines run this code, each in its own process. It imports no framework.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gan_runtime.data.contract import ArraySet, picture_set
from gan_runtime.engines.contract import Arrays, Engine
from gan_runtime.training import checkpoints

ROWS = 48  # 6 steps per epoch with one batch per step; 1 with the five of the WGAN-GP
BEFORE, AFTER = 4, 3  # steps before and after the stop
Numbers = dict[str, np.ndarray]
# Adam divides by the size of a gradient. Where it is nearly zero, the last bit of a sum would
# decide a whole step.
SGD = {"batch_size_global": 8, "optimizer": "sgd", "momentum": 0.9, "ema_decay": 0.9}


@dataclass(frozen=True)
class Case:
    """A workload of the catalog, its data and options.

    `unmoved`: the weights that no gradient moves.
    """

    data: ArraySet
    options: dict[str, Any]
    unmoved: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trained:
    """Numbers of each step, metric → float32 (steps,), and the state after the last."""

    numbers: Numbers
    state: Arrays


@dataclass(frozen=True)
class ThreeWays:
    """`begin`: the state of all three before the first step."""

    begin: Arrays
    alone: Trained
    shared: Trained
    resumed: Trained


def random_pictures(pixels: int, channels: int, classes: tuple[str, ...] = ()) -> ArraySet:
    """Different square images, with labels if there are classes."""
    random = np.random.default_rng(3)
    images = random.integers(0, 255, (ROWS, pixels, pixels, channels), dtype=np.uint8)
    labels = random.integers(0, len(classes), ROWS) if classes else None
    return picture_set("random", images, "test", labels=labels, classes=classes)


def rates(rate: float, *networks: str) -> dict[str, float]:
    """The same learning rate for each network."""
    return {f"learning_rate_{network}": rate for network in networks}


PAIR = ("generator", "discriminator")
CASES: dict[str, Case] = {
    "mlp_gan": Case(random_pictures(28, 1), {**SGD, **rates(0.1, *PAIR)}),
    # Conditional, in color. Batch norm covers all replicas; otherwise each replica has its own, as
    # intended.
    "dcgan": Case(
        random_pictures(32, 3, ("up", "down", "strange")),
        {
            **{**SGD, **rates(0.1, *PAIR)},
            **{"base_channels": 4, "latent_size": 8, "batch_norm": "synchronised"},
        },
    ),
    # The critic's loss depends only on differences of its values, so a number added to all of them
    # has no gradient.
    "wgan_gp": Case(
        random_pictures(28, 3),
        {**SGD, **rates(0.005, "generator", "critic")},
        unmoved=("critic/critic/value/bias",),
    ),
}


@dataclass(frozen=True)
class TakenUp:
    """`first`: the first step.

    `straight`: the steps of the same engine after it; `resumed`: those of a fresh engine that
    loaded its checkpoint.
    """

    first: Trained
    straight: Trained
    resumed: Trained


def three_ways(new_engine: Callable[[int], Engine], folder: Path) -> ThreeWays:
    """`new_engine`: creates an engine with this number of replicas, ready to run.

    `folder`: for the checkpoint of the stopped run.
    """
    alone, shared, fresh = (new_engine(replicas) for replicas in (1, 2, 2))
    begin = shared.state()
    of_one, of_two = (_trained(engine, BEFORE, AFTER) for engine in (alone, shared))
    shared.load(begin)
    _trained(shared, BEFORE)
    _hand_over(shared, fresh, folder)
    return ThreeWays(begin, of_one, of_two, _trained(fresh, AFTER))


def taken_up(engine: Engine, fresh: Engine, folder: Path) -> TakenUp:
    """Trains two engines that are ready to run; `folder`: for the checkpoint."""
    first = _trained(engine, 1)
    _hand_over(engine, fresh, folder)
    return TakenUp(first, _trained(engine, 2), _trained(fresh, 2))


def _hand_over(engine: Engine, fresh: Engine, folder: Path) -> None:
    state = engine.state()
    checkpoints.save(folder, state, int(state["step"]), 0.0, retained=1)
    saved = checkpoints.load_newest(folder)
    assert saved is not None
    fresh.load(saved.arrays)


def _trained(engine: Engine, *calls: int) -> Trained:
    numbers = [engine.run(steps).values for steps in calls]
    joined = {metric: np.concatenate([call[metric] for call in numbers]) for metric in numbers[0]}
    return Trained(joined, engine.state())
