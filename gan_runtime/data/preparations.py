"""The ways to get a data set, as a literal table with those of the domains. Loads none of the code that does it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Protocol, cast

from gan_runtime.catalog.domains import DOMAINS
from gan_runtime.catalog.preparation import Preparation
from gan_runtime.data.contract import Progress
from gan_runtime.data.picture_options import PairOptions, PictureOptions
from gan_runtime.data.prepared import Stored
from gan_runtime.data.summary import Survey


class Maker(Protocol):
    """The module of a preparation that makes files: functions that raise DatasetError for what cannot be used."""

    def content(self, source: Path, progress: Progress) -> str:
        """A hash of the source. Only where there is one."""

    def survey(self, source: Path, options: Any, progress: Progress) -> Survey:
        """What `prepare` would make; stores nothing. Only where there is a preview."""

    def prepare(self, source: Path | None, options: Any, folder: Path, progress: Progress) -> Stored:
        """Writes the rows into an existing, empty folder. Raises DatasetError, HomeError."""


def maker_of(preparation: Preparation) -> Maker:
    """The code that makes files."""
    return cast("Maker", importlib.import_module(preparation.maker))


PREPARATIONS: dict[str, Preparation] = {
    "pictures": Preparation(
        "Your own pictures",
        "A folder or a .zip of JPEG, PNG and WebP pictures of any size; sub-folders are labels, and those called test or val are held out.",
        PictureOptions,
        maker="gan_runtime.data.pictures",
        source="a folder or a .zip",
        suffixes=(".zip",),
        version=2,
        has_preview=True,
    ),
    "picture_pairs": Preparation(
        "Your own pairs of pictures",
        "A folder or a .zip of pairs, such as outlines and photos: side by side in one picture, or in two folders by equal names.",
        PairOptions,
        maker="gan_runtime.data.picture_pairs",
        source="a folder or a .zip",
        suffixes=(".zip",),
        version=2,
        has_preview=True,
    ),
    **{name: preparation for domain in DOMAINS for name, preparation in domain.preparations.items()},
    "mnist": Preparation("MNIST", "Keras downloads it into its cache, about 11 MB."),
    "fashion_mnist": Preparation("Fashion-MNIST", "Keras downloads it into its cache, about 30 MB."),
}
