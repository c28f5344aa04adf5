"""The command line of the tests in this folder is built once."""

from tests.support.command_line import built_once

__all__ = ["built_once"]
