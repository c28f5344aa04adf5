"""Bundles: ended runs in one zip file, for import into another home."""

from gan_runtime.bundles.packing import examples, pack
from gan_runtime.bundles.unpacking import unpack

__all__ = ["examples", "pack", "unpack"]
