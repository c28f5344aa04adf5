"""Starts Streamlit for `serve`; Ctrl-C is a normal exit.

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
    # Streamlit would ask an external server for this machine's address to check an origin.
    # web_guard checks it first.
    net_util.get_external_ip = lambda: None
    use_settings()
    # The proxies that uvicorn trusts to name the client. Its default is every client of this
    # machine.
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
    """Adds the project's settings for Streamlit, before which a user's own settings take effect. In
    a checkout Streamlit reads them itself, next to app.py.
    """
    if IS_INSTALLED:
        user_files = config.get_config_files
        config.get_config_files = lambda file_name: [
            *user_files(file_name),
            str(SETTINGS / file_name),
        ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
