"""Sciences that plug into the core: each folder declares its own in `domain.py`, and
gan_runtime/catalog/domain.py lists them.
"""

# A module of a domain imports records of the catalog. The catalog reads each DOMAIN, so it must be
# loaded first.
import gan_runtime.catalog  # noqa: F401
