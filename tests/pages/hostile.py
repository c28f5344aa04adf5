"""Texts with a special meaning in Markdown, HTML or Streamlit's own extensions of it."""

from __future__ import annotations

TEXTS = (
    "![x](http://evil.example/a.png)",
    "![x][r]",
    "[x](http://evil.example) [y]: http://evil.example",
    "see https://evil.example/a or www.evil.example or a@evil.example",
    "<img src=http://evil.example/b.png onerror=alert(1)><script>alert(1)</script>",
    ":material/home: :streamlit: :tada: :red[b] :color[c]{background='url(http://evil.example)'}",
    "$\\href{http://evil.example}{x}$ and $$y$$",
    "`code` *em* **strong** ~~gone~~ _em_ __init__ a_b",
    "# heading",
    "- item",
    "1. item",
    "> quote",
    "a | b\n--- | ---\n1 | 2",
    "first\n\n## second\n\n    code",
    "&lt;b&gt; &#33; back\\slash\\",
    "turned\u202eback \x1b[31m \u2028line",
)
