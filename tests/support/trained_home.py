"""A home with a run that a command has trained: a real process and two real epochs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TINY = ("--set", "workload=mlp_gan", "--set", "batch_size_global=256", "--set", "precision=float32")
STEPS_PER_EPOCH = 7  # 1,797 digits in batches of 256
SCALARS = (
    2 * STEPS_PER_EPOCH * 6 + 2 * 10
)  # two epochs: 6 numbers per step, 10 at the end of each epoch
PRINTED = "train.jsonl"  # the output of the command, in the home


def train(path: Path) -> None:
    """Trains only run-0001, to its end."""
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
