"""What a run is: every option with its unit, range, default and error text, rules across
options, named starting points.
"""

from gan_runtime.spec.run_options import TABLE_1, Accelerator, Precision, Xla
from gan_runtime.spec.run_spec import RunSpec

__all__ = ["TABLE_1", "Accelerator", "Precision", "RunSpec", "Xla"]
