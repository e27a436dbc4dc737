"""What a master says about its minions' state runs."""

from __future__ import annotations

from typing import Any

import pytest

from statecore.runtime.contexts import with_master_options

OWN = {"id": "web1", "state_top": "top.sls", "failhard": True, "state_aggregate": ["pkg"], "nodegroups": {"a": "web*"}}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (None, {}),
        ("", {}),
        ({"failhard": False, "nodegroups": {}}, {"failhard": False, "nodegroups": {}}),
        ({"state_top": "salt://other.sls"}, {"state_top": "other.sls"}),
        ({"state_top": "/other.sls"}, {"state_top": "other.sls"}),
        ({"jinja_trim_blocks": True, "file_roots": {"base": []}, "id": "db1"}, {"jinja_trim_blocks": True}),
        ({"state_events": True}, {"state_events": True}),
        ({"state_events": False, "state_aggregate": False}, {"state_events": False}),
    ],
    ids=str,
)
def test_what_the_master_decides(answer: Any, told: dict[str, Any]) -> None:
    found = with_master_options(OWN, answer)
    assert {"state_events": False, **OWN, **told} == {"state_events": False, **found}
