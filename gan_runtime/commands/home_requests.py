"""What may be asked of a whole home: take in the runs of a bundle, make its database anew. Part of `commands`."""

from __future__ import annotations

import logging
from pathlib import Path

from gan_runtime import bundles
from gan_runtime.records.actors import Asker, for_operators
from gan_runtime.records.home import Home
from gan_runtime.supervision import rebuild
from gan_runtime.supervision.rebuild import Rebuilt

log = logging.getLogger("gan_runtime")


@for_operators
def import_bundle(home: Home, bundle: Path, *, asker: Asker) -> list[str]:
    """Loads the runs of a bundle; returns the new ids. Raises as `bundles.unpack`."""
    new = bundles.unpack(bundle, home)
    log.info("%d runs of %s are imported, as the %s asked", len(new), bundle, asker.name)
    return new


@for_operators
def make_store_anew(home: Home, *, asker: Asker) -> Rebuilt:
    """Makes results.duckdb anew from the journals. Raises as `rebuild.rebuild`."""
    made = rebuild.rebuild(home)
    log.info("%s is made anew, as the %s asked", home.database, asker.name)
    return made
