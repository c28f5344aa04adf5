"""Makes runs of showers small enough to come with the project: images of 64 colors, every second
measurement and the last one, cells with three digits.

python examples/smaller_showers.py HOME
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from PIL import Image

COLORS, DIGITS, EVERY = 64, 3, 2


def main() -> None:
    """All runs of the home; a second time changes nothing."""
    for run in sorted(Path(sys.argv[1]).glob("runs/showers-*")):
        for path in sorted(run.glob("samples/*.png")):
            with Image.open(path) as image:
                few = image.convert("RGB").quantize(
                    COLORS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
                )
            few.save(path, optimize=True)
        journal = run / "journal-evaluations.jsonl"
        measured = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
        lines = [
            json.dumps(shortened(record), separators=(",", ":")) for record in thinned(measured)
        ]
        journal.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def thinned(measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records of every second epoch and of the last one."""
    last = max(record["epoch"] for record in measured)
    return [
        record for record in measured if record["epoch"] == last or record["epoch"] % EVERY == 0
    ]


def shortened(record: dict[str, Any]) -> dict[str, Any]:
    """The record with three digits of each cell energy."""
    arrays = [
        {**shower, "values": [float(f"{energy:.{DIGITS}g}") for energy in shower["values"]]}
        for shower in record["arrays"]
    ]
    return {**record, "arrays": arrays}


if __name__ == "__main__":
    main()
