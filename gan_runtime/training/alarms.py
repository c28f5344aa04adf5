"""Signs that a GAN training goes wrong, read from the scores of an epoch (docs/metrics.md).

Collapse: the generated rows of a batch hardly differ, while the data's do, and they do not begin
to. The judge wins: it tells every generated row from every real one, so the gradient of the network
that it judges carries no direction any more. Response: generated rows are far smaller or larger
than the real ones beside them. Empty: too many of them hold nothing. A NaN needs no scores: the
recorder finds it in the step's numbers.

Which of an epoch's numbers are looked at is a matter of their roles (gan_runtime/base/metrics.py):
a workload that gives no number the roles of an alarm never raises it. Networks and rows are called
what the workload calls them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gan_runtime.base.errors import NonFiniteError
from gan_runtime.base.metrics import Role
from gan_runtime.catalog import declared
from gan_runtime.catalog.declared import Declared
from gan_runtime.engines.contract import Arrays
from gan_runtime.spec import RunSpec

FIRST_EPOCH = 1  # an untrained generator makes the same for every latent: that is no collapse
RESPONSE_OFF = 0.5  # of the real size: what an alarm allows
MOST_EMPTY = 0.1  # of the generated rows
# A generator whose rows only begin to differ: times the spread of the epoch before, and of what the
# alarm allows.
GROWING, SEEN = 1.5, 0.1


@dataclass(frozen=True)
class Alarm:
    """`topic`: alarm_ and collapse, d_wins, response, empty or not_finite.

    `message`: the evidence in words and numbers.
    """

    topic: str
    message: str


def raised(
    spec: RunSpec,
    scores: Mapping[str, float],
    epoch: int,
    before: Mapping[str, float] | None = None,
) -> list[Alarm]:
    """The alarms of one epoch; empty when all is well.

    `before`: the scores of the epoch before, where they are known.
    """
    if epoch <= FIRST_EPOCH:
        return []
    looked = [
        _collapse(spec, scores, epoch, before or {}),
        *(look(spec, scores, epoch) for look in (_d_wins, _response, _empty)),
    ]
    return [alarm for alarm in looked if alarm is not None]


def shortfall(spec: RunSpec, scores: Mapping[str, float]) -> float | None:
    """What the best checkpoint is smallest in: the number with the role of quality, where the
    workload declares one.

    Else how far apart the mean scores of real and of generated rows are, without sign; None where
    nothing is judged.
    """
    known = declared.of(spec.workload)
    if known.of_role("quality") is not None:
        return known.value("quality", scores)
    real, generated = known.value("judged_real", scores), known.value("judged_generated", scores)
    return None if real is None or generated is None else abs(real - generated)


def _collapse(
    spec: RunSpec, scores: Mapping[str, float], epoch: int, before: Mapping[str, float]
) -> Alarm | None:
    known = declared.of(spec.workload)
    real, generated = (
        known.value("spread_of_real", scores),
        known.value("spread_of_generated", scores),
    )
    if real is None or generated is None or not generated < spec.collapse_share * real:
        return None
    earlier = known.value("spread_of_generated", before)
    # A spread that rises steeply, from what can be seen at all, is the opposite of a collapse.
    if earlier is not None and generated > max(
        GROWING * earlier, SEEN * spec.collapse_share * real
    ):
        return None
    return Alarm(
        "alarm_collapse",
        f"The {_network(known, 'spread_of_generated')} has collapsed in epoch {epoch}: spread of"
        f" {generated:.2g} in {_rows(known, 'spread_of_generated')}, of {real:.2g} in"
        f" {_rows(known, 'spread_of_real')} (share {generated / real:.1%}, alarm below"
        f" {spec.collapse_share:.1%}).",
    )


def _d_wins(spec: RunSpec, scores: Mapping[str, float], epoch: int) -> Alarm | None:
    known = declared.of(spec.workload)
    real, generated = known.value("judged_real", scores), known.value("judged_generated", scores)
    surely = 1.0 - spec.d_wins_score
    if real is None or generated is None or not (generated < spec.d_wins_score and real > surely):
        return None
    return Alarm(
        "alarm_d_wins",
        f"The {_network(known, 'judged_generated')} has won in epoch {epoch}: mean score of"
        f" {generated:.2g} for {_rows(known, 'judged_generated')}, of {real:.2g} for"
        f" {_rows(known, 'judged_real')} (alarm below {spec.d_wins_score:g} and above {surely:g}).",
    )


def _response(spec: RunSpec, scores: Mapping[str, float], epoch: int) -> Alarm | None:
    known = declared.of(spec.workload)
    response = known.value("response", scores)
    if response is None or abs(response - 1.0) <= RESPONSE_OFF:
        return None
    return Alarm(
        "alarm_response",
        f"The {_network(known, 'response')} is off by more than {RESPONSE_OFF:.0%} in epoch"
        f" {epoch}: {_rows(known, 'response')} hold {response:.2g} times what real ones do (alarm"
        f" below {1.0 - RESPONSE_OFF:g} and above {1.0 + RESPONSE_OFF:g}).",
    )


def _empty(spec: RunSpec, scores: Mapping[str, float], epoch: int) -> Alarm | None:
    known = declared.of(spec.workload)
    empty = known.value("empty_rows", scores)
    if empty is None or empty <= MOST_EMPTY:
        return None
    return Alarm(
        "alarm_empty",
        f"The {_network(known, 'empty_rows')} makes nothing in epoch {epoch}: {empty:.1%} of"
        f" {_rows(known, 'empty_rows')} are empty (alarm above {MOST_EMPTY:.0%}).",
    )


def _network(known: Declared, role: Role) -> str:
    """Whose number it is, within a sentence."""
    metric = known.of_role(role)
    return known.network(metric.network).noun if metric and metric.network else "training"


def _rows(known: Declared, role: Role) -> str:
    """What the rows are called that a number is about, within a sentence: "generated images"."""
    metric = known.of_role(role)
    return metric.legend[:1].lower() + metric.legend[1:] if metric else "rows"


def first_not_finite(arrays: Arrays) -> str | None:
    """The name of the first array that holds a NaN or infinite number; None when all are finite."""
    return next((name for name in sorted(arrays) if not np.isfinite(arrays[name]).all()), None)


def check_state(arrays: Arrays, step: int, epoch: int) -> Arrays:
    """The same arrays.

    A step's losses are computed before its update, so only a look at the weights tells what the
    last update has made of them.

    Raises:
        NonFiniteError: a weight, slot or average is NaN or infinite; the message names it.
    """
    name = first_not_finite(arrays)
    if name is not None:
        raise NonFiniteError(
            f"{name} holds NaN or infinite numbers after step {step} (epoch {epoch})."
        )
    return arrays


def check_scores(scores: Mapping[str, float], epoch: int) -> None:
    """Raises NonFiniteError when a score of an epoch is NaN or infinite: every comparison
    with it would be false.
    """
    name = next((name for name in sorted(scores) if not np.isfinite(scores[name])), None)
    if name is not None:
        value = "NaN" if np.isnan(scores[name]) else "infinite"
        raise NonFiniteError(f"{name} became {value} at the end of epoch {epoch}.")
