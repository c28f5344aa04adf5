"""The page of an evaluation, drawn from its declaration and its stored answers.

dashboard/domains has what each domain adds.
"""
