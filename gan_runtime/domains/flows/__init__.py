"""A flow past an obstacle, in NumPy: how it is computed, what its frames hold, and what is measured
of them.

Behind an obstacle a flow that is fast enough sheds eddies in turns from its upper and its lower
side: the Kármán vortex street.
"""
