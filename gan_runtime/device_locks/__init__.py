"""Which device of this host is taken, and by whom, across all homes: a lock per device, held by the processes that train on it.

A lock lives exactly as long as the trainer: whoever starts one takes the lock and hands it over as an open file, so that the
system frees it when the last process of the training is gone, in whatever way, and not when a dashboard ends. Beside each lock
lies a small file that says whose it is. Its words are for people; only the lock decides.
"""
