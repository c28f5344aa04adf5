"""Measurements: `make bench`, `make load`, `make faults`, `make mutants` and `gpu.sh`."""
