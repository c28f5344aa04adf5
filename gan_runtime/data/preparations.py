"""The ways to get a data set, as a literal table with those of the domains, and preparing one: made
aside, moved to its place as a whole, or nothing is left of it. Loads none of the code that makes
it.

    preparations.prepare(home, Asked("pictures", "photos", Path("photos.zip"), {"pixels": "64"}),
    progress)

`progress(done, total, sentence)` is called between rows; what it raises cancels.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from gan_runtime.base import disk, options
from gan_runtime.base.errors import DatasetError, FieldError, HomeError, SpecError, quoted
from gan_runtime.base.options import Option, OptionRecord
from gan_runtime.catalog.domain import Preparation
from gan_runtime.catalog.domains import DOMAINS
from gan_runtime.data import keras_sets, picture_files, prepared, previews
from gan_runtime.data.contract import Progress
from gan_runtime.data.picture_options import PairOptions, PictureOptions
from gan_runtime.data.prepared import FieldRecord, Manifest, Stored
from gan_runtime.data.summary import Survey
from gan_runtime.records.home import Home
from gan_runtime.records.record import now


class Maker(Protocol):
    """The module of a preparation that makes files: functions that raise DatasetError for
    what cannot be used.
    """

    def content(self, source: Path, progress: Progress) -> str:
        """A hash of the source. Only where there is one."""

    def survey(self, source: Path, options: Any, progress: Progress) -> Survey:
        """What `prepare` would make; stores nothing. Only where there is a preview."""

    def prepare(
        self, source: Path | None, options: Any, folder: Path, progress: Progress
    ) -> Stored:
        """Writes the rows into an existing, empty folder. Raises DatasetError, HomeError."""


def maker_of(preparation: Preparation) -> Maker:
    """The code that makes files."""
    return cast("Maker", importlib.import_module(preparation.maker))


PREPARATIONS: dict[str, Preparation] = {
    "pictures": Preparation(
        "Your own pictures",
        "A folder or a .zip of JPEG, PNG and WebP pictures of any size; sub-folders are labels, and"
        " those called test or val are held out.",
        PictureOptions,
        maker="gan_runtime.data.pictures",
        source="a folder or a .zip",
        suffixes=(".zip",),
        version=2,
        has_preview=True,
    ),
    "picture_pairs": Preparation(
        "Your own pairs of pictures",
        "A folder or a .zip of pairs, such as outlines and photos: side by side in one picture, or"
        " in two folders by equal names.",
        PairOptions,
        maker="gan_runtime.data.picture_pairs",
        source="a folder or a .zip",
        suffixes=(".zip",),
        version=2,
        has_preview=True,
    ),
    **{
        name: preparation for domain in DOMAINS for name, preparation in domain.preparations.items()
    },
    "mnist": Preparation("MNIST", "Keras downloads it into its cache, about 11 MB."),
    "fashion_mnist": Preparation(
        "Fashion-MNIST", "Keras downloads it into its cache, about 30 MB."
    ),
}


@dataclass(frozen=True)
class Asked:
    """One preparation that somebody wants.

    `name`: of the new set; empty for the preparation's own. `source`: a folder or file; None where
    it needs none.
    """

    preparation: str
    name: str = ""
    source: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> OptionRecord:
        """The options as their record; everything is checked that can be known without reading the
        source.

        Raises:
            DatasetError: no such preparation, a source is missing or one too many, or the name
                cannot be one.
            SpecError: an option is wrong.
        """
        known = PREPARATIONS.get(self.preparation)
        if known is None:
            raise DatasetError(
                f"{quoted(self.preparation)} is no preparation: there are"
                f" {', '.join(PREPARATIONS)}."
            )
        if not known.makes_files and (
            self.source is not None or self.name not in ("", self.preparation)
        ):
            raise DatasetError(
                f"{self.preparation} is downloaded under its own name: leave out --from and --as."
            )
        if known.needs_source and self.source is None:
            raise DatasetError(f"{self.preparation} needs {known.source}: say which with --from.")
        if not known.needs_source and self.source is not None:
            raise DatasetError(
                f"{self.preparation} is made from nothing but its options: leave out --from."
            )
        if known.makes_files:
            prepared.check_name(self.set_name)
        return parsed(known, self.options)

    @property
    def set_name(self) -> str:
        """What the set will be called. Raises KeyError for what is no preparation."""
        known = PREPARATIONS[self.preparation]
        return (self.name or known.name) if known.makes_files else self.preparation


def parsed(preparation: Preparation, values: Mapping[str, Any]) -> OptionRecord:
    """The options of a preparation from plain values; numbers may be text.

    Raises SpecError, one message for each wrong option.
    """
    known = options_of(preparation.options)
    right = {name: str(value) for name, value in values.items() if name in known}
    built, wrong = options.tried(preparation.options.model_validate, right, known)
    wrong += [FieldError(name, _unknown(name, known)) for name in values if name not in known]
    if not wrong:
        wrong = [error for rule in preparation.rules if (error := rule(built)) is not None]
    if wrong:
        raise SpecError(wrong)
    return built


def options_of(record: type[OptionRecord]) -> Mapping[str, Option]:
    """For a form: the options by name."""
    return options.of(record)


def survey(asked: Asked, progress: Progress) -> Survey:
    """What `prepare` would make, with a preview; stores nothing. Raises as `prepare`."""
    chosen = asked.check()
    known = PREPARATIONS[asked.preparation]
    if not known.has_preview or asked.source is None:
        raise DatasetError(f"{asked.preparation} has no preview: prepare it.")
    return maker_of(known).survey(asked.source, chosen, progress)


def prepare(
    home: Home,
    asked: Asked,
    progress: Progress,
    aside: Path | None = None,
    placing: Callable[[], Any] = lambda: None,
) -> Manifest | None:
    """Prepares a set and returns its manifest; None for sets that lie in Keras' cache.

    Does nothing when the set is there with the same content and options. `aside`: an existing
    folder on the home's disk for what is half-made; by default one in the home, which the owner
    clears of what a kill has left. `placing` is called right before the finished set takes its
    place: the last moment to cancel.

    Raises:
        DatasetError, SpecError: see `Asked.check`; the source cannot be read or used; the name is
        taken by
            another set.
        HomeError: the home cannot be written, or has too little space.
    """
    chosen = asked.check()
    known = PREPARATIONS[asked.preparation]
    if not known.makes_files:
        keras_sets.prepare(asked.preparation, progress)
        return None
    maker = maker_of(known)
    source = maker.content(asked.source, progress) if asked.source is not None else ""
    content = _content(asked, chosen, source)
    if prepared.is_there(home, asked.set_name):
        return _same(home, asked.set_name, content)
    with disk.told_when_full(home.data), _folder_aside(home, aside) as folder:
        stored = maker.prepare(asked.source, chosen, folder, progress)
        previews.remove(folder)
        manifest = _manifest(asked, chosen, content, stored)
        prepared.draw(folder, manifest)
        prepared.write_manifest(folder, manifest)
        placing()
        return _placed(home, folder, manifest)


def _manifest(asked: Asked, chosen: OptionRecord, content: str, stored: Stored) -> Manifest:
    known = PREPARATIONS[asked.preparation]
    return Manifest(
        name=asked.set_name,
        preparation=asked.preparation,
        source=picture_files.readable(asked.source.resolve().name) if asked.source else known.title,
        options=chosen.model_dump(),
        content=content,
        fields={name: FieldRecord.of(field) for name, field in stored.fields.items()},
        shards=stored.shards,
        prepared_at=now(),
        **vars(stored.summary),
    )


@contextlib.contextmanager
def _folder_aside(home: Home, aside: Path | None) -> Iterator[Path]:
    """An empty folder for a set in the making, gone at the end unless it has been moved to
    its place.
    """
    try:
        home.prepare().data.mkdir(exist_ok=True)
        around = tempfile.TemporaryDirectory(dir=aside or home.data, prefix=".new-")
    except OSError as error:
        raise HomeError.not_written(home.data, error) from None
    with around as name:
        folder = Path(name) / "set"
        folder.mkdir()
        yield folder


def _placed(home: Home, folder: Path, manifest: Manifest) -> Manifest:
    place = prepared.folder(home, manifest.name)
    try:
        folder.rename(place)
    except OSError as error:
        if prepared.is_there(home, manifest.name):  # made by another process meanwhile
            return _same(home, manifest.name, manifest.content)
        raise HomeError.not_written(place, error) from None
    return manifest


def _content(asked: Asked, chosen: OptionRecord, source: str) -> str:
    """A hash of what the set is made of, and of how."""
    recipe = [
        PREPARATIONS[asked.preparation].version,
        asked.preparation,
        chosen.model_dump(),
        source,
    ]
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()


def _same(home: Home, name: str, content: str) -> Manifest:
    known = prepared.manifest(home, name)
    if known.content != content:
        raise DatasetError(
            f"there is a data set {name} already, made of other files or with other options: "
            "choose another name, or remove it first."
        )
    return known


def _unknown(name: str, known: Mapping[str, Option]) -> str:
    return (
        f"{quoted(name)} is no option of this preparation: its options are"
        f" {', '.join(known) or 'none'}."
    )
