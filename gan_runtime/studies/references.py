"""Numbers that others have published, to stand beside our own. Literal tables with their source; nothing here is ours."""

from __future__ import annotations

PAPER = "Ravikumar and Sriraman 2023"

# The paper's setting: Table 1, sections 4 and 5, Figs. 5 to 10. A TPU compiles every step with XLA.
PAPER_DATASET, PAPER_IMAGES = "mnist", 60_000
PAPER_MACHINE, PAPER_REPLICAS = "TPU v3", 8
PAPER_EPOCHS = 30
PAPER_BATCHES = (64, 128, 256, 512)
PAPER_BEST_BATCHES = (256, 512)  # whose losses it calls optimized best, Fig. 10
PAPER_RESTARTS_BATCH = 512  # of which it shows a learning rate with cycles, Fig. 9
PAPER_DEVICES_BATCH = 32  # of the comparison of accelerators, Fig. 13
# The paper, abstract and sections 5.3 and 5.4. It gives these numbers in its text; its figures have no tables.
PAPER_TIME_SAVED = 0.79  # of the training time, batch 512 against 64
PAPER_XLA_SPEEDUP = 1.15
PAPER_FASTER_THAN = {
    "CPU": 0.562,
    "GPU": 0.197,
    "TPU, serial": 0.246,
}  # eight TPU cores at batch 32, share of time
