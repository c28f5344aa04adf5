"""Samples: players, films, and generated images."""
