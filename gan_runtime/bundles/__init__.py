"""Export and import of runs: bundles (ended runs in one zip file), tables, and event files of
TensorBoard.
"""

from gan_runtime.bundles.packing import examples, pack
from gan_runtime.bundles.unpacking import unpack

__all__ = ["examples", "pack", "unpack"]
