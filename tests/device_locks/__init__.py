"""Locks of devices, and the queue of what waits for them."""
