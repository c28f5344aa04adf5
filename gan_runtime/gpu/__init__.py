"""The compile check for GPUs: what XLA's compiler makes of a training step, without a GPU."""
