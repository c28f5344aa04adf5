"""Samples: players and films."""
