"""The dashboard's process as `serve` starts it: Streamlit, whose end by Ctrl-C is no failure.

python -m dashboard.frame.process app.py --server.port 8501
"""

from __future__ import annotations

import os
import sys

import click
from streamlit import config, net_util
from streamlit.web import cli

from gan_runtime.records.home import IS_INSTALLED, SHARE

SETTINGS = SHARE / ".streamlit"


def main(words: list[str]) -> int:
    """Runs Streamlit with these arguments until a signal ends it. Returns the exit code."""
    # To judge a foreign origin Streamlit asks a server outside for this machine's address.
    # web_guard judges before it does.
    net_util.get_external_ip = lambda: None
    use_settings()
    # uvicorn's own setting: the addresses of proxies whose X-Forwarded-For it believes. Its default
    # is every client of this machine.
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "")
    try:
        cli.main(["run", *words], standalone_mode=False)
    except (KeyboardInterrupt, click.Abort):
        return 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return 0


def use_settings() -> None:
    """Streamlit reads the project's settings behind a user's own; in a checkout they are
    next to app.py, where it reads them by itself.
    """
    if IS_INSTALLED:
        of_person = config.get_config_files
        config.get_config_files = lambda file_name: [
            *of_person(file_name),
            str(SETTINGS / file_name),
        ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
