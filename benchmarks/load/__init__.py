"""The dashboard under load: thirty windows on one run, a thousand stored runs, ten
million numbers.
"""
