"""The ground floor: errors, options, fields, metrics, number formats, and files and processes of
this host.
"""
