"""Every change that a person may ask for, bound to an actor.

commands   the class `Commands`, and changes of a whole home
bound      the home, who asks, and the refusal of viewers
runs       submit, stop, resume, rename
queue      another order, what a run waits for
kept       marks, the best checkpoint, the bin
jobs       background jobs, data sets, files from a browser
"""
