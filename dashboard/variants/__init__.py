"""XLA and Precision."""
