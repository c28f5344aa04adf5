"""The owner of a home: admission, queue, start, supervision and recovery of runs."""
