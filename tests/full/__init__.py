"""What `make test-all` has beyond `make test`: real trainings, both engines compiled whole,
browsers, faults. Folders as in tests/.
"""
