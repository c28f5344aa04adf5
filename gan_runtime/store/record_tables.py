"""Tables and rows of records, as their classes declare them, and the public view `metrics`.

The view contains the catalog's declarations of metrics. As a view, it needs no rebuild when the
program changes.
"""

from __future__ import annotations

import json
import math
import operator
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel

from gan_runtime import catalog
from gan_runtime.catalog import declarations
from gan_runtime.records.kinds import RECORDS
from gan_runtime.records.record import Column, Origin, Part, Record, Row, RowTable


class RowSource(NamedTuple):
    """What a row is computed from: a record, or an element of its list with its number."""

    record: Record
    element: Any
    number: int
    origin: Origin


Value = Callable[[RowSource], Any]
_LARGEST_INTEGER = 2**31 - 1
_OF_LINE = {"place": "origin.place", "number": "number"}  # columns without a field
_SCALARS = {bool: "BOOLEAN", float: "DOUBLE", datetime: "TIMESTAMPTZ", bytes: "BLOB"}


class RecordTable:
    """A table of one kind of record."""

    def __init__(self, kind: type[Record], declared: RowTable) -> None:
        self.declared, self.name, self.series = declared, declared.name, declared.series
        names = declared.columns
        if names is None:
            names = tuple(name for name in kind.model_fields if name not in ("at", "kind"))
        element = _element_class(kind, declared.each) if declared.each else None
        compiled = [_compiled(kind, element, column) for column in names]
        self.columns = {"run_id": "VARCHAR", **{name: sql for name, sql, _ in compiled}}
        self._values = [value for _, _, value in compiled]
        places, series = list(self.columns), self.series
        self.step_place = places.index("step") if series else None
        self.rank_place = places.index("rank") if series and series.is_of_worker else None
        self._step = self._values[self.step_place - 1] if self.step_place else None
        self._name = self._values[places.index(series.name) - 1] if series and series.name else None

    def rows(self, record: Record, origin: Origin) -> list[Row]:
        """The rows of one record."""
        return [
            (origin.run_id, *(value(source) for value in self._values))
            for source in self._sources(record, origin)
        ]

    def parts(self, record: Record, origin: Origin) -> Iterable[Part]:
        """The rows of one record by series, computed when needed."""
        if self.declared.parts:
            return self.declared.parts(record, origin)
        first = next(self._sources(record, origin), None)
        if first is None:
            return []
        name = self._name(first) if self._name else ""
        step = self._step(first) if self._step else 0
        return [(name, step, lambda _: self.rows(record, origin))]

    def _sources(self, record: Record, origin: Origin) -> Iterator[RowSource]:
        if not self.declared.each:
            return iter((RowSource(record, None, 0, origin),))
        elements = enumerate(getattr(record, self.declared.each))
        return (RowSource(record, element, number, origin) for number, element in elements)

    def statements(self) -> list[str]:
        """The statements that create the table and its public view."""
        columns = ", ".join(f'"{name}" {sql}' for name, sql in self.columns.items())
        statements = [f"CREATE TABLE IF NOT EXISTS ingest.{self.name} ({columns})"]
        if self.declared.is_public:
            names = ", ".join(f'"{name}"' for name in self.columns)
            statements.append(
                f"CREATE OR REPLACE VIEW {self.name} AS SELECT {names} FROM ingest.{self.name}"
            )
        return statements


class RecordTables:
    """The tables of some kinds of records; the first kind of a table declares its columns."""

    def __init__(self, kinds: Iterable[type[Record]]) -> None:
        self.kinds = tuple(kinds)
        self.of: Mapping[type[Record], list[RecordTable]] = {
            kind: [RecordTable(kind, declared) for declared in kind.tables] for kind in self.kinds
        }
        self.by_name: dict[str, RecordTable] = {}
        for tables in self.of.values():
            for table in tables:
                first = self.by_name.setdefault(table.name, table)
                if first.columns != table.columns:
                    raise ValueError(f"two kinds of records declare other columns of {table.name}")

    @property
    def in_steps(self) -> list[RecordTable]:
        """Tables with series."""
        return [table for table in self.by_name.values() if table.series]

    @property
    def exported(self) -> list[str]:
        """The public views that `export` writes."""
        views = [
            (*(table.name for table in tables if table.declared.is_exported), *kind.views)
            for kind, tables in self.of.items()
        ]
        return list(dict.fromkeys(view for names in views for view in names))

    def statements(self) -> list[str]:
        """The statements that create the tables and their views."""
        return [statement for table in self.by_name.values() for statement in table.statements()]


def _element_class(kind: type[Record], field: str) -> type[BaseModel]:
    (element,) = get_args(kind.model_fields[field].annotation)
    return element  # type: ignore[no-any-return]


def _compiled(
    kind: type[Record], element: type[BaseModel] | None, column: str | Column
) -> tuple[str, str, Value]:
    """Name, type and value of a column."""
    declared = Column(column, column) if isinstance(column, str) else column
    value = declared.value
    if not isinstance(value, str):
        return declared.name, declared.type, _computed(value, declared.type)
    if value in _OF_LINE:
        return declared.name, "BIGINT", operator.attrgetter(_OF_LINE[value])
    is_of_element = element is not None and value in element.model_fields
    sql = declared.type or _sql_of(element if element and is_of_element else kind, value)
    get = operator.attrgetter(f"{'element' if is_of_element else 'record'}.{value}")
    change = _change(sql)
    return declared.name, sql, (lambda source: change(get(source))) if change else get


def _computed(value: Callable[[Any, Origin], Any], sql: str) -> Value:
    change = _change(sql) or (lambda values: values)
    return lambda source: change(value(source.record, source.origin))


def _change(sql: str) -> Callable[[Any], Any] | None:
    """A conversion for DuckDB; None where it accepts the field."""
    if sql == "JSON":
        return lambda document: None if document is None else json_text(document)
    if sql.startswith("STRUCT"):
        return lambda models: [dict(model) for model in models]
    return None


def _sql_of(owner: type[BaseModel], field: str) -> str:
    info = owner.model_fields[field]
    return sql_type(info.annotation, tuple(info.metadata))


def sql_type(hint: Any, marks: tuple[Any, ...] = ()) -> str:
    """The SQL type of a Python type; `marks`: its limits."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return sql_type(inner[0], (*marks, *hint.__metadata__))
    if origin in (Union, types.UnionType):
        (sql,) = {sql_type(option, marks) for option in inner if option is not type(None)}
        return sql
    if origin is list:
        return f"{sql_type(inner[0])}[]"
    if origin is dict:
        return "JSON" if inner[1] is Any else f"MAP({sql_type(inner[0])}, {sql_type(inner[1])})"
    if origin is Literal or (isinstance(hint, type) and issubclass(hint, str)):
        return "VARCHAR"
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        fields = (f'"{name}" {_sql_of(hint, name)}' for name in hint.model_fields)
        return f"STRUCT({', '.join(fields)})"
    if hint is int:
        return "INTEGER" if _most(marks) <= _LARGEST_INTEGER else "BIGINT"
    return _SCALARS[hint]


def _most(marks: tuple[Any, ...]) -> float:
    limits = [limit for mark in marks for limit in (mark, *getattr(mark, "metadata", ()))]
    return min((limit.le for limit in limits if hasattr(limit, "le")), default=math.inf)


def json_text(document: Any) -> str:
    """JSON for DuckDB, which accepts no NaN, but converts "nan" to a number."""
    try:
        return json.dumps(document, allow_nan=False)
    except ValueError:
        return json.dumps(_spelled(document))


def _spelled(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return [_spelled(element) for element in value]
    return (
        {name: _spelled(entry) for name, entry in value.items()}
        if isinstance(value, dict)
        else value
    )


TABLES = RecordTables(RECORDS)


METRICS_COLUMNS = {  # name → type
    "workload": "VARCHAR",
    "metric": "VARCHAR",
    "title": "VARCHAR",
    "axis": "VARCHAR",
    "panel": "VARCHAR",
    "role": "VARCHAR",
    "better": "VARCHAR",
    "network": "VARCHAR",
    "per_epoch": "BOOLEAN",
    "place": "INTEGER",
}


def metrics_view() -> str:
    """The statement that creates the view. `place`: order of declaration, from 0.

    One text in JSON, since DuckDB needs 15 ms for as many values in each query; materialized, since
    each row of a join would carry the whole text.
    """
    rows = [
        (
            workload,
            metric.name,
            metric.title,
            metric.axis,
            metric.panel,
            metric.role,
            metric.better,
            metric.network,
            metric.per_epoch,
            place,
        )
        for workload in catalog.WORKLOADS
        for place, metric in enumerate(declarations.of(workload).table().values())
    ]
    columns = dict(zip(METRICS_COLUMNS, zip(*rows, strict=True), strict=True))
    kinds = {name: [kind] for name, kind in METRICS_COLUMNS.items()}
    text, shape = (_quoted(json.dumps(part)) for part in (columns, kinds))
    return (
        "CREATE OR REPLACE VIEW metrics AS WITH listed AS MATERIALIZED ("
        f" SELECT {', '.join(f'unnest(every.{name}) AS {name}' for name in columns)}"
        f" FROM (SELECT from_json({text}, {shape}) AS every)) SELECT * FROM listed"
    )


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
