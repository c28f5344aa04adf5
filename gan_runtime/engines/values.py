"""From stored rows to the values that networks see, on the host. Each engine has the same formula for its devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.fields import Field, Fields


def host_values(rows: Mapping[str, NDArray[Any]], fields: Fields) -> dict[str, NDArray[Any]]:
    """Stored rows (rows, *shape) by field → values, in the order of `fields`."""
    return {name: host_value(rows[name], field) for name, field in fields.items()}


def host_value(stored: NDArray[Any], field: Field) -> NDArray[Any]:
    """value = stored · scale + shift, float32; a field that is kept as stored stays as it is."""
    if field.is_as_stored:
        return stored
    return stored.astype(np.float32) * np.float32(field.scale) + np.float32(field.shift)
