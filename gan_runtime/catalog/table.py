"""A table of the catalog: rows of the project, and rows that other installed packages declare.

A package declares a row by an entry point, which every process of the project finds: dashboard,
command line, trainer and background job. In the pyproject.toml of such a package:

    [project.entry-points."gan_runtime.workloads"]
    my_gan = "my_package.entry:ENTRY"
"""

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
    """Rows by name, the project's first.

    Those of packages are loaded when somebody first looks; no look loads a framework.

    `group`: of the entry points. `kind`: the class of a row. A row of a package that cannot be used
    is left out with a warning in the log: it must not keep a person from all other runs.
    """

    def __init__(self, own: Mapping[str, Row], group: str, kind: type[Row]) -> None:
        self._rows, self._group, self._kind = dict(own), group, kind
        self._variable = group.upper().replace(
            ".", "_"
        )  # GAN_RUNTIME_WORKLOADS: of `register`, for child processes
        self._is_complete = False
        self._lock = threading.RLock()

    def register(self, name: str, place: str) -> None:
        """Adds the row at "module:NAME" for this process and the processes that it starts.

        Raises:
            PackageError: the name is taken or no name, or there is no such row.
        """
        self._complete()
        point = EntryPoint(name, place, self._group)
        row = self._loaded(point)
        if name in self._rows and self._rows[name] != row:
            raise PackageError(
                f"{quoted(name)} is the name of another row of {self._group}: choose another name."
            )
        self._rows[name] = row
        registered = filter(None, os.environ.get(self._variable, "").split(","))
        os.environ[self._variable] = ",".join(dict.fromkeys([*registered, f"{name}={place}"]))
        _make_importable(point.module)

    def _complete(self) -> None:
        with self._lock:
            if self._is_complete:
                return
            self._is_complete = (
                True  # before the modules of packages are loaded, which may look themselves
            )
            for point in (*entry_points(group=self._group), *self._registered()):
                try:
                    row = self._loaded(point)
                    if point.name in self._rows and self._rows[point.name] != row:
                        raise PackageError("the name is taken")
                    self._rows[point.name] = row
                except PackageError as error:
                    log.warning("%s of %s is left out: %s", point.name, self._group, error)

    def _registered(self) -> Iterator[EntryPoint]:
        for pair in filter(None, os.environ.get(self._variable, "").split(",")):
            name, _, place = pair.partition("=")
            yield EntryPoint(name, place, self._group)

    def _loaded(self, point: EntryPoint) -> Row:
        """Raises PackageError."""
        if not NAME.fullmatch(point.name):
            raise PackageError(
                f"{quoted(point.name)} is no name: use up to 40 small letters, digits and '_', such"
                " as my_gan."
            )
        try:
            row = point.load()
        except Exception as error:  # whatever the module of a stranger raises while it is imported
            raise PackageError(
                f"{quoted(point.value)} cannot be loaded ({type(error).__name__}: {error}): "
                'name a module and what it declares, such as "my_package.entry:ENTRY".'
            ) from error
        if not isinstance(row, self._kind):
            raise PackageError(
                f"{quoted(point.value)} is a {type(row).__name__}, but has to be a"
                f" {self._kind.__name__}."
            )
        return row

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


def _make_importable(module: str) -> None:
    """For child processes, which do not have what a notebook or a script has on its path: its
    folder.
    """
    package = sys.modules[module.partition(".")[0]]
    place = next(iter(getattr(package, "__path__", ())), None) or package.__file__
    if place is None:  # a part of Python itself
        return
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        dict.fromkeys([*paths, str(Path(place).resolve().parent)])
    )
