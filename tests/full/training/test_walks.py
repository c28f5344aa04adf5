"""The walks of docs/architecture.md through a trainer follow the calls."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.run_folder import RunDir, write_json
from tests.support.called_modules import OF_TRAINERS, not_called, parts

TRAINED = """
import json, pathlib, sys
from gan_runtime import worker
from gan_runtime.records.run_folder import RunDir
from tests.support.called_modules import calls
run, target = map(pathlib.Path, sys.argv[1:])
with calls() as pairs:
    code = worker.main(RunDir(run), 1, "cpu")
target.write_text(json.dumps(sorted(pairs)))
sys.exit(code)
"""


def test_neighbors_of_a_walk_call_each_other(tmp_path: Path) -> None:
    run = RunDir(Home(tmp_path / "home").prepare().runs / "quick-0001")
    run.path.mkdir()
    options = {"workload": "mlp_gan", "engine": "jax", "epochs": 1, "batch_size_global": 599}
    write_json(run.spec_path, {**options, "precision": "float32"})
    target = tmp_path / "pairs.json"
    subprocess.run(
        [sys.executable, "-c", TRAINED, str(run.path), str(target)], check=True, cwd=REPOSITORY
    )
    pairs = {(caller, called) for caller, called in json.loads(target.read_text(encoding="utf-8"))}
    in_trainers = [part for part in parts() if set(part) & set(OF_TRAINERS)]
    assert len(in_trainers) == 4
    assert not_called(in_trainers, pairs) == []
