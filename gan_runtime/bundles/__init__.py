"""Bundles: ended runs in one zip file, to be given away and loaded into another home."""

from gan_runtime.bundles.layout import examples
from gan_runtime.bundles.packing import pack
from gan_runtime.bundles.unpacking import unpack

__all__ = ["examples", "pack", "unpack"]
