"""Training on a GPU: the JAX engine against compiled PyTorch, and the card's own matrix rate.

One side a process, so neither framework disturbs the other. No process here loads TensorFlow.
"""
