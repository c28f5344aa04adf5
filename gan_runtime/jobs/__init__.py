"""Background tasks beside training: a process and a folder each, with progress, a log, cancel and one end.

kinds    which kinds there are
folder   what lies in a job's folder, and its state as read from it
desk     asking for a job, starting, cancelling and listing them; needs no owner
keeper   what the owner of the home does for them: whose turn it is, and burying the dead
worker   the process; task: what the code of a job is given
"""
