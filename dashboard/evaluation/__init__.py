"""The page of an evaluation, drawn from its declaration and its stored answers.

What a domain adds to it is in dashboard/domains.
"""
