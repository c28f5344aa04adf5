"""Rows by name: of the project, then of installed packages, which declare entry points."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TypeVar

from gan_runtime.base.errors import PackageError, quoted

Row = TypeVar("Row")
NAME = re.compile(r"[a-z0-9][a-z0-9_]{0,39}")
log = logging.getLogger("gan_runtime")


class Table(MutableMapping[str, Row]):
    """Rows by name. Rows of packages are loaded at the first access, without a framework. `group`:
    group of entry points. `kind`: class of the rows. An unusable row of a package is skipped with a
    warning in the log, so that everything else still works.
    """

    def __init__(self, rows: Mapping[str, Row], group: str, kind: type[Row]) -> None:
        self._rows, self._group, self._kind = dict(rows), group, kind
        # Rows of `register` for child processes, such as GAN_RUNTIME_WORKLOADS.
        self._variable = group.upper().replace(".", "_")
        self._is_complete = False
        self._lock = threading.RLock()

    def register(self, name: str, place: str) -> None:
        """Adds the row at "module:NAME" to this process and its child processes.

        Raises:
            PackageError: the name is taken or invalid, or there is no such row.
        """
        self._complete()
        point = EntryPoint(name, place, self._group)
        row = self._loaded(point)
        if name in self._rows and self._rows[name] != row:
            raise PackageError(f"{self._group} already has a row {quoted(name)}: use another name.")
        self._rows[name] = row
        registered = filter(None, os.environ.get(self._variable, "").split(","))
        os.environ[self._variable] = ",".join(dict.fromkeys([*registered, f"{name}={place}"]))
        _make_importable(point.module)

    def _complete(self) -> None:
        with self._lock:
            if self._is_complete:
                return
            # Set before modules of packages are imported, since they can access this table.
            self._is_complete = True
            for point in (*entry_points(group=self._group), *self._registered()):
                try:
                    row = self._loaded(point)
                    if point.name in self._rows and self._rows[point.name] != row:
                        raise PackageError("the name is taken")
                    self._rows[point.name] = row
                except PackageError as error:
                    log.warning("%s of %s is skipped: %s", point.name, self._group, error)

    def _registered(self) -> Iterator[EntryPoint]:
        for pair in filter(None, os.environ.get(self._variable, "").split(",")):
            name, _, place = pair.partition("=")
            yield EntryPoint(name, place, self._group)

    def _loaded(self, point: EntryPoint) -> Row:
        """The row that an entry point names. Raises PackageError."""
        if not NAME.fullmatch(point.name):
            raise PackageError(
                f"{quoted(point.name)} is not a valid name: use up to 40 small letters, digits and"
                " '_', such as my_gan."
            )
        return declared(point.value, self._kind)

    def __getitem__(self, name: str) -> Row:
        self._complete()
        return self._rows[name]

    def __setitem__(self, name: str, row: Row) -> None:
        self._complete()
        self._rows[name] = row

    def __delitem__(self, name: str) -> None:
        del self._rows[name]

    def __iter__(self) -> Iterator[str]:
        self._complete()
        return iter(self._rows)

    def __len__(self) -> int:
        self._complete()
        return len(self._rows)


def declared(place: str, kind: type[Row]) -> Row:
    """The row of this class at "module:NAME" of a package. Raises PackageError."""
    try:
        row = EntryPoint("", place, "").load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # importing a package can raise anything, and can exit
        raise PackageError(
            f"{quoted(place)} cannot be loaded ({type(error).__name__}: {error}): name a module and"
            ' what it declares, such as "my_package.entry:ENTRY".'
        ) from error
    if not isinstance(row, kind):
        raise PackageError(f"{quoted(place)} is a {type(row).__name__}: declare a {kind.__name__}.")
    return row


def _make_importable(module: str) -> None:
    """Adds the module's folder to PYTHONPATH: child processes lack the path of a notebook or
    script.
    """
    package = sys.modules[module.partition(".")[0]]
    path = next(iter(getattr(package, "__path__", ())), None) or package.__file__
    if path is None:  # a part of Python itself
        return
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        dict.fromkeys([*paths, str(Path(path).resolve().parent)])
    )
