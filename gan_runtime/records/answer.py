"""The answer of an evaluation for one checkpoint; all evaluations use this record."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gan_runtime.catalog.evaluations import evaluations
from gan_runtime.catalog.facts import ANY_FACTS
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
from gan_runtime.records.run_files import answer_place

# prefix of the names of weight snapshots, which no checkpoint name has
EPOCH_PREFIX = "epoch "
ArrayPath = Annotated[str, Field(pattern=r"^[a-z_]{1,40}/[A-Za-z0-9._-]{1,160}\.npz$")]


class Score(BaseModel):
    """One score; fields are NaN where they were not measured.

    `error`: one standard deviation. `low`, `high`: a 95% interval. `floor`, `floor_error`: the
    score of ground truth against other ground truth; `ceiling`: of noise against ground truth.
    `baselines`: scores of simpler predictions by name, such as "persistence". `samples`: number of
    rows.
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


class CurveSeries(BaseModel):
    """One line of a curve, such as real, generated, prediction or truth. `error`: one standard
    deviation, or empty.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    values: list[float]
    error: list[float] = Field(default_factory=list)


class Curve(BaseModel):
    """Numbers over `x`; on a map `y` is their second coordinate, else empty. `facts`: which bin or
    part the curve describes.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    name: Name
    x: list[float]
    y: list[float] = Field(default_factory=list)
    series: list[CurveSeries] = Field(max_length=20)
    facts: Document = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_number_a_place(self) -> Self:
        for line in self.series:
            agree(self.x, self.y or self.x, line.values, line.error or line.values)
        return self


class ArrayFile(BaseModel):
    """A named array: a file in the run's folder, or a sparse one as flat `places` and `values`."""

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
    """The measurements of an evaluation for one checkpoint, such as "best", after `epoch` and
    `step`.

    `key`: a later answer with the same run, evaluation and key replaces an earlier one. `facts`:
    settings of the measurement, such as the number of tiles. `metric_prefix`: finite scores become
    metrics of the run with this prefix (view `numbers`); "" if they are not comparable between
    runs. `precedence`: if several answers give one metric for an epoch, the highest counts, then
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

    @model_validator(mode="after")
    def _typed_facts(self) -> Self:
        declared = evaluations().get(self.evaluation)
        types = declared.facts if declared else ANY_FACTS
        types.answer.check(self.facts)
        for curve in self.curves:
            types.curve.check(curve.facts)
        for array in self.arrays:
            types.array.check(array.facts)
        return self
