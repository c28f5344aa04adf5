"""At least a thousand inputs that nobody means well with, generated from tables, and the tests that
give them to every reader.

`python -m tests.hostile` lists them all; docs/threat-model.md says how many of each kind there are.
"""
