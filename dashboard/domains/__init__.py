"""What each domain adds to the page of its evaluation: its tabs, its words, its tables of others.

Listed in dashboard/domain_pages.py.
"""
