"""What the recorded numbers are called, where and how they are drawn, what they mean to alarms, and which way is better.

A workload's entry in the catalog declares the numbers that it returns (`Metric`). Numbers that the engine adds for each
network, such as its learning rate, are families with the network's name behind them. A number that nobody has declared is
drawn under its own name. Definitions: docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

# What a number means, whatever it is called. Alarms, the best checkpoint and plain sentences ask for a role and are silent
# where no number has it. Scores are the judging network's belief in [0, 1] that a row is real.
Role = Literal[
    "",
    "loss",
    "score_of_real",  # mean score, each step
    "score_of_generated",
    "judged_real",  # mean score on the probe batch, each epoch
    "judged_generated",
    "accuracy_on_real",
    "accuracy_on_generated",
    "spread_of_real",  # variance within a batch, each epoch
    "spread_of_generated",
]
Better = Literal["", "lower", "higher"]
LOSSES, SCORES, OTHERS = "Losses", "Scores", "Further numbers"  # panels that pages know by name


@dataclass(frozen=True)
class Metric:
    """`name`: as stored. `axis`: title of its axis, with the unit. `panel`: the chart on Live that draws it, "" for none.

    `per_epoch`: one value an epoch, not a step. `log`: its values span decades. `better`: "" where neither way is.
    """

    name: str
    title: str
    axis: str
    panel: str = OTHERS
    role: Role = ""
    per_epoch: bool = False
    log: bool = False
    better: Better = ""
    format: str = ".3~g"


@dataclass(frozen=True)
class Network:
    """`name`: as in checkpoints and in the names of metrics. `title`: in sentences and legends."""

    name: str
    title: str


# Families: the number's name is that of the family, "_" and the network's.
LEARNING_RATE, LOSS_SCALE = "learning_rate", "loss_scale"
GRADIENT_NORM, UPDATE_RATIO = "gradient_norm", "update_ratio"
FAMILIES: dict[str, Metric] = {
    GRADIENT_NORM: Metric(
        GRADIENT_NORM, "Gradient norm of the {}", "Norm (log)", "Gradients", per_epoch=True, log=True
    ),
    UPDATE_RATIO: Metric(
        UPDATE_RATIO,
        "Update size of the {}",
        "Update / weights (log)",
        "Updates",
        per_epoch=True,
        log=True,
        format=".2~e",
    ),
    LEARNING_RATE: Metric(
        LEARNING_RATE, "Learning rate of the {}", "Learning rate", "Learning rates", format=".3~e"
    ),
    LOSS_SCALE: Metric(
        LOSS_SCALE,
        "Loss scale of the {} (float16)",
        "Loss scale (log)",
        "Loss scales",
        log=True,
        format=",.0f",
    ),
}


def of_network(family: str, network: str) -> str:
    """The stored name of a family's number: of_network("gradient_norm", "critic") is "gradient_norm_critic"."""
    return f"{family}_{network}"


def table(
    declared: Iterable[Metric], networks: Iterable[Network], stored: Iterable[str] = ()
) -> dict[str, Metric]:
    """Every number by its stored name: those that a workload declares, those of its networks, and any other of `stored`."""
    known = {metric.name: metric for metric in declared}
    for network in networks:
        for family in FAMILIES.values():
            name = of_network(family.name, network.name)
            known[name] = replace(family, name=name, title=family.title.format(network.title.lower()))
    for name in stored:
        known.setdefault(name, undeclared(name))
    return known


def undeclared(name: str) -> Metric:
    """A number that nobody has declared, under its own name: "cell_energy" becomes "Cell energy"."""
    title = name.replace("_", " ").capitalize()
    return Metric(name, title, title)
