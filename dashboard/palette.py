"""Colors with a fixed meaning, the same on every page, in light and dark."""

from __future__ import annotations

from collections import Counter

GENERATOR = "#0072B2"
DISCRIMINATOR = "#D55E00"
REAL = "#6B7280"
NEUTRAL = "#7C8798"
# Text next to charts; contrast of at least 4.5 on every background of the theme.
WORDS_ON_LIGHT, WORDS_ON_DARK = "#4B5563", "#B4BDC9"
WAITING = "#C9CFD8"  # time without computing

# Kinds of work of a training step. Color-blind safe, legible in both themes; gray for no known
# work.
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

# Color-blind safe, without the colors of generator and discriminator. A run keeps its index.
RUNS = ("#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933", "#5E4FA2", "#44AA99")
SIMILAR = {"#009E73", "#44AA99"}  # two greens that look the same in thin lines
# Networks in the order of `Declarations.networks`: the generator, its discriminator, others.
NETWORKS = (GENERATOR, DISCRIMINATOR, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINES = RUNS  # of a chart whose numbers belong to no network, such as classes
SIDES = {"real": REAL, "generated": GENERATOR}  # of the rows that a number describes
# For groups of runs: not the colors of runs, so that a mean is not mistaken for a run. P. Tol's
# "bright" without its blue, which is too close to the generator's.
GROUPS = ("#AA3377", "#228833", "#CCBB44", "#66CCEE", "#8C6D31", "#EE6677")


def run_color(index: int) -> str:
    """The color of a run, from the index stored with it."""
    return RUNS[index % len(RUNS)]


def distinct(indices: list[int]) -> list[str]:
    """The colors of runs shown together: the run's color, or the next free one if an earlier
    run has that.

    Beyond eight runs, colors repeat.
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
    """The color of the group at this index."""
    return GROUPS[index % len(GROUPS)]


def repeated(colors: dict[str, str]) -> set[str]:
    """The names whose color an earlier name has, as with more runs than colors: they are dashed or
    hollow.
    """
    first: dict[str, str] = {}
    return {name for name, color in colors.items() if first.setdefault(color, name) != name}


def is_ambiguous(colors: dict[str, str]) -> bool:
    """Whether even solid and dashed lines are not enough: three names share a color."""
    return max(Counter(colors.values()).values(), default=0) > 2
