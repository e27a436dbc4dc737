"""``wheel``: what administers the master itself, told on the bus; trees are read and written within their roots."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key

pytestmark = pytest.mark.redis

Worker = Any


@pytest.fixture
def tree(tmp_path: Path, worker: Worker) -> Path:
    root = tmp_path / "salt"
    (root / "web").mkdir()
    (root / "web" / "init.sls").write_text("a: {test.nop: []}\n")
    (root / "logo").write_bytes(b"\x89\0\xff")
    (root / "out").symlink_to("/etc")
    return root


def asked(worker: Worker, fun: str, *arg: Any, **kwarg: Any) -> Any:
    return worker.control("wheel", fun=fun, arg=list(arg), kwarg=kwarg)


def test_each_call_is_told(worker: Worker) -> None:
    assert worker.control("wheel", fun="key.list_all", user="me")["minions"] == []
    (new, told), (ret, result) = worker.events
    assert (new, ret) == (f"salt/wheel/{told['jid']}/new", f"salt/wheel/{told['jid']}/ret")
    about = {"jid": told["jid"], "tag": f"salt/wheel/{told['jid']}", "user": "me", "fun_args": []}
    assert told == {"fun": "wheel.key.list_all", **about, "owner": "key cli"}
    assert (result["success"], result["return"]["minions"]) == (True, [])


def test_a_failure_is_told_too(worker: Worker) -> None:
    assert asked(worker, "error.error", "ValueError", message="bad") == ("ValueError", "bad")
    assert worker.events[0][1]["fun_args"] == ["ValueError", {"message": "bad"}]
    assert (worker.events[1][1]["success"], worker.events[1][1]["return"]) == (False, "bad")


def test_private_keys_are_not_told(worker: Worker) -> None:
    made = asked(worker, "key.gen")
    assert "PRIVATE KEY" in made["priv"]
    assert "PRIVATE KEY" not in str(worker.events)


def test_the_option_keysize_is_the_size_of_new_keys(new_worker: Callable[..., Worker]) -> None:
    for option, bits in ((3072, 3072), (1024, 2048)):
        made = asked(new_worker(keysize=option), "key.gen")
        assert load_pem_public_key(made["pub"].encode()).key_size == bits  # type: ignore[union-attr]


def test_trees_are_read(worker: Worker, tree: Path) -> None:
    assert asked(worker, "file_roots.find", "web/init.sls") == [{f"{tree}/web/init.sls": "txt"}]
    assert asked(worker, "file_roots.find", path="logo") == [{f"{tree}/logo": "bin"}]
    assert asked(worker, "file_roots.read", "web/init.sls") == [{f"{tree}/web/init.sls": "a: {test.nop: []}\n"}]
    assert asked(worker, "file_roots.read", "logo") == []
    shown = {str(tree): {"web": {"init.sls": "f"}, "logo": "f", "out": {}}}
    assert asked(worker, "file_roots.list_env") == shown
    assert asked(worker, "file_roots.list_roots") == {"base": [shown]}
    assert asked(worker, "file_roots.find", "web/init.sls", saltenv="dev") == []


@pytest.mark.parametrize("path", ["../secret", "out/passwd", "/etc/passwd", "web/../../x"])
def test_nothing_leads_out_of_a_root(worker: Worker, tree: Path, path: str) -> None:
    assert asked(worker, "file_roots.find", path) == []
    said = asked(worker, "file_roots.write", data="x", path=path)
    assert "Invalid path" in said or "is not relative" in said


def test_trees_are_written(worker: Worker, tree: Path, tmp_path: Path) -> None:
    place = tmp_path / "pillar" / "web" / "init.sls"
    assert asked(worker, "pillar_roots.write", data="a: é\n", path="web/init.sls") == f"Wrote data to file {place}"
    assert place.read_text("utf-8") == "a: é\n"
    assert list(place.parent.iterdir()) == [place]
    assert asked(worker, "pillar_roots.write", data="", path="a", index=1) == (
        "Specified index 1 in environment base is not present"
    )
    assert asked(worker, "pillar_roots.write", data="", path="a", saltenv="x") == "Named environment x is not present"


def test_what_is_known_of_the_master(worker: Worker) -> None:
    options = asked(worker, "config.values")
    assert options["id"] == "master_master"
    assert "redis_url" not in options
    name, said = asked(worker, "config.apply", "timeout", 5)
    assert name == "NotSupported"
    assert "restart them" in said
    assert asked(worker, "minions.connected") == []
    worker.minion("web1").ask("_mine", data={})
    assert asked(worker, "minions.connected") == ["web1"]
    assert "key.accept" in asked(worker, "sys.doc")


def test_users_functions_come_first(worker: Worker, tmp_path: Path) -> None:
    place = tmp_path / "extmods" / "wheel" / "site.py"
    place.parent.mkdir(parents=True)
    place.write_text(
        'def hello(name, end="."):\n    """Says hello."""\n    return __opts__["id"] + " greets " + name + end\n'
    )
    assert asked(worker, "site.hello", "you", end="!") == "master_master greets you!"
    name, said = asked(worker, "site.hello")
    assert (name, "missing 1 required positional argument" in said) == ("TypeError", True)
    assert asked(worker, "site.nothing")[0] == "UnknownFunction"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"fun": "key.acept"}, "The nearest is 'key.accept'"),
        ({"fun": "key.accept"}, "key.accept changes keys: name them with match"),
        ({"fun": "key.accept", "arg": ["a", "b"]}, "arguments of wheel functions go by name"),
        ({"fun": "key.accept", "arg": "a"}, "arg must be a list"),
        ({"fun": "file_roots.find", "kwarg": {"nothing": 1}}, "unexpected keyword argument"),
    ],
)
def test_what_is_refused(worker: Worker, fields: dict[str, Any], said: str) -> None:
    assert said in worker.control("wheel", **fields)[1]


def test_the_match_may_stand_alone(new_worker: Callable[..., Worker]) -> None:
    worker = new_worker()
    worker.store.minion_keys.store("web1", worker.keys[0].public.pem, "pending")
    assert asked(worker, "key.accept", "web1") == {"minions": ["web1"]}
