"""The preparations of data sets, of the project and of packages, and running one. A
set is written into a new folder and renamed at the end, so that a failure leaves nothing.

    request = PreparationRequest("pictures", "photos", Path("photos.zip"), {"pixels": "64"})
    preparations.prepare(home, request, progress)

`progress(done, total, sentence)` is called between rows, and cancels by raising.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

from gan_runtime.base import disk, options
from gan_runtime.base.errors import DatasetError, FieldError, HomeError, SpecError, quoted
from gan_runtime.base.options import Option, OptionRecord
from gan_runtime.catalog.domain import rows_of_domains
from gan_runtime.catalog.preparation import Preparation
from gan_runtime.catalog.table import Table
from gan_runtime.data import builtin_sets, prepared
from gan_runtime.data.contract import Progress
from gan_runtime.data.image_pairs import ImagePairOptions
from gan_runtime.data.images import ImageOptions
from gan_runtime.data.prepared import FieldRecord, Manifest, Stored
from gan_runtime.data.summary import Survey, readable
from gan_runtime.records.home import Home
from gan_runtime.records.record import now


class Maker(Protocol):
    """The module of a preparation that writes files. Its functions raise DatasetError for a source
    that cannot be used.
    """

    def content(self, source: Path, progress: Progress) -> str:
        """A hash of the source, for preparations with a source."""

    def survey(self, source: Path, options: Any, progress: Progress) -> Survey:
        """The result of `prepare`, without storing anything, for preparations with a preview."""

    def prepare(
        self, source: Path | None, options: Any, folder: Path, progress: Progress
    ) -> Stored:
        """Writes the rows into an existing, empty folder. Raises DatasetError, HomeError."""


def maker_of(preparation: Preparation) -> Maker:
    """The module of a preparation that writes files."""
    return cast("Maker", importlib.import_module(preparation.maker))


PREPARATIONS: MutableMapping[str, Preparation] = {
    "pictures": Preparation(
        "Your own images",
        "A folder or a .zip of JPEG, PNG and WebP images of any size. Sub-folders are labels; test"
        " and val are held out.",
        ImageOptions,
        maker="gan_runtime.data.images",
        source="a folder or a .zip",
        suffixes=(".zip",),
        version=3,
        has_preview=True,
    ),
    "picture_pairs": Preparation(
        "Your own image pairs",
        "A folder or a .zip of pairs, such as outlines and photos. Side by side in one image, or in"
        " two folders by equal names.",
        ImagePairOptions,
        maker="gan_runtime.data.image_pairs",
        source="a folder or a .zip",
        suffixes=(".zip",),
        version=3,
        has_preview=True,
    ),
    "mnist": Preparation("MNIST", "Keras downloads it into its cache, about 11 MB."),
    "fashion_mnist": Preparation(
        "Fashion-MNIST", "Keras downloads it into its cache, about 30 MB."
    ),
}
PREPARATIONS = Table(
    PREPARATIONS,
    "gan_runtime.preparations",
    Preparation,
    partial(rows_of_domains, "preparations"),
)


@dataclass(frozen=True)
class PreparationRequest:
    """A request to prepare a data set.

    `name`: of the new set; empty for the preparation's default. `source`: a folder or file; None
    for a preparation without one.
    """

    preparation: str
    name: str = ""
    source: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def check(self, *, needs_name: bool = True) -> OptionRecord:
        """The parsed options. Checks everything that does not need the source; a preview needs no
        name.

        Raises:
            DatasetError: no such preparation, a missing or needless source, or a wrong name.
            SpecError: an option is wrong.
        """
        preparation = PREPARATIONS.get(self.preparation)
        if preparation is None:
            raise DatasetError(
                f"{quoted(self.preparation)} is not a preparation: use one of"
                f" {', '.join(PREPARATIONS)}."
            )
        if not preparation.makes_files and (
            self.source is not None or self.name not in ("", self.preparation)
        ):
            raise DatasetError(
                f"{self.preparation} is a download with a fixed name: leave out --from and --as."
            )
        if preparation.needs_source and self.source is None:
            raise DatasetError(
                f"{self.preparation} needs {preparation.source}: name it with --from."
            )
        if not preparation.needs_source and self.source is not None:
            raise DatasetError(f"{self.preparation} has no source, only options: leave out --from.")
        if preparation.makes_files and (self.name or needs_name):
            if not self.set_name:
                raise DatasetError(
                    f"{self.preparation} needs a name for the new set (--as): use"
                    f" {prepared.NAME_RULE}."
                )
            prepared.check_name(self.set_name)
        return parse_options(preparation, self.options)

    @property
    def set_name(self) -> str:
        """The name of the set. Raises KeyError for an unknown preparation."""
        preparation = PREPARATIONS[self.preparation]
        return (self.name or preparation.name) if preparation.makes_files else self.preparation


def parse_options(preparation: Preparation, values: Mapping[str, Any]) -> OptionRecord:
    """The options of a preparation from plain values; numbers may be text.

    Raises SpecError, with one message for each wrong option.
    """
    declared = options_of(preparation.options)
    right = {name: str(value) for name, value in values.items() if name in declared}
    built, wrong = options.build_valid(preparation.options.model_validate, right, declared)
    wrong += [
        FieldError(name, _unknown_option(name, declared)) for name in values if name not in declared
    ]
    if not wrong:
        wrong = [error for rule in preparation.rules if (error := rule(built)) is not None]
    if wrong:
        raise SpecError(wrong)
    return built


def options_of(record: type[OptionRecord]) -> Mapping[str, Option]:
    """The options by name, for a form."""
    return options.of(record)


def survey(request: PreparationRequest, progress: Progress) -> Survey:
    """The result of `prepare`, with a preview; stores nothing. Raises as `prepare`."""
    values = request.check(needs_name=False)
    preparation = PREPARATIONS[request.preparation]
    if not preparation.has_preview or request.source is None:
        raise DatasetError(f"{request.preparation} has no preview: prepare it.")
    with _unreadable_source(request):
        return maker_of(preparation).survey(request.source, values, progress)


def prepare(
    home: Home,
    request: PreparationRequest,
    progress: Progress,
    work: Path | None = None,
    placing: Callable[[], Any] = lambda: None,
) -> Manifest | None:
    """Prepares a set and returns its manifest; None for sets in Keras' cache.

    Does nothing when the set exists with the same content and options. `work`: an existing folder
    on the home's disk for incomplete sets; by default in the home, whose owner cleans up after a
    crash. `placing` is called right before the finished set moves to the home: the last moment to
    cancel.

    Raises:
        DatasetError, SpecError: as `PreparationRequest.check`; the source cannot be used; another
            set has the name.
        HomeError: the home cannot be written, or has too little space.
    """
    values = request.check()
    preparation = PREPARATIONS[request.preparation]
    if not preparation.makes_files:
        builtin_sets.prepare_in_keras_cache(request.preparation, progress)
        return None
    maker = maker_of(preparation)
    with _unreadable_source(request):
        source = maker.content(request.source, progress) if request.source is not None else ""
    content = _content(request, values, source)
    if prepared.exists(home, request.set_name):
        return _existing(home, request.set_name, content)
    with disk.full_disk_as_home_error(home.data), _new_folder(home, work) as folder:
        with _unreadable_source(request):
            stored = maker.prepare(request.source, values, folder, progress)
        prepared.remove_live_image(folder)
        manifest = _manifest(request, values, content, stored)
        prepared.draw_first_rows(folder, manifest)
        prepared.write_manifest(folder, manifest)
        placing()
        return _move_to_home(home, folder, manifest)


@contextlib.contextmanager
def _unreadable_source(request: PreparationRequest) -> Iterator[None]:
    """Explains a source of the wrong kind, such as a folder for a file, that a maker has not
    checked.
    """
    try:
        yield
    except OSError as error:
        if request.source is None or str(error.filename) != str(request.source):
            raise
        raise DatasetError(
            f"{quoted(str(request.source))} cannot be read ({error.strerror}):"
            f" {request.preparation} needs {PREPARATIONS[request.preparation].source}."
        ) from None


def _manifest(
    request: PreparationRequest, values: OptionRecord, content: str, stored: Stored
) -> Manifest:
    title = PREPARATIONS[request.preparation].title
    return Manifest(
        name=request.set_name,
        preparation=request.preparation,
        source=readable(request.source.resolve().name) if request.source else title,
        options=values.model_dump(),
        content=content,
        fields={name: FieldRecord.of(field) for name, field in stored.fields.items()},
        shards=stored.shards,
        prepared_at=now(),
        **vars(stored.summary),
    )


@contextlib.contextmanager
def _new_folder(home: Home, work: Path | None) -> Iterator[Path]:
    """An empty folder for a new set, removed at the end unless it has moved to the home."""
    try:
        home.prepare().data.mkdir(exist_ok=True)
        parent = tempfile.TemporaryDirectory(dir=work or home.data, prefix=".new-")
    except OSError as error:
        raise HomeError.not_written(home.data, error) from None
    with parent as name:
        folder = Path(name) / "set"
        folder.mkdir()
        yield folder


def _move_to_home(home: Home, folder: Path, manifest: Manifest) -> Manifest:
    place = prepared.folder(home, manifest.name)
    try:
        folder.rename(place)
    except OSError as error:
        if prepared.exists(home, manifest.name):  # another process has prepared it in the meantime
            return _existing(home, manifest.name, manifest.content)
        raise HomeError.not_written(place, error) from None
    return manifest


def _content(request: PreparationRequest, values: OptionRecord, source: str) -> str:
    """A hash of the source, the options and the version of the preparation."""
    recipe = [
        PREPARATIONS[request.preparation].version,
        request.preparation,
        values.model_dump(),
        source,
    ]
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()


def _existing(home: Home, name: str, content: str) -> Manifest:
    manifest = prepared.manifest(home, name)
    if manifest.content != content:
        raise DatasetError(
            f"data set {name} exists already, from other files, with other options or by another"
            " version: choose another name, or remove it first."
        )
    return manifest


def _unknown_option(name: str, declared: Mapping[str, Option]) -> str:
    return (
        f"{quoted(name)} is not an option of this preparation: use one of"
        f" {', '.join(declared) or 'none'}."
    )
