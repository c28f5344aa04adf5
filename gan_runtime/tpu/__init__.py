"""What a TPU would make of a run, found out with the TPU's own compiler and without a TPU
(docs/tpu.md).
"""
