"""The stored measurements: the newest records of each row, as JSON lines in
benchmarks/results/latest.jsonl. Git has the older ones.

Each record has a `row` and a `kind`:

turn           one turn of one side: round, side, steps, seconds
figure         a number with its spread, by `name`; targets.py has its target
rate           images per second of one side, with its spread
cell           one measurement of a table (growth)
cycles, pair_cycles   the TPU compiler's estimate for one program
epoch          its estimate for an epoch of CERN's 3DGAN on one machine
operation, epoch_operation, pair_operation   one of a program's most expensive operations
facts          further numbers of a row
not_measured   a missing figure, and the `reason`
machine        the last record of a row: machine, versions, commit, date, command, seconds
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import conditions
from benchmarks.ratios import Spread, spread
from benchmarks.turns import Turn
from gan_runtime.hardware.machine import facts as machine_facts

FOLDER = Path(__file__).parent / "results"
LATEST = "latest.jsonl"
PACKAGES = ("tensorflow", "keras", "torch", "numpy", "duckdb", "streamlit")

Record = dict[str, Any]


@dataclass
class Report:
    """The records of one row; prints each at once."""

    row: str
    records: list[Record] = field(default_factory=list)

    def add(self, kind: str, **values: Any) -> None:
        """Adds a record, with floats rounded to five decimals, and prints it."""
        self.records.append(
            {
                "row": self.row,
                "kind": kind,
                **{name: _rounded(value) for name, value in values.items()},
            }
        )
        print(json.dumps(self.records[-1]), flush=True)

    def turn(self, number: int, side: str, turn: Turn) -> None:
        """Adds one turn of a comparison."""
        self.add("turn", round=number, side=side, **asdict(turn))

    def spread(self, kind: str, name: str, values: Spread, **further: Any) -> None:
        """Adds a figure or a rate with its spread."""
        self.add(kind, name=name, **asdict(values), **further)

    def rates(
        self, turns: Mapping[str, Sequence[Turn]], batch: int, unit: str = "images/s"
    ) -> None:
        """Adds the rate of each side. `batch`: images per step."""
        for side, side_turns in turns.items():
            self.spread(
                "rate", side, spread([batch / turn.step_s for turn in side_turns]), unit=unit
            )

    def not_measured(self, name: str, reason: str) -> None:
        """Adds a missing figure with its reason."""
        self.add("not_measured", name=name, reason=reason)


def _rounded(value: Any) -> Any:
    return round(value, 5) if isinstance(value, float) else value


def machine(begin: datetime, load_before: float) -> Record:
    """The machine record of a row that began at `begin`."""
    facts = {name: value for name, value in machine_facts().items() if name != "hostname"}
    return {
        **facts,
        "versions": {name: _version(name) for name in PACKAGES},
        "date": begin.isoformat(timespec="seconds"),
        "command": command(sys.argv[1:]),
        "seconds": round((datetime.now(UTC) - begin).total_seconds()),
        "load_before": round(load_before, 2),
        "uncommitted_changes": conditions.changed_since_commit(),
    }


def command(arguments: Sequence[str]) -> str:
    """The command line, without the private path of a referee."""
    previous = ("", *arguments)
    shown = [
        "SCRIPT" if option == "--referee" else argument
        for option, argument in zip(previous, arguments, strict=False)
    ]
    return " ".join(["python -m benchmarks.bench", *shown])


def _version(package: str) -> str:
    """The version of a package; empty if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def store(records: list[Record], row: str, folder: Path = FOLDER) -> Path:
    """Replaces the records of a row in latest.jsonl; returns its path."""
    folder.mkdir(exist_ok=True)
    other_rows = [record for record in latest(folder) if record["row"] != row]
    path = folder / LATEST
    path.write_text(_lines(other_rows + records), encoding="utf-8")
    return path


def latest(folder: Path = FOLDER) -> list[Record]:
    """The newest records of every measured row; empty without a file."""
    path = folder / LATEST
    if not path.exists():
        return []
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [record for record in records if "row" in record]  # older files have others


def _lines(records: list[Record]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)
