"""A user's settings for other programs do not reach Keras in a trainer's process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from gan_runtime.records import processes
from gan_runtime.records.home import REPOSITORY

PIN = """
import os, sys
from pathlib import Path
from gan_runtime.base import framework_settings
framework_settings.clean_this_process()
framework_settings.use_private_keras_home(Path(sys.argv[1]))
import keras
print(keras.config.backend(), keras.config.floatx(), keras.config.epsilon(), keras.config.image_data_format())
print((Path(os.environ["KERAS_HOME"]) / "datasets").resolve())
"""  # noqa: E501


def test_trainer_ignores_user_keras_settings_and_names_them(
    tmp_path: Path,
) -> None:
    home, scratch = tmp_path / "keras", tmp_path / "scratch"
    home.mkdir()
    scratch.mkdir()
    settings = {
        "floatx": "float64",
        "epsilon": 1e-3,
        "backend": "jax",
        "image_data_format": "channels_first",
    }
    (home / "keras.json").write_text(json.dumps(settings))
    environment = {
        **processes.environment(os.environ),
        "KERAS_HOME": str(home),
        "KERAS_BACKEND": "torch",
    }
    command = [sys.executable, "-c", PIN, str(scratch)]
    child = subprocess.run(
        command,
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    ignored, defaults, datasets = child.stdout.splitlines()
    assert "KERAS_BACKEND" in ignored
    assert defaults == "tensorflow float32 1e-07 channels_last"
    assert datasets == str(home / "datasets")
