"""What the paper says about its figures, word for word, with the section. Source: Ravikumar and Sriraman 2023, doi:10.32604/csse.2023.034710.

A verdict on the Paper page judges one of these sentences. Nothing here is read from a picture: the figures have no tables, and where the
text makes no claim about a figure there is no verdict.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quotation:
    """`sentence` as printed; `section`: where it stands."""

    section: str
    sentence: str


TIME_FELL = Quotation(
    "abstract and section 6, conclusion",
    "The training time was reduced by 79% by varying the batch size from 64 to 512 in multi-core TPU.",
)
TIME_ROSE = Quotation(
    "section 5.1",
    "The different batch sizes implemented using the novel GAN network in distributed TPU showed an increase in training time as the "
    "batch sizes increased, as shown in Figs. 5 and 6.",
)
LOSSES_SHOWN = Quotation(
    "section 5.2",
    "The generator loss and discriminator loss for the varying batch sizes are shown in Fig. 7.",
)
HISTOGRAMS_SHOWN = Quotation(
    "section 5.2",
    "The histogram loss curve's loss concentration on each epoch for all batch sizes is demonstrated.",
)
RATE_DIPS = Quotation(
    "section 5.2",
    "It can infer that there is a dip in the learning rate at iteration 7 and iteration 24 for batch size 512, and finally, there is a "
    "sudden rise in the learning rate, and the peak is attained.",
)
RATE_OF_TABLE = Quotation("Table 1", "Adam(1e-4)")
OPTIMIZED = Quotation(
    "section 5.2",
    "The loss is optimized in batch sizes 256 and 512—so better optimization as batch size increases.",
)
LEAST_AT_512 = Quotation(
    "section 5.2",
    "From Fig. 11, the generator loss is minimized, and the radius is minimum for batch size 512, clearly showing it has the minimum loss.",
)
REDUCED = Quotation(
    "section 5.2",
    "As the iteration increases, the loss is reduced; further, it is reduced with an increase in batch size.",
)
RISES_IN_D = Quotation(
    "section 5.2",
    "The loss is less for smaller batch sizes in the discriminator and increases with batch size.",
)
XLA = Quotation(
    "section 5.3",
    "After enabling XLA, the models run around 1.15 times quicker than before, as shown in Fig. 12.",
)
FASTER = Quotation(
    "section 5.4",
    "The proposed model is 56.20% faster than a CPU, 19.7% faster than GPU, and 24.6% faster than serial TPU execution for batch size 32.",
)
