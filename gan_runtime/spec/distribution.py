"""How the replicas work together: batch norm, the exchange of gradients, accumulation, local
steps.
"""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel

from gan_runtime.base.options import option

BatchNormScope = Literal["per_replica", "synchronised"]
AllReduceType = Literal["float32", "bfloat16"]


class DistributionOptions(BaseModel):
    """Without effect on a single replica, accumulation excepted."""

    batch_norm: BatchNormScope = option(
        "per_replica",
        label="Batch norm over",
        group="Distribution",
        choices=get_args(BatchNormScope),
        help=(
            "'per_replica' normalises each replica's share by itself; 'synchronised' the whole"
            " batch, for one exchange a layer."
        ),
        source="tf.distribute guide; Keras BatchNormalization(synchronized=True)",
        error="pick one of the listed scopes.",
    )
    all_reduce_type: AllReduceType = option(
        "float32",
        label="Exchange gradients in",
        group="Distribution",
        choices=get_args(AllReduceType),
        help=(
            "bfloat16 halves the bytes that travel between replicas and rounds the gradients to 8"
            " bits."
        ),
        source="paper, section 4.3: bfloat16",
        error="pick one of the listed types.",
    )
    accumulation_steps: int = option(
        1,
        label="Gradient accumulation",
        group="Distribution",
        unit="parts of a batch",
        ge=1,
        le=64,
        help=(
            "Each replica works through its share in so many parts and updates once: less memory."
            " Batch norm sees one part at a time."
        ),
        source="tf.distribute has none that works on several replicas; done in the training step",
        error="use a whole number that divides the images per replica.",
    )
    sync_every_steps: int = option(
        1,
        label="Synchronise every",
        group="Distribution",
        unit="steps",
        ge=1,
        le=1000,
        help=(
            "1: replicas exchange gradients in each step. More: each trains alone and the weights"
            " are averaged so often: ANOTHER ALGORITHM (local SGD)."
        ),
        source="Stich 2019; Rasouli et al. 2020 (FedGAN); paper, future work on stragglers",
        error="use 1, or a whole number of steps.",
    )
    all_reduce_pack_mb: int = option(
        0,
        label="All-reduce pack",
        group="Distribution",
        unit="MB",
        ge=0,
        le=1024,
        help=(
            "Gradients travel between workers in packs of this size, each sent when it is full; 0"
            " sends all in one pack at the end."
        ),
        source="tf.distribute.experimental.CommunicationOptions",
        error="use 0 for one pack, or a size such as 8.",
    )
