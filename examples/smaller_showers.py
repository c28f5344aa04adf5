"""Reduces runs of showers in place, for the example bundle: images of 64 colors, every second
measurement and the last one, cell energies with three digits.

python examples/smaller_showers.py HOME
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from PIL import Image

COLORS, DIGITS, EVERY_EPOCHS = 64, 3, 2


def main() -> None:
    """Reduces all runs of the home. A second call changes nothing."""
    for run in sorted(Path(sys.argv[1]).glob("runs/showers-*")):
        for path in sorted(run.glob("samples/*.png")):
            with Image.open(path) as image:
                reduced = image.convert("RGB").quantize(
                    COLORS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
                )
            reduced.save(path, optimize=True)
        journal = run / "journal-evaluations.jsonl"
        records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
        lines = [
            json.dumps(shortened(record), separators=(",", ":")) for record in thinned(records)
        ]
        journal.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def thinned(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records of every second epoch and of the last one."""
    last = max(record["epoch"] for record in records)
    return [
        record
        for record in records
        if record["epoch"] == last or record["epoch"] % EVERY_EPOCHS == 0
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
