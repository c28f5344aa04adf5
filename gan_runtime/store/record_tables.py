"""Tables and rows of records, as their classes declare them (records/record.py), and the public
view `metrics`.

The view holds what the catalog of this program declares of each workload's numbers
(docs/schema.md). It is no table: a file that an older or a newer version has written shows what
this version knows, and needs no rebuild.
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
from gan_runtime.catalog import declared
from gan_runtime.records.kinds import RECORDS
from gan_runtime.records.record import Column, Origin, Part, Record, Row, RowTable


class Given(NamedTuple):
    """What a row is made of.

    `item`: of the list that the table has a row for each item of, with its number; else None and 0.
    """

    record: Record
    item: Any
    number: int
    origin: Origin


Value = Callable[[Given], Any]
_LARGEST_INTEGER = 2**31 - 1
_OF_LINE = {"place": "origin.place", "number": "number"}  # columns that are no fields
_SCALARS = {bool: "BOOLEAN", float: "DOUBLE", datetime: "TIMESTAMPTZ", bytes: "BLOB"}


class RecordTable:
    """A table of one kind of record, ready for its rows."""

    def __init__(self, kind: type[Record], declared: RowTable) -> None:
        self.declared, self.name, self.series = declared, declared.name, declared.series
        names = declared.columns
        if names is None:
            names = tuple(name for name in kind.model_fields if name not in ("at", "kind"))
        item = _item_class(kind, declared.each) if declared.each else None
        compiled = [_compiled(kind, item, column) for column in names]
        self.columns = {"run_id": "VARCHAR", **{name: sql for name, sql, _ in compiled}}
        self._values = [value for _, _, value in compiled]
        places, series = list(self.columns), self.series
        self.step_place = places.index("step") if series else None
        self.rank_place = places.index("rank") if series and series.is_of_worker else None
        self._step = self._values[self.step_place - 1] if self.step_place else None
        self._name = self._values[places.index(series.name) - 1] if series and series.name else None

    def rows(self, record: Record, origin: Origin) -> list[Row]:
        """Those of one record, each with its columns in their order."""
        return [
            (origin.run_id, *(value(given) for value in self._values))
            for given in self._given(record, origin)
        ]

    def parts(self, record: Record, origin: Origin) -> Iterable[Part]:
        """Its rows by series, made once they are needed; of a table that has series."""
        if self.declared.parts:
            return self.declared.parts(record, origin)
        first = next(self._given(record, origin), None)
        if first is None:
            return []
        name = self._name(first) if self._name else ""
        step = self._step(first) if self._step else 0
        return [(name, step, lambda _: self.rows(record, origin))]

    def _given(self, record: Record, origin: Origin) -> Iterator[Given]:
        if not self.declared.each:
            return iter((Given(record, None, 0, origin),))
        items = enumerate(getattr(record, self.declared.each))
        return (Given(record, item, number, origin) for number, item in items)

    def statements(self) -> list[str]:
        """They make the table, and its public view."""
        columns = ", ".join(f'"{name}" {sql}' for name, sql in self.columns.items())
        made = [f"CREATE TABLE IF NOT EXISTS ingest.{self.name} ({columns})"]
        if self.declared.is_public:
            names = ", ".join(f'"{name}"' for name in self.columns)
            made.append(
                f"CREATE OR REPLACE VIEW {self.name} AS SELECT {names} FROM ingest.{self.name}"
            )
        return made


class RecordTables:
    """The tables of some kinds of records.

    Of several kinds with one table the first declares its columns.
    """

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
        """Those whose rows come in order of their step."""
        return [table for table in self.by_name.values() if table.series]

    @property
    def exported(self) -> list[str]:
        """Public views that `export` writes."""
        views = [
            (*(table.name for table in tables if table.declared.is_exported), *kind.views)
            for kind, tables in self.of.items()
        ]
        return list(dict.fromkeys(view for names in views for view in names))

    def statements(self) -> list[str]:
        """They make the tables and their views."""
        return [statement for table in self.by_name.values() for statement in table.statements()]


def _item_class(kind: type[Record], field: str) -> type[BaseModel]:
    (item,) = get_args(kind.model_fields[field].annotation)
    return item  # type: ignore[no-any-return]


def _compiled(
    kind: type[Record], item: type[BaseModel] | None, column: str | Column
) -> tuple[str, str, Value]:
    """Name, type and value of a column."""
    declared = Column(column, column) if isinstance(column, str) else column
    value = declared.value
    if not isinstance(value, str):
        return declared.name, declared.type, _computed(value, declared.type)
    if value in _OF_LINE:
        return declared.name, "BIGINT", operator.attrgetter(_OF_LINE[value])
    is_of_item = item is not None and value in item.model_fields
    sql = declared.type or _sql_of(item if item is not None and is_of_item else kind, value)
    get = operator.attrgetter(f"{'item' if is_of_item else 'record'}.{value}")
    change = _change(sql)
    return declared.name, sql, (lambda given: change(get(given))) if change else get


def _computed(value: Callable[[Any, Origin], Any], sql: str) -> Value:
    change = _change(sql) or (lambda made: made)
    return lambda given: change(value(given.record, given.origin))


def _change(sql: str) -> Callable[[Any], Any] | None:
    """From a field to what DuckDB takes; None where it takes the field."""
    if sql == "JSON":
        return lambda document: None if document is None else json_text(document)
    if sql.startswith("STRUCT"):
        return lambda items: [dict(item) for item in items]
    return None


def _sql_of(owner: type[BaseModel], field: str) -> str:
    info = owner.model_fields[field]
    return sql_type(info.annotation, tuple(info.metadata))


def sql_type(hint: Any, marks: tuple[Any, ...] = ()) -> str:
    """The type of a column that holds the values of a type; `marks`: its limits."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return sql_type(inner[0], (*marks, *hint.__metadata__))
    if origin in (Union, types.UnionType):
        (given,) = {sql_type(one, marks) for one in inner if one is not type(None)}
        return given
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
    """DuckDB takes no NaN in JSON, but makes a number of "nan"."""
    try:
        return json.dumps(document, allow_nan=False)
    except ValueError:
        return json.dumps(_spelled(document))


def _spelled(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return [_spelled(item) for item in value]
    return (
        {name: _spelled(item) for name, item in value.items()} if isinstance(value, dict) else value
    )


TABLES = RecordTables(RECORDS)


METRICS_COLUMNS = "workload, metric, title, axis, panel, role, better, network, per_epoch, place"


def metrics_view() -> str:
    """The statement that makes it.

    `place`: the order in which the workload declares them, from 0.
    """
    rows = ",\n".join(
        f"({', '.join(map(_quoted, texts))}, {metric.per_epoch}, {place})"
        for workload in catalog.WORKLOADS
        for place, metric in enumerate(declared.of(workload).table().values())
        for texts in [
            (
                workload,
                metric.name,
                metric.title,
                metric.axis,
                metric.panel,
                metric.role,
                metric.better,
                metric.network,
            )
        ]
    )
    return (
        f"CREATE OR REPLACE VIEW metrics AS SELECT * FROM (VALUES\n{rows}\n) AS"
        f" declared({METRICS_COLUMNS})"
    )


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
