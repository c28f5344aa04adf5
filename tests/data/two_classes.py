"""Images of two classes, and requests to prepare them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gan_runtime.base.errors import DatasetError
from gan_runtime.data.preparations import PreparationRequest
from tests.data.conftest import BLUE, RED, encoded

TWO_CLASSES = {
    **{f"top/cats/{number}.png": encoded(RED) for number in range(6)},
    **{f"top/dogs/{number}.jpg": encoded(BLUE, form="JPEG") for number in range(4)},
}
SMALL = {"pixels": "32", "held_out_percent": "0"}


def quiet(*_: object) -> None:
    """Ignores progress."""


def preparation(source: Path, **options: Any) -> PreparationRequest:
    return PreparationRequest("pictures", "photos", source, {**SMALL, **options})


def sentence(act: Any, *arguments: Any, kind: type[Exception] = DatasetError) -> str:
    with pytest.raises(kind) as refused:
        act(*arguments)
    return str(refused.value)
