"""The tables of workloads, data sets and engines: rows of the project, then rows of installed
packages.

A package declares a row by an entry point, which dashboard, command line, trainer and background
jobs read. In its pyproject.toml:

    [project.entry-points."gan_runtime.workloads"]
    my_gan = "my_package.entry:ENTRY"

Imports no framework, so every process can read them. Sizes feed the memory estimate; a test
compares them with the networks.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import partial

from gan_runtime.base.fields import IMAGES, LABELS, labels, pictures
from gan_runtime.catalog import dcgan, pairs
from gan_runtime.catalog.domain import rows_of_domains
from gan_runtime.catalog.entries import DatasetEntry, EngineEntry, Size, WorkloadEntry
from gan_runtime.catalog.table import Table

__all__ = [
    "DATASETS",
    "ENGINES",
    "WORKLOADS",
    "DatasetEntry",
    "EngineEntry",
    "WorkloadEntry",
    "engine",
]

DIGITS = tuple("0123456789")
THREE_DIGITS = tuple(f"{number:03d}" for number in range(1_000))
CLOTHES = (  # Xiao et al., table 2
    "T-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)

WORKLOADS: MutableMapping[str, WorkloadEntry] = {
    "dcgan_mnist": pairs.entry(
        title="DCGAN (paper, Table 1)",
        summary=(
            "Convolutional generator and discriminator with batch norm, leaky ReLU and dropout."
        ),
        source="Ravikumar and Sriraman 2023, doi:10.32604/csse.2023.034710, Table 1",
        module="gan_runtime.workloads.dcgan_mnist",
        options=pairs.PairOptions,
        pictures=pairs.GREY,
        reads=pairs.reads_digits,
        size=lambda _options, _fields: Size(2_543_809, 131_000),
    ),
    "dcgan": pairs.entry(
        title="DCGAN for any images",
        summary=(
            "28 to 128 pixels, grayscale or RGB, of any width; conditional if the data set has"
            " labels."
        ),
        source=(
            "Radford et al. 2016, arXiv:1511.06434; labels: Miyato and Koyama 2018,"
            " arXiv:1802.05637"
        ),
        module="gan_runtime.workloads.dcgan",
        options=dcgan.DcganOptions,
        pictures=dcgan.PICTURES,
        reads=dcgan.reads,
        size=dcgan.size,
    ),
    "mlp_gan": pairs.entry(
        title="Fully connected GAN",
        summary=(
            "Small dense networks without batch norm or dropout: starts fast, same results on any"
            " number of replicas."
        ),
        source="Goodfellow et al. 2014, arXiv:1406.2661, section 5 (sizes reduced)",
        module="gan_runtime.workloads.mlp_gan",
        options=pairs.PairOptions,
        pictures=pairs.GREY,
        reads=pairs.reads_digits,
        size=lambda _options, _fields: Size(205_969, 4_300),
    ),
}

DATASETS: MutableMapping[str, DatasetEntry] = {
    "digits": DatasetEntry(
        title="Digits (embedded)",
        summary="1,797 handwritten digits of 8 × 8 pixels, enlarged to 28 × 28. No download.",
        source="scikit-learn load_digits; UCI ML hand-written digits, Alpaydin and Kaynak 1998",
        rows=1_797,
        fields={IMAGES: pictures(28, 28, 1), LABELS: labels(DIGITS)},
        load="gan_runtime.data.builtin_sets:load_digits",
        license="CC BY 4.0",
    ),
    "stacked_digits": DatasetEntry(
        title="Stacked digits (embedded)",
        summary=(
            "Three digits per image, one in each color channel: 1,000 known modes, to count those"
            " that a GAN loses."
        ),
        source="Metz et al. 2017, arXiv:1611.02163; Srivastava et al. 2017, arXiv:1705.07761",
        rows=20_000,
        fields={IMAGES: pictures(28, 28, 3), LABELS: labels(THREE_DIGITS)},
        load="gan_runtime.data.builtin_sets:load_stacked_digits",
        label_parts=(10, 10, 10),
        license="CC BY 4.0, as the digits",
    ),
    "mnist": DatasetEntry(
        title="MNIST",
        summary="60,000 handwritten digits of 28 × 28 pixels.",
        source="LeCun, Cortes and Burges 1998",
        rows=60_000,
        fields={IMAGES: pictures(28, 28, 1), LABELS: labels(DIGITS)},
        license="CC BY-SA 3.0",
    ),
    "fashion_mnist": DatasetEntry(
        title="Fashion-MNIST",
        summary="60,000 images of clothes of 28 × 28 pixels.",
        source="Xiao, Rasul and Vollgraf 2017, arXiv:1708.07747",
        rows=60_000,
        fields={IMAGES: pictures(28, 28, 1), LABELS: labels(CLOTHES)},
        license="MIT",
    ),
}

WORKLOADS = Table(
    WORKLOADS, "gan_runtime.workloads", WorkloadEntry, partial(rows_of_domains, "workloads")
)
DATASETS = Table(DATASETS, "gan_runtime.data_sets", DatasetEntry)

ENGINES: dict[str, EngineEntry] = {
    "tensorflow": EngineEntry(
        title="TensorFlow",
        summary="One custom training loop on OneDevice, Mirrored or TPU strategy.",
        module="gan_runtime.engines.tf.engine",
        flags="gan_runtime.engines.tf.process",
        tiles="gan_runtime.engines.tf.tiles",
        cluster="gan_runtime.engines.tf.process",
    ),
    "jax": EngineEntry(
        title="JAX",
        summary=(
            "One program over all devices, compiled by XLA as a whole: TPUs, GPUs, simulated CPU"
            " cores."
        ),
        module="gan_runtime.engines.jax.engine",
        flags="gan_runtime.engines.jax.devices",
        tiles="gan_runtime.engines.jax.tiles",
        cluster="gan_runtime.engines.jax.devices",
    ),
}


def engine(name: str) -> EngineEntry:
    """The engine of that name; `auto`, in the file of a run that a cluster starts, is
    TensorFlow.
    """
    return ENGINES["tensorflow" if name == "auto" else name]
