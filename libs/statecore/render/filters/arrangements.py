"""Filters that arrange the items of lists (Salt's are those of itertools): more of them than a template can mean are refused."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator
from typing import Any

import jinja2

#: Arrangements that one filter may make. A list of so many takes a hundred megabytes, and no template walks over more.
_MOST = 1_000_000


def product(*lists: Iterable[Any], repeat: int = 1) -> Iterator[tuple[Any, ...]]:
    """One item of each list, in every way. Raises TemplateRuntimeError for too many."""
    given = [list(each) for each in lists]
    _few("product", (repeat,))
    if all(given):
        sizes = [len(each) for each in given]
        _few("product", _products(itertools.chain.from_iterable(itertools.repeat(sizes, max(repeat, 0)))))
    return itertools.product(*given, repeat=repeat)


def permutations(values: Iterable[Any], r: int | None = None) -> Iterator[tuple[Any, ...]]:
    """``r`` of the items, in every order. Raises TemplateRuntimeError for too many."""
    given = list(values)
    taken = len(given) if r is None else r
    if taken <= len(given):
        _few("permutations", _products(range(len(given), len(given) - taken, -1)))
    return itertools.permutations(given, r)


def combinations(values: Iterable[Any], r: int) -> Iterator[tuple[Any, ...]]:
    """``r`` of the items, in every way. Raises TemplateRuntimeError for too many."""
    given = list(values)
    if 0 <= r <= len(given):
        _few("combinations", _choices(len(given), r))
    return itertools.combinations(given, r)


def combinations_with_replacement(values: Iterable[Any], r: int) -> Iterator[tuple[Any, ...]]:
    """``r`` of the items, each as often as one likes, in every way. Raises TemplateRuntimeError for too many."""
    given = list(values)
    if r >= 0 and given:
        _few("combinations_with_replacement", _choices(len(given) + r - 1, r))
    return itertools.combinations_with_replacement(given, r)


def _products(factors: Iterable[int]) -> Iterator[int]:
    return itertools.accumulate(factors, operator.mul)


def _choices(count: int, taken: int) -> Iterator[int]:
    """Binomial coefficients that grow to the one of ``count`` and ``taken``."""
    fewer = min(taken, count - taken)
    made = 1
    for step in range(1, fewer + 1):
        # Without a rest: this is the coefficient of ``step``.
        made = made * (count - fewer + step) // step
        yield made


def _few(name: str, growing: Iterable[int]) -> None:
    """Looks no further than it has to: the last number may have a million digits."""
    for made in growing:
        if made > _MOST:
            raise jinja2.TemplateRuntimeError(f"{name}: more than {_MOST} of them: too many")
