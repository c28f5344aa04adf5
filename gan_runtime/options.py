"""What is known of one option of a run, and the sentences that say what is wrong with a value."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any, get_origin

from pydantic import Field
from pydantic_core import ErrorDetails

from gan_runtime.errors import QUOTED_CHARACTERS, FieldError, quoted

GROUPS = (  # in the order of the form
    "Model and data",
    "Accelerator",
    "Schedule",
    "Optimizer",
    "Numbers",
    "Objective",
    "Distribution",
    "Watching",
    "Run",
)


@dataclass(frozen=True)
class Option:
    """One option as form and command line show it. `choices` is empty for numbers and free text, `text` for all but free text."""

    name: str
    label: str
    group: str
    help: str
    unit: str
    source: str
    error: str
    kind: type
    default: Any
    choices: tuple[str, ...]
    text: str
    minimum: float | None
    maximum: float | None
    excludes_minimum: bool = False
    excludes_maximum: bool = False

    @property
    def named(self) -> str:
        """The option as sentences call it: its label, and its key where that is another word."""
        return (
            self.name if self.label.lower().replace(" ", "_") == self.name else f"{self.label} ({self.name})"
        )

    @property
    def allowed(self) -> str:
        """The allowed values in words: "1 to 64", "off, jit"."""
        if self.choices:
            return ", ".join(self.choices)
        if self.minimum is None or self.maximum is None:
            return self.text
        if self.kind is float:
            least = "above" if self.excludes_minimum else "at least"
            most = "below" if self.excludes_maximum else "at most"
            return f"{least} {self.minimum:g} and {most} {self.maximum:g}"
        return f"a whole number from {self.minimum:.0f} to {self.maximum:.0f}"


def option(
    default: Any,
    *,
    label: str,
    group: str,
    help: str,
    unit: str = "",
    source: str = "",
    error: str,
    choices: tuple[str, ...] = (),
    text: str = "",
    **bounds: Any,
) -> Any:
    extra: dict[str, Any] = {
        "label": label,
        "group": group,
        "unit": unit,
        "source": source,
        "error": error,
        "choices": list(choices),
        "text": text,
    }
    return Field(default, description=help, json_schema_extra=extra, **bounds)


def read_option(name: str, info: Any) -> Option:
    extra = info.json_schema_extra
    bounds = {type(item).__name__: item for item in info.metadata}
    low, high = bounds.get("Ge") or bounds.get("Gt"), bounds.get("Le") or bounds.get("Lt")
    kind = info.annotation if not get_origin(info.annotation) else str
    return Option(
        name=name,
        label=extra["label"],
        group=extra["group"],
        help=info.description,
        unit=extra["unit"],
        source=extra["source"],
        error=extra["error"],
        kind=kind,
        default=info.default,
        choices=tuple(extra["choices"]),
        text=extra["text"],
        minimum=getattr(low, "ge", getattr(low, "gt", None)),
        maximum=getattr(high, "le", getattr(high, "lt", None)),
        excludes_minimum="Gt" in bounds,
        excludes_maximum="Lt" in bounds,
    )


def not_a_choice(option: Option, given: Any) -> str:
    near = difflib.get_close_matches(str(given)[:QUOTED_CHARACTERS], option.choices, n=1)
    advice = f"did you mean {near[0]}?" if near else option.error
    return f"{option.named} is {quoted(given)}, but allowed is {option.allowed}: {advice}"


def check(option: Option, value: Any) -> Any:
    """The value unchanged. Raises ValueError for what pydantic would let pass: true as the number 1, a choice of no table."""
    if isinstance(value, bool) and option.kind in (int, float):
        raise ValueError("a number is needed")
    if option.choices and value not in option.choices:
        raise ValueError("not one of the choices")
    return value


def in_words(detail: ErrorDetails, options: dict[str, Option]) -> FieldError:
    """One pydantic error as a sentence: what was given, what is allowed, what to do."""
    name = str(detail["loc"][0]) if detail["loc"] else "spec"
    if name not in options:
        return unknown(name, options)
    option = options[name]
    if option.choices:
        return FieldError(name, not_a_choice(option, detail["input"]))
    given = quoted(detail["input"])
    return FieldError(name, f"{option.named} is {given}, but allowed is {option.allowed}: {option.error}")


def unknown(name: str, options: dict[str, Option]) -> FieldError:
    """The sentence about a key that is no option."""
    near = difflib.get_close_matches(name[:QUOTED_CHARACTERS], options, n=1)
    hint = f"did you mean {near[0]}?" if near else "the options are " + ", ".join(options) + "."
    return FieldError(
        name, f"{name if can_be_a_name(name) else quoted(name)} is not an option of a run: {hint}"
    )


def can_be_a_name(name: str) -> bool:
    """Whether a key could be that of an option: a short word."""
    return name.isascii() and name.isidentifier() and len(name) <= QUOTED_CHARACTERS


def labelled(message: str, option: Option) -> str:
    """A sentence that begins with an option's key, beginning with its label as well."""
    return (
        f"{option.named}{message.removeprefix(option.name)}"
        if message.startswith(f"{option.name} is ")
        else message
    )
