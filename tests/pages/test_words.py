"""Texts of runs and users inside a page are escaped, so browsers interpret no markup in them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dashboard import words

J = words.JOINER


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("quick-0001, all 2 epochs done: 1.5 s", "quick-0001, all 2 epochs done: 1.5 s"),
        ("learning_rate is 0.1", "learning_rate is 0.1"),
        ("![x](http://evil.example/a.png)", rf"!\[x\](http:{J}//evil.example/a.png)"),
        ("[x](javascript:alert(1))", rf"\[x\](javascript:{J}alert(1))"),
        ("see https://evil.example", f"see https:{J}//evil.example"),
        ("see WWW.evil.example", f"see WWW{J}.evil.example"),
        ("mail a@evil.example", f"mail a{J}@evil.example"),
        ("<img src=x onerror=alert(1)>", r"\<img src=x onerror=alert(1)\>"),
        (
            ":material/home: :streamlit: :tada:",
            f":{J}material/home:" + f" :{J}streamlit: :{J}tada:{J}",
        ),
        (
            ":red[b] :color[b]{background='url(x)'}",
            rf":{J}red\[b\] :{J}color\[b\]{{background='url(x)'}}",
        ),
        ("$x$ and $$y$$", r"\$x\$ and \$\$y\$\$"),
        ("`code` *em* **strong** ~~gone~~", r"\`code\` \*em\* \*\*strong\*\* \~\~gone\~\~"),
        ("_em_ __init__ a_b", r"\_em\_ \_\_init\_\_ a_b"),
        ("# heading", r"\# heading"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("1.5 s", r"1\.5 s"),
        ("> quote", r"\> quote"),
        ("a | b", r"a \| b"),
        ("&lt;b&gt;", r"\&lt;b\&gt;"),
        ("first\n\n# second\r\u2028third", "first # second third"),
        ("bell\a escape\x1b[31m turned\u202eback", r"bell escape\[31m turnedback"),
        ("back\\slash\\", r"back\\slash\\"),
        ("1,234 images", "1,234 images"),
        ("  ", ""),
    ],
)
def test_user_text_is_escaped(text: str, expected: str) -> None:
    assert words.plain(text) == expected


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("Asia/Tokyo", "ended on 2026-01-02 at 00:30"),
        ("UTC", "ended on 2026-01-01 at 15:30"),
        ("Nowhere/City", "ended on 2026-01-01 at 15:30"),
        ("../zoneinfo", "ended on 2026-01-01 at 15:30"),
    ],
)
def test_the_end_of_a_run_is_in_the_zone_of_the_viewer(zone: str, expected: str) -> None:
    assert words.ended(datetime(2026, 1, 1, 15, 30, tzinfo=UTC), zone) == expected
