"""Showers of particles in a calorimeter, in NumPy, SciPy and HDF5: what a row of them is, how they
are simulated and measured.

A calorimeter stops a particle in many layers and measures the energy that is left in each of its
cells.
"""
