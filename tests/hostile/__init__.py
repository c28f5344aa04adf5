"""At least a thousand hostile inputs, generated from tables, and the tests that pass them to every
reader.

`python -m tests.hostile` lists them all; docs/threat-model.md has the count of each kind.
"""
