"""Checks that losses, bit for bit, and all rows of the public views survive a rewrite.

    python -m tests.support.unchanged record FOLDER
    python -m tests.support.unchanged compare FOLDER

All queries use the command line, so this file does not depend on the structure of the program.
Losses are equal only on the same processor with the same versions of the frameworks, which FOLDER
records. The recorded files stay outside the repository.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import importlib.metadata
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from PIL import Image

REPOSITORY = Path(__file__).resolve().parents[2]
FIXTURES = REPOSITORY / "tests" / "support" / "fixtures"
ENGINES = ("tensorflow", "jax")
PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")
# Two epochs of ten steps each. All other options have their defaults.
COMMON = {"accelerator": "cpu", "replicas": 2, "epochs": 2, "seed": 7}
WORKLOADS: dict[str, dict[str, Any]] = {
    "mlp_gan": {"dataset": "grey", "batch_size_global": 8},
    "dcgan_mnist": {"dataset": "grey", "batch_size_global": 8},
    "dcgan": {"dataset": "rgb", "batch_size_global": 8, "base_channels": 8},
    "pix2pix": {"dataset": "flow", "batch_size_global": 4, "tile": 32},
    "shower_3dgan": {"dataset": "electrons", "batch_size_global": 4, "size": "tiny"},
}
FLOW = {"reynolds": "80,100", "held_out_reynolds": "60", "frames": 23, "discarded": 100}
# data set → its preparation and options; each has 80 images, or 40 rows, to train on
DATA: dict[str, tuple[str, dict[str, Any]]] = {
    "grey": ("pictures", {"pixels": 28, "color": "gray", "held_out_percent": 0}),
    "rgb": ("pictures", {"pixels": 28, "color": "rgb", "held_out_percent": 0}),
    "flow": ("karman_small", FLOW),
    "electrons": ("showers_tiny", {"events": 50, "held_out_percent": 20}),
}
LEFT_OUT = {"runs_live": "not in docs/schema.md"}  # view, or view.column → why it is not compared
MOST_DIFFERENCES = 5  # listed per view, or per run
Columns = dict[str, str]  # name → type
Ask = Callable[[str], list[dict[str, Any]]]  # an SQL statement → its rows


def run_command(home: Path, *words: str) -> str:
    """Runs a command in a new process with its own device locks; returns its output.

    Raises CalledProcessError.
    """
    command = [sys.executable, "-m", "gan_runtime", *words, "--home", str(home)]
    environment = {**os.environ, "GAN_RUNTIME_LOCKS": f"{home}.locks"}
    ended = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    print(ended.stderr if ended.returncode else "", end="", file=sys.stderr, flush=True)
    ended.check_returncode()
    return ended.stdout


def settings(options: dict[str, Any]) -> list[str]:
    """The options as arguments of a command."""
    return [word for name, value in options.items() for word in ("--set", f"{name}={value}")]


def answer(home: Path, statement: str) -> list[dict[str, Any]]:
    """The rows of an SQL statement, from the journals of a home."""
    words = ("sql", statement, "--json", "--max-rows", "10000000", "--seconds", "600")
    return list(json.loads(run_command(home, *words)))


def prepare_data(home: Path) -> None:
    """Prepares the data sets of `DATA`; images are noise of four classes."""
    random, pictures = np.random.default_rng(1), Path(f"{home}.pictures")
    for label, number in itertools.product("abcd", range(20)):
        (pictures / label).mkdir(parents=True, exist_ok=True)
        picture = Image.fromarray(random.integers(0, 255, (28, 28, 3), dtype=np.uint8))
        picture.save(pictures / label / f"{number:02}.png")
    for name, (preparation, options) in DATA.items():
        source = ["--from", str(pictures)] if preparation == "pictures" else []
        run_command(home, "data", "prepare", preparation, "--as", name, *source, *settings(options))


def trained(home: Path, name: str) -> dict[str, Any]:
    """Trains a run; returns its numbers, metric → step → value, or the error that refuses it."""
    workload, engine, precision = name.split(".")
    options = {"workload": workload, "engine": engine, "precision": precision, "name": name}
    try:
        run_command(
            home, "train", "--json", *settings({**COMMON, **WORKLOADS[workload], **options})
        )
    except subprocess.CalledProcessError as error:
        return {"refused": f"{error.returncode}: {error.stderr.strip()}"}
    numbers: dict[str, Any] = {}
    of_it = f"scalars JOIN runs USING (run_id) WHERE name = '{name}'"
    for row in answer(home, f"SELECT metric, step, value FROM {of_it} ORDER BY ALL"):
        numbers.setdefault(row["metric"], {})[str(row["step"])] = float(row["value"]).hex()
    print(f"{name}: {sum(map(len, numbers.values()))} values", flush=True)
    return numbers


def record_losses(folder: Path, matching: str) -> None:
    """Records losses of runs whose name contains `matching`; both engines train at once."""
    names = map(".".join, itertools.product(WORKLOADS, ENGINES, PRECISIONS))
    matches = [name for name in names if matching in name]

    def on_one(home: Path) -> dict[str, Any]:
        prepare_data(home)
        return {name: trained(home, name) for name in matches if f".{home.name}." in name}

    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor() as pool:
        parts = pool.map(on_one, [Path(temporary) / engine for engine in ENGINES])
        runs = {name: numbers for part in parts for name, numbers in part.items()}
    packages = {
        name: importlib.metadata.version(name) for name in ("tensorflow", "jax", "keras", "numpy")
    }
    processor = re.findall(
        r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8")
    )[:1]
    machine = {"processor": processor, "cores": os.cpu_count(), **packages}
    (folder / "losses.json").write_text(
        json.dumps({"machine": machine, "runs": runs}, indent=1), "utf-8"
    )


def loss_differences(old: Path, new: Path, matching: str) -> Iterator[str]:
    """A line for each number or run that has changed."""
    before, after = (
        json.loads((folder / "losses.json").read_text("utf-8")) for folder in (old, new)
    )
    if before["machine"] != after["machine"]:
        print(
            f"note: losses may differ, recorded on {before['machine']}, now on {after['machine']}"
        )
    for name in (name for name in before["runs"] if matching in name):
        was, now = (dict(numbers_of(folder["runs"].get(name, {}))) for folder in (before, after))
        wrong = [place for place in was if was[place] != now.get(place)]
        for step, metric in wrong[:MOST_DIFFERENCES]:
            value = now.get((step, metric), "missing")
            yield (
                f"{name.replace('.', ' ')} {metric} step {step}: was {was[step, metric]}, is"
                f" {value}"
            )
        if wrong:
            yield f"{name.replace('.', ' ')}: {len(wrong)} of {len(was)} values differ"
        for metric in sorted({metric for _, metric in now.keys() - was.keys()}):
            print(f"note: {name} has further numbers: {metric}")


def numbers_of(run: dict[str, Any]) -> list[tuple[tuple[int, str], str]]:
    """(step, metric) and the shortest exact decimal, in the order of steps; only the error of a
    refused run.
    """
    if "refused" in run:
        return [((0, "refused"), run["refused"])]
    lines = [
        (metric, step, value) for metric, values in run.items() for step, value in values.items()
    ]
    return sorted(
        ((int(step), metric), repr(float.fromhex(value))) for metric, step, value in lines
    )


def ask_file(home: Path, statement: str) -> list[dict[str, Any]]:
    """The rows of an SQL statement, read from results.duckdb directly."""
    with duckdb.connect(str(home / "results.duckdb"), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        cursor = connection.execute(statement)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def record_home(ask: Ask, folder: Path) -> None:
    """Writes each view to a file: a line of its columns, then a line for each row, with values as
    exact text and images as hashes.
    """
    folder.mkdir(parents=True)
    names, of_columns = "table_name, column_name, data_type", "information_schema.columns"
    views: dict[str, Columns] = {}
    for row in ask(f"SELECT {names} FROM {of_columns} WHERE table_schema = 'main' ORDER BY ALL"):
        view, column, kind = (row[name] for name in names.split(", "))
        if not LEFT_OUT.keys() & {view, f"{view}.{column}"}:
            views.setdefault(view, {})[column] = kind
    for view, columns in views.items():
        ways = {name: "sha256" if kind == "BLOB" else "" for name, kind in columns.items()}
        select = ", ".join(f'{way}("{name}")::VARCHAR AS "{name}"' for name, way in ways.items())
        rows = sorted(map(json.dumps, ask(f"SELECT {select} FROM {view}")))
        with gzip.open(
            folder / f"{view}.jsonl.gz", "wt", encoding="utf-8", compresslevel=3
        ) as file:
            file.write("\n".join([json.dumps(columns), *rows]) + "\n")
        print(f"{folder.name} {view}: {len(rows):,} rows", flush=True)


def record_views(folder: Path) -> None:
    """Records the views of the imported and rebuilt example bundles, of a run of version 0.2.0, and
    of runs of all earlier schemas.
    """
    with tempfile.TemporaryDirectory() as temporary:
        bundles, oldest, schemas = (
            Path(temporary) / name for name in ("bundles", "oldest", "schemas")
        )
        for name in ("paper", "karman", "showers"):
            run_command(bundles, "import", str(REPOSITORY / "examples" / f"{name}.zip"))
        record_home(functools.partial(answer, bundles), folder / "bundles_imported")
        shutil.copytree(FIXTURES / "0.2", oldest / "runs")
        for path in sorted((FIXTURES / "schemas").glob("*.tar.xz")):
            with tarfile.open(path) as archive:
                archive.extractall(schemas, filter="data")
        for home in (bundles, oldest, schemas):
            (home / "results.duckdb").unlink(missing_ok=True)
            run_command(home, "rebuild")
            record_home(functools.partial(ask_file, home), folder / f"{home.name}_rebuilt")


def stored(path: Path) -> tuple[Columns, list[dict[str, str | None]]]:
    """The columns and rows of a recorded view."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        columns, *rows = map(json.loads, file)
    return columns, rows


def view_differences(old: Path, new: Path) -> Iterator[str]:
    """A line for each view, column or row that has changed; additions are only printed."""
    views = [
        {str(path.relative_to(folder)) for path in folder.rglob("*.gz")} for folder in (old, new)
    ]
    yield from (f"{view}: lost" for view in sorted(views[0] - views[1]))
    print(*(f"note: {view} is new\n" for view in sorted(views[1] - views[0])), sep="", end="")
    for view in sorted(views[0] & views[1]):
        (before, rows), (after, new_rows) = stored(old / view), stored(new / view)
        for name in (name for name, kind in before.items() if after.get(name) != kind):
            yield f"{view}: column {name} {before[name]} is {after.get(name, 'lost')}"
        if extra := sorted(after.keys() - before.keys()):
            print(f"note: {view} has further columns: {', '.join(extra)}")
        columns = [name for name in before if name in after]
        was = Counter(json.dumps({name: row[name] for name in columns}) for row in rows)
        now = Counter(json.dumps({name: row[name] for name in columns}) for row in new_rows)
        for said, alone in (("was", was - now), ("is", now - was)):
            yield from (f"{view}: {said} {row[:1000]}" for row in [*alone][:MOST_DIFFERENCES])
            if alone:
                yield f"{view}: {alone.total():,} of {was.total():,} rows differ"


def main() -> None:
    """Records, or compares and exits with code 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=("losses", "views"))
    parser.add_argument(
        "--matching", default="", help="runs to compare: mlp_gan, dcgan.jax.float32, …"
    )
    arguments = parser.parse_args()
    differences: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder if arguments.action == "record" else Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if arguments.only != "views":
            record_losses(folder, arguments.matching if arguments.action == "compare" else "")
            differences += loss_differences(arguments.folder, folder, arguments.matching)
        if arguments.only != "losses":
            shutil.rmtree(folder / "views", ignore_errors=True)
            record_views(folder / "views")
            differences += view_differences(arguments.folder / "views", folder / "views")
    print(
        "\n".join(differences)
        or ("recorded" if arguments.action == "record" else "nothing has changed")
    )
    sys.exit(bool(differences))


if __name__ == "__main__":
    main()
