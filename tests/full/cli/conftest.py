"""Fixtures of home folders and of commands on them."""

from tests.cli.fixtures import command, known_host, place, start, trained, trained_copy
from tests.support.command_line import built_once

__all__ = ["built_once", "command", "known_host", "place", "start", "trained", "trained_copy"]
