"""Tests of all parts. Loaded before any of them, and so before NumPy.

Their matrices are small: several threads would wait for each other longer than they compute, and
two files run at a time.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
