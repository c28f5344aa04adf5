"""python -m benchmarks.mutants SEED COUNT: mutates the last commit, in a clone of it.

The same command resumes an interrupted run: cosmic-ray's session stays in the temporary folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.mutants import draw, page
from benchmarks.mutants.trial import CONFIG
from gan_runtime.hardware import machine
from gan_runtime.records.home import REPOSITORY


def main() -> None:
    """Draws the mutants, runs cosmic-ray on them, and writes the page."""
    seed, count = map(int, sys.argv[1:])
    begin, load, facts = datetime.now(UTC), os.getloadavg()[0], machine.facts()
    commit = _run("git", "rev-parse", "--short", "HEAD")
    session = Path(tempfile.gettempdir()) / f"mutants-{commit}-{seed}-{count}.sqlite"
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder, "copy")
        _run("git", "clone", "--quiet", "--shared", REPOSITORY, copy)
        if not session.exists():
            _prepare(copy, session, seed, count)
        try:
            _run("cosmic-ray", "exec", CONFIG, session, cwd=copy)
        finally:
            run = {
                "command": f"`make mutants SEED={seed} MUTANTS={count}`",
                "commit": commit,
                "date": begin.isoformat(timespec="seconds"),
                "minutes": round((datetime.now(UTC) - begin).total_seconds() / 60),
                "machine": (
                    f"{facts['cpu_model']}, {facts['cores']} cores, load {load:.1f} at the start"
                ),
                "drawn": count,
            }
            page.store(page.outcomes(session), run)


def _prepare(copy: Path, session: Path, seed: int, count: int) -> None:
    """Creates a session with a sample of mutants, after the tests passed on the unchanged code."""
    new_session = copy.parent / session.name
    _run("cosmic-ray", "init", CONFIG, new_session, cwd=copy)
    _run("cr-filter-operators", new_session, CONFIG, cwd=copy)
    draw.select_sample(new_session, copy, seed, count)
    _run("cosmic-ray", "baseline", CONFIG, cwd=copy)
    shutil.move(new_session, session)


def _run(*command: str | Path, cwd: Path = REPOSITORY) -> str:
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    result = subprocess.run(
        command, cwd=cwd, env=tools, stdout=subprocess.PIPE, text=True, check=True
    )
    return result.stdout.strip()


if __name__ == "__main__":
    main()
