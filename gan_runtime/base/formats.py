"""Numbers as pages, messages and reports write them: 1,797 · 95% · 1.2 GB · 1 m 42 s · 0.25 s.

A number that is not available is a dash.
"""

from __future__ import annotations

UNKNOWN = "–"
# A spreadsheet reads text that begins with one of these as a formula. The hyphen is last, as in
# the character class of a regular expression.
FORMULA_BEGINNINGS = "=+@\t\r\n＝＋－＠-"


def count(number: float | None) -> str:
    """A count, such as 12,345."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def quantity(number: int, noun: str, plural: str = "") -> str:
    """A count with its noun: 1 epoch · 1,797 images · 2 classes. `plural`: if it is not the noun
    with an s.
    """
    return f"{count(number)} {noun if number == 1 else plural or f'{noun}s'}"


def percent(share: float | None, digits: int = 0) -> str:
    """A share as a percentage: 0.38 gives 38%."""
    return UNKNOWN if share is None else f"{share:,.{digits}%}"


def size(number_of_bytes: float) -> str:
    """A size in powers of ten: 1.2 GB · 340 MB · 20 kB."""
    if number_of_bytes >= 1e9:
        return f"{number_of_bytes / 1e9:,.1f} GB"
    if number_of_bytes >= 1e6:
        return f"{number_of_bytes / 1e6:.0f} MB"
    return f"{number_of_bytes / 1e3:.0f} kB"


def duration(seconds: float | None) -> str:
    """41 ms · 0.25 s · 3.4 s · 1 m 42 s · 2 h 05 m."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0.1:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 10:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} m"


def timing(seconds: float | None) -> str:
    """Three digits, for comparisons of steps or compilations: 41.3 ms · 253 ms · 3.41 s."""
    if seconds is None or seconds >= 999.5:
        return duration(seconds)
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def loss(number: float | None) -> str:
    """A loss, such as 0.693 or 12.35."""
    if number is None:
        return UNKNOWN
    return f"{number:.3f}" if abs(number) < 10 else f"{number:.4g}"
