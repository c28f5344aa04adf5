"""What everything else stands on: errors, options, fields, metrics, processes and files of
this host.
"""
