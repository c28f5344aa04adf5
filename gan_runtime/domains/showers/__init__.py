"""Showers of particles in a calorimeter, in NumPy, SciPy and HDF5: their rows, simulation and
measurements.

A calorimeter stops a particle in many layers and measures the energy that is left in each of its
cells.
"""
