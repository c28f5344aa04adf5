"""Tests that `make test-all` adds to `make test`: real training, both engines fully compiled,
browsers, faults. Same folders as in tests/.
"""
