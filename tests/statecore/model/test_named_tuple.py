"""Our quick named tuples are what ``typing.NamedTuple`` makes."""

from __future__ import annotations

import copy
import pickle
import typing
from typing import Any

import pytest

from statecore.model.named_tuple import NamedTuple


class Ours(NamedTuple):
    """What it is."""

    name: str
    #: How many.
    count: int = 3
    rest: tuple[str, ...] = ()

    @property
    def twice(self) -> int:
        """Counted again."""
        return self.count * 2

    @classmethod
    def of(cls, name: str) -> Ours:
        """One of this name."""
        return cls(name)


class Theirs(typing.NamedTuple):
    """What it is."""

    name: str
    #: How many.
    count: int = 3
    rest: tuple[str, ...] = ()

    @property
    def twice(self) -> int:
        """Counted again."""
        return self.count * 2

    @classmethod
    def of(cls, name: str) -> Theirs:
        """One of this name."""
        return cls(name)


@pytest.mark.parametrize(
    "of",
    [
        lambda kind: kind._fields,
        lambda kind: kind._field_defaults,
        lambda kind: kind.__doc__,
        lambda kind: kind.__module__,
        lambda kind: kind.__mro__[1:],
        lambda kind: typing.get_type_hints(kind),
        lambda kind: tuple(kind("a")),
        lambda kind: kind("a", rest=("b",))._asdict(),
        lambda kind: kind("a")._replace(count=4).twice,
        lambda kind: kind.of("b").name,
        lambda kind: kind("a") == ("a", 3, ()),
        lambda kind: hash(kind("a")),
        lambda kind: repr(kind("a")).removeprefix(kind.__name__),
        lambda kind: pickle.loads(pickle.dumps(kind("a"))) == kind("a"),
        lambda kind: copy.deepcopy(kind("a", rest=("x",))),
        lambda kind: hasattr(kind("a"), "__dict__"),
        lambda kind: [word for word in dir(kind) if word != "__orig_bases__"],
    ],
)
def test_what_they_have_in_common(of: Any) -> None:
    assert of(Ours) == of(Theirs)


def test_a_field_without_a_default_after_one_that_has_one() -> None:
    with pytest.raises(TypeError, match="Wrong: a field without a default"):
        type(NamedTuple)(
            "Wrong", (NamedTuple,), {"__annotations__": {"a": "int", "b": "int"}, "a": 1, "__module__": "x"}
        )
