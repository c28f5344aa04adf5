"""Tests of all parts. This package is imported before any test module, and so before NumPy.

The matrices in tests are small: several threads would wait for each other longer than they compute,
and two files run at a time.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
