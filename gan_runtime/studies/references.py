"""Numbers that others have published, to stand beside our own, and what the paper says about its
figures, word for word.

Literal tables with their source; nothing here is ours. Quotations: Ravikumar and Sriraman 2023,
doi:10.32604/csse.2023.034710.
"""

from __future__ import annotations

from dataclasses import dataclass

PAPER = "Ravikumar and Sriraman 2023"

# The paper's setting: Table 1, sections 4 and 5, Figs. 5 to 10. A TPU compiles every step with XLA.
PAPER_DATASET, PAPER_IMAGES = "mnist", 60_000
PAPER_MACHINE, PAPER_REPLICAS = "TPU v3", 8
PAPER_EPOCHS = 30
PAPER_BATCHES = (64, 128, 256, 512)
PAPER_BEST_BATCHES = (256, 512)  # whose losses it calls optimized best, Fig. 10
PAPER_RESTARTS_BATCH = 512  # of which it shows a learning rate with cycles, Fig. 9
PAPER_DEVICES_BATCH = 32  # of the comparison of accelerators, Fig. 13
# The paper, abstract and sections 5.3 and 5.4. It gives these numbers in its text; its figures have
# no tables.
PAPER_TIME_SAVED = 0.79  # of the training time, batch 512 against 64
PAPER_XLA_SPEEDUP = 1.15
PAPER_FASTER_THAN = {
    "CPU": 0.562,
    "GPU": 0.197,
    "TPU, serial": 0.246,
}  # eight TPU cores at batch 32, share of time


@dataclass(frozen=True)
class Quotation:
    """`sentence` as printed; `section`: where it stands."""

    section: str
    sentence: str


TIME_FELL = Quotation(
    "abstract and section 6, conclusion",
    "The training time was reduced by 79% by varying the batch size from 64 to 512 in multi-core"
    " TPU.",
)
TIME_ROSE = Quotation(
    "section 5.1",
    "The different batch sizes implemented using the novel GAN network in distributed TPU showed an"
    " increase in training time as the batch sizes increased, as shown in Figs. 5 and 6.",
)
LOSSES_SHOWN = Quotation(
    "section 5.2",
    "The generator loss and discriminator loss for the varying batch sizes are shown in Fig. 7.",
)
HISTOGRAMS_SHOWN = Quotation(
    "section 5.2",
    "The histogram loss curve's loss concentration on each epoch for all batch sizes is"
    " demonstrated.",
)
RATE_DIPS = Quotation(
    "section 5.2",
    "It can infer that there is a dip in the learning rate at iteration 7 and iteration 24 for"
    " batch size 512, and finally, there is a sudden rise in the learning rate, and the peak is"
    " attained.",
)
RATE_OF_TABLE = Quotation("Table 1", "Adam(1e-4)")
OPTIMIZED = Quotation(
    "section 5.2",
    "The loss is optimized in batch sizes 256 and 512—so better optimization as batch size"
    " increases.",
)
LEAST_AT_512 = Quotation(
    "section 5.2",
    "From Fig. 11, the generator loss is minimized, and the radius is minimum for batch size 512,"
    " clearly showing it has the minimum loss.",
)
REDUCED = Quotation(
    "section 5.2",
    "As the iteration increases, the loss is reduced; further, it is reduced with an increase in"
    " batch size.",
)
RISES_IN_D = Quotation(
    "section 5.2",
    "The loss is less for smaller batch sizes in the discriminator and increases with batch size.",
)
XLA = Quotation(
    "section 5.3",
    "After enabling XLA, the models run around 1.15 times quicker than before, as shown in"
    " Fig. 12.",
)
FASTER = Quotation(
    "section 5.4",
    "The proposed model is 56.20% faster than a CPU, 19.7% faster than GPU, and 24.6% faster than"
    " serial TPU execution for batch size 32.",
)
