"""The training sets: fields and rows.

`loading` finds them, the other files read one kind each.
"""
