"""The training loop and what it writes: pictures, histograms, checkpoints, facts about the host."""
