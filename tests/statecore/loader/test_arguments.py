"""Python itself is the oracle: what it says about a wrong call is what we say beforehand."""

from __future__ import annotations

import functools
import inspect

import pytest

from statecore.loader.arguments import Parameters, accepted, misfit, unknown


def none():
    """No parameters."""


def one(num):
    """One."""


def two(a, b):
    """Two."""


def three(a, b, c, d=1):
    """Three and a default."""


def optional(a, b=2):
    """A default."""


def keyword(a, *, k):
    """Keyword only."""


def star(a, *args, **kwargs):
    """Anything."""


CALLS = [
    (none, (), {}),
    (none, (1,), {}),
    (none, (1, 2), {}),
    (one, (), {}),
    (one, (1, 2), {}),
    (one, (), {"num": 1}),
    (one, (1,), {"num": 1}),
    (two, (), {}),
    (two, (1,), {}),
    (two, (1, 2, 3), {}),
    (two, (), {"b": 1}),
    (three, (), {}),
    (three, (1,), {}),
    (three, (1, 2, 3, 4, 5), {}),
    (optional, (), {}),
    (optional, (1, 2, 3), {}),
    (optional, (1,), {"b": 3}),
    (keyword, (1,), {}),
    (keyword, (1,), {"k": 1}),
    (star, (), {}),
    (star, (1, 2), {"z": 1}),
]


@pytest.mark.parametrize(("function", "args", "kwargs"), CALLS)
def test_as_python_says_it(function, args, kwargs):
    try:
        function(*args, **kwargs)
    except TypeError as error:
        expected = str(error)
    else:
        expected = None
    assert misfit(function.__name__, inspect.signature(function), args, kwargs) == expected
    assert Parameters.of(inspect.signature(function)).fit(args, kwargs) == (expected is None)


def placed(a: int, /, b: str | list[str], c=(), *more, d: bool, e: dict[str, int] | None = None, **others):
    """All kinds."""


def first_only(ctx):
    """Nothing but what is given."""


def all_default(ctx=None, name: str = ""):
    """What is given has a default, too."""


@pytest.mark.parametrize("given", [0, 1])
@pytest.mark.parametrize(
    "function",
    [*{function: None for function, *_ in CALLS if function is not none}, placed, first_only, all_default],
    ids=lambda function: function.__name__,
)
def test_a_plain_function_is_read_as_its_signature_is(function, given):
    signature = inspect.signature(function)
    left = signature.replace(parameters=list(signature.parameters.values())[given:])
    assert Parameters.of_function(function, given) == Parameters.of(left)


@pytest.mark.parametrize(
    "other", [functools.wraps(two)(lambda *args: None), functools.partial(two, 1), print, dict, star.__call__]
)
def test_of_others_the_signature_is_asked(other):
    assert Parameters.of_function(other, 0) is None


def test_unknown_keywords():
    assert unknown(Parameters.of(inspect.signature(one)), {"num": 1, "x": 2}) == ["x=2"]
    assert unknown(Parameters.of(inspect.signature(star)), {"x": 2}) == []


def test_what_the_publication_adds_reaches_only_those_who_take_any():
    assert accepted(Parameters.of(inspect.signature(one)), {"num": 1, "__pub_jid": "2"}) == {"num": 1}
    assert accepted(Parameters.of(inspect.signature(star)), {"__pub_jid": "2"}) == {"__pub_jid": "2"}
    told = {"a": 1, "__pub_jid": "2", "__pub_id": "m"}
    assert accepted(Parameters.of(inspect.signature(star)), told, native=True) == {"a": 1, "__pub_id": "m"}
