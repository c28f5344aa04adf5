"""Training on a GPU: the JAX engine against compiled PyTorch, and the GPU's matrix rate.

Each side has its own process, so neither framework disturbs the other. No process loads TensorFlow.
"""
