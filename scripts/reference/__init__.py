"""docs/reference/*.md: options, metrics, SQL views and commands, written from their declarations.

`make docs` writes them; tests/project/test_reference.py checks that they are current.
"""
