"""Alarms: signs in the scores of an epoch that a GAN training fails (docs/metrics.md).

Collapse: generated rows hardly vary while the data does. D wins: it separates all generated rows
from the data, so the generator's gradient has no direction. Response: generated rows are far too
large or too small. Empty: too many generated rows are empty. NaNs are detected in the numbers of
each step.

Alarms read numbers by their roles (gan_runtime/base/metrics.py): a workload without these roles
raises none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gan_runtime.base.errors import NonFiniteError
from gan_runtime.base.metrics import Role
from gan_runtime.catalog import declarations
from gan_runtime.catalog.declarations import Declarations
from gan_runtime.engines.contract import Arrays
from gan_runtime.spec import RunSpec
from gan_runtime.training.checkpoints import first_not_finite

FIRST_EPOCH = 1  # an untrained generator makes one row from every latent, which is no collapse
RESPONSE_OFF = 0.5  # allowed deviation of the size, as a share of the true size
MOST_EMPTY = 0.1  # allowed share of empty generated rows
# It is no collapse if the spread exceeds COLLAPSED of the alarm's limit and grows by GROWING per
# epoch.
GROWING, COLLAPSED = 1.5, 0.1


class AlarmLimits(Protocol):
    """The options that alarms read; `RunSpec` has them."""

    @property
    def workload(self) -> str: ...

    @property
    def collapse_share(self) -> float: ...

    @property
    def d_wins_score(self) -> float: ...


@dataclass(frozen=True)
class Alarm:
    """`topic`: alarm_collapse, alarm_d_wins, alarm_response, alarm_empty or alarm_not_finite."""

    topic: str
    message: str


def raised(
    spec: AlarmLimits,
    scores: Mapping[str, float],
    epoch: int,
    before: Mapping[str, float] | None = None,
) -> list[Alarm]:
    """The alarms of one epoch. `before`: the scores of the previous epoch, if any."""
    if epoch <= FIRST_EPOCH:
        return []
    alarms = [
        _collapse(spec, scores, epoch, before or {}),
        *(check(spec, scores, epoch) for check in (_d_wins, _response, _empty)),
    ]
    return [alarm for alarm in alarms if alarm is not None]


def shortfall(spec: RunSpec, scores: Mapping[str, float]) -> float | None:
    """The number that the best checkpoint minimizes: the metric with the quality role, negated if
    higher is better; None without one. D's scores do not measure quality, so other workloads choose
    the best checkpoint by the evaluation of images.
    """
    quality = declarations.of(spec.workload).of_role("quality")
    value = None if quality is None else scores.get(quality.name)
    return None if quality is None or value is None else quality.sign * value


def _collapse(
    spec: AlarmLimits, scores: Mapping[str, float], epoch: int, before: Mapping[str, float]
) -> Alarm | None:
    numbers = declarations.of(spec.workload)
    real = numbers.value("spread_of_real", scores)
    generated = numbers.value("spread_of_generated", scores)
    if real is None or generated is None or not generated < spec.collapse_share * real:
        return None
    earlier = numbers.value("spread_of_generated", before)
    # A spread that rises steeply is the opposite of a collapse.
    if earlier is not None and generated > max(
        GROWING * earlier, COLLAPSED * spec.collapse_share * real
    ):
        return None
    return Alarm(
        "alarm_collapse",
        f"The {_network(numbers, 'spread_of_generated')} collapsed in epoch {epoch}: spread"
        f" {generated:.2g} in {_rows(numbers, 'spread_of_generated')}, {real:.2g} in"
        f" {_rows(numbers, 'spread_of_real')} (share {generated / real:.1%}, alarm below"
        f" {spec.collapse_share:.1%}).",
    )


def _d_wins(spec: AlarmLimits, scores: Mapping[str, float], epoch: int) -> Alarm | None:
    numbers = declarations.of(spec.workload)
    real = numbers.value("judged_real", scores)
    generated = numbers.value("judged_generated", scores)
    low, high = spec.d_wins_score, 1.0 - spec.d_wins_score
    if real is None or generated is None or not (generated < low and real > high):
        return None
    return Alarm(
        "alarm_d_wins",
        f"The {_network(numbers, 'judged_generated')} won in epoch {epoch}: mean score"
        f" {generated:.2g} of {_rows(numbers, 'judged_generated')}, {real:.2g} of"
        f" {_rows(numbers, 'judged_real')} (alarm below {low:g} and above {high:g}).",
    )


def _response(spec: AlarmLimits, scores: Mapping[str, float], epoch: int) -> Alarm | None:
    numbers = declarations.of(spec.workload)
    response = numbers.value("response", scores)
    if response is None or abs(response - 1.0) <= RESPONSE_OFF:
        return None
    return Alarm(
        "alarm_response",
        f"The {_network(numbers, 'response')} is off by more than {RESPONSE_OFF:.0%} in epoch"
        f" {epoch}: {_rows(numbers, 'response')} have {response:.2g} times the true size (alarm"
        f" below {1.0 - RESPONSE_OFF:g} and above {1.0 + RESPONSE_OFF:g}).",
    )


def _empty(spec: AlarmLimits, scores: Mapping[str, float], epoch: int) -> Alarm | None:
    numbers = declarations.of(spec.workload)
    empty = numbers.value("empty_rows", scores)
    if empty is None or empty <= MOST_EMPTY:
        return None
    return Alarm(
        "alarm_empty",
        f"The {_network(numbers, 'empty_rows')} fails in epoch {epoch}: {empty:.1%} of its"
        f" rows are empty (alarm above {MOST_EMPTY:.0%}).",
    )


def _network(numbers: Declarations, role: Role) -> str:
    """The display name of the network that a metric describes."""
    metric = numbers.of_role(role)
    return numbers.network(metric.network).noun if metric and metric.network else "training"


def _rows(numbers: Declarations, role: Role) -> str:
    """The display name of the rows that a metric describes, such as "generated images"."""
    metric = numbers.of_role(role)
    return metric.legend[:1].lower() + metric.legend[1:] if metric else "rows"


def check_state(arrays: Arrays, step: int, epoch: int) -> Arrays:
    """Returns the arrays unchanged. Losses precede an update, so only the weights show its result.

    Raises:
        NonFiniteError: a weight, optimizer slot or average is NaN or infinite; the message names
            it.
    """
    name = first_not_finite(arrays)
    if name is not None:
        raise NonFiniteError(
            f"{name} has NaN or infinite numbers after step {step} (epoch {epoch})."
        )
    return arrays


def check_scores(scores: Mapping[str, float], epoch: int) -> None:
    """Raises NonFiniteError for a NaN or infinite score, since comparisons with NaN are always
    false.
    """
    name = next((name for name in sorted(scores) if not np.isfinite(scores[name])), None)
    if name is not None:
        value = "NaN" if np.isnan(scores[name]) else "infinite"
        raise NonFiniteError(f"{name} became {value} at the end of epoch {epoch}.")
