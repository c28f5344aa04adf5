"""Exported images of all kinds keep their file names from the run folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gan_runtime.bundles import export
from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store.store import Store
from tests.support.small_pictures import png


def test_images_of_all_kinds_keep_their_file_names_when_exported(
    new_run: Callable[..., RunDir], store: Store, take_in: Callable[[], None], tmp_path: Path
) -> None:
    run = new_run("quick-0001")
    run.samples.mkdir()
    files = {"samples/epoch-00001.png": ("fixed_latents", 1)}
    files |= {f"samples/{kind}-00002.png": (kind, 2) for kind in ("samples", "by_class")}
    for width, (file, (kind, epoch)) in enumerate(files.items(), start=4):
        (run.path / file).write_bytes(png(width))
        sample = journal.Sample(epoch=epoch, step=epoch, sample_kind=kind, file=file, meta={})
        journal.append(run.trainer_journal(), 1, sample)
    take_in()
    export.export(store, ["quick-0001"], tmp_path / "out", "parquet")
    written = tmp_path / "out" / "samples" / "quick-0001"
    assert {path.name: path.read_bytes() for path in written.iterdir()} == {
        Path(file).name: png(width) for width, file in enumerate(files, start=4)
    }
