"""The comparisons of `make bench`, one module each: `measure(report, effort)` adds the records of
its row.

A figure that cannot be measured here is reported as such, with the reason; the other rows continue.
"""
