"""What `make bench` runs: our trainer against a plain Keras loop, and how fast and how light
the dashboard is.
"""
