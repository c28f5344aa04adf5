"""Options of a run with units, ranges, defaults and error texts; rules across them; presets."""

from gan_runtime.spec.run_options import TABLE_1, Accelerator, Precision, Xla
from gan_runtime.spec.run_spec import RunSpec

__all__ = ["TABLE_1", "Accelerator", "Precision", "RunSpec", "Xla"]
