"""A home in which a command has trained a run: a real process, and a real training of two
epochs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TINY = ("--set", "workload=mlp_gan", "--set", "batch_size_global=256", "--set", "precision=float32")
STEPS_PER_EPOCH = 7  # 1,797 digits in batches of 256
SCALARS = (
    2 * STEPS_PER_EPOCH * 6 + 2 * 10
)  # two epochs: 6 numbers each step, 10 at the end of each epoch
PRINTED = "train.jsonl"  # what the command has printed, in the home


def train(path: Path) -> None:
    """Trains run-0001 alone and to its end."""
    words = (
        "train",
        *TINY,
        "--set",
        "epochs=2",
        "--set",
        "profile_steps=2",
        "--json",
        "--home",
        str(path),
    )
    child = subprocess.run(
        [sys.executable, "-m", "gan_runtime", *words], capture_output=True, text=True, check=False
    )
    assert (child.returncode, child.stderr) == (0, "")
    (path / PRINTED).write_text(child.stdout, encoding="utf-8")
