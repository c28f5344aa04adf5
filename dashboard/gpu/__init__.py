"""The page GPU check."""
