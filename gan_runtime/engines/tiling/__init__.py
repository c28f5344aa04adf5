"""A picture as tiles: where they lie, how they are shared out among cores, and how they
become a picture again. NumPy only.
"""
