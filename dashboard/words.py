"""States, ages and names as pages write them, safe in Markdown and in tables."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from gan_runtime.base import formats
from gan_runtime.base.formats import FORMULA_BEGINNINGS
from gan_runtime.records.journal import ACTIVE
from gan_runtime.studies.statistics import Cost, break_even_steps
from gan_runtime.training import workers

SILENT_AFTER_S = 30.0
# What no text of a user can bring into a page: controls, and marks that change the writing
# direction of other text.
HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
BREAKS = re.compile(r"[ \t-\r\x1c-\x1f\x85\u2028\u2029]+")
MARKUP = re.compile(r"([\\`*\[\]<>~$&|]|(?<![^\W_])_|_(?![^\W_]))")  # not underscores in a word
FIRST_OF_BLOCK = re.compile(r"^(?=[-+#=])|^(\d+)(?=[.)])")  # a list, a heading, a line
JOINER = "\u2060"  # has no width
NUMBER = re.compile(r"[+-]?(\d[\d,]*\.?\d*|\.\d+)(e[+-]?\d+)?%?", re.IGNORECASE)
# Streamlit searches the finished text for icons, emoji, colors and addresses, where a backslash is
# lost: a joiner breaks them.
STREAMLIT_MARKUP = re.compile(r":(?!\s)|www(?=\.)|(?=@)", re.IGNORECASE)
LOCAL_SGD = "local SGD, weights averaged every {} steps"


def plain(text: str) -> str:
    """Text of a run, a study or a user, for any place that shows Markdown: one line of exactly
    these characters.

    Not for `st.code`, `st.html`, tables, charts and the options of a selectbox, which show text
    unchanged.
    """
    text_only = HIDDEN.sub("", BREAKS.sub(" ", text)).strip()
    escaped = FIRST_OF_BLOCK.sub(r"\1\\", MARKUP.sub(r"\\\1", text_only))
    return STREAMLIT_MARKUP.sub(rf"\g<0>{JOINER}", escaped)


def cell(text: str) -> str:
    """Text of a run or a user, for a table or a chart: no spreadsheet takes it for a formula,
    copied or as a CSV file.
    """
    is_formula = bool(text) and text[0] in FORMULA_BEGINNINGS and not NUMBER.fullmatch(text)
    return JOINER + text if is_formula else text


def capitalized(text: str) -> str:
    """A reason as a sentence."""
    return text[:1].upper() + text[1:]


def ended(then: datetime | None, zone: str = "UTC") -> str:
    """When a run ended, in this time zone; empty if that is not known. An ended run is not drawn
    again, so an age of its numbers would stand still.
    """
    return "" if then is None else f"ended on {local(then, zone):%Y-%m-%d at %H:%M}"


def local(then: datetime, zone: str) -> datetime:
    """The time in a zone that a browser names; UTC if this machine knows no such zone."""
    return then.astimezone(known_zone(zone))


def known_zone(name: str | None) -> ZoneInfo:
    """The zone that a browser names; UTC if this machine knows no such zone."""
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError):
        return ZoneInfo("UTC")


def age(then: datetime | None, moment: datetime | None = None) -> str:
    """How long ago the newest number was written, on a page that redraws; empty before the
    first.
    """
    if then is None:
        return ""
    seconds = round(max(0.0, ((moment or datetime.now(UTC)) - then).total_seconds()))
    if seconds < 60:
        return f"updated {seconds} s ago" if seconds else "updated just now"
    if seconds < 24 * 3600:
        return f"updated {formats.duration(seconds)} ago"
    return f"updated on {then:%Y-%m-%d}"


def is_silent(status: str, then: datetime | None, moment: datetime | None = None) -> bool:
    """Whether a training run has not written for longer than any step should take."""
    return (
        status == "running"
        and then is not None
        and ((moment or datetime.now(UTC)) - then).total_seconds() > SILENT_AFTER_S
    )


def dot(status: str) -> str:
    """The CSS class of a state's dot (frame/style.css)."""
    if status in ACTIVE:
        return "dot-running"
    return {"queued": "dot-queued", "finished": "dot-finished", "stopped": "dot-stopped"}.get(
        status, "dot-failed"
    )


def local_sgd(sync_every_steps: int) -> str:
    """The name of local SGD on all pages; empty for synchronous training."""
    return LOCAL_SGD.format(sync_every_steps) if sync_every_steps > 1 else ""


def waiting(compute_s: list[float], wait_share: float) -> str:
    """The slowest of several workers, in a sentence.

    `compute_s`: compute time per step by rank; `wait_share`: the largest share of waiting.
    """
    slowest = workers.straggler(compute_s)
    if slowest is None:
        return (
            "All workers take about the same time. Waiting and transfer take up to"
            f" {wait_share:.0%} of a step."
        )
    return f"Worker {slowest} is the slowest: the others wait {wait_share:.0%} of each step."


def break_even(usual: tuple[str, Cost], other: tuple[str, Cost]) -> str:
    """When a variant has paid back its longer start, in a sentence. Both: name and cost."""
    name, start, step = (
        other[0],
        other[1].compile_s - usual[1].compile_s,
        usual[1].step_s - other[1].step_s,
    )
    begins = f"it compiles {formats.timing(abs(start))} {'longer' if start > 0 else 'shorter'}"
    then = f"each step takes {formats.timing(abs(step))} {'less' if step > 0 else 'more'}"
    if start > 0 and step <= 0:
        return f"**{name}** never pays back against {usual[0]}: {begins}, and {then}."
    if start <= 0 and step >= 0:
        return f"**{name}** is ahead of {usual[0]} from the first step: {begins}, and {then}."
    steps = break_even_steps(usual[1], other[1]) or 0.0
    after = (
        f"after {formats.count(steps)} steps ({formats.duration(usual[1].after(steps))})"
        if steps >= 1
        else "within its first step"
    )
    if start > 0:
        return (
            f"**{name}** has paid back its compiling {after} against {usual[0]}: {begins}, and"
            f" {then}."
        )
    return (
        f"**{name}** is ahead of {usual[0]} at first and behind it {after}: {begins}, but {then}."
    )
