"""A JSON file of options, such as a run's spec.json, read with care: it may come from anyone and may be no file at all."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from gan_runtime.base.errors import FieldError, SpecError

MAX_BYTES = 100_000  # all options together take 1,500
MAX_KEYS = 200
ADVICE = "correct it, or start from the spec.json of a run."


def read_values(path: Path) -> dict[str, Any]:
    """The options that a JSON file gives, unchecked. Raises SpecError when it is missing, too large or no JSON object."""
    try:
        values = json.loads(_content(path))
    except OSError as error:
        raise _refused(path, f"cannot be read ({error.strerror}): give the path of a JSON file.") from None
    except RecursionError:
        raise _refused(path, f"holds brackets within brackets without end: {ADVICE}") from None
    except ValueError as error:
        raise _refused(path, f"is not JSON ({error}): {ADVICE}") from None
    if not isinstance(values, dict):
        raise _refused(path, f"holds a {type(values).__name__}: it must hold one JSON object of options.")
    if len(values) > MAX_KEYS:
        raise _refused(path, f"holds {len(values):,} keys, more than there are options: {ADVICE}")
    return values


def _content(path: Path) -> bytes:
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would wait for its other end, a device may never end
        raise _refused(path, "is not a plain file: give the path of a JSON file.")
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise _refused(path, f"has more than {MAX_BYTES:,} bytes: {ADVICE}")
    return content


def _refused(path: Path, reason: str) -> SpecError:
    return SpecError([FieldError("spec", f"spec file {path} {reason}")])
