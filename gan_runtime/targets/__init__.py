"""Targets: Slurm clusters, and hosts that ssh reaches, where runs train (docs/cluster.md).

Only the thread of a target makes calls to it (supervision/target_starter.py); no page and no tick
of the supervisor waits for one.
"""
