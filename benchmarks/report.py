"""docs/benchmarks.md, generated from benchmarks/results/.

python -m benchmarks.report        writes the page
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks import conditions, cycle_tables, load_tables, results
from benchmarks.figure_tables import figures, referee
from benchmarks.markdown import NOT_MEASURED, find, number, select, table
from benchmarks.matrix_side import FLOP, TITLES
from benchmarks.results import Record
from gan_runtime.records.home import REPOSITORY

PAGE = REPOSITORY / "docs" / "benchmarks.md"
RATES = ("training", "conditional", "showers", "pix2pix")  # the rows of the table of rates
INTRODUCTION = """# Benchmarks

Written by `python -m benchmarks.report` from `benchmarks/results/latest.jsonl`; do not edit.

`make bench` measures everything and writes this page; `make bench ONLY=training` measures a part. Each row waits up to 10 minutes for an idle machine (load at most
0.5). "Machine" is empty if it was idle; otherwise it shows the load. "Modified files" differed from the commit. PyTorch rows need
`.venv/bin/python -m pip install -r requirements-bench.txt`.

Compared programs take turns, because the speed of a machine drifts. A figure is the median ratio of neighboring turns. "Of totals" is the ratio of all steps
and all seconds; where it exists, it decides whether a target is met. Ours is a whole run, with journal, probes and checkpoints. Compiling is
excluded.

The suites are timed in [testing](testing.md). Their targets, 5 minutes for `make test` and 20 for `make test-all`, are missed.

Before and after the last changes: [first points](decisions/26-waiting-trainer.md), [pages](decisions/24-pages-under-load.md), [suites](decisions/25-tests.md), [JAX on a CPU](decisions/11-kernels.md), [GPU](gpu.md), compiled but not timed.
"""  # noqa: E501
COMPARED_PROGRAMS = """
Ours, plain Keras (benchmarks/keras_loop.py) and PyTorch (benchmarks/torch_loop.py) train the networks of Table 1 with Adam(1e-4) on the same global batch. The other rows
compare with plain Keras, with the same networks and step; tests compare the losses.

- conditional: `dcgan` on labeled 64 × 64 RGB images, batch 64
- streaming: the same, with rows from memory-mapped files
- preprocessing: showers of 51 × 51 × 25 cells, batch 64, converted each epoch or once
- 3DGAN, small: `size=tiny` on 17 × 17 × 25 cells, batch 32
- Pix2Pix, small: `size=small`, tiles of 64 pixels of frames of 80 × 192, batch 16, three epochs
- map-reduce: a rollout with that generator, by tiles on two simulated cores or by whole frames
"""  # noqa: E501
EXTERNAL_SCRIPT = """
`--referee SCRIPT` runs `SCRIPT --engine tf|torch --precision float32|bf16 --batch N --steps N`. The script reports images per second of its median step.
"""  # noqa: E501


def write(page: Path = PAGE) -> None:
    """Writes the whole page."""
    page.write_text(text(results.latest()), encoding="utf-8")


def text(records: Sequence[Record]) -> str:
    """The text of the page."""
    sections = [
        INTRODUCTION,
        "## Figures and targets\n" + COMPARED_PROGRAMS,
        figures(records),
        "## Against an external script\n" + EXTERNAL_SCRIPT,
        referee(records),
        "## Rates\n",
        rates(records),
        "## Cost of journal, probes and checkpoints\n",
        overhead(records),
        (
            "## Batch size and replicas\n\nSeconds per step, median, bfloat16, simulated replicas"
            " on the same cores.\n"
        ),
        growth(records),
        "## Operations of a step\n",
        operations(records),
        "## Cycles of a step on a TPU\n",
        cycle_tables.cycles(records),
        "## Cycles of Pix2Pix on a TPU\n",
        cycle_tables.pairs(records),
        "## Epochs of 3DGAN on a TPU\n",
        cycle_tables.epochs(records),
        "## Under load\n",
        load_tables.under_load(),
        "## Machine\n\n`python -m benchmarks.bench --only ROW` repeats a row.\n",
        machines(records),
        "Next: [mutation tests](mutants.md) · [testing](testing.md) · [training](training.md).\n",
    ]
    return "\n".join(sections)


# ---- the tables ----------------------------------------------------------------------------------


def rates(records: Sequence[Record]) -> str:
    """Images per second of each side, for the rows of RATES."""
    lines: dict[str, list[str]] = {}
    for record in records:
        if record["kind"] == "rate" and record["unit"] == "images/s" and record["row"] in RATES:
            side = f"{record['name']}: {record['value']:,.0f}"
            lines.setdefault(record["row"], []).append(side)
    return table(
        ["Row", "Images per second, median"],
        [[row, "; ".join(sides)] for row, sides in lines.items()],
    )


def overhead(records: Sequence[Record]) -> str:
    """The table of the parts of the overhead."""
    record = find(records, "overhead", "figure", "overhead")
    if record is None:
        return f"{NOT_MEASURED.capitalize()}.\n"
    ends = ", ".join(f"{seconds:.2f}" for seconds in record["ends_s"])
    lines = [
        [
            "within epochs: journal, ingest, supervisor, time between host calls",
            number(record["within_epochs"], "%"),
        ],
        [
            f"ends of epochs: probes, grid, checkpoint, every {record['steps_per_epoch']} steps",
            number(record["ends_of_epochs"], "%"),
        ],
        ["seconds of each epoch's end beyond its turn's steps", ends],
        [
            "time of the whole run beyond that of the bare engine",
            number(record["of_totals"], "%"),
        ],
    ]
    return table(["Part", "Of steady throughput"], lines)


def growth(records: Sequence[Record]) -> str:
    """Seconds per step: a line per global batch, a column per number of replicas."""
    cells = {
        (record["batch"], record["replicas"]): record["step_s"]
        for record in select(records, "growth", "cell")
    }
    replicas = sorted({count for _, count in cells})
    lines = [
        [
            str(batch),
            *(
                f"{cells[batch, count]:.3f}" if (batch, count) in cells else NOT_MEASURED
                for count in replicas
            ),
        ]
        for batch in sorted({batch for batch, _ in cells})
    ]
    return table(
        ["Global batch", *(f"{count} replica{'s' if count > 1 else ''}" for count in replicas)],
        lines,
    )


def operations(records: Sequence[Record]) -> str:
    """The step's rate relative to the machine's, by reference operation."""
    facts = select(records, "matrix", "facts")
    if not facts:
        return f"{NOT_MEASURED.capitalize()}.\n"
    flop_per_image = f"{facts[0]['flop_per_image']:,}"
    lines = [
        _yardstick_line(records, name)
        for name in FLOP
        if find(records, "matrix", "figure", f"share_of_{name}")
    ]
    return (
        f"A step of `{facts[0]['workload']}` takes {flop_per_image} operations per image"
        " (benchmarks/flops.py). The yardsticks are two large operations in bfloat16. On an AMD"
        " EPYC with AVX-512 and bfloat16 but without AMX, the step reaches 85% of the convolution's"
        " rate (2 cores, 12 turns, 2026-11-29: `--only matrix --rounds 12 --try`).\n\n"
        + table(["Yardstick", "Its rate, median", "The step's share, median", "Of totals"], lines)
    )


def _yardstick_line(records: Sequence[Record], name: str) -> list[str]:
    share, rate = (
        find(records, "matrix", "figure", f"share_of_{name}"),
        find(records, "matrix", "rate", name),
    )
    assert share is not None
    assert rate is not None
    of_totals = number(share["of_totals"], "%") if "of_totals" in share else ""
    return [
        TITLES[name],
        f"{rate['value']:,.0f} {rate['unit']}",
        number(share["value"], "%"),
        of_totals,
    ]


def machines(records: Sequence[Record]) -> str:
    """A list of machines, with rows, dates, commits and disturbances."""
    rows_of: dict[str, dict[str, list[str]]] = {}
    for record in (record for record in records if record["kind"] == "machine"):
        facts = (record["date"][:10], record["commit"], conditions.in_words(record))
        rows = rows_of.setdefault(_machine(record), {})
        rows.setdefault(", ".join(filter(None, facts)), []).append(record["row"])
    lines = []
    for machine, rows in rows_of.items():
        groups = "; ".join(f"{', '.join(names)} ({facts})" for facts, names in rows.items())
        lines.append(f"- {machine}: {groups}\n")
    return "".join(lines) or f"{NOT_MEASURED.capitalize()}.\n"


def _machine(record: Record) -> str:
    flags = ", ".join(flag for flag in record["cpu_flags"] if "bf16" in flag) or "no bfloat16"
    versions = [f"{name} {version}" for name, version in record["versions"].items() if version]
    memory = f"{record['memory_bytes'] / 1e9:.0f} GB"
    processor = f"{record['cpu_model']}, {record['cores']} cores, {flags}, {memory}"
    return ", ".join([processor, f"Python {record['python']}", *versions])


if __name__ == "__main__":
    write()
