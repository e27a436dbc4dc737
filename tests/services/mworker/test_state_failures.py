"""Events about failed states, compared with what Salt fires for the same return."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from saltern.mworker.state_failures import failed_states
from tests.conftest import Oracle

JID = "20260101000000000000"

BAD = {"result": False, "comment": "no", "changes": {}, "name": "x", "__run_num__": 1, "__id__": "b"}
STATES = {
    "file_|-a_|-/a_|-managed": {"result": True, "changes": {}, "comment": "", "__id__": "a"},
    "test_|-b_|-x_|-fail": BAD,
    "test_|-c_|-y_|-nop": {"result": None, "changes": {}, "comment": ""},
}

RETURNS: dict[str, dict[str, Any]] = {
    "a run that failed": {"fun": "state.sls", "retcode": 2, "return": STATES, "user": "ann"},
    "a highstate": {"fun": "state.highstate", "retcode": 2, "return": STATES},
    "state.apply": {"fun": "state.apply", "retcode": 2, "return": STATES},
    "a run that did not": {"fun": "state.sls", "retcode": 0, "return": STATES},
    "without a code": {"fun": "state.sls", "return": STATES},
    "no run": {"fun": "state.sls", "retcode": 1, "return": ["Rendering failed"]},
    "text": {"fun": "state.sls", "retcode": 1, "return": "Pillar failed"},
    "several": {
        "fun": ["test.ping", "state.sls"],
        "retcode": {"test.ping": 0, "state.sls": 2},
        "return": {"test.ping": True, "state.sls": STATES},
    },
    "several in order": {"fun": ["state.sls", "test.ping"], "retcode": [2, 0], "return": [STATES, True]},
    "several, one is short": {"fun": ["test.ping", "state.sls"], "retcode": [1], "return": []},
}

#: Reads returns, writes [[tag, data]] of what Salt fires for each.
SALTS = """
import json, sys
from salt.utils.event import SaltEvent
class Heard(SaltEvent):
    def __init__(self): self.fired = []
    def fire_event(self, data, tag, timeout=1000): self.fired.append([tag, dict(data)]); return True
    def __del__(self): pass
    def destroy(self): pass
found = {}
for name, ret in json.load(sys.stdin).items():
    heard = Heard()
    heard.fire_ret_load(ret)
    found[name] = heard.fired
print(json.dumps(found))
"""


def whole(ret: dict[str, Any]) -> dict[str, Any]:
    return {"jid": JID, "id": "web1", **copy.deepcopy(ret)}


@pytest.mark.oracle
def test_as_salt(oracle: Oracle) -> None:
    answer = oracle.run("python", "-c", SALTS, stdin=json.dumps({name: whole(ret) for name, ret in RETURNS.items()}))
    assert {name: [list(event) for event in failed_states(whole(ret))] for name, ret in RETURNS.items()} == json.loads(
        answer
    )


def test_tags_and_data() -> None:
    events = list(failed_states(whole(RETURNS["a run that failed"])))
    assert [tag for tag, _ in events] == ["test.fail", f"salt/job/{JID}/sub/web1/error/state.sls"]
    assert events[0][1] == {**BAD, "retcode": 2}
    more = {"jid": JID, "id": "web1", "success": False, "return": "Error: test.fail", "fun": "state.sls", "user": "ann"}
    assert events[1][1] == {**BAD, "retcode": 2, **more}


@pytest.mark.parametrize(
    "change",
    [{"return": {"x": 1}}, {"return": {"nopart": {"result": False}}}, {"fun": 5}, {"fun": None}, {"retcode": "x"}],
    ids=str,
)
def test_what_a_minion_may_send_raises_nothing(change: dict[str, Any]) -> None:
    list(failed_states(whole({**RETURNS["a run that failed"], **change})))
