"""The answer of an evaluation of one checkpoint: one record of the journal for all
evaluations, whatever their domain.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gan_runtime.records.record import (
    MAX_METRICS,
    Column,
    Count,
    Document,
    Name,
    Rank,
    Record,
    RowTable,
    Step,
    agree,
)
from gan_runtime.records.states import answer_place

# begins the name of weights that a run has kept after an epoch; no checkpoint is called so
KEPT = "epoch "
ArrayPath = Annotated[str, Field(pattern=r"^[a-z_]{1,40}/[A-Za-z0-9._-]{1,160}\.npz$")]


class Score(BaseModel):
    """One number.

    `error`: one standard deviation; `low`, `high`: an interval of 95%; NaN where there is none.

    `floor`: the same number of real rows against other real rows, with its standard deviation;
    `ceiling`: of noise against real rows. `baselines`: the same number of simpler predictions, by
    name, such as "persistence". `samples`: rows compared.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    value: float
    error: float = math.nan
    low: float = math.nan
    high: float = math.nan
    floor: float = math.nan
    floor_error: float = math.nan
    ceiling: float = math.nan
    baselines: dict[Name, float] = Field(default_factory=dict, max_length=20)
    samples: Count | None = None


class Series(BaseModel):
    """One line of a curve.

    `name`: real, generated, prediction, truth, …; `error`: one standard deviation, or empty.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    values: list[float]
    error: list[float] = Field(default_factory=list)


class Curve(BaseModel):
    """Numbers over `x`; of a map `y` is the second coordinate of each, else empty.

    `facts`: the bin or part it is about.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    x: list[float]
    y: list[float] = Field(default_factory=list)
    series: list[Series] = Field(max_length=20)
    facts: Document = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_number_a_place(self) -> Self:
        for line in self.series:
            agree(self.x, self.y or self.x, line.values, line.error or line.values)
        return self


class ArrayFile(BaseModel):
    """A named array: in a file of the run's folder (`file`), or, where it is small and
    sparse, as `places` and `values`.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    file: ArrayPath | Literal[""] = ""
    places: list[Count] = Field(default_factory=list)
    values: list[float] = Field(default_factory=list)
    facts: Document = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_value_a_place(self) -> Self:
        agree(self.places, self.values)
        return self


_KEY, _MODEL = ("evaluation", "key"), ("epoch", "step", "checkpoint")
_PLACE = Column("place", lambda _, origin: answer_place(origin.journal, origin.place), "BIGINT")


class Answer(Record):
    """What one evaluation found of one checkpoint.

    `evaluation`: its name in the catalog. `key`: of answers with equal run, evaluation and key the
    last one counts. `epoch`,
    `step`: of the checkpoint; `checkpoint`: which it was, such as "best". `facts`: what else there
    is to say, such as the number of tiles, by name.
    `metric_prefix`: its finite scores are numbers of the run, named by this and the score (view
    `numbers`); "": they are not, because they cannot be compared with those of other runs.
    `precedence`: of several answers that give an epoch the same number, the highest counts, then
    the newest.
    """

    tables = (
        RowTable(
            "evaluations",
            (
                *_KEY,
                Column("measured_at", "at"),
                *_MODEL,
                "facts",
                "metric_prefix",
                "precedence",
                _PLACE,
            ),
        ),
        RowTable(
            "evaluation_scores",
            (
                *(
                    *_KEY,
                    Column("score", "name"),
                    "value",
                    "error",
                    "low",
                    "high",
                    "floor",
                    "floor_error",
                    "ceiling",
                ),
                *("baselines", "samples", _PLACE),
            ),
            each="scores",
        ),
        RowTable(
            "evaluation_curves",
            (*_KEY, Column("curve", "name"), "number", "x", "y", "series", "facts", _PLACE),
            each="curves",
        ),
        RowTable(
            "evaluation_arrays",
            (*_KEY, "name", "number", "file", "places", Column("value", "values"), "facts", _PLACE),
            each="arrays",
        ),
    )
    views = ("evaluations", "evaluation_scores", "evaluation_curves", "evaluation_arrays")
    is_numbers_only = True

    kind: Literal["answer"] = "answer"
    evaluation: Name
    key: Name
    epoch: Step
    step: Step
    checkpoint: Name
    facts: Document = Field(default_factory=dict)
    metric_prefix: Annotated[str, Field(max_length=40)] = ""
    precedence: Rank = 0
    scores: list[Score] = Field(max_length=MAX_METRICS)
    curves: list[Curve] = Field(default_factory=list)
    arrays: list[ArrayFile] = Field(default_factory=list)
