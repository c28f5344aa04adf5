"""The command line: everything that the dashboard can ask of runs, for a terminal or a script.

Imports no framework.
"""
