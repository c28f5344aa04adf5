"""Evaluations of trained networks.

catalog         every evaluation by name; the contract of their work and of their reports
jobs            which evaluations apply to a run; requests and runs their jobs
loss_surface    the losses along a run's descent, as the paper's Fig. 11
loss_landscape  the losses at a point of weight space; loads Keras
"""
