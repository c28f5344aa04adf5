"""Background jobs next to training. Each has a process and a folder, with progress, a log, a cancel
request and one end.

job          the declaration of a job, the context that its work runs in, and its process
folder       the files of one job, and its state as read from them
job_queue    requesting, starting, cancelling and listing jobs; their supervision by the owner
core_jobs    prepare a data set, survey its images
image_job    generate images of a run, in a process that stays for the next ones
"""
