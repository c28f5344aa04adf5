"""Lists every input, one per line: its kind, a tab, its name."""

from tests.hostile.cases import OF_FILES, kinds

for kind, cases in kinds():
    for name in cases:
        print(f"{kind}\t{name}")
for kind, count in OF_FILES.items():
    print(
        f"{kind}\t{count} files, cut and with bytes turned at places that tests/hostile/cases.py"
        " draws"
    )
