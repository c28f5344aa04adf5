"""Targets: other places where runs train, Slurm clusters and hosts that ssh reaches (docs/cluster.md).

Only the thread of a target makes calls to it (supervision/target_starter.py); no page and no tick
of the supervisor waits for one.
"""
