"""Which variant of the JAX engine's step is the fastest on this host's NVIDIA GPU, in about 8 minutes.

Each case has a side per variant (variant_side.py), and compiled PyTorch. Four compile at a time;
then they are timed alone, in turns. At the end it profiles the first and the fastest variant, and
prints which one to keep.

python -m benchmarks.gpu.variants [--seconds 400] [--accelerator cpu] [--only WORKLOAD:BATCH:PRECISION …]
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.gpu.__main__ import Answer, Side, child_answer, prepared, record, take_turns
from benchmarks.gpu.cases import Case
from benchmarks.gpu.variant_side import VARIANTS

MODULE = "benchmarks.gpu.variant_side"
AT_A_TIME = 4
CASES = (
    Case("dcgan_mnist", 256, "mixed_bfloat16"),
    Case("dcgan_mnist", 4_096, "mixed_bfloat16"),
    Case("pix2pix", 64, "mixed_bfloat16"),
    Case("pix2pix", 1_024, "float32"),
)
GAIN = 1.01  # a bolder variant has to gain at least this
PEER = "torch"
Rates = Mapping[str, Sequence[float]]


def best(rates: Rates) -> str:
    """The variant to keep: from the plainest on, each replaces the one before if it gains GAIN.

    `rates`: images per second of each turn by variant; empty for one that failed. Ratios are of
    the same turn, and their median decides.
    """
    kept = ""
    for name in VARIANTS:
        if rates.get(name) and (not kept or ratio(rates[name], rates[kept]) >= GAIN):
            kept = name
    return kept


def ratio(rates: Sequence[float], of: Sequence[float]) -> float:
    """The median ratio of turns."""
    return statistics.median(mine / other for mine, other in zip(rates, of, strict=True))


def rates_of(records: Sequence[Answer]) -> dict[str, Sequence[float]]:
    """Images per second of each turn by side; empty for one that failed, even in a later turn."""
    return {
        answer["side"]: () if answer["failure"] else answer["images_per_s"] for answer in records
    }


def measured(case: Case) -> Iterator[Answer]:
    """A record for each variant of a case, and for PyTorch."""
    sides = [Side.start(name, case, (MODULE, name)) for name in VARIANTS]
    sides.append(Side.start(PEER, case))
    with prepared(sides, AT_A_TIME):
        take_turns(sides)
    yield from map(record, sides)


def lines_of(case: Case, records: Sequence[Answer]) -> list[str]:
    """The printed result of a case."""
    rates = rates_of(records)
    peer = rates.get(PEER)
    lines = [case.title]
    for answer in records:
        name, own = answer["side"], rates[answer["side"]]
        if not own:
            lines.append(f"  {name}: {answer['failure']}")
            continue
        against = f", {ratio(own, peer):.2f} of PyTorch" if peer and name != PEER else ""
        lines.append(f"  {name}: {statistics.median(own):,.0f} images/s{against}")
    return [*lines, f"  keep: {best(rates) or 'none was measured'}"]


def profiles(case: Case, names: Sequence[str]) -> Iterator[str]:
    """The kernels of these variants with the most time, as printed."""
    for name in names:
        answer = child_answer([MODULE, "profile", name, *case.words])
        yield f"profile of {name}, {case.title}"
        kernels = answer.get("kernels", [])
        yield from (f"  {share:.1%} {kernel}" for kernel, share in kernels)
        if not kernels:
            yield f"  {answer.get('failure', 'no kernel of a GPU was recorded')}"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="Compares variants of a step on this host's GPU.")
    parser.add_argument("--seconds", type=float, default=400.0, help="begin no case after them")
    parser.add_argument("--accelerator", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORKLOAD:BATCH:PRECISION")
    options = parser.parse_args()
    os.environ["GPU_BENCH_ACCELERATOR"] = options.accelerator
    begin = time.monotonic()
    named = (words.split(":") for words in options.only)
    cases = [Case(name, int(batch), precision) for name, batch, precision in named] or CASES
    for case in cases:
        if time.monotonic() - begin > options.seconds:
            print(f"{case.title}: no time was left")
            continue
        records = list(measured(case))
        for answer in records:
            print(json.dumps(answer), flush=True)
        print(*lines_of(case, records), sep="\n", flush=True)
        rates = rates_of(records)
        if case == cases[0] and best(rates):
            print(*profiles(case, list(dict.fromkeys(("base", best(rates))))), sep="\n", flush=True)


if __name__ == "__main__":
    main()
