"""A study before it runs: one question, a base of options, the values to try, and how often to
repeat them.

The runs of a study are ordinary runs. Their order is interleaved, A B A B, so that a machine that
slows down in the meantime slows all variants alike; each repeat has a seed of its own, the same for
all variants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gan_runtime.base.errors import FieldError, SpecError, quoted
from gan_runtime.spec import RunSpec, nesting
from gan_runtime.studies.questions import QUESTIONS, Question

MAX_RUNS = 200
MAX_REPEATS = 20
REPEATS_HELP = (
    "2 give an interval, and more make it narrower; the report says how many a difference needs."
)


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study.

    `variant`: its value in words; `index`: the variant's place, from 0; `repeat` from 1.
    """

    spec: RunSpec
    variant: str
    index: int
    repeat: int


@dataclass(frozen=True)
class StudyDesign:
    """Built by `parse`, which has checked every run of it."""

    question: str
    title: str
    runs: tuple[PlannedRun, ...]

    @classmethod
    def parse(
        cls,
        question: str,
        base: dict[str, Any],
        values: list[Any] | None = None,
        repeats: int = 1,
        title: str = "",
    ) -> StudyDesign:
        """The study of `question` over `values` (None: the question's own) around the options
        `base`.

        Raises:
            SpecError: an unknown question, fewer than two values, one twice, too many runs,
                variants that an engine does not
                tell apart, or a run that cannot be: the message names the value.
        """
        asked = _question(question)
        chosen = [str(value).strip() for value in (asked.values if values is None else values)]
        _check_size(chosen, repeats, asked)
        specs = [_variant_specs(asked, base, value, repeats) for value in chosen]
        _check_difference(asked, specs)
        labels = [_label(asked, variant[0]) for variant in specs]
        twice = sorted({label for label in labels if labels.count(label) > 1})
        if twice:
            raise SpecError(
                [
                    FieldError(
                        "values", f"values has {', '.join(twice)} twice: give each value once."
                    )
                ]
            )
        planned = [
            PlannedRun(spec, labels[index], index, repeat)
            for repeat, row in enumerate(zip(*specs, strict=True), 1)
            for index, spec in enumerate(row)
        ]
        RunSpec.parse({"name": title})
        return cls(question, title or asked.title, tuple(planned))


def _question(name: str) -> Question:
    if name not in QUESTIONS:
        raise SpecError(
            [
                FieldError(
                    "question",
                    f"question is {quoted(name)}, but allowed is {', '.join(QUESTIONS)}: pick one"
                    " of them.",
                )
            ]
        )
    return QUESTIONS[name]


def _check_size(values: list[str], repeats: int, question: Question) -> None:
    problems = []
    if len(values) < 2:
        example = ",".join(str(value) for value in question.values)
        problems.append(
            FieldError(
                "values",
                f"values has {len(values)} value(s), but a study compares at least 2: try"
                f" {example}.",
            )
        )
    if not 1 <= repeats <= MAX_REPEATS:
        problems.append(
            FieldError(
                "repeats",
                f"repeats is {repeats}, but allowed is 1 to {MAX_REPEATS}: {REPEATS_HELP}",
            )
        )
    elif repeats > 1 and "seed" in question.options:
        problems.append(
            FieldError(
                "repeats",
                f"repeats is {repeats}, but each seed is a repeat already: use repeats=1.",
            )
        )
    elif len(values) * repeats > MAX_RUNS:
        problems.append(
            FieldError(
                "values",
                f"that makes {len(values) * repeats} runs, but allowed are {MAX_RUNS}: leave some"
                " out.",
            )
        )
    if problems:
        raise SpecError(problems)


def _check_difference(question: Question, specs: list[list[RunSpec]]) -> None:
    """JAX compiles each step whatever `xla` says."""
    if question.options == ("xla",) and all(
        spec.engine == "jax" for repeats in specs for spec in repeats
    ):
        message = (
            "question is xla, but with engine=jax every step is compiled, so that all variants are"
            " the same program"
        )
        raise SpecError([FieldError("question", f"{message}: use engine=tensorflow.")])


def _variant_specs(
    question: Question, base: dict[str, Any], value: str, repeats: int
) -> list[RunSpec]:
    """The spec of each repeat of one variant."""
    changed = question.changes(value, nesting.entry_of(base))
    try:
        first = RunSpec.parse(nesting.overlaid(base, changed))
        specs = [
            RunSpec.parse(nesting.overlaid(base, {"seed": first.seed + number, **changed}))
            for number in range(repeats)
        ]
    except SpecError as error:
        raise SpecError(
            [
                FieldError("values" if one.field in changed else one.field, one.message)
                for one in error.errors
            ]
        ) from None
    name = _label(question, first)
    return [
        spec.model_copy(update={"name": f"{name} seed {spec.seed}" if repeats > 1 else name})
        for spec in specs
    ]


def _label(question: Question, spec: RunSpec) -> str:
    values = [spec.value(name) for name in question.varied(spec.entry)]
    return question.label.format(
        *(
            f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")
            for value in values
        )
    )
