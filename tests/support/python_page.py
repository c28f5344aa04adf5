"""The code of docs/python.md: its first program, and its third-party package."""

from __future__ import annotations

import configparser
import re
import tomllib
from pathlib import Path

from gan_runtime.records.home import REPOSITORY

PAGE = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8")
PROGRAM = re.findall(r"```python\n(import gan_runtime.*?)```", PAGE, re.DOTALL)[0]
FILES: dict[str, str] = dict(re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", PAGE, re.DOTALL))


def install(folder: Path) -> Path:
    """What `pip install` of the page's package leaves in a folder of modules: files and entry
    points.
    """
    project = tomllib.loads(FILES["pyproject.toml"])["project"]
    for path, text in FILES.items():
        if path.endswith(".py"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    metadata = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Name: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    points = configparser.ConfigParser(delimiters=("=",))
    points.read_dict(project["entry-points"])
    with (metadata / "entry_points.txt").open("w", encoding="utf-8") as file:
        points.write(file)
    return folder
