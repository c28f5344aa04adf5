"""Data sets. `loading` finds one by its name, `preparations` makes one from files."""
