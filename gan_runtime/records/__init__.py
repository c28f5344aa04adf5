"""The stored form of a run: records, the files that contain them, and the folders of homes and
runs.
"""
