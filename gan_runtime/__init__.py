"""Runtime for distributed GAN training: specs, engines, trainer processes, journals and results.

The names below are the Python API (docs/python.md). Each loads on first use: `import gan_runtime`
alone loads nothing else, and no name loads a framework into this process.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.3.0"
__all__ = [
    "RunSpec",
    "__version__",
    "evaluate",
    "images",
    "open_home",
    "register_data_set",
    "register_workload",
    "runs",
    "sql",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'gan_runtime' has no attribute {name!r}")
    return getattr(
        importlib.import_module("gan_runtime.spec" if name == "RunSpec" else "gan_runtime.api"),
        name,
    )


def __dir__() -> list[str]:
    return __all__
