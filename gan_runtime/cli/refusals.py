"""How the command line says no."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from gan_runtime.errors import GanRuntimeError


class OneSentence(TyperGroup):
    """Shows an error that a person can cause as its sentence instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Exit code 2 after a refusal."""
        try:
            return super().invoke(ctx)
        except GanRuntimeError as error:
            print(error, file=sys.stderr)
            raise typer.Exit(2) from None
