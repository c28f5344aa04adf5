"""The page Data."""
