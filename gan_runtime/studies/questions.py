"""The questions a study can ask: which options it varies, and over which values unless a
person says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gan_runtime.catalog import WorkloadEntry

RATES = ("learning_rates",)


@dataclass(frozen=True)
class Question:
    """`options`: all of them take the value of the variant, or with `parts` each its own part of
    it, which a colon parts from the next; RATES are the learning rates of all networks, whatever
    the workload calls them. `label`: a variant in words, each `{}` being the value of an option.
    `is_about_speed`: variants are to learn the same, so their report begins with how much faster
    one is than the other.
    """

    title: str
    asks: str
    options: tuple[str, ...]
    values: tuple[Any, ...]
    label: str
    source: str = ""
    parts: bool = False
    is_about_speed: bool = False

    def varied(self, entry: WorkloadEntry | None) -> tuple[str, ...]:
        """The options that runs of a workload differ in; None, for a workload that is not
        known, has no rates.
        """
        if self.options != RATES:
            return self.options
        return entry.rates if entry else ()

    def changes(self, value: str, entry: WorkloadEntry | None) -> dict[str, str]:
        """Option → its value in the variant `value`.

        A part that is missing is empty, which no option allows.
        """
        if not self.parts:
            return dict.fromkeys(self.varied(entry), value)
        given = value.split(":", len(self.options) - 1)
        return dict(
            zip(self.options, [*given, *[""] * (len(self.options) - len(given))], strict=True)
        )


QUESTIONS: dict[str, Question] = {
    "batch_size": Question(
        title="Batch size",
        asks="What does the global batch do to time, losses and images?",
        options=("batch_size_global",),
        values=(64, 128, 256, 512),
        label="batch {}",
        source="paper, Figs. 5 to 10",
    ),
    "xla": Question(
        title="XLA",
        asks="What does compiling bring, and after how many steps has it paid for itself?",
        options=("xla",),
        values=("off", "jit"),
        label="XLA {}",
        source="paper, Fig. 12",
        is_about_speed=True,
    ),
    "precision": Question(
        title="Precision",
        asks="What does bfloat16 bring, and do the losses stay the same?",
        options=("precision",),
        values=("float32", "mixed_bfloat16"),
        label="{}",
        source="paper, section 4.3",
    ),
    "replicas": Question(
        title="Replicas",
        asks="How much faster are more devices on the same global batch?",
        options=("replicas",),
        values=(1, 2, 4, 8),
        label="replicas {}",
        source="paper, Fig. 13; CERN's scaling tables",
        is_about_speed=True,
    ),
    "workers": Question(
        title="Workers",
        asks="What does the exchange between processes cost?",
        options=("workers",),
        values=(1, 2),
        label="workers {}",
        source="CERN's multi-worker runs",
        is_about_speed=True,
    ),
    "loop": Question(
        title="Training loop",
        asks="Which loop is faster: Keras' or our own?",
        options=("loop",),
        values=("keras", "custom"),
        label="{} loop",
        source="the two approaches of Cardoso et al. 2021; TensorFlow engine",
        is_about_speed=True,
    ),
    "learning_rate": Question(
        title="Learning rate",
        asks="Which rate of all networks learns best in the same time?",
        options=RATES,
        values=(0.0001, 0.0002, 0.0005),
        label="rate {}",
        source="paper, Fig. 9",
    ),
    "schedule": Question(
        title="Rate schedule",
        asks="What do the losses do when the learning rate falls along a cosine and starts anew?",
        options=("learning_rate_schedule",),
        values=("constant", "cosine_restarts"),
        label="{} rate",
        source="paper, Fig. 9",
    ),
    "devices": Question(
        title="Devices",
        asks=(
            "How much faster is another accelerator, or more of its devices, on the same global"
            " batch? (accelerator:replicas)"
        ),
        options=("accelerator", "replicas"),
        values=("cpu:1", "cpu:8"),
        label="{} x{}",
        source="paper, Fig. 13",
        parts=True,
        is_about_speed=True,
    ),
    "seed": Question(
        title="Seeds",
        asks="How far apart are runs that differ in chance alone?",
        options=("seed",),
        values=(1, 2, 3),
        label="seed {}",
    ),
}
