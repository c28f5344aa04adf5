"""The recorded numbers: their names, their charts, their roles, and which values are better.

A workload's entry in the catalog declares the numbers that it returns (`Metric`) and the charts
that draw them (`Panel`). Numbers that the engine adds for each network, such as its learning rate,
are families: the name of the family, then that of the network. An undeclared number is drawn under
its stored name. Definitions: docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

# The meaning of a number, independent of its name. Alarms, the best checkpoint and sentences use
# roles, and skip those that no number has. Scores are the judging network's probability that a row
# is real.
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
    "quality",  # each epoch; the best checkpoint is where it is best
    # quality that a job has measured; the user can choose the best checkpoint by it
    "measured_quality",
    "response",  # size of generated rows / size of real ones, each epoch; 1 is right
    "empty_rows",  # share of empty generated rows, each epoch
]
Better = Literal["", "lower", "higher"]
Side = Literal["", "real", "generated"]  # which rows a number is about
# panels that pages use by name
LOSSES, SCORES, FURTHER_NUMBERS = "Losses", "Scores", "Further numbers"
MOST_IN_DIGITS = 1e9  # from here numbers have an exponent
NOT_DRAWN = ""  # the panel of a number that is shown on Compare only


@dataclass(frozen=True)
class Metric:
    """`name`: as stored.

    `axis`: title of its axis, with the unit. `panel`: the chart that draws it, "" for none.
    `per_epoch`: one value an epoch, not a step. `log`: its values span decades. `better`: only of a
    number whose better values mean better rows, since pages then name its best epoch and run; "" of
    losses and scores of D. `network`: of a loss or rate its network, of a score the judging one, of
    a spread the one that generates the rows. A line has the color of its network. `label`: in the
    legend of its panel; "" for the title.
    """

    name: str
    title: str
    axis: str
    panel: str = FURTHER_NUMBERS
    role: Role = ""
    per_epoch: bool = False
    log: bool = False
    better: Better = ""
    format: str = ".3~g"
    network: str = ""
    label: str = ""

    @property
    def legend(self) -> str:
        """The name of its line."""
        return self.label or self.title

    def in_words(self, value: float) -> str:
        """A value as pages and the command line write it: 0.234 · 95.2% · 5,840."""
        text = f"{value:,{self.format.replace('~', '')}}"  # "~" is d3's; Python does not know it
        if self.format.endswith("g") and "e+" in text and abs(value) < MOST_IN_DIGITS:
            return f"{float(text):,.0f}"
        return text

    @property
    def sign(self) -> float:
        """Times the value: lower is better. A number without a better direction has 1."""
        return -1.0 if self.better == "higher" else 1.0

    @property
    def unit(self) -> str:
        """The text in brackets at the end of the axis title: "nats"; "" without it."""
        return self.axis[:-1].rpartition(" (")[2] if self.axis.endswith(")") else ""

    @property
    def side(self) -> Side:
        """The rows that it is about, by its role."""
        return (
            "real"
            if self.role.endswith("real")
            else "generated"
            if self.role.endswith("generated")
            else ""
        )


@dataclass(frozen=True)
class Network:
    """`name`: as in checkpoints and in the names of metrics.

    `title`: in sentences and legends. `letter`: where space is short.
    """

    name: str
    title: str
    letter: str = ""

    @property
    def short(self) -> str:
        """The letter, or the title where it has none."""
        return self.letter or self.title

    @property
    def noun(self) -> str:
        """Within a sentence: "the generator"."""
        return self.title[:1].lower() + self.title[1:]


@dataclass(frozen=True)
class Panel:
    """One chart of a run.

    `name`: as in `Metric.panel`. `title`: the question that it answers; "" for its name.
    `subtitle`: how to read it. `awaits`: what it will show, "how large the gradients are".
    `meaning`: what its values say, one sentence; "" where the subtitle says it.
    `series`: the title of its lines in a tooltip. `domain`: the range of its values, if known.
    `usual`: a band for comparison, or one level where both ends are equal. `help`: of the figure
    with its newest values.
    """

    name: str
    title: str = ""
    subtitle: str = ""
    awaits: str = ""
    series: str = "Of"
    domain: tuple[float, float] | None = None
    usual: tuple[float, float] | None = None
    help: str = ""
    meaning: str = ""

    @property
    def heading(self) -> str:
        """Above the chart."""
        return self.title or self.name

    @property
    def reading(self) -> str:
        """One sentence on how to read its values."""
        return self.meaning or self.subtitle or UNDECLARED_MEANING


UNDECLARED_MEANING = "Its definition is in the reference of metrics, if a workload declares it."


# Families: the name of the family, "_", and the name of the network.
LEARNING_RATE, LOSS_SCALE = "learning_rate", "loss_scale"
GRADIENT_NORM, UPDATE_RATIO = "gradient_norm", "update_ratio"
FAMILIES: dict[str, Metric] = {
    GRADIENT_NORM: Metric(
        GRADIENT_NORM,
        "Gradient norm of the {}",
        "Norm (log)",
        "Gradients",
        per_epoch=True,
        log=True,
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


PANELS = (
    Panel(
        "Gradients",
        "How large are the gradients?",
        "Near 0 nothing is learned; a jump is an explosion.",
        "how large the gradients are",
    ),
    Panel(
        "Updates",
        "How large is one update?",
        "Gray band: rule of thumb, about 0.001 of the weights.",
        "how large an update is",
        usual=(3e-4, 3e-3),  # around 1e-3 (A. Karpathy, CS231n notes, "Ratio of weights:updates")
    ),
    Panel(
        "Learning rates",
        "How large are the learning rates?",
        meaning="They follow the schedule, and are halved after an alarm that rolls back.",
    ),
    Panel(
        "Loss scales",
        "How far are float16 gradients scaled up?",
        "Halved whenever one of them overflows.",
    ),
)

# Histograms: their kind, "/", and their subject: score/real, weight/critic, gradient/critic/conv_1.
# Gradients of one of several phases that update a network:
# gradient@<phase>/critic, and gradient_norm_critic@<phase>.
SCORE, WEIGHT, GRADIENT, OF_PHASE = "score", "weight", "gradient", "@"
PART = "/"


def histogram(kind: str, part: str) -> str:
    """The stored name of a histogram: histogram("weight", "critic") is "weight/critic"."""
    return f"{kind}{PART}{part}"


def of_class(judged: str, class_name: str) -> str:
    """The stored name of the mean of a judged number over the rows of a class:
    of_class("real", "cat") is "score/real/cat".
    """
    return f"{histogram(SCORE, judged)}{PART}{class_name}"


def judged_class(name: str) -> tuple[str, str] | None:
    """The judged number and the class of a stored name, the inverse of `of_class`; None for any
    other name.
    """
    kind, *judged = name.split(PART, 2)
    return (judged[0], judged[1]) if kind == SCORE and len(judged) == 2 else None


def of_network(family: str, network: str) -> str:
    """The stored name of a family's number: of_network("gradient_norm", "critic") is
    "gradient_norm_critic".
    """
    return f"{family}_{network}"


def table(
    declared: Iterable[Metric], networks: Iterable[Network], stored: Iterable[str] = ()
) -> dict[str, Metric]:
    """Every number by its stored name: declared by a workload, of its networks, and others of
    `stored`. A number that is stored for each phase of a step has no entry of its family.
    """
    by_name, names = {network.name: network for network in networks}, tuple(stored)
    metrics = {metric.name: metric for metric in declared}
    for family, network in product(FAMILIES.values(), by_name.values()):
        metrics.setdefault(of_network(family.name, network.name), _of_family(family, network))
    for name in names:
        metrics.setdefault(name, _of_phase(name, metrics, by_name) or undeclared(name))
    whole = {name.partition(OF_PHASE)[0] for name in names if OF_PHASE in name}
    return {name: metric for name, metric in metrics.items() if name not in whole or name in names}


def of_score(declared: Collection[Metric], score: str) -> Metric | None:
    """The declaration of a stored score: under its name, else with the shortest prefix, as
    edge_width_distance of "distance".
    """
    matches = [each for each in declared if f"_{each.name}".endswith(f"_{score}")]
    return min(matches, key=lambda metric: len(metric.name), default=None)


def undeclared(name: str) -> Metric:
    """A number without a declaration: "cell_energy" becomes "Cell energy"."""
    title = name.replace("_", " ").capitalize()
    return Metric(name, title, title)


def _of_family(family: Metric, network: Network) -> Metric:
    return replace(
        family,
        name=of_network(family.name, network.name),
        title=family.title.format(network.noun),
        network=network.name,
        label=network.title,
    )


def _of_phase(
    name: str, metrics: Mapping[str, Metric], networks: Mapping[str, Network]
) -> Metric | None:
    """A declared number of one phase of a step; None for any other name.

    Its legend has the letter of the network, so that the phase fits in.
    """
    whole, _, phase = name.partition(OF_PHASE)
    if not phase or whole not in metrics:
        return None
    metric = metrics[whole]
    of = networks[metric.network].short if metric.network in networks else metric.legend
    return replace(
        metric, name=name, title=f"{metric.title}, phase {phase}", label=f"{of}, {phase}"
    )
