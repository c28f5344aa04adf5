"""The workloads, datasets and engines that exist, as literal tables. Imports no framework, so every process may read it.

Parameter and activation counts feed the memory estimate of the Launch page; a test holds them against the real networks.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WorkloadEntry:
    """One GAN system.

    `parameters`: all weights of both networks. `activations_per_image`: numbers kept for the backward pass per image.
    """

    title: str
    summary: str
    source: str
    module: str
    parameters: int
    activations_per_image: int


@dataclass(frozen=True)
class DatasetEntry:
    """One training set. `images`: size of the full set."""

    title: str
    summary: str
    source: str
    images: int


@dataclass(frozen=True)
class EngineEntry:
    """One way to run the training step.

    `flags`: the module whose `set_flags` a trainer calls before anything else is loaded.
    `cluster`: the module whose `place` and `leave` tell a worker which one it is, and end its part.
    """

    title: str
    summary: str
    module: str
    flags: str
    cluster: str


WORKLOADS: dict[str, WorkloadEntry] = {
    "dcgan_mnist": WorkloadEntry(
        title="DCGAN (paper, Table 1)",
        summary="Convolutional generator and discriminator with batch norm, leaky ReLU and dropout.",
        source="Ravikumar and Sriraman 2023, doi:10.32604/csse.2023.034710, Table 1",
        module="gan_runtime.workloads.dcgan_mnist",
        parameters=2_543_809,
        activations_per_image=131_000,
    ),
    "mlp_gan": WorkloadEntry(
        title="Fully connected GAN",
        summary="Small dense networks without batch norm or dropout: fast to start, and equal on any number of replicas.",
        source="Goodfellow et al. 2014, arXiv:1406.2661, section 5 (sizes reduced)",
        module="gan_runtime.workloads.mlp_gan",
        parameters=205_969,
        activations_per_image=4_300,
    ),
}

DATASETS: dict[str, DatasetEntry] = {
    "digits": DatasetEntry(
        title="Digits (embedded)",
        summary="Real handwritten digits of 8 × 8 pixels, enlarged to 28 × 28. Needs no network.",
        source="scikit-learn load_digits; UCI ML hand-written digits, Alpaydin and Kaynak 1998",
        images=1_797,
    ),
    "mnist": DatasetEntry(
        title="MNIST",
        summary="60,000 handwritten digits of 28 × 28 pixels.",
        source="LeCun, Cortes and Burges 1998",
        images=60_000,
    ),
    "fashion_mnist": DatasetEntry(
        title="Fashion-MNIST",
        summary="60,000 pictures of clothes of 28 × 28 pixels.",
        source="Xiao, Rasul and Vollgraf 2017, arXiv:1708.07747",
        images=60_000,
    ),
}

ENGINES: dict[str, EngineEntry] = {
    "tensorflow": EngineEntry(
        title="TensorFlow",
        summary="One custom training loop on OneDevice, Mirrored or TPU strategy.",
        module="gan_runtime.engines.tf_distribute",
        flags="gan_runtime.engines.tf_flags",
        cluster="gan_runtime.engines.tf_cluster",
    ),
    "jax": EngineEntry(
        title="JAX",
        summary="One program over all devices, compiled by XLA as a whole: TPUs, GPUs, simulated CPU cores.",
        module="gan_runtime.engines.jax_spmd",
        flags="gan_runtime.engines.jax_flags",
        cluster="gan_runtime.engines.jax_cluster",
    ),
}


def engine(name: str) -> EngineEntry:
    """An engine by its name. Submitted runs name theirs; `auto` in the file of a run that a cluster starts is TensorFlow's."""
    return ENGINES["tensorflow" if name == "auto" else name]
