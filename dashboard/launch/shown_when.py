"""Which options of the Launch form have an effect in the present setting: one literal table.

An option that is missing here always has one. Values are read as they stand in the form, so numbers may be text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class OneOf:
    """Has an effect while `option` is one of `values`."""

    option: str
    values: tuple[str, ...]
    reason: str

    def holds(self, form: Mapping[str, Any]) -> bool:
        """Whether it is so in the form."""
        return form[self.option] in self.values


@dataclass(frozen=True)
class Above:
    """Has an effect while one of `options` is above `least`; text that is no number counts, so nothing hides beside an error."""

    options: tuple[str, ...]
    least: float
    reason: str

    def holds(self, form: Mapping[str, Any]) -> bool:
        """Whether it is so in the form."""
        try:
            return any(float(form[option]) > self.least for option in self.options)
        except ValueError:
            return True


SEVERAL_REPLICAS = Above(("replicas", "workers"), 1, "several replicas")

SHOWN_WHEN: dict[str, OneOf | Above] = {
    "tpu_address": OneOf("accelerator", ("tpu",), "a TPU"),
    "adam_beta_1": OneOf("optimizer", ("adam",), "Adam"),
    "momentum": OneOf("optimizer", ("sgd",), "SGD"),
    "restart_epochs": OneOf("learning_rate_schedule", ("cosine_restarts",), "the cosine schedule"),
    "reference_batch": OneOf("learning_rate_scaling", ("linear", "sqrt"), "rates by batch"),
    "discriminator_steps": OneOf("updates", ("in_turn",), "updates in turn"),
    "samples_from": Above(("ema_decay",), 0, "a generator average"),
    "batch_norm": SEVERAL_REPLICAS,
    "all_reduce_type": SEVERAL_REPLICAS,
    "sync_every_steps": SEVERAL_REPLICAS,
    "count_kernels": OneOf("xla", ("jit",), "XLA jit"),
    "all_reduce_pack_mb": Above(("workers",), 1, "several workers"),
}


def has_effect(option: str, form: Mapping[str, Any]) -> bool:
    """Whether changing the option would change the run as it stands in the form."""
    return option not in SHOWN_WHEN or SHOWN_WHEN[option].holds(form)
