"""What each domain adds to the page of its evaluation: tabs, texts, and published tables.

dashboard/domain_pages.py lists the pages.
"""
