"""What the cases of ``recorded`` cannot tell of the selinux states: merged chunks."""

from __future__ import annotations

import pytest

from statecore.builtin.states import selinux

_LOW = {"state": "selinux", "fun": "boolean", "persist": True}


@pytest.mark.parametrize(
    ("low", "others", "booleans"),
    [
        ({"name": "a", "value": "on"}, [{"name": "b", "value": "off"}], {"a": "on", "b": "off"}),
        (
            {"name": "a", "value": "on"},
            [{"name": "x", "value": 1, "booleans": ["b", {"c": 0}]}],
            {"a": "on", "b": 1, "c": 0},
        ),
        ({"name": "x", "booleans": {"a": 1}}, [{"name": "b", "value": 0}], {"a": 1, "b": 0}),
        ({"name": "a", "value": "on"}, [{"name": "b", "value": "on", "persist": False}], None),
        ({"name": "a", "value": "on"}, [{"name": "b", "value": "on", "__agg__": True}], None),
        ({"name": "a", "value": "on"}, [{"name": "b", "fun": "mode"}], None),
        ({"name": "a", "value": "on"}, [], None),
    ],
)
def test_similar_chunks_become_one_call(plain, low, others, booleans):
    chunks = [{**_LOW, **other} for other in others]
    merged = selinux.mod_aggregate(plain.context(), {**_LOW, **low}, chunks, {})
    if booleans is None:
        assert merged == {**_LOW, **low}
    else:
        assert merged == {**_LOW, **low, "booleans": booleans}
        assert all(chunk["__agg__"] for chunk in chunks)


def test_other_functions_are_not_merged(plain):
    low = {**_LOW, "fun": "mode", "name": "enforcing"}
    assert selinux.mod_aggregate(plain.context(), low, [{**_LOW, "name": "b"}], {}) == low
