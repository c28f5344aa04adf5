"""An `ssh` that runs everything on this machine. Answers are short, and break off at random."""

from __future__ import annotations

import sys
from pathlib import Path

from gan_runtime.targets import there
from tests.support.cluster import terse_there

DOWN = "DOWN"  # a file in the command's folder, while the host cannot be reached
_TEXT = """#!{python} -S
import os, random, subprocess, sys
folder = os.path.dirname(os.path.abspath(__file__))
if os.path.exists(os.path.join(folder, "{down}")):
    sys.stderr.write("ssh: connect to host: Connection refused\\n")
    sys.exit(255)
count = os.path.join(folder, "count")
with open(count, "a+b") as file:
    number = file.tell()
    file.write(b".")
chance = random.Random({seed} * 1000 + number)
command = sys.argv[-1].replace("{there}", "{terse}")
done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE)
if chance.random() < {share}:
    sys.stdout.buffer.write(done.stdout[: chance.randrange(len(done.stdout) + 1)])
    sys.stdout.flush()
    sys.stderr.write("ssh: Connection closed by remote host\\n")
    sys.exit(255)
sys.stdout.buffer.write(done.stdout)
sys.stdout.flush()
sys.exit(done.returncode)
"""


def write(folder: Path, seed: int, share: float) -> None:
    """Writes the command into a folder for PATH. `share`: of the answers that break off."""
    folder.mkdir()
    command = folder / "ssh"
    command.write_text(
        _TEXT.format(
            python=sys.executable,
            down=DOWN,
            seed=seed,
            share=share,
            there=there.__name__,
            terse=terse_there.MODULE,
        ),
        encoding="utf-8",
    )
    command.chmod(0o755)
