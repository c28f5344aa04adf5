"""Domains: each has its fields, simulation, data sets, workload, evaluation and published figures."""
