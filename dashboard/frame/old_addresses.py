"""Addresses of version 0.2.0, which had a page for each view of a run: links and bookmarks lead to where the views are now."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

# Name of a page that is no more → the page, and the tab of it, that have its contents.
MOVED = {
    "live": ("run", ""),
    "samples": ("run", "samples"),
    "histograms": ("run", "histograms"),
    "xla": ("studies", "xla"),
    "precision": ("studies", "precision"),
    "paper": ("studies", "paper"),
}
OF_SEVERAL = {"samples", "histograms"}  # tabs of Compare too


def new_address(name: str, query: str) -> str:
    """The address of today, relative to the old one; empty for a page that has not moved. `query`: without "?"."""
    if name not in MOVED:
        return ""
    page, tab = MOVED[name]
    words = dict(parse_qsl(query, keep_blank_values=True))
    if page == "run":
        run_ids = [run_id for run_id in words.pop("runs", "").split(",") if run_id]
        if len(run_ids) > 1 and tab in OF_SEVERAL:
            page, words["runs"] = "compare", ",".join(run_ids)
        elif run_ids:
            words.setdefault("run", run_ids[0])
    if tab:
        words["tab"] = tab
    return f"{page}?{urlencode(words)}" if words else page
