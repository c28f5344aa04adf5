"""Background tasks next to training: a process and a folder each, with progress, a log, cancel and
one end.

job          what a job is, declared once for each; the table of all
folder       what lies in a job's folder, and its state as read from it
job_queue    asking for a job, starting, cancelling and listing them; the owner's supervision of
them
worker       the process; task: what the code of a job is given
data_jobs    preparing a data set, looking through pictures; picture_job: generating images
"""
