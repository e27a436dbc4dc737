"""The SDB: URIs, profiles and drivers; what Salt answers to the same calls."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from statecore.model.errors import CommandError, InvocationError, NotAvailable
from tests.conftest import Oracle
from tests.statecore.conftest import PlainMinion
from tests.statecore.loopback_server import Web, serve

OPTS: dict[str, Any] = {
    "osenv": {"driver": "env"},
    "files": {"driver": "yaml", "files": ["/srv/one.yaml", "/srv/two.yaml"]},
    "over": {"driver": "yaml", "files": ["/srv/one.yaml", "/srv/two.yaml"], "merge": {"strategy": "overwrite"}},
    "nofile": {"driver": "yaml", "files": ["/srv/none.yaml"]},
    "nodriver": {"files": []},
    "indirect": "sdb://files/db:user",
    "unknown": "sdb://none/x",
}
FILES = {
    "srv/one.yaml": "db: {user: ann, password: a, ports: [1]}\nn: 5\n",
    "srv/two.yaml": "db: {password: b, ports: [2]}\n",
}

#: Calls that Salt answers too.
CALLS: list[tuple[str, list[Any]]] = [
    ("sdb.get", ["sdb://files/db:user"]),
    ("sdb.get", ["sdb://files/db:password"]),
    ("sdb.get", ["sdb://files/db:ports"]),
    ("sdb.get", ["sdb://files/db:ports:0"]),
    ("sdb.get", ["sdb://files/db"]),
    ("sdb.get", ["sdb://files/n"]),
    ("sdb.get", ["sdb://files/none"]),
    ("sdb.get", ["sdb://over/db"]),
    ("sdb.get", ["sdb://nofile/db"]),
    ("sdb.get", ["sdb://none/x"]),
    ("sdb.get", ["sdb://nodriver/x"]),
    ("sdb.get", ["sdb://files/"]),
    ("sdb.get", ["sdb://files"]),
    ("sdb.get", ["plain"]),
    ("sdb.get", [5]),
    ("sdb.get", ["sdb://none/x", True]),
    ("sdb.get", ["sdb://files", True]),
    ("sdb.get", ["plain", True]),
    ("sdb.get", ["sdb://nodriver/x", True]),
    ("sdb.set", ["plain", 1]),
    ("sdb.set", ["sdb://none/x", 1]),
    ("sdb.set", ["sdb://osenv/SALTERN_TEST_SDB", "first"]),
    ("sdb.set", ["sdb://osenv/SALTERN_TEST_SDB", "second"]),
    ("sdb.get", ["sdb://osenv/SALTERN_TEST_SDB"]),
    ("sdb.get", ["sdb://osenv/SALTERN_TEST_NONE"]),
    ("sdb.delete", ["sdb://none/x"]),
    ("sdb.get_or_set_hash", ["sdb://files/db:user"]),
    ("sdb.get_or_set_hash", ["plain"]),
    ("config.get", ["indirect"]),
    ("config.get", ["unknown"]),
]


@pytest.fixture
def minion(plain: PlainMinion) -> Iterator[PlainMinion]:
    plain.opts |= OPTS
    for name, text in FILES.items():
        path = plain.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    yield plain
    os.environ.pop("SALTERN_TEST_SDB", None)


def _said(call: Any) -> Any:
    try:
        return call()
    except InvocationError as error:
        return f"raised: {error}"


@pytest.mark.oracle
def test_as_salt(minion: PlainMinion, oracle: Oracle) -> None:
    program = (
        "import json, sys, salt.config, salt.loader\n"
        "from salt.exceptions import SaltInvocationError\n"
        "asked = json.load(sys.stdin)\n"
        "opts = salt.config.DEFAULT_MINION_OPTS.copy()\n"
        "opts.update(asked['opts'], id='web1', file_client='local', grains={}, pillar={})\n"
        "mods = salt.loader.minion_mods(opts)\n"
        "told = []\n"
        "for fun, args in asked['calls']:\n"
        "    try:\n"
        "        told.append(mods[fun](*args))\n"
        "    except SaltInvocationError as error:\n"
        "        told.append(f'raised: {error}')\n"
        "print(json.dumps(told))"
    )
    placed = json.loads(json.dumps(OPTS).replace('"/srv/', f'"{minion.root}/srv/'))
    told = json.loads(oracle.run("python", "-c", program, stdin=json.dumps({"opts": placed, "calls": CALLS})))
    ours = [_said(lambda fun=fun, args=args: minion.call(fun, *args)) for fun, args in CALLS]
    assert [[*call, answer] for call, answer in zip(CALLS, ours, strict=True)] == [
        [*call, answer] for call, answer in zip(CALLS, told, strict=True)
    ]


def test_a_profile_in_pillar_and_values_of_a_template(minion: PlainMinion) -> None:
    minion.pillar["mine"] = {"driver": "json", "files": ["/srv/a.json", "/srv/b.json"]}
    (minion.root / "srv/a.json").write_text('{"a": {"b": 1}}')
    (minion.root / "srv/b.json").write_text('{"a": {"c": [2]}}')
    assert minion.call("sdb.get", "sdb://mine/a") == {"b": 1, "c": [2]}
    assert minion.call("sdb.get", "sdb://mine/a:c:0") == 2


@pytest.mark.parametrize(
    ("profile", "text", "said"),
    [
        ({"driver": "yaml", "files": ["/srv/x"]}, "a: [", "/srv/x: not valid YAML"),
        ({"driver": "yaml", "files": ["/srv/x"]}, "[1]", "/srv/x: the SDB driver yaml needs a map, not list"),
        ({"driver": "json", "files": ["/srv/x"]}, "{", "/srv/x: "),
        ({"driver": "json", "files": ["/srv"]}, "", "/srv: cannot be read"),
        ({"driver": "sqlite3"}, "", "must be an absolute path"),
        ({"driver": "sqlite3", "database": "/srv/x"}, "no database" * 100, "/srv/x: file is not a database"),
        ({"driver": "rest"}, "", "no request k with a url"),
        ({"driver": "vault"}, "", "no server is named"),
        ({"driver": "vault", "url": "http://127.0.0.1:1", "auth": {"method": "ldap"}}, "", "unknown auth method"),
        ({"driver": "vault", "url": "http://127.0.0.1:1", "auth": {"token": "t"}}, "", "does not answer"),
        ({"driver": "redis", "port": 1}, "", "Redis at localhost:1: "),
        ({"driver": "redis", "colour": 1}, "", "colour"),
        ({"driver": "etcd", "etcd.port": 1}, "", "etcd at http://127.0.0.1:1 does not answer"),
    ],
)
def test_a_driver_that_fails_says_why(minion: PlainMinion, profile: dict[str, Any], text: str, said: str) -> None:
    minion.opts["p"] = profile
    (minion.root / "srv/x").write_text(text)
    with pytest.raises(CommandError, match=said):
        minion.call("sdb.get", "sdb://p/k")


def test_an_unknown_driver_and_one_that_cannot_store(minion: PlainMinion) -> None:
    minion.opts["p"] = {"driver": "nosuch"}
    with pytest.raises(NotAvailable, match="nosuch"):
        minion.call("sdb.get", "sdb://p/k")
    with pytest.raises(CommandError, match="driver yaml cannot set values"):
        minion.call("sdb.set", "sdb://files/k", 1)
    with pytest.raises(CommandError, match="driver env cannot delete values"):
        minion.call("sdb.delete", "sdb://osenv/k")


def test_a_users_driver(minion: PlainMinion) -> None:
    own = minion.extension_dir / "sdb" / "mine.py"
    own.parent.mkdir(parents=True)
    own.write_text("def get(key, profile=None):\n    return [key, profile['colour'], __opts__['id']]\n")
    minion.opts["p"] = {"driver": "mine", "colour": "red"}
    assert minion.call("sdb.get", "sdb://p/a/b") == ["a/b", "red", "web1"]


def test_sqlite3(minion: PlainMinion) -> None:
    minion.opts["p"] = {"driver": "sqlite3", "database": "/srv/db", "table": 'my "t'}
    assert minion.call("sdb.get", "sdb://p/k") is None
    for value in ("text", {"a": [1, None]}, 5):
        assert minion.call("sdb.set", "sdb://p/k", value) is True
        assert minion.call("sdb.get", "sdb://p/k") == value
    assert (minion.root / "srv/db").is_file()
    made = minion.call("sdb.get_or_set_hash", "sdb://p/new", 12, "xy")
    assert len(made) == 12
    assert set(made) <= {"x", "y"}
    assert minion.call("sdb.get_or_set_hash", "sdb://p/new") == made
    assert minion.call("sdb.delete", "sdb://p/new") is True
    assert minion.call("sdb.get", "sdb://p/new") is None


def test_sqlite3_with_own_statements(minion: PlainMinion) -> None:
    minion.opts["p"] = {
        "driver": "sqlite3",
        "database": "/srv/db",
        "create_statements": ["CREATE TABLE own (a text, d blob)", "CREATE UNIQUE INDEX i ON own (a)"],
        "get_query": "SELECT d FROM own WHERE a=:key",
        "set_query": "INSERT OR REPLACE INTO own (a, d) VALUES (:key, :value)",
    }
    assert [minion.call("sdb.set", "sdb://p/k", value) for value in ("1", "2")] == [True, True]
    assert minion.call("sdb.get", "sdb://p/k") == "2"


def test_redis(minion: PlainMinion, redis_server: str) -> None:
    minion.opts["p"] = {"driver": "redis", "host": "127.0.0.1", "port": urlsplit(redis_server).port, "db": 0}
    assert minion.call("sdb.get", "sdb://p/sdb-key") is None
    assert minion.call("sdb.set", "sdb://p/sdb-key", "value") is True
    assert minion.call("sdb.get", "sdb://p/sdb-key") == "value"
    assert [minion.call("sdb.delete", "sdb://p/sdb-key") for _ in range(2)] == [1, 0]


@pytest.fixture
def web() -> Iterator[Web]:
    with serve() as running:
        yield running


def test_rest(minion: PlainMinion, web: Web) -> None:
    web.answers["/users/name/keys"] = (200, {"Content-Type": "application/json"}, b'{"keys": [1]}')
    minion.opts["p"] = {
        "driver": "rest",
        "keys": {"url": f"{web.url}/users/{{{{ name }}}}/keys", "backend": "requests", "header_dict": {"X-A": "1"}},
        "plain": {"url": f"{web.url}/json"},
        "gone": {"url": f"{web.url}/none"},
    }
    # The plain minion's template engine knows only the variable ``name``.
    assert minion.call("sdb.get", "sdb://p/keys?name=name") == {"keys": [1]}
    assert web.asked[-1].headers["X-A"] == "1"
    assert minion.call("sdb.get", "sdb://p/plain") == {"a": [1, None]}
    with pytest.raises(CommandError, match=r"gone: HTTP 404"):
        minion.call("sdb.get", "sdb://p/gone")


def _vault(web: Web, *, version: str) -> None:
    """Answers of a Vault with an engine at ``secret/``, recorded from its documentation of the interface."""

    def told(data: Any) -> tuple[int, dict[str, str], bytes]:
        return 200, {"Content-Type": "application/json"}, json.dumps({"data": data}).encode()

    place = "secret/data" if version == "2" else "secret"
    fields = {"password": "p", "user": "u"}
    for path in ("app", "app/password", "none", "new"):
        web.answers[f"/v1/sys/internal/ui/mounts/secret/{path}"] = told(
            {"path": "secret/", "type": "kv", "options": {"version": version}}
        )
        web.answers[f"/v1/{place}/{path}"] = (404, {}, b'{"errors": []}')
    web.answers[f"/v1/{place}/app"] = told({"data": fields, "metadata": {}} if version == "2" else fields)
    web.answers[f"/v1/{place}/new"] = (204, {}, b"")
    web.answers["/v1/auth/approle/login"] = (200, {}, json.dumps({"auth": {"client_token": "by-role"}}).encode())


@pytest.mark.parametrize("version", ["1", "2"])
def test_vault(minion: PlainMinion, web: Web, version: str) -> None:
    _vault(web, version=version)
    minion.opts["vault"] = {"url": web.url, "auth": {"method": "token", "token": "tok"}, "namespace": "ns"}
    minion.opts["p"] = {"driver": "vault"}
    assert minion.call("sdb.get", "sdb://p/secret/app/password") == "p"
    asked = web.asked[-1].headers
    assert (asked["X-Vault-Token"], asked["X-Vault-Namespace"]) == ("tok", "ns")
    assert minion.call("sdb.get", "sdb://p/secret/app?user") == "u"
    assert minion.call("sdb.get", "sdb://p/secret/none/x") is None
    whole = {"password": "p", "user": "u"} if version == "2" else None
    assert minion.call("sdb.get", "sdb://p/secret/app?other") == whole
    assert minion.call("sdb.set", "sdb://p/secret/new/key", "v") is True
    written = json.loads(web.asked[-1].body)
    assert written == ({"data": {"key": "v"}} if version == "2" else {"key": "v"})


def test_vault_logs_in_by_approle_and_names_a_refusal(minion: PlainMinion, web: Web) -> None:
    _vault(web, version="2")
    minion.opts["p"] = {
        "driver": "vault",
        "server": {"url": web.url},
        "auth": {"method": "approle", "role_id": "r", "secret_id": "s"},
    }
    assert minion.call("sdb.get", "sdb://p/secret/app/user") == "u"
    login = next(asked for asked in web.asked if asked.path == "/v1/auth/approle/login")
    assert json.loads(login.body) == {"role_id": "r", "secret_id": "s"}
    assert web.asked[-1].headers["X-Vault-Token"] == "by-role"
    web.answers["/v1/secret/data/app"] = (403, {}, b'{"errors": ["permission denied"]}')
    with pytest.raises(CommandError, match="secret/data/app: 403: permission denied"):
        minion.call("sdb.get", "sdb://p/secret/app/user")
