"""Evaluations of trained networks: which there are, how one is asked for, and the work of their
jobs.

catalog        the core's own and those of the domains
requests       what applies to a run, asking for one, the newest request
work           the job's process: networks and options → answers in the run's journal
loss_surface   the losses along a run's descent, as the paper's Fig. 11 (loss_landscape: the losses
at a point)
"""
