"""Device locks, and the queue of runs that wait for them."""
