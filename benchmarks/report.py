"""docs/benchmarks.md, made from benchmarks/results/latest.jsonl: no figure in it is typed by hand.

python -m benchmarks.report        writes the page
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks import results
from benchmarks.results import Record
from benchmarks.targets import TARGETS, Target
from gan_runtime.home import REPOSITORY

PAGE = REPOSITORY / "docs" / "benchmarks.md"
NOT_MEASURED = "not measured"
NEVER_RUN = "no result in benchmarks/results/"
INTRODUCTION = """# Benchmarks

Made by `python -m benchmarks.report` from `benchmarks/results/latest.jsonl`; change nothing here by hand.

`make bench` measures everything, `make bench ONLY=training` a part, each on an otherwise idle machine. It prints JSON lines,
keeps them in `benchmarks/results/` (older files stay) and writes this page. PyTorch comes with
`.venv/bin/python -m pip install -r requirements-bench.txt`; without it its rows are not measured.

The sides of a comparison are processes that live through it and take turns, one peer, ours, the next peer, and so on: the
speed of a machine drifts, so only neighbouring turns are compared. A figure is the median of the ratios of the turns, with
the quartiles and the extremes beside it. "Of totals" is the ratio of all steps and all seconds, slow turns included. Ours is
a whole run: journal, fsync, ingest, supervisor, probes and checkpoints at work (benchmarks/trainer_side.py says what is timed).
"""
WHAT_IS_COMPARED = """
Ours, the plain Keras loop (benchmarks/keras_loop.py) and the PyTorch loop (benchmarks/torch_loop.py) train the networks of Table 1
with Adam(1e-4) on the same global batch. The PyTorch loop passes the generated images through D a second time for G's step, as is
usual there. The peers' images stay in memory, ours go through the input pipeline.
"""


def write(page: Path = PAGE) -> None:
    """Writes the page anew."""
    page.write_text(text(results.latest()), encoding="utf-8")


def text(records: Sequence[Record]) -> str:
    """The whole page."""
    sections = [
        INTRODUCTION,
        "## Figures and targets\n" + WHAT_IS_COMPARED,
        figures(records),
        "## Rates\n",
        rates(records),
        "## What streaming, probes and checkpoints cost\n",
        overhead(records),
        "## Cost of growth\n\nSeconds per step, median, bfloat16, simulated replicas on the same cores.\n",
        growth(records),
        "## Operations of a step\n",
        operations(records),
        "## Cycles of a step on a TPU\n",
        cycles(records),
        "## Dashboard\n",
        dashboard(records),
        "## Pages on a large store\n",
        pages(records),
        "## Machine\n",
        machines(records),
    ]
    return "\n".join(sections)


# ---- the tables -----------------------------------------------------------------------------------------------------


def figures(records: Sequence[Record]) -> str:
    """Every target, with its figure or the reason why there is none."""
    lines = [_figure_line(target, records) for target in TARGETS]
    return table(["Figure", "Median", "Quartiles", "Lowest to highest", "Turns", "Of totals", "Target", "Met"], lines)


def _figure_line(target: Target, records: Sequence[Record]) -> list[str]:
    wanted = f"{'at least' if target.direction == 'at_least' else 'at most'} {_number(target.limit, target.percent)}"
    found = _only(records, target.row, "figure", target.name)
    if found is None:
        return [target.title, f"{NOT_MEASURED}: {_reason(target, records)}", "", "", "", "", wanted, "–"]

    def shown(*names: str) -> str:
        return " to ".join(_number(found[name], target.percent) for name in names if name in found)

    met = "yes" if target.is_met_by(found["value"]) else "no"
    middle = [shown("quartile_1", "quartile_3"), shown("lowest", "highest"), str(found["count"]), shown("of_totals")]
    return [target.title, f"**{shown('value')}**", *middle, wanted, met]


def _reason(target: Target, records: Sequence[Record]) -> str:
    names = (target.name, target.row)  # of the figure, or of the whole row when it failed
    missing = [record for record in _of(records, target.row, "not_measured") if record["name"] in names]
    return str(missing[0]["reason"]).removesuffix(".") if missing else NEVER_RUN


def rates(records: Sequence[Record]) -> str:
    """What each side reached by itself."""
    lines = [
        [
            record["row"],
            record["name"],
            f"{record['value']:,.0f}",
            f"{record['quartile_1']:,.0f} to {record['quartile_3']:,.0f}",
            record["unit"],
        ]
        for record in records
        if record["kind"] == "rate"
    ]
    return table(["Row", "Side", "Median", "Quartiles", "Unit"], lines)


def overhead(records: Sequence[Record]) -> str:
    """The two parts of the overhead."""
    found = _only(records, "overhead", "figure", "overhead")
    if found is None:
        return f"{NOT_MEASURED.capitalize()}.\n"
    ends = ", ".join(f"{seconds:.2f}" for seconds in found["ends_s"])
    lines = [
        ["within epochs: journal, ingest, supervisor, time between host calls", _number(found["within_epochs"], True)],
        [
            f"ends of epochs: probes, grid, checkpoint, every {found['steps_per_epoch']} steps",
            _number(found["ends_of_epochs"], True),
        ],
        ["seconds of each epoch's end beyond its turn's steps (the first one traces the probe)", ends],
        ["all seconds of the run over all seconds of the bare engine", _number(found["of_totals"], True)],
    ]
    return table(["Part", "Of steady throughput"], lines)


def growth(records: Sequence[Record]) -> str:
    """Global batch downwards, replicas to the right."""
    cells = {(record["batch"], record["replicas"]): record["step_s"] for record in _of(records, "growth", "cell")}
    replicas = sorted({count for _, count in cells})
    lines = [
        [str(batch), *(f"{cells[batch, count]:.3f}" if (batch, count) in cells else NOT_MEASURED for count in replicas)]
        for batch in sorted({batch for batch, _ in cells})
    ]
    return table(["Global batch", *(f"{count} replica{'s' if count > 1 else ''}" for count in replicas)], lines)


def operations(records: Sequence[Record]) -> str:
    """Where the share of the machine's rate comes from."""
    facts = _of(records, "matrix", "facts")
    if not facts:
        return f"{NOT_MEASURED.capitalize()}.\n"
    shares = [
        [f"of the large {name}", _number(found["value"], True)]
        for name in ("matmul", "convolution")
        if (found := _only(records, "matrix", "figure", f"share_of_{name}"))
    ]
    counted = f"{facts[0]['flop_per_image']:,}"
    return (
        f"A step of `{facts[0]['workload']}` makes {counted} operations per image, computed from the layers' shapes "
        "(benchmarks/flops.py says what counts).\n\n" + table(["Share of the machine's bfloat16 rate", "Median"], shares)
    )


def cycles(records: Sequence[Record]) -> str:
    """What the TPU's compiler reckons, and the dearest operations of both sides."""
    facts = _of(records, "cycles", "facts")
    if not facts:
        return f"{NOT_MEASURED.capitalize()}.\n"
    versions = ", ".join(f"{name} {version}" for name, version in facts[0]["versions"].items())
    return (
        f"Every number here is {facts[0]['label']} ({facts[0]['topology']}, {versions}): the sum of `estimated_cycles` over one step with its "
        "optimizers, by the clock of a core. Exchanges between cores and the device's random generator carry no estimate. Plain Keras "
        "is benchmarks/keras_on_jax.py; the limit is the arithmetic of the step at the documented peak rate.\n\n"
        + table(
            ["Program", "Batch", "Precision", "Cycles", "Step", "Arithmetic limit", "Share of it", "Exchanged"],
            [_cycle_line(record) for record in _of(records, "cycles", "cycles")],
        )
        + "\nThe dearest operations at batch 512 in bfloat16:\n\n"
        + table(
            ["Program", "Cycles", "Layer, or name where it has none"],
            [
                [_SIDES[one["side"]], f"{one['cycles']:,.0f}", one["layer"] or one["name"]]
                for one in _of(records, "cycles", "operation")
            ],
        )
    )


_SIDES = {"ours": "ours", "keras": "plain Keras on JAX"}


def _cycle_line(record: Record) -> list[str]:
    return [
        _SIDES[record["side"]],
        str(record["batch"]),
        record["precision"],
        f"{record['cycles']:,.0f}",
        f"{record['step_ms']:.3f} ms",
        f"{record['floor_ms']:.3f} ms",
        _number(record["share_of_peak"], True),
        f"{record['exchange_mb']:.1f} MB in {record['exchanges']:.1f}",
    ]


def dashboard(records: Sequence[Record]) -> str:
    """As benchmarks/dashboard.py measured it."""
    facts = _of(records, "dashboard", "facts")
    if not facts:
        return f"{NOT_MEASURED.capitalize()}.\n"
    found = facts[0]
    lines = [
        ["start of the dashboard until Home is drawn", f"{found['first_page_s']:.1f} s"],
        ['click on "Start a quick run" until the first point', f"{found['first_point_s']:.1f} s"],
        ["resident memory of the dashboard's process, every page visited", f"{found['memory_mb']} MB"],
        ["import of everything the dashboard loads", f"{found['import_s']:.1f} s"],
        ["frameworks among it", ", ".join(found["frameworks_loaded"]) or "none"],
    ]
    return table(["Figure", "Value"], lines)


def pages(records: Sequence[Record]) -> str:
    """As benchmarks/pages.py measured it."""
    facts = _of(records, "pages", "facts")
    if not facts:
        return f"{NOT_MEASURED.capitalize()}.\n"
    found = facts[0]
    lines = [[page, f"{seconds:.2f} s", f"{found['cold'][page]:.2f} s"] for page, seconds in found["pages"].items()]
    return (
        f"{found['runs']} runs, {found['rows']:,} step numbers, {found['megabytes']:.0f} MB; taken in from their journals in "
        f"{found['take_in_s']:.0f} s. The time of the page's script in the dashboard's process; the first visit of a process also "
        "loads libraries (Home) and looks at the host (Launch).\n\n" + table(["Page", "Second visit", "First visit"], lines)
    )


def machines(records: Sequence[Record]) -> str:
    """The circumstances of each row."""
    lines = [_machine_line(record) for record in records if record["kind"] == "machine"]
    return table(["Row", "Date", "Commit", "Processor", "Memory", "Versions", "Load before", "Command"], lines)


def _machine_line(record: Record) -> list[str]:
    flags = ", ".join(flag for flag in record["cpu_flags"] if "bf16" in flag) or "no bfloat16"
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items() if version)
    processor = f"{record['cpu_model']}, {record['cores']} cores, {flags}"
    memory = f"{record['memory_bytes'] / 1e9:.0f} GB"
    return [
        record["row"],
        record["date"][:10],
        record["commit"],
        processor,
        memory,
        f"Python {record['python']}, {versions}",
        str(record["load_before"]),
        f"`{record['command']}`",
    ]


# ---- helpers --------------------------------------------------------------------------------------------------------


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table; "Not measured." without lines."""
    if not lines:
        return f"{NOT_MEASURED.capitalize()}.\n"
    rows = [header, ["---"] * len(header), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _number(value: float, percent: bool) -> str:
    return f"{value:.1%}".replace("%", " %") if percent else f"{value:.2f}"


def _of(records: Sequence[Record], row: str, kind: str) -> list[Record]:
    return [record for record in records if (record["row"], record["kind"]) == (row, kind)]


def _only(records: Sequence[Record], row: str, kind: str, name: str) -> Record | None:
    return next((record for record in _of(records, row, kind) if record["name"] == name), None)


if __name__ == "__main__":
    write()
