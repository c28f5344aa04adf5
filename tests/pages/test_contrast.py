"""Readability of text: contrasts by WCAG 2.2, at least 4.5, from the colors of the theme."""

from __future__ import annotations

import ast
import re
import tomllib

import pytest

from dashboard import palette
from gan_runtime.records.home import REPOSITORY

THEME = tomllib.loads((REPOSITORY / ".streamlit" / "config.toml").read_text(encoding="utf-8"))[
    "theme"
]
STYLE = (REPOSITORY / "dashboard" / "frame" / "style.css").read_text(encoding="utf-8")
FADED = 0.6  # share of the text's color in captions, as Streamlit 1.67 draws them
TINT = 0.1  # share of the primary color under selected items


def rgb(color: str) -> tuple[float, ...]:
    return tuple(int(color[index : index + 2], 16) / 255 for index in (1, 3, 5))


def luminance(color: tuple[float, ...]) -> float:
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(ink: tuple[float, ...], paper: tuple[float, ...]) -> float:
    dark, light = sorted((luminance(ink), luminance(paper)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("paper", ["backgroundColor", "secondaryBackgroundColor"])
def test_captions_and_chart_labels_have_enough_contrast(theme: str, paper: str) -> None:
    colors = THEME[theme]
    ground, text = rgb(colors[paper]), rgb(colors["textColor"])
    faded = tuple(
        FADED * ink + (1 - FADED) * below for ink, below in zip(text, ground, strict=True)
    )
    beside_charts = palette.WORDS_ON_LIGHT if theme == "light" else palette.WORDS_ON_DARK
    assert contrast(text, ground) > 7
    assert contrast(faded, ground) >= 4.5
    assert contrast(rgb(beside_charts), ground) >= 4.5


def primary(theme: str) -> tuple[float, ...]:
    return rgb(THEME[theme].get("primaryColor", THEME["primaryColor"]))


def ink_on_primary(theme: str) -> tuple[float, ...]:
    """Returns the text color of buttons and tags in style.css, of the light or the dark theme."""
    rule = re.search(
        r"stBaseButton-primary[^{]*stMultiSelectTagsContainer[^{]*\{ color: light-dark\((#\w+),"
        r" (#\w+)\)",
        STYLE,
    )
    assert rule is not None
    return rgb(rule.group(1 if theme == "light" else 2))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_on_the_primary_color_has_enough_contrast(theme: str) -> None:
    """Covers buttons and the tags of a multiselect."""
    assert contrast(ink_on_primary(theme), primary(theme)) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("paper", ["backgroundColor", "secondaryBackgroundColor"])
def test_text_in_the_primary_color_has_enough_contrast(theme: str, paper: str) -> None:
    """Covers the number over a slider, and the selected one of several buttons, on a tenth of that
    color.
    """
    ground = rgb(THEME[theme][paper])
    assert contrast(primary(theme), ground) >= 4.5
    if paper == "backgroundColor":
        tinted = tuple(
            TINT * ink + (1 - TINT) * below
            for ink, below in zip(primary(theme), ground, strict=True)
        )
        assert contrast(primary(theme), tinted) >= 4.5


def test_chart_text_never_uses_a_network_or_run_color() -> None:
    """Colors with a meaning are for marks: on the dark background, the generator's blue has a
    contrast of 3.5.
    """
    violations = [
        f"{path.name}:{call.lineno}"
        for path in sorted((REPOSITORY / "dashboard").rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "mark_text"
        for color in (word.value for word in call.keywords if word.arg == "color")
        if ast.unparse(color) not in ("ink()", "charts.ink()")
    ]
    assert violations == []


def test_contrast_matches_known_values() -> None:
    assert contrast(rgb("#000000"), rgb("#FFFFFF")) == 21.0
    assert contrast(rgb("#767676"), rgb("#FFFFFF")) == pytest.approx(4.54, abs=0.01)
