"""Node groups are spelled out for minions, which do not know the master's."""

from __future__ import annotations

from typing import Any

import pytest

from statecore.model.errors import TargetError
from statecore.targeting.match import Subject, expanded_target, matches

GROUPS: dict[str, Any] = {
    "web": "G@role:web or web*",
    "listed": ["a", "b"],
    "words": "a b",
    "one": "a",
    "nested": "N@web and not N@listed",
    "parts": ["web*", "or", "db*"],
    "itself": "N@itself or a",
}

CASES = [
    ("*", "glob", ("*", "glob")),
    ("web", "nodegroup", ("( G@role:web or web* )", "compound")),
    ("listed", "nodegroup", ("( L@a,b )", "compound")),
    ("words", "nodegroup", ("( L@a,b )", "compound")),
    ("one", "nodegroup", ("( a )", "compound")),
    ("parts", "nodegroup", ("( web* or db* )", "compound")),
    ("nested", "nodegroup", ("( ( G@role:web or web* ) and not ( L@a,b ) )", "compound")),
    ("(N@one or db*) and G@os:Debian", "compound", ("( ( a ) or db* ) and G@os:Debian", "compound")),
    (["N@one", "or", "b"], "compound", ("( a ) or b", "compound")),
    ("G@a:b", "compound", ("G@a:b", "compound")),
]


@pytest.mark.parametrize(("tgt", "tgt_type", "expected"), CASES)
def test_groups_are_spelled_out(tgt: Any, tgt_type: str, expected: tuple[str, str]) -> None:
    assert expanded_target(tgt, tgt_type, GROUPS) == expected


@pytest.mark.parametrize(("tgt", "tgt_type", "expected"), CASES)
@pytest.mark.parametrize("minion", ["a", "b", "web1", "db1"])
def test_what_is_spelled_out_means_the_same_minions(tgt: Any, tgt_type: str, expected: object, minion: str) -> None:
    subject = Subject(minion, {"os": "Debian", "role": "web" if minion == "b" else "db"})
    before = matches(tgt, tgt_type, subject, nodegroups=GROUPS)
    assert matches(*expanded_target(tgt, tgt_type, GROUPS), subject) == before


@pytest.mark.parametrize("name", ["nowhere", "itself"])
def test_a_group_that_is_not_there_or_names_itself_is_an_error(name: str) -> None:
    with pytest.raises(TargetError, match=name):
        expanded_target(name, "nodegroup", GROUPS)
