"""A flow past an obstacle, in NumPy: its simulation, its frames, and its measurements.

Behind an obstacle, a sufficiently fast flow sheds eddies alternately from the upper and the lower
side: the Kármán vortex street.
"""
