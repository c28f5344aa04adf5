"""Files of a run appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from gan_runtime.base import disk


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_is_replaced_only_when_complete(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "best.safetensors"
    path.write_text("old")
    with disk.whole_file(path, durable) as aside:
        aside.write_text("new")
        assert path.read_text() == "old"
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [
        ("best.safetensors", "new")
    ]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_only_the_old_file(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "best.safetensors"
    path.write_text("old")

    def torn() -> None:
        with disk.whole_file(path) as aside:
            aside.write_text("ne")
            raise error

    with pytest.raises(type(error)):
        torn()
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [
        ("best.safetensors", "old")
    ]
