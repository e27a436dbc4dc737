"""Jinja filters for products, permutations and combinations, as in Python's itertools but with a bound on the number of
results.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator

import jinja2

#: Largest number of results of one filter. A list of a million takes about 100 MB; no template needs more.
_MOST = 1_000_000


def product(*lists: Iterable[object], repeat: int = 1) -> Iterator[tuple[object, ...]]:
    """Jinja filter: yield the Cartesian product of the lists, as tuples. Raise TemplateRuntimeError if there are more
    than a million.
    """
    given = [list(each) for each in lists]
    _check_count("product", (repeat,))
    if all(given):
        sizes = [len(each) for each in given]
        _check_count("product", _products(itertools.chain.from_iterable(itertools.repeat(sizes, max(repeat, 0)))))
    return itertools.product(*given, repeat=repeat)


def permutations(values: Iterable[object], r: int | None = None) -> Iterator[tuple[object, ...]]:
    """Jinja filter: yield all ordered selections of ``r`` items of a list, as tuples.

    Raise TemplateRuntimeError if there are more than a million.
    """
    given = list(values)
    taken = len(given) if r is None else r
    if taken <= len(given):
        _check_count("permutations", _products(range(len(given), len(given) - taken, -1)))
    return itertools.permutations(given, r)


def combinations(values: Iterable[object], r: int) -> Iterator[tuple[object, ...]]:
    """Jinja filter: yield all selections of ``r`` items of a list without regard to order, as tuples.

    Raise TemplateRuntimeError if there are more than a million.
    """
    given = list(values)
    if 0 <= r <= len(given):
        _check_count("combinations", _choices(len(given), r))
    return itertools.combinations(given, r)


def combinations_with_replacement(values: Iterable[object], r: int) -> Iterator[tuple[object, ...]]:
    """Jinja filter: yield all selections of ``r`` items of a list in which each item may repeat, as tuples.

    Raise TemplateRuntimeError if there are more than a million.
    """
    given = list(values)
    if r >= 0 and given:
        _check_count("combinations_with_replacement", _choices(len(given) + r - 1, r))
    return itertools.combinations_with_replacement(given, r)


def _products(factors: Iterable[int]) -> Iterator[int]:
    return itertools.accumulate(factors, operator.mul)


def _choices(count: int, taken: int) -> Iterator[int]:
    """Yield growing binomial coefficients. The last one is the number of selections of ``taken`` out of ``count``
    items.
    """
    fewer = min(taken, count - taken)
    made = 1
    for step in range(1, fewer + 1):
        # The division is exact: the result is the binomial coefficient for ``step``.
        made = made * (count - fewer + step) // step
        yield made


def _check_count(name: str, growing: Iterable[int]) -> None:
    """Raise TemplateRuntimeError if one of the growing numbers exceeds a million. ``name`` is the filter's name in the
    message.

    Stops at the first such number, because the last number may have a million digits.
    """
    for made in growing:
        if made > _MOST:
            raise jinja2.TemplateRuntimeError(f"{name}: more than {_MOST} of them: too many")
