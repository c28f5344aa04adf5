"""The split and the class folder of each image, by the names of the folders around it.

    set/train/cats/old/1.jpg    split train, folder cats, rest old/1.jpg
    set/cats/test/2.jpg         split test, folder cats, rest 2.jpg
    set/trainA/3.jpg            split train, folder A, rest 3.jpg

A folder named train, val, test, holdout, dev, eval or fold 3, in any case, is a split. With
ordinary folders next to it, it is an ordinary folder: train/train next to train/bus is a class. The
class folder is the first one below those that all images share, after the folders of splits are
removed.
Names in NFC and NFD of Unicode are the same.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeVar

import numpy as np

from gan_runtime.base.errors import DatasetError, quoted
from gan_runtime.data.summary import Skip, readable

TRAIN, FOLD = "train", "fold"
_SHORT = {
    "training": TRAIN,
    "trainval": TRAIN,
    "valid": "val",
    "validation": "val",
    "testing": "test",
    "evaluation": "eval",
    "heldout": "holdout",
}
_WORD = re.compile(
    r"(?<![^\W\d_])"  # not within a word, as in invalid
    r"(train(?:ing|val)?|val(?:id(?:ation)?)?|test(?:ing)?|(?:hold|held)["
    r" _-]?out|dev|eval(?:uation)?|(fold)[ _-]?(\d+))"
    r"(?:[ _-]?(?:set|data))?"
    r"(?=[ _-]?[ab]\b|[\W\d_]|$)",
    re.IGNORECASE,
)
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class Split:
    """`name`: train, val, test, holdout, dev, eval, fold 3, or the name of a folder that the user
    holds out.

    `rest`: of the folder's name, such as A of trainA; empty without letters.
    """

    name: str
    rest: str
    held_out: bool

    @property
    def is_fold(self) -> bool:
        """Whether it is a fold that the user does not hold out."""
        return self.name.startswith(FOLD) and not self.held_out

    @property
    def is_plain(self) -> bool:
        """Whether the folder's name is a split only; A and B are the two sides of pairs."""
        return self.rest.casefold() in ("", "a", "b")


@lru_cache(maxsize=10_000)
def split_of(folder: str) -> Split | None:
    """The split that a folder name means; None for no split, or for several (train_test)."""
    words = list(_WORD.finditer(unicodedata.normalize("NFKC", folder)))
    if len(words) != 1:
        return None
    [word] = words
    rest = re.sub(
        r"[\W_]+", "_", f"{word.string[: word.start()]} {word.string[word.end() :]}"
    ).strip("_")
    rest = rest if _LETTER.search(rest) else ""
    if word[2]:
        return Split(f"{FOLD} {int(word[3])}", rest, held_out=False)
    word_only = re.sub("[ _-]", "", word[1].lower())
    name = _SHORT.get(word_only, word_only)
    return Split(name, rest, held_out=name != TRAIN)


AUTO, NONE = "auto", "none"  # values of `held_out_folders`
MOST_NAMED = 5  # folders in a sentence
Parts = tuple[str, ...]  # of a path


@dataclass(frozen=True)
class ImagePlace:
    """The place of an image. `split`: such as "train" or "test", or "". `folder`: the class folder;
    "" for an image next to the folders, or without folders.
    """

    split: str
    held_out: bool
    folder: str
    rest: str

    @property
    def held_out_split(self) -> str | None:
        """The split where it is held out; None of an image to train on."""
        return self.split if self.held_out else None


@dataclass(frozen=True)
class ImagePlaces:
    """`of`: by the name of the image. `skipped`: images next to the folders of splits, whose split
    is unknown. `warning`: names the folders that could be splits but are read as ordinary folders;
    "" without any.
    """

    of: dict[str, ImagePlace]
    skipped: list[Skip]
    warning: str = ""

    @property
    def holds_out(self) -> bool:
        """Whether folders determine what is held out."""
        return any(place.held_out for place in self.of.values())


def places(images: Sequence[str], held_out_folders: str) -> ImagePlaces:
    """The place of each image. `held_out_folders`: AUTO, NONE, or comma-separated names of folders
    that are held out in addition to those of AUTO.

    Raises:
        DatasetError: the names do not determine what is held out, or nothing is left to train on.
    """
    paths = {name: _parts(name) for name in images}
    held_out_folders = held_out_folders.strip().casefold() or AUTO
    splits, warning = _splits({path[:-1] for path in paths.values()}, held_out_folders)
    loose = _loose(paths.values(), splits) if held_out_folders == AUTO else set()
    within = {
        path[:-1]: _within(path[:-1], splits) for path in paths.values() if path[:-1] not in loose
    }
    placed = {name: path for name, path in paths.items() if path[:-1] in within}
    below = _below({name: (*within[path[:-1]].rest, path[-1]) for name, path in placed.items()})
    place_of = {
        name: ImagePlace(within[path[:-1]].split, within[path[:-1]].held_out, *below[name])
        for name, path in placed.items()
    }
    if place_of and all(place.held_out for place in place_of.values()):
        raise DatasetError(
            f"all images are in {quoted_names(path[-1] for path in splits)}, which is held out, so"
            " none is left to train on: add a folder to train on, or use held_out_folders=none."
        )
    reason = f"it is next to the folders {quoted_names(path[-1] for path in splits)}"
    skipped = [Skip.of(name, "no split", reason) for name in paths if name not in placed]
    return ImagePlaces(place_of, skipped, warning)


def quoted_names(folders: Iterable[str]) -> str:
    """The first names, for a sentence."""
    names = sorted(set(map(readable, folders)))
    return f"{', '.join(map(quoted, names[:MOST_NAMED]))}{', …' if len(names) > MOST_NAMED else ''}"


def _parts(name: str) -> Parts:
    normal = unicodedata.normalize("NFC", name)
    return tuple(part for part in normal.split("/") if part not in ("", "."))


def _splits(folders: Collection[Parts], held_out_folders: str) -> tuple[dict[Parts, Split], str]:
    """The folders of splits, at any level, by their paths, and the warning about other folders
    with such names. Raises DatasetError as `places`.
    """
    if held_out_folders == NONE:
        return {}, ""
    inside: dict[Parts, set[str]] = defaultdict(set)
    for folder in folders:
        for depth in range(len(folder)):
            inside[folder[:depth]].add(folder[depth])
    chosen = _chosen_splits(held_out_folders, set().union(*inside.values()))
    splits: dict[Parts, Split] = {}
    warnings: dict[str, None] = {}  # each once, in order
    for parents in _levels(inside, splits):
        names = set().union(*(inside[parent] for parent in parents))
        here = {name: split for name in names if (split := chosen.get(name) or split_of(name))}
        agree = len(here) == len(names) and len({split.held_out for split in here.values()}) > 1
        here = {name: split for name, split in here.items() if split.is_plain or agree}
        ordinary = _ordinary(here.keys() - chosen, names - here.keys(), parents, inside, splits)
        warnings |= dict.fromkeys(filter(None, [_ordinary_text(ordinary, names - here.keys())]))
        splits |= {
            (*parent, name): here[name]
            for parent in parents
            for name in (here.keys() - ordinary) & inside[parent]
        }
    folds = {path[-1] for path, split in splits.items() if split.is_fold}
    if len(folds) > 1 and all(split.is_fold for split in splits.values()):
        raise DatasetError(
            f"the images are in folds ({quoted_names(folds)}), and none is named as held out: use"
            f" held_out_folders={readable(max(folds))} or another one."
        )
    shared = _shared_depth(list(folders))  # ignores a folder test around train and val
    below = {path: split for path, split in splits.items() if len(path) > shared}
    return below or splits, " ".join(warnings)


def _levels(
    inside: Mapping[Parts, set[str]], splits: Mapping[Parts, Split]
) -> Iterator[list[Parts]]:
    """The folders with equal contents, such as train and test, together, from the top.

    `splits`: those found above.
    """
    for _, same_depth in itertools.groupby(sorted(inside, key=len), len):
        by_place: dict[tuple[Parts, int], list[Parts]] = defaultdict(list)
        for parent in same_depth:
            by_place[_within(parent, splits).rest, len(_crossed(parent, splits))].append(parent)
        yield from by_place.values()


def _ordinary(
    names: Collection[str],
    others: Collection[str],
    parents: Sequence[Parts],
    inside: Mapping[Parts, set[str]],
    splits: Mapping[Parts, Split],
) -> set[str]:
    """The folders among `names`, of splits, that are ordinary ones like the `others` next to them.

    Below a split these are all of them. Elsewhere train together with test, or a folder that has
    ordinary folders itself, can be a split: `_loose` refuses it.
    """
    if not names or not others:
        return set()
    if _crossed(parents[0], splits):
        return set(names)
    kinds = {split.held_out for name in {*names, *others} if (split := split_of(name))}
    below = {
        folder for parent in parents for name in names for folder in inside.get((*parent, name), ())
    }
    return set(names) if len(kinds) == 1 and all(map(split_of, below)) else set()


def _ordinary_text(names: Collection[str], others: Collection[str]) -> str:
    """The warning about folders that could be splits; "" without any."""
    if not names:
        return ""
    held_out = [name for name in names if (split := split_of(name)) and split.held_out]
    advice = f" To hold it out, use held_out_folders={readable(min(held_out))}." if held_out else ""
    verb, pronoun = ("is", "it") if len(names) == 1 else ("are", "them")
    return (
        f"{quoted_names(names)} {verb} read like the ordinary folders next to {pronoun}"
        f" ({quoted_names(others)}), not as a split.{advice}"
    )


def _chosen_splits(held_out_folders: str, folders: Collection[str]) -> dict[str, Split]:
    """The folders that the user holds out. Raises DatasetError if a folder does not exist."""
    if held_out_folders == AUTO:
        return {}
    by_name: dict[str, Split] = {}
    for folder_name in filter(None, (name.strip() for name in held_out_folders.split(","))):
        same = [
            folder
            for folder in folders
            if folder.casefold() == unicodedata.normalize("NFC", folder_name).casefold()
        ]
        if not same:
            raise DatasetError(
                f"held_out_folders is {quoted(held_out_folders)}, but no folder of images is"
                f" named {quoted(folder_name)}: use {quoted_names(folders) or NONE}."
            )
        by_name |= {folder: Split(readable(folder), "", held_out=True) for folder in same}
    return by_name


def _loose(paths: Iterable[Parts], splits: Mapping[Parts, Split]) -> set[Parts]:
    """The folders above the splits' folders that contain images. Raises DatasetError if other
    folders are next to the splits' folders, since all of these can then be classes.
    """
    above = {path[:depth] for path in splits for depth in range(len(path))}
    outside = {path[:-1] for path in paths if splits and not _crossed(path[:-1], splits)}
    stray = sorted(outside - above)
    if stray:
        folder = "/".join(stray[0])
        raise DatasetError(
            f"{quoted_names(path[-1] for path in splits)} can be a split or a class, since"
            f" {quoted(readable(folder))} is in no split: use held_out_folders=none for a class, or"
            " name the folders to hold out, such as held_out_folders=test."
        )
    return outside


def _crossed(folder: Parts, splits: Mapping[Parts, Split]) -> list[Split]:
    """The splits on the way to a folder."""
    return [
        splits[folder[:depth]] for depth in range(1, len(folder) + 1) if folder[:depth] in splits
    ]


@dataclass(frozen=True)
class _Within:
    """A folder: its split, and its path without the folders of splits."""

    split: str
    held_out: bool
    rest: Parts


def _within(folder: Parts, splits: Mapping[Parts, Split]) -> _Within:
    """The split of a folder: held out if any split on its path is."""
    crossed = sorted(_crossed(folder, splits), key=lambda split: not split.held_out)
    rest = [
        splits[folder[:depth]].rest if folder[:depth] in splits else folder[depth - 1]
        for depth in range(1, len(folder) + 1)
    ]
    first = crossed[0] if crossed else Split("", "", held_out=False)
    return _Within(first.name, first.held_out, tuple(filter(None, rest)))


def _below(paths: Mapping[str, Parts]) -> dict[str, tuple[str, str]]:
    """For each image, the first folder below the common folders, and the rest of its name: cats,
    old/1.jpg. The folder is "" for an image next to the folders.
    """
    depth = _shared_depth([path[:-1] for path in paths.values()])
    if all(len(path) <= depth + 1 for path in paths.values()):
        return {name: ("", "/".join(path[depth:])) for name, path in paths.items()}
    return {
        name: (
            (path[depth], "/".join(path[depth + 1 :]))
            if path[depth + 1 :]
            else ("", "/".join(path[-1:]))
        )
        for name, path in paths.items()
    }


def _shared_depth(folders: list[Parts]) -> int:
    """The number of leading folders that all have in common."""
    lowest, highest = min(folders, default=()), max(folders, default=())
    return sum(
        1
        for _ in itertools.takewhile(
            lambda pair: pair[0] == pair[1], zip(lowest, highest, strict=False)
        )
    )


class HasPlace(Protocol):
    """The files of one row."""

    @property
    def place(self) -> ImagePlace: ...


Row = TypeVar("Row")
Placed = TypeVar("Placed", bound=HasPlace)


def shuffled(items: Sequence[Row]) -> list[Row]:
    """The items shuffled, in the same order for the same number of items."""
    return [items[place] for place in np.random.RandomState(0).permutation(len(items))]


def in_order(items: Sequence[Placed]) -> list[Placed]:
    """The items in the order of the rows: shuffled, with training rows before held-out rows."""
    parts = ([row for row in items if row.place.held_out is held_out] for held_out in (False, True))
    return [row for part in parts for row in shuffled(part)]
