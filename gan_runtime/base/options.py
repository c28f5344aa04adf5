"""The declaration of an option, and the errors of its values."""

from __future__ import annotations

import contextlib
import difflib
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from gan_runtime.base.errors import QUOTED_CHARACTERS, FieldError, quoted

Built = TypeVar("Built")
OF_WORKLOAD = "Workload"  # the group of a workload's options; its title in the form
GROUPS = (  # in the order of the form
    "Model and data",
    "Accelerator",
    "Schedule",
    OF_WORKLOAD,
    "Optimizer",
    "Numbers",
    "Moving average",
    "Distribution",
    "Monitoring",
    "Run",
)


@dataclass(frozen=True)
class OneOf:
    """Has an effect while `option` is one of `values`; `reason`: the end of "only with …"."""

    option: str
    values: tuple[str, ...]
    reason: str

    def holds(self, form: Mapping[str, Any]) -> bool:
        """Whether the form satisfies it."""
        return form[self.option] in self.values


@dataclass(frozen=True)
class Above:
    """Has an effect while one of `options` is above `least`. Text that is no number counts as
    above, so that a wrong value hides no other option.
    """

    options: tuple[str, ...]
    least: float
    reason: str

    def holds(self, form: Mapping[str, Any]) -> bool:
        """Whether the form satisfies it."""
        try:
            return any(float(form[option]) > self.least for option in self.options)
        except ValueError:
            return True


@dataclass(frozen=True)
class Option:
    """One option of the form and the command line.

    `choices`: empty for numbers and free text. `text`: the allowed free text; else empty. `phrase`:
    the option with its value `{}` in a line of several; empty for its label. `needs`: without it
    the option has no effect.
    """

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
    phrase: str = ""
    needs: OneOf | Above | None = None

    @property
    def named(self) -> str:
        """The option in sentences: its label, and its key where that differs."""
        return (
            self.name
            if self.label.lower().replace(" ", "_") == self.name
            else f"{self.label} ({self.name})"
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
    group: str = OF_WORKLOAD,
    help: str,
    unit: str = "",
    source: str = "",
    error: str,
    choices: tuple[str, ...] = (),
    text: str = "",
    phrase: str = "",
    needs: OneOf | Above | None = None,
    **bounds: Any,
) -> Any:
    """A field of an `OptionRecord`, with the arguments of `Option`. `bounds`: of pydantic (ge, gt,
    le, lt, pattern, max_length).
    """
    extra: dict[str, Any] = {
        "label": label,
        "group": group,
        "unit": unit,
        "source": source,
        "error": error,
        "choices": list(choices),
        "text": text,
        "phrase": phrase,
        "needs": needs,
    }
    return Field(default, description=help, json_schema_extra=extra, **bounds)


def read_option(name: str, info: Any) -> Option:
    extra = info.json_schema_extra
    bounds = {type(bound).__name__: bound for bound in info.metadata}
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
        phrase=extra["phrase"],
        needs=extra["needs"],
    )


@cache
def of(record: type[BaseModel]) -> Mapping[str, Option]:
    """The options of a record by name, in the order of the form."""
    options = [
        read_option(name, info)
        for name, info in record.model_fields.items()
        if info.json_schema_extra
    ]
    options.sort(key=lambda option: GROUPS.index(option.group))
    return {option.name: option for option in options}


class OptionRecord(BaseModel):
    """A record of options, checked when it is built."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def known_options(cls) -> Mapping[str, Option]:
        """The options of the record by name, for its checks."""
        return of(cls)

    @field_validator("*", mode="before")
    @classmethod
    def _check_option(cls, value: Any, info: ValidationInfo) -> Any:
        option = cls.known_options().get(str(info.field_name))
        return check(option, value) if option else value

    @field_validator("*", mode="after")
    @classmethod
    def _as_float32(cls, value: Any, info: ValidationInfo) -> Any:
        """Turns -0.0 into 0, so that equal runs have equal records. Bounds hold for the float32 of
        the trainer, too.
        """
        if not isinstance(value, float):
            return value
        option = cls.known_options().get(str(info.field_name))
        if option and rounds_to_excluded_bound(option, value):
            raise ValueError("out of bounds in float32")
        return value + 0.0


def build_valid(
    build: Callable[[dict[str, Any]], Built], values: dict[str, Any], options: Mapping[str, Option]
) -> tuple[Built, list[FieldError]]:
    """The record of the valid values, and the errors of the others."""
    try:
        return build(values), []
    except ValidationError as error:
        wrong = [field_error(detail, options) for detail in error.errors()]
    names = {error.field for error in wrong}
    return build({name: value for name, value in values.items() if name not in names}), wrong


def not_a_choice(option: Option, value: Any) -> str:
    """The error of a value that is none of the choices, with the nearest one."""
    near = difflib.get_close_matches(str(value)[:QUOTED_CHARACTERS], option.choices, n=1)
    advice = f"did you mean {near[0]}?" if near else option.error
    return f"{option.named} is {quoted(value)}, but allowed is {option.allowed}: {advice}"


def check(option: Option, value: Any) -> Any:
    """The value unchanged.

    Raises ValueError for values that pydantic accepts: true as the number 1, and text that is no
    choice.
    """
    if isinstance(value, bool) and option.kind in (int, float):
        raise ValueError("a number is needed")
    if option.choices and value not in option.choices:
        raise ValueError("not one of the choices")
    return value


def rounds_to_excluded_bound(option: Option, value: float) -> bool:
    """Whether `value` rounds to an excluded bound, such as 0.99999999 to 1 where only numbers below
    1 are allowed.
    """
    rounded = float32(value)
    is_lowest = option.excludes_minimum and rounded == option.minimum
    is_highest = option.excludes_maximum and rounded == option.maximum
    return rounded != value and (is_lowest or is_highest)


def float32(value: float) -> float:
    """The nearest float32; infinity for numbers beyond its range."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def field_error(detail: ErrorDetails, options: Mapping[str, Option]) -> FieldError:
    """One error of pydantic as a sentence: the value, what is allowed, and what to do."""
    name = str(detail["loc"][0])
    option = options[name]
    if option.choices:
        return FieldError(name, not_a_choice(option, detail["input"]))
    value = quoted(detail["input"])
    with contextlib.suppress(ValueError, TypeError, OverflowError):  # no finite number
        if rounds_to_excluded_bound(option, float(detail["input"])):
            value += f", which float32 rounds to {float32(float(detail['input'])):g}"
    return FieldError(
        name, f"{option.named} is {value}, but allowed is {option.allowed}: {option.error}"
    )


def unknown_option(name: str, options: Mapping[str, str]) -> FieldError:
    """The error of a key that is no option. `options`: option keys by their plain name."""
    plain = name[:QUOTED_CHARACTERS].rpartition(".")[2]
    near = difflib.get_close_matches(plain, options, n=1)
    hint = (
        f"did you mean {options[near[0]]}?"
        if near
        else "the options are " + ", ".join(options.values()) + "."
    )
    if can_be_a_name(name):
        return FieldError(name, f"{name} is not an option of a run: {hint}")
    return FieldError("spec", f"{quoted(name)} is not an option of a run: {hint}")


def can_be_a_name(name: str) -> bool:
    """Whether a key has the form of an option: a short word, or two joined by a dot."""
    words = name.split(".")
    return (
        name.isascii()
        and len(name) <= QUOTED_CHARACTERS
        and all(word.isidentifier() for word in words)
    )


def with_label(message: str, option: Option) -> str:
    """A sentence that begins with an option's key, with the label before the key."""
    return (
        f"{option.named}{message.removeprefix(option.name)}"
        if message.startswith(f"{option.name} is ")
        else message
    )
