"""Rows by name: of the project, then of installed packages, which declare entry points."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TypeVar

from gan_runtime.base.errors import PackageError, quoted

Row = TypeVar("Row")
NAME = re.compile(r"[a-z0-9][a-z0-9_]{0,39}")
log = logging.getLogger("gan_runtime")


class Table(MutableMapping[str, Row]):
    """Rows by name. Rows of packages are loaded at the first access, without a framework. `group`:
    group of entry points. `kind`: class of the rows. `of_domains`: names and rows that domains
    bring, read before those of entry points. `has_names`: whether a row has its name itself. An
    unusable row of a package is skipped with a warning in the log, so that everything else still
    works.
    """

    # Of all tables: rows of one can come from another, and modules of packages can read any.
    _lock = threading.RLock()
    _is_loading = False  # while modules of packages are imported, tables have their rows so far

    def __init__(
        self,
        rows: Mapping[str, Row],
        group: str,
        kind: type[Row],
        of_domains: Callable[[], Iterable[tuple[str, Row]]] = tuple,
        *,
        has_names: bool = False,
    ) -> None:
        self._rows, self._group, self._kind = dict(rows), group, kind
        self._of_domains, self._has_names = of_domains, has_names
        # Rows of `register` for child processes, such as GAN_RUNTIME_WORKLOADS.
        self._variable = group.upper().replace(".", "_")
        self._is_complete = False

    def register(self, name: str, place: str) -> None:
        """Adds the row at "module:NAME" to this process and its child processes.

        Raises:
            PackageError: the name is taken or invalid, or there is no such row.
        """
        self._complete()
        point = EntryPoint(name, place, self._group)
        self._add(name, declared(place, self._kind))
        registered = filter(None, os.environ.get(self._variable, "").split(","))
        os.environ[self._variable] = ",".join(dict.fromkeys([*registered, f"{name}={place}"]))
        _make_importable(point.module)

    def _complete(self) -> None:
        with Table._lock:
            if self._is_complete or Table._is_loading:
                return
            self._is_complete = True
            for name, row in self._of_domains():
                with self._skipped(name):
                    self._add(name, row)
            Table._is_loading = True
            try:
                for point in (*entry_points(group=self._group), *self._registered()):
                    with self._skipped(point.name, point.dist.name if point.dist else ""):
                        self._add(point.name, declared(point.value, self._kind))
            finally:
                Table._is_loading = False

    @contextlib.contextmanager
    def _skipped(self, name: str, package: str = "") -> Iterator[None]:
        """Logs why a row cannot be added."""
        try:
            yield
        except Exception as error:  # a row of a package can raise anything
            of = f"{self._group} in package {package}" if package else self._group
            log.warning("%s of %s is skipped: %s", name, of, error)

    def _add(self, name: str, row: Row) -> None:
        """Raises PackageError for a name that is invalid or that another row has."""
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise PackageError(
                f"{quoted(name)} is not a valid name: use up to 40 small letters, digits and '_',"
                " such as my_gan."
            )
        if self._has_names and row.name != name:  # type: ignore[attr-defined]
            raise PackageError(f"{quoted(name)} is declared with another name: use the same.")
        if self._rows.setdefault(name, row) != row:
            raise PackageError(f"the name {quoted(name)} is taken: use another one.")

    def _registered(self) -> Iterator[EntryPoint]:
        for pair in filter(None, os.environ.get(self._variable, "").split(",")):
            name, _, place = pair.partition("=")
            yield EntryPoint(name, place, self._group)

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
