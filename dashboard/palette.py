"""Colors with a fixed meaning, the same on every page, in light and dark."""

from __future__ import annotations

GENERATOR = "#0072B2"
DISCRIMINATOR = "#D55E00"
REAL = "#6B7280"
NEUTRAL = "#7C8798"
WORDS_ON_LIGHT, WORDS_ON_DARK = (
    "#4B5563",
    "#B4BDC9",
)  # next to charts; contrast 4.5 and more on every background of the theme
WAITING = "#C9CFD8"  # time in which nothing is computed

# Work of a training step. Color-blind safe, legible on light and dark; gray where no work is
# known.
WORK = {
    "forward": "#56B4E9",
    "backward": "#009E73",
    "optimizer": "#E69F00",
    "gradient_all_reduce": "#CC79A7",
    "batch_norm_all_reduce": "#AA4499",
    "input": "#999933",
    "idle": "#B8BFC9",
    "unattributed": "#7C8798",
}

# Color-blind safe, none of them the generator's or the discriminator's. A run keeps its index for
# life.
RUNS = ("#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933", "#5E4FA2", "#44AA99")
SIMILAR = {"#009E73", "#44AA99"}  # two greens that look the same in thin lines
# Networks in the order of `Declarations.networks`: the generator, its discriminator, further ones.
NETWORKS = (GENERATOR, DISCRIMINATOR, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINES = RUNS  # of one chart, where its numbers are of no network: classes
SIDES = {"real": REAL, "generated": GENERATOR}  # of what a number is about
# For groups of runs: other colors than single runs have, so that a mean is not taken for a run. P.
# Tol, "bright", without its blue, which is too near the generator's.
GROUPS = ("#AA3377", "#228833", "#CCBB44", "#66CCEE", "#8C6D31", "#EE6677")


def run_color(index: int) -> str:
    """The color of a run, from the index stored with it."""
    return RUNS[index % len(RUNS)]


def distinct(indices: list[int]) -> list[str]:
    """The colors of runs that are shown together: each its own, or where one before it has that,
    the next that is free.

    Beyond eight runs colors repeat.
    """
    colors: list[str] = []
    for index in indices:
        of_these_eight = colors[len(colors) // len(RUNS) * len(RUNS) :]
        free = [color for color in RUNS if color not in of_these_eight]
        apart = [color for color in free if not _is_like_one_of(of_these_eight, color)] or free
        colors.append(run_color(index) if run_color(index) in apart else apart[0])
    return colors


def _is_like_one_of(colors: list[str], color: str) -> bool:
    return any({color, other} == SIMILAR for other in colors)


def group_color(index: int) -> str:
    """The color of the group at this place."""
    return GROUPS[index % len(GROUPS)]


def repeated(colors: dict[str, str]) -> set[str]:
    """The names whose color a name before them has: where there are more runs than colors,
    these are dashed or hollow.
    """
    first: dict[str, str] = {}
    return {name for name, color in colors.items() if first.setdefault(color, name) != name}
