"""The rows of `make bench`, a module each: `measure(report, effort)` adds the records of its row.

A figure that cannot be measured is recorded with the reason; the other rows continue.
"""
