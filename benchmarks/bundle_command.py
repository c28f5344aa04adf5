"""The command line for bundles of example runs: prints a table or draws an image."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from gan_runtime import bundles
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir


def run(
    description: str | None,
    bundle: Path,
    table: Callable[[list[RunDir]], str],
    picture: Callable[[RunDir], Image.Image],
) -> None:
    """Prints the table of all runs, ordered by seed; draws the image of the first on request."""
    arguments = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    arguments.add_argument("--bundle", type=Path, default=bundle)
    arguments.add_argument("--picture", type=Path)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).prepare()
        runs = [home.run_dir(run_id) for run_id in bundles.unpack(options.bundle, home)]
        runs.sort(key=lambda run: run.spec().seed)
        if options.picture:
            picture(runs[0]).save(options.picture, optimize=True)
        print(table(runs))
