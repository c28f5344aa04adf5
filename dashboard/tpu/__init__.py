"""The page TPU check."""
