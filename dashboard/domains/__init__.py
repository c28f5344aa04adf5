"""What each domain adds to the page of its evaluation: tabs, texts, and published tables. Each
evaluation names its page (catalog/evaluation.py).
"""
