"""What cosmic-ray can change in a source file."""

from __future__ import annotations

from collections.abc import Iterator

# isort: off
import parso  # noqa: F401 - first: otherwise cosmic-ray loads its parts in an order that fails

# isort: on
import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

PROVIDER = "core/"
ON_BITS = {"BitOr", "BitAnd", "BitXor", "LShift", "RShift"}


def positions(source: str) -> Iterator[tuple[str, int, tuple[int, int]]]:
    """Name, occurrence and (line, column) of every operator's every position."""
    tree = get_ast(source)
    for name in cosmic_ray.plugins.operator_names():
        operator = cosmic_ray.plugins.get_operator(name)
        if operator.arguments() or _is_refused(name):  # the former want to be told which variables to change
            continue
        found = (position for node in ast_nodes(tree) for position in operator().mutation_positions(node))
        for occurrence, (begin, _) in enumerate(found):
            yield name.removeprefix(PROVIDER), occurrence, begin


def changed(source: str, name: str, occurrence: int) -> str | None:
    """The source with that change; None when there is no such position."""
    text: str | None = mutate_code(source, cosmic_ray.plugins.get_operator(PROVIDER + name)(), occurrence)
    return text


def _is_refused(name: str) -> bool:
    """An operator on bits instead of one on numbers, or the reverse: floats and dictionaries refuse it, so any test notices."""
    _, _, operators = name.partition("ReplaceBinaryOperator_")
    return bool(operators) and (len(ON_BITS & {*operators.split("_")}) == 1 or operators.startswith("BitOr"))
