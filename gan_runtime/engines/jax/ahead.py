"""What follows from the weights alone, computed once instead of in every call: kernels laid out otherwise, in another precision.

XLA cannot do that by itself, as the weights are arguments of a program; and weights within a program would have to be compiled with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun

Shapes = list[jax.ShapeDtypeStruct]
OPEN, OF_WEIGHTS, OF_VALUES = range(
    3
)  # what an intermediate value follows from: neither, weights alone, values


@dataclass(frozen=True)
class Split:
    """`ahead(weights)` gives `kept`, so that `rest(*kept, values)` is the function of both. `kept`: shapes of what stands between them."""

    ahead: Callable[[Any], list[jax.Array]]
    rest: Callable[..., jax.Array]
    kept: Shapes


def split(function: Callable[[Any, jax.Array], jax.Array], weights: Any, values: Any) -> Split:
    """Of a function of one outcome. `weights`, `values`: shapes."""
    closed = jax.make_jaxpr(function)(weights, values)
    traced, count = closed.jaxpr, len(jax.tree.leaves(weights))
    ahead, rest, follows = _sorted(traced, count)
    needed = {v for equation in rest for v in _variables(equation.invars)} | set(_variables(traced.outvars))
    kept = [variable for variable, kind in follows.items() if kind == OF_WEIGHTS and variable in needed]
    first = _function(closed, traced.invars[:count], kept, ahead)
    last = _function(closed, [*kept, *traced.invars[count:]], traced.outvars, rest)
    shapes = [jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype) for variable in kept]
    return Split(lambda own: list(first(*jax.tree.leaves(own))), lambda *given: last(*given)[0], shapes)


def _sorted(traced: Jaxpr, count: int) -> tuple[list[JaxprEqn], list[JaxprEqn], dict[Var, int]]:
    """Equations to be computed ahead, and the rest. What follows from nothing stands in both: a compiler makes constants of it."""
    follows = dict.fromkeys(traced.constvars, OPEN)
    follows |= {v: OF_WEIGHTS if place < count else OF_VALUES for place, v in enumerate(traced.invars)}
    ahead, rest = [], []
    for equation in traced.eqns:
        kind = max((follows[variable] for variable in _variables(equation.invars)), default=OPEN)
        if kind == OF_WEIGHTS and _grows(equation):
            kind = OF_VALUES
        if kind != OF_VALUES:
            ahead.append(equation)
        if kind != OF_WEIGHTS:
            rest.append(equation)
        follows |= dict.fromkeys(equation.outvars, kind)
    return ahead, rest, follows


def _grows(equation: JaxprEqn) -> bool:
    """Whether more numbers come out than go in, as of a bias that is repeated for each pixel: that is cheaper to do than to read."""
    made, given = (
        sum(math.prod(v.aval.shape) for v in values)
        for values in (equation.outvars, _variables(equation.invars))
    )
    return made > given


def _variables(values: list[Any]) -> list[Var]:
    return [value for value in values if not isinstance(value, Literal)]


def _function(closed: ClosedJaxpr, given: list[Var], made: list[Any], equations: list[JaxprEqn]) -> Any:
    names = closed.jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    part = closed.jaxpr.replace(invars=given, outvars=made, eqns=equations, debug_info=names)
    return jaxpr_as_fun(ClosedJaxpr(part, closed.consts))
