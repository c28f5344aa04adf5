"""The ways to get a data set, as a literal table. Loads none of the code that does it: a form reads this table."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from gan_runtime.base.errors import FieldError
from gan_runtime.base.options import OptionRecord
from gan_runtime.data.contract import Progress, Promised
from gan_runtime.data.pair_options import PairOptions
from gan_runtime.data.picture_options import PictureOptions
from gan_runtime.data.prepared import Stored
from gan_runtime.data.survey import Survey
from gan_runtime.domains.flows import preparation_options
from gan_runtime.domains.flows.preparation_options import FlowOptions, SmallFlowOptions
from gan_runtime.domains.showers.preparation_options import (
    AuthorsOptions,
    CaloChallengeOptions,
    ShowerOptions,
    TinyShowerOptions,
    angles_in_order,
    energies_in_order,
    promised,
)

HDF5_SUFFIXES = (".h5", ".hdf5")
Rule = Callable[[Any], FieldError | None]  # of a record of options: what is wrong across them


class NoOptions(OptionRecord):
    """Of a preparation that has none."""


class Maker(Protocol):
    """The module of a preparation that makes files: functions that raise DatasetError for what cannot be used."""

    def content(self, source: Path, progress: Progress) -> str:
        """A hash of the source. Only where there is one."""

    def survey(self, source: Path, options: Any, progress: Progress) -> Survey:
        """What `prepare` would make; stores nothing. Only where there is a preview."""

    def prepare(self, source: Path | None, options: Any, folder: Path, progress: Progress) -> Stored:
        """Writes the rows into an existing, empty folder. Raises DatasetError, HomeError."""


@dataclass(frozen=True)
class Preparation:
    """One way to get a data set.

    `maker`: the module that makes files in the home, under a name of one's own (see `Maker`). Empty: Keras downloads the set into
    its cache. `source`: what --from has to name, in words; empty where nothing is needed. `suffixes`: of a source that is one
    file. `name`: of the set where nobody gives one. `version`: of what it makes
    of the same source and options; one more when that changes.
    `has_preview`: a page can look through the source first. `promises`: what a set will hold that is made with given options. A run
    may name such a set before it is made, and waits for it; its `name` is that of the preparation, its options are the defaults.
    """

    title: str
    summary: str
    options: type[OptionRecord] = NoOptions
    maker: str = ""
    source: str = ""
    suffixes: tuple[str, ...] = ()
    name: str = ""
    rules: tuple[Rule, ...] = ()
    version: int = 1
    has_preview: bool = False
    promises: Callable[[Any], Promised] | None = None

    @property
    def promised(self) -> Promised | None:
        """What a run may count on before the set is made; None where nobody can know."""
        return self.promises(self.options()) if self.promises else None

    @property
    def makes_files(self) -> bool:
        """Whether it writes a set into the home."""
        return bool(self.maker)

    @property
    def needs_source(self) -> bool:
        """Whether --from has to be given."""
        return bool(self.source)

    def load(self) -> Maker:
        """The code that does it."""
        return cast("Maker", importlib.import_module(self.maker))


FLOW_RULES = (preparation_options.held_out_is_not_trained_on, preparation_options.enough_frames)
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
    "showers": Preparation(
        "Simulated showers",
        "Electrons in 25 layers of tungsten and silicon, simulated here: no files and no network needed.",
        ShowerOptions,
        maker="gan_runtime.domains.showers.simulated_preparation",
        name="showers",
        rules=(energies_in_order, angles_in_order),
        promises=promised,
    ),
    "showers_tiny": Preparation(
        "Simulated showers, small",
        "The same in 17 × 17 × 25 cells, 4,000 of them: for two cores. A run that needs them has them made.",
        TinyShowerOptions,
        maker="gan_runtime.domains.showers.simulated_preparation",
        name="showers_tiny",
        rules=(energies_in_order, angles_in_order),
        promises=promised,
    ),
    "showers_hdf5": Preparation(
        "Showers of the 3DGAN's authors",
        "Their HDF5 files: cells of 51 × 51 × 25, energy, measured angle.",
        AuthorsOptions,
        maker="gan_runtime.domains.showers.hdf5_preparation",
        source="an HDF5 file, or a folder of them",
        suffixes=HDF5_SUFFIXES,
        name="showers_hdf5",
    ),
    "calochallenge": Preparation(
        "Showers of the CaloChallenge",
        "HDF5 files of data set 2 or 3: 16 × 9 × 45 or 50 × 18 × 45 voxels, and the energy.",
        CaloChallengeOptions,
        maker="gan_runtime.domains.showers.calochallenge_preparation",
        source="an HDF5 file, or a folder of them",
        suffixes=HDF5_SUFFIXES,
        name="calochallenge",
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
    "karman": Preparation(
        "Simulated flow",
        "Frames of a Kármán vortex street behind an obstacle, simulated here. A run that needs them has them made.",
        FlowOptions,
        maker="gan_runtime.domains.flows.preparation",
        name="karman",
        rules=FLOW_RULES,
        promises=preparation_options.promised,
    ),
    "karman_small": Preparation(
        "Simulated flow, small",
        "The same flows in 40 × 96 pixels: for two cores. A run that needs them has them made.",
        SmallFlowOptions,
        maker="gan_runtime.domains.flows.preparation",
        name="karman_small",
        rules=FLOW_RULES,
        promises=preparation_options.promised,
    ),
    "mnist": Preparation("MNIST", "Keras downloads it into its cache, about 11 MB."),
    "fashion_mnist": Preparation("Fashion-MNIST", "Keras downloads it into its cache, about 30 MB."),
}
