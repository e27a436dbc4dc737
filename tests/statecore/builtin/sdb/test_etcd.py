"""The module, the states and the SDB driver etcd, with both versions of its interface."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from statecore.model.errors import CommandError
from statecore.sources.etcd import flattened
from tests.statecore.conftest import PlainMinion

VERSIONS = [True, False]


@pytest.fixture(params=VERSIONS, ids=["v2", "v3"])
def minion(plain: PlainMinion, etcd_port: int, request: pytest.FixtureRequest) -> PlainMinion:
    plain.opts["my_etcd"] = {"driver": "etcd", "etcd.port": etcd_port, "etcd.require_v2": request.param}
    return plain


def call(minion: PlainMinion, function: str, *args: Any, **kwargs: Any) -> Any:
    return minion.call(f"etcd.{function}", *args, profile="my_etcd", **kwargs)


def is_v2(minion: PlainMinion) -> bool:
    return bool(minion.opts["my_etcd"]["etcd.require_v2"])


def test_keys(minion: PlainMinion) -> None:
    assert call(minion, "get", "/a") is None
    assert call(minion, "set", "/a", "1") == "1"
    assert call(minion, "get", "/a") == "1"
    assert call(minion, "update", {"b": {"c": "2", "/d/": "3"}, "e": "4"}, "/x") == {
        "/x/b/c": "2",
        "/x/b/d": "3",
        "/x/e": "4",
    }
    assert call(minion, "tree", "/x") == {"b": {"c": "2", "d": "3"}, "e": "4"}
    assert call(minion, "get", "/x", recurse=True) == {"b": {"c": "2", "d": "3"}, "e": "4"}
    assert call(minion, "ls", "/x") == {"/x": {"/x/b/": {}, "/x/e": "4"}}
    assert call(minion, "tree", "/a") == {"a": "1"}
    assert call(minion, "tree", "/none") is None
    assert call(minion, "ls", "/none") == {}
    assert call(minion, "update", "no map") is None
    assert call(minion, "rm", "/none") is None
    assert call(minion, "rm", "/x", recurse=True) is True
    assert call(minion, "tree", "/x") is None
    assert call(minion, "set", "/t", "1", ttl=60) == "1"


def test_directories(minion: PlainMinion) -> None:
    if not is_v2(minion):
        with pytest.raises(CommandError, match="does not have directories"):
            call(minion, "set", "/dir", None, directory=True)
        return
    assert [call(minion, "set", "/dir", None, directory=True) for _ in range(2)] == [True, True]
    assert call(minion, "tree", "/dir") == {}
    assert call(minion, "set", "/dir", "x") is None
    assert call(minion, "set", "/f", "x") == "x"
    assert call(minion, "set", "/f/g", None, directory=True) is None
    assert call(minion, "rm", "/dir") is None
    assert call(minion, "update", {"new": {}}, "/dir") == {"/dir/new": True}


def test_a_watch_reports_a_change_and_its_absence(minion: PlainMinion) -> None:
    call(minion, "set", "/w/key", "old")
    none = {"key": "/w/key", "value": "old", "changed": False, "dir": False} if is_v2(minion) else None
    seen = call(minion, "watch", "/w/key", timeout=1)
    assert (seen and {**seen, "mIndex": 0}) == (none and {**none, "mIndex": 0})
    later = threading.Timer(0.5, call, (minion, "set", "/w/key", "new"))
    later.start()
    seen = call(minion, "watch", "/w", recurse=True, timeout=20)
    later.join()
    assert (seen["key"], seen["value"], seen["changed"]) == ("/w/key", "new", True)
    assert seen["mIndex"] > 0
    assert call(minion, "watch", "/w/key", timeout=20, index=seen["mIndex"])["value"] == "new"


def test_states(minion: PlainMinion) -> None:
    def state(function: str, test: bool = False, **arguments: Any) -> tuple[Any, Any, Any]:
        entry = minion.state(f"etcd.{function}", test=test, name="/s", profile="my_etcd", **arguments)
        return entry["result"], entry["changes"], entry["comment"]

    assert state("set", test=True, value="1") == (None, {"/s": "1"}, "Key /s is set to be created")
    assert state("set", value="1") == (True, {"/s": "1"}, "New key created")
    assert state("set", value="1") == (True, {}, "Key contains correct value")
    assert state("set", value="2") == (True, {"/s": "2"}, "Key value updated")
    assert state("wait_set", value="3") == (True, {}, "")
    assert state("mod_watch", value="3", sfun="wait_set") == (True, {"/s": "3"}, "Key value updated")
    assert state("rm", test=True) == (None, {"/s": "Deleted"}, "Key /s is set to be removed")
    assert state("mod_watch", sfun="wait_rm") == (True, {"/s": "Deleted"}, "Key removed")
    assert state("rm") == (True, {}, "Key does not exist")
    assert state("mod_watch", sfun="directory")[0] is False
    if is_v2(minion):
        assert state("directory") == (True, {"/s": "Created"}, "New directory created")
        assert state("directory") == (True, {}, "Directory exists")
        assert state("set", value="x")[0] is False


def test_the_sdb(minion: PlainMinion) -> None:
    assert minion.call("sdb.get", "sdb://my_etcd//p") is None
    assert minion.call("sdb.set", "sdb://my_etcd//p", "secret") == "secret"
    assert minion.call("sdb.get", "sdb://my_etcd//p") == "secret"
    assert [minion.call("sdb.delete", "sdb://my_etcd//p") for _ in range(2)] == [True, None]


def test_without_a_server(plain: PlainMinion) -> None:
    gone = {"host": "127.0.0.1", "port": 1}
    assert plain.call("etcd.get", "/a", **gone) is None
    assert plain.call("etcd.watch", "/a", timeout=1, **gone) == {}
    entry = plain.state("etcd.set", name="/a", value="1", **gone)
    assert (entry["result"], entry["comment"]) == (False, "No profile found, using a profile is always recommended")
    plain.pillar["p"] = {"etcd.port": 1}
    assert plain.state("etcd.set", name="/a", value="1", profile="p")["result"] is False


@pytest.mark.oracle
def test_maps_are_flattened_as_by_salt(oracle: Any) -> None:
    cases = [[{"a": {"b": 1, "/c/": {}}, "d": "x"}, path] for path in ("", "/", "/p", "p/q/")]
    program = (
        "import json, sys; from salt.utils.etcd_util import EtcdBase\n"
        "base = EtcdBase.__new__(EtcdBase)\n"
        "print(json.dumps([base._flatten(*case) for case in json.load(sys.stdin)]))"
    )
    told = json.loads(oracle.run("python", "-c", program, stdin=json.dumps(cases)))
    assert [flattened(*case) for case in cases] == told
