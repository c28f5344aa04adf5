"""The training loop and what it writes: sample grids, histograms, checkpoints, facts about the host."""
