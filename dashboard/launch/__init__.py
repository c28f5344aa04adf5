"""The page Launch."""
