"""What may be asked of a whole home: take in the runs of a bundle, make its database anew. Part of `commands`."""

from __future__ import annotations

import logging
from pathlib import Path

from gan_runtime import bundles
from gan_runtime.home import Home
from gan_runtime.runtime import rebuild
from gan_runtime.runtime.rebuild import Rebuilt

log = logging.getLogger("gan_runtime")


def import_bundle(home: Home, bundle: Path, *, asker: str) -> list[str]:
    """Loads the runs of a bundle; returns the new ids. Raises as `bundles.unpack`."""
    new = bundles.unpack(bundle, home)
    log.info("%d runs of %s are imported, as the %s asked", len(new), bundle, asker)
    return new


def make_store_anew(home: Home, *, asker: str) -> Rebuilt:
    """Makes results.duckdb anew from the journals. Raises as `rebuild.rebuild`."""
    made = rebuild.rebuild(home)
    log.info("%s is made anew, as the %s asked", home.database, asker)
    return made
