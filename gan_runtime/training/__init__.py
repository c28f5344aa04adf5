"""The training loop and what it writes: numbers, sample images, histograms, checkpoints."""
