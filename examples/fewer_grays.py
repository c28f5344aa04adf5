"""Reduces the sample grids of a home to 16 levels of gray: its bundle takes a third of the space.

python examples/fewer_grays.py HOME
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image

STEP = 255 // 15  # between two of the 16 levels

for path in sorted(Path(sys.argv[1]).glob("runs/*/samples/*.png")):
    pixels = np.asarray(Image.open(path).convert("L"))
    Image.fromarray((np.rint(pixels / STEP) * STEP).astype(np.uint8)).save(path, optimize=True)
