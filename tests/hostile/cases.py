"""Every hostile input by kind and name."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from typing import Any

from gan_runtime import catalog
from gan_runtime.spec import RunSpec
from tests.hostile.texts import HOSTILE, PATHS, QUERIES

Named = dict[str, Any]  # name of an input → the input
SEED = 20_261_123
HUGE = 2**70
VALUES: Named = {
    "a list": [1],
    "a table": {"a": 1},
    "nothing": None,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "a huge number": HUGE,
    "a huge negative number": -HUGE,
    "a text of another script's digits": "٣",
    "a path": "../../etc/passwd",
    "NUL": "a\0b",
    "10,000 letters": "A" * 10_000,
    "a lone surrogate": "\ud800",
    "markup": "![x](http://evil.example/a.png)",
    "lists in lists": [[[[]]]],
}


def labelled(texts: tuple[str, ...], what: str) -> Named:
    """Returns each text by its number and its beginning."""
    return {f"{what} {number}: {ascii(text)[:40]}": text for number, text in enumerate(texts, 1)}


def spec_values() -> Named:
    """Returns a value of a wrong kind, size or alphabet for every option of every workload:
    (workload, option, value).
    """
    shared = RunSpec.options()
    cases = {
        f"{name} is {title}": ("mlp_gan", name, value)
        for name in shared
        for title, value in VALUES.items()
    }
    for workload in catalog.WORKLOADS:
        for name in RunSpec.options(workload).keys() - shared.keys():
            cases |= {
                f"{workload}.{name} is {title}": (workload, name, value)
                for title, value in VALUES.items()
            }
    return cases


def spec_files() -> Named:
    """Returns contents of a file for --spec."""
    good = json.dumps({"workload": "mlp_gan", "epochs": 2}).encode()
    deep = {f"{depth:,} brackets": b"[" * depth for depth in (100, 1_000, 100_000)}
    return {
        **{f"cut after {end} bytes": good[:end] for end in range(len(good))},
        **deep,
        **{f"{depth:,} tables in tables": b'{"a":' * depth for depth in (100, 1_000, 19_000)},
        "NUL bytes": bytes(100),
        "random bytes": random.Random(SEED).randbytes(1_000),
        "UTF-16": good.decode().encode("utf-16"),
        "a byte order mark": b"\xef\xbb\xbf" + good,
        "not UTF-8": b'{"name": "\xff\xfe"}',
        "a surrogate": b'{"name": "\\ud800"}',
        "NaN": b'{"epochs": NaN}',
        "infinity": b'{"epochs": 1e999}',
        "5,000 digits": b'{"epochs": ' + b"9" * 5_000 + b"}",
        "a key of 50,000 letters": b'{"' + b"k" * 50_000 + b'": 1}',
        "201 keys": json.dumps({f"k{n}": n for n in range(201)}).encode(),
        "a key twice": b'{"epochs": 2, "epochs": "x"}',
        "a list": b"[1, 2]",
        "a text": b'"x"',
        "a number": b"7",
        "nothing": b"null",
        "too many bytes": b" " * 200_000,
        "two values": good + good,
        "a comment": b"// x\n" + good,
        "Python": b"{'epochs': 2}",
        "a pickle": (
            b"\x80\x04\x95\x0e\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94."
        ),
        "__proto__": b'{"__proto__": {"epochs": 2}}',
        "__class__": b'{"__class__": "x"}',
        "of_workload": b'{"of_workload": {"x": 1}}',
    }


def idx_files() -> Named:
    """Returns contents of an IDX file of images: truncated, with headers of other sizes and types,
    and in other formats.
    """
    good = idx((3, 28, 28)) + bytes(3 * 28 * 28)
    counts = (0, 1, 2, 4, 255, 65_536, 2**31 - 1, 2**31, 2**32 - 1)
    sides = (0, 1, 27, 29, 1_000, 2**16, 2**32 - 1)
    turned = random.Random(SEED)
    return {
        **{
            f"cut after {end} bytes": good[:end]
            for end in (*range(16), 16, 17, 100, 800, 2_351, len(good) - 1)
        },
        **{f"{count:,} pictures promised": idx((count, 28, 28)) + good[16:] for count in counts},
        **{f"{count:,} pictures and nothing": idx((count, 28, 28)) for count in counts},
        **{f"{side:,} rows promised": idx((3, side, 28)) + good[16:] for side in sides},
        **{f"{side:,} columns promised": idx((3, 28, side)) + good[16:] for side in sides},
        **{
            f"type {kind:#04x}": idx((3, 28, 28), kind) + good[16:]
            for kind in (0x00, 0x09, 0x0B, 0x0C, 0x0D, 0x0E, 0xFF)
        },
        **{
            f"{len(shape)} axes": idx(shape) + good[16:]
            for shape in ((), (3,), (3, 28), (3, 28, 28, 1), (1,) * 9, (2,) * 255)
        },
        **{
            f"a byte turned in the header, {place}": turned_at(good, place, turned)
            for place in range(16)
        },
        **{f"a byte more, {more}": good + bytes(more) for more in (1, 2, 784, 100_000)},
        "gzip of nothing": b"\x1f\x8b",
        "a torn gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03K",
        "HTML": b"<!doctype html><title>404</title>",
        "a zip": b"PK\x03\x04" + bytes(60),
        "a PNG": b"\x89PNG\r\n\x1a\n" + bytes(60),
        "a pickle": b"\x80\x04}\x94.",
        "text": b"0,0,0\n" * 400,
    }


def idx(shape: tuple[int, ...], kind: int = 0x08) -> bytes:
    """Returns the header of an IDX file."""
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, kind, len(shape), *shape)


def turned_at(good: bytes, place: int, source: random.Random) -> bytes:
    """Returns the same bytes with one of them changed."""
    other = (good[place] + source.randrange(1, 256)) % 256
    return good[:place] + bytes([other]) + good[place + 1 :]


def mutations(good: bytes, cuts: int, turns: int, what: str) -> Named:
    """Returns a whole file truncated and with bytes changed at places spread over it."""
    source = random.Random(SEED)
    ends = sorted({round(len(good) * part / cuts) for part in range(cuts)})
    places = sorted(source.sample(range(len(good)), min(turns, len(good))))
    return {
        **{f"{what} cut after {end} bytes": good[:end] for end in ends},
        **{f"{what} with byte {place} turned": turned_at(good, place, source) for place in places},
    }


def members() -> Named:
    """Returns names of a file in a bundle."""
    around = (
        "{}",
        "{}/spec.json",
        "quick-0001/{}",
        "quick-0001/samples/{}",
    )
    return {
        f"a member {form.format(ascii(text)[:40])}": form.format(text)
        for form in around
        for text in PATHS
        if text not in ("\0",) and not any("\ud800" <= letter <= "\udfff" for letter in text)
    }


def command_lines() -> Named:
    """Returns arguments of `python -m gan_runtime`; each must be refused, or do nothing."""
    cases: Named = {}
    for text in HOSTILE:
        if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
            # not possible as arguments; what a system passes instead of bytes that are not UTF-8 is
            # below
            continue
        title = ascii(text)[:40]
        cases |= {
            f"show {title}": ("show", "--", text),
            f"train --set {title}": ("train", "--detach", "--set", text),
            f"train --set name={title}": (
                "train",
                "--detach",
                "--set",
                "workload=no_such",
                "--set",
                f"name={text}",
            ),
            f"export {title}": ("export", "--to", "elsewhere", "--", text),
            f"import {title}": ("import", "--", f"missing-{text[:50]}"),
        }
    cases |= {
        f"{words[0]} {words[-1]!a}": words
        for words in (
            ("show", "caf\udce9"),
            ("sql", "SELECT 'caf\udce9'"),
            ("import", "caf\udce9.zip"),
            ("export", "example-karman-0001", "--to", "caf\udce9"),
            ("mark", "quick-0001", "--note", "caf\udce9"),
            ("data", "prepare", "pictures", "--from", "\udcffb"),
            ("train", "--detach", "--set", "name=\udc80"),
            ("runs", "--home", "caf\udce9"),
        )
    }
    cases |= {
        f"{command} of an id of 300 letters": (command, "x" * 300)
        for command in (
            "show",
            "stop",
            "resume",
            "delete",
            "restore",
            "mark",
            "best",
            "generate",
            "evaluate",
        )
    }
    cases |= {f"sql {ascii(text)[:40]}": ("sql", "--", f"SELECT {text}") for text in QUERIES}
    cases |= {
        f"sql {title}": ("sql", statement)
        for title, statement in {
            "reads a file": "SELECT * FROM read_text('/etc/passwd')",
            "reads an address": "SELECT * FROM 'http://evil.example/a.csv'",
            "writes": "COPY (SELECT 1) TO 'out.csv'",
            "attaches": "ATTACH 'x.duckdb' AS y",
            "installs": "INSTALL httpfs",
            "loads": "LOAD httpfs",
            "sets": "SET enable_external_access = true",
            "changes": "DELETE FROM runs",
            "makes": "CREATE TABLE x AS SELECT 1",
            "two": "SELECT 1; SELECT 2",
            "calls": "CALL pragma_version()",
            "environment": "SELECT getenv('HOME')",
        }.items()
    }
    return cases


def kinds() -> Iterator[tuple[str, Named]]:
    """Yields every kind with its own table; tests create those of real files with `mutations`."""
    yield "options of a run", spec_values()
    yield "spec files", spec_files()
    yield "names", labelled(HOSTILE, "name")
    yield "deep links", labelled(HOSTILE, "link")
    yield "uploads", labelled(HOSTILE, "file")
    yield "members of bundles", members()
    yield "IDX files", idx_files()
    yield "command lines", command_lines()


# Truncations and changed bytes of whole files: bundles, images, HDF5.
CUTS, TURNS = 40, 60
OF_FILES = {"bundles": CUTS + TURNS, "images": 2 * (CUTS + TURNS), "HDF5 files": CUTS + TURNS}


def counts() -> dict[str, int]:
    """Returns the number of inputs of each kind."""
    return {**{kind: len(cases) for kind, cases in kinds()}, **OF_FILES}
