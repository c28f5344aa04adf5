"""Builds the command line once for the tests in this folder."""

from tests.support.command_line import built_once

__all__ = ["built_once"]
