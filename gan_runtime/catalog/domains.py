"""The domains of the project: the only table of the core that names them.

Each module has DOMAIN.
"""

from __future__ import annotations

import importlib

from gan_runtime.catalog.domain import Domain

MODULES = ("gan_runtime.domains.showers.domain", "gan_runtime.domains.flows.domain")
DOMAINS: tuple[Domain, ...] = tuple(importlib.import_module(name).DOMAIN for name in MODULES)
