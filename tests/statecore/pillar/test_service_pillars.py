"""The external pillars and tops that ask services or read inventories: real servers where a process on loopback can be one,
recorded answers elsewhere.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from xmlrpc.server import SimpleXMLRPCServer

import pytest
import redis as redis_client
from nacl.public import PrivateKey, SealedBox
from nacl.secret import SecretBox

from statecore.runtime.runtime import local_runtime
from tests.statecore.database_servers import slapd
from tests.statecore.loopback_server import Web, serve

GRAINS: Mapping[str, Any] = {"id": "web1", "os": "Debian", "role": "we b/1", "n": {"k": "v"}, "roles": ["web", "db"]}

#: compiled(ext_pillar, **opts): the pillar of web1.
Compiled = Callable[..., dict[str, Any]]


@pytest.fixture
def compiled(tmp_path: Path) -> Compiled:
    def compile_pillar(wanted: list[Any], *, pillar: str = "", **opts: Any) -> dict[str, Any]:
        tree = tmp_path / "pillar"
        tree.mkdir(exist_ok=True)
        if pillar:
            (tree / "top.sls").write_text("base:\n  '*':\n    - a\n")
            (tree / "a.sls").write_text(pillar)
        settings = {"id": "web1", "pillar_roots": {"base": [str(tree)]}, "cachedir": str(tmp_path / "cache"), **opts}
        runtime = local_runtime({**settings, "ext_pillar": wanted}, grains=GRAINS)
        return json.loads(json.dumps(dict(runtime.pillar)))

    return compile_pillar


@pytest.fixture
def tops(tmp_path: Path) -> Callable[..., dict[str, list[str]]]:
    """tops(**opts): saltenv -> SLS names that the master_tops modules assign to web1."""

    def ask(**opts: Any) -> dict[str, list[str]]:
        settings = {"id": "web1", "cachedir": str(tmp_path / "cache"), "pillar_roots": {"base": []}, **opts}
        return local_runtime(settings, grains=GRAINS).contexts._minion.master_tops()

    return ask


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve() as running:
        yield running


def error_of(pillar: Mapping[str, Any]) -> str:
    (error,) = pillar["_errors"]
    return str(error)


# --------------------------------------------------------------------------------------------------------------- HTTP


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        ("http_json", {}, {"a": [1, None]}),
        ("http_json", {"namespace": "deep"}, {"deep": {"a": [1, None]}}),
        ("http_yaml", {"url": "/yaml"}, {"a": [1, "x"]}),
        ("http_yaml", {"url": "/yaml", "namespace": "deep"}, {"deep": {"a": [1, "x"]}}),
    ],
)
def test_http(name: str, more: dict[str, Any], expected: Any, web: Web, compiled: Compiled) -> None:
    url = web.url + more.pop("url", "/json")
    assert compiled([{name: {"url": url, **more}}]) == expected


def test_http_names_the_minion(web: Web, compiled: Compiled) -> None:
    web.asked.clear()
    url = f"{web.url}/json?id=%s&role=<role>&k=<n:k>"
    login = {"username": "me", "password": "sesame", "header_dict": {"X-Own": "1"}}
    assert compiled([{"http_json": {"url": url, "with_grains": True, **login}}]) == {"a": [1, None]}
    (asked,) = web.asked
    # A slash of a grain does not lead to another path.
    assert asked.path == "/json?id=web1&role=we%20b%2F1&k=v"
    assert asked.headers["X-Own"] == "1"
    assert asked.headers["Authorization"] == "Basic " + base64.b64encode(b"me:sesame").decode()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("/json?<no>", "the minion has no grain 'no', which the URL names"),
        ("/down?token=x", "/down: HTTP 503: Service Unavailable"),
        ("/broken", "/broken: "),
    ],
)
def test_http_faults(url: str, message: str, web: Web, compiled: Compiled) -> None:
    assert message in error_of(compiled([{"http_json": {"url": web.url + url, "with_grains": True}}]))


# ------------------------------------------------------------------------------------------------- files and programs


def test_csv(tmp_path: Path, compiled: Compiled) -> None:
    path = tmp_path / "hosts.csv"
    path.write_text("id,role,site\ndb1,db,a\nweb1,web,ü\nweb1,second,c\n")
    row = {"id": "web1", "role": "web", "site": "ü"}
    assert compiled([{"csv": str(path)}]) == row
    assert compiled([{"csv": {"path": str(path), "namespace": "host", "idkey": "id"}}]) == {"host": row}
    assert compiled([{"csv": {"path": str(path), "idkey": "role"}}]) == {}
    named = {"path": str(path), "fieldnames": ["a", "id"], "idkey": "a", "restkey": "more"}
    assert compiled([{"csv": named}]) == {"a": "web1", "id": "web", "more": ["ü"]}
    assert "has no column 'name'; it has id, role, site" in error_of(
        compiled([{"csv": {"path": str(path), "idkey": "name"}}])
    )
    assert "No such file" in error_of(compiled([{"csv": "/nowhere.csv"}]))


def test_cmd_yamlex(compiled: Compiled) -> None:
    command = "echo 'id: %s'; echo 'a: !aggregate [1]'; echo 'a: !aggregate [2]'"
    assert compiled([{"cmd_yamlex": command}]) == {"id": "web1", "a": [1, 2]}
    assert "the command printed no YAML, line 2 of its output" in error_of(
        compiled([{"cmd_yamlex": "echo; echo 'a: ]'"}])
    )


def test_hiera(tmp_path: Path, compiled: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "hiera"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$#" > "$0.count"\nfor w in "$@"; do echo "- \'$w\'"; done | sed "1i words:"\n'
    )
    program.chmod(0o755)
    assert "the program hiera is not installed" in error_of(compiled([{"hiera": "/etc/hiera.yaml"}]))
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    words = compiled([{"hiera": "/etc/hiera.yaml"}])["words"]
    assert words == ["-c", "/etc/hiera.yaml", "--", "id=web1", "os=Debian", "role=we b/1"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [(None, {"nodegroups": ["all", "debian", "nested"]}), ({"pillar_name": "g"}, {"g": ["all", "debian", "nested"]})],
)
def test_nodegroups(settings: Any, expected: Any, compiled: Compiled) -> None:
    groups = {"all": "web* or db1", "debian": "G@os:Debian", "nested": "N@all and not db1", "other": "L@db1,db2"}
    assert compiled([{"nodegroups": settings or {}}], nodegroups=groups) == expected


# -------------------------------------------------------------------------------------------------------------- Redis


@pytest.mark.redis
@pytest.mark.parametrize(
    ("store", "settings", "expected"),
    [
        (lambda db: db.set("web1", "text"), {"function": "key_value"}, {"redis_pillar": "text"}),
        (lambda db: db.hset("web1", "a", "1"), {"function": "key_value", "pillar_key": "k"}, {"k": {"a": "1"}}),
        (lambda db: db.rpush("web1", "a", "b"), {"function": "key_value"}, {"redis_pillar": ["a", "b"]}),
        (lambda db: db.sadd("web1", "b", "a"), {"function": "key_value"}, {"redis_pillar": ["a", "b"]}),
        (lambda db: db.zadd("web1", {"b": 1, "a": 2}), {"function": "key_value"}, {"redis_pillar": ["b", "a"]}),
        (lambda db: None, {"function": "key_value"}, {}),
        (lambda db: db.set("web1", '{"a": [1]}'), {"function": "key_json"}, {"a": [1]}),
        (lambda db: db.set("web1", '{"a": [1]}'), {"function": "key_json", "pillar_key": "k"}, {"k": {"a": [1]}}),
        (lambda db: db.set("web1", "[1]"), {"function": "key_json"}, {"redis_pillar": [1]}),
        (lambda db: None, {"function": "key_json"}, {}),
    ],
)
def test_redis(store: Any, settings: dict[str, Any], expected: Any, redis_url: str, compiled: Compiled) -> None:
    with contextlib.closing(redis_client.Redis.from_url(redis_url)) as database:
        store(database)
        place = database.connection_pool.connection_kwargs
    names = {"host": "host", "port": "port", "db": "db", "password": "password", "path": "unix_socket_path"}
    opts = {f"redis.{own}": place[name] for name, own in names.items() if place.get(name) is not None}
    assert compiled([{"redis": settings}], **opts) == expected


def test_redis_faults(compiled: Compiled) -> None:
    place = {"redis.host": "127.0.0.1", "redis.port": 1}
    assert "Redis at 127.0.0.1:1: " in error_of(compiled([{"redis": {"function": "key_value"}}], **place))
    assert "there is no function '_x'; there are key_value, key_json" in error_of(
        compiled([{"redis": {"function": "_x"}}])
    )


# ------------------------------------------------------------------------------------------------------------- Consul


def _kv(**values: str | None) -> tuple[int, dict[str, str], bytes]:
    rows = [
        {"Key": key, "Value": None if value is None else base64.b64encode(value.encode()).decode()}
        for key, value in values.items()
    ]
    return 200, {"Content-Type": "application/json"}, json.dumps(rows).encode()


@pytest.fixture
def consul(web: Web) -> Iterator[dict[str, Any]]:
    """Answers as Consul 1.20 gives them, and the settings of this server."""
    web.asked.clear()
    web.answers["/v1/kv/salt/web1/"] = _kv(
        **{
            "salt/web1/": None,
            "salt/web1/a/b": "x: [1, 2]",
            "salt/web1/a/c": "text",
            "salt/web1/n": "5",
            "salt/web1/empty": None,
            "salt/web1/dir/": None,
        }
    )
    web.answers["/v1/kv/bad/"] = _kv(**{"bad/k": "a: ["})
    web.answers["/v1/kv/denied/"] = (403, {}, b"Permission denied")
    host, port = web.url.removeprefix("http://").split(":")
    yield {"my": {"consul.host": host, "consul.port": int(port), "consul.token": "t", "consul.dc": {"ba.*": "dc-{0}"}}}
    web.answers.clear()


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ("my root=salt/%(minion_id)s", {"a": {"b": {"x": [1, 2]}, "c": "text"}, "n": 5}),
        ("my root=salt/%(minion_id)s/ expand_keys=false", {"a": {"b": "x: [1, 2]", "c": "text"}, "n": "5"}),
        ("profile=my root=salt/web1 pillar_root=x/y", {"x": {"y": {"a": {"b": {"x": [1, 2]}, "c": "text"}, "n": 5}}}),
        ('my root=salt/web1 target="G@os:Debian and web*"', {"a": {"b": {"x": [1, 2]}, "c": "text"}, "n": 5}),
        ('my root=salt/web1 target="db*"', {}),
        ("my root=nothing", {}),
    ],
)
def test_consul(conf: str, expected: Any, consul: dict[str, Any], web: Web, compiled: Compiled) -> None:
    consul["my"]["consul.dc"] = {"ba.*": "dc1", "other": "dc2"}
    assert compiled([{"consul": conf}], **consul) == expected
    for asked in web.asked:
        assert asked.path.endswith("?recurse=true&dc=dc1")
        assert asked.headers["X-Consul-Token"] == "t"


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ("my root=bad", "the key 'k' of Consul holds no YAML"),
        ("my root=denied", "refuses the keys below 'denied': 403"),
        ("other root=x", "there is no option 'other' with the settings of Consul"),
        ("my root=%(nothing)s", "root=%(nothing)s is malformed"),
        ("away root=x", "Consul at http://127.0.0.1:1 does not answer"),
    ],
)
def test_consul_faults(conf: str, message: str, consul: dict[str, Any], compiled: Compiled) -> None:
    consul["my"].pop("consul.dc")
    away = {"away": {"consul.port": 1}}
    assert message in error_of(compiled([{"consul": conf}], **consul, **away))


# -------------------------------------------------------------------------------------------------------------- Vault


@pytest.fixture
def vault(web: Web) -> Iterator[dict[str, Any]]:
    """Answers as Vault 1.18 gives them: an engine of version 2 at secret/, one of version 1 at old/."""
    secrets = {
        "secret/data/salt": {"data": {"password": "p", "l": [1]}, "metadata": {"version": 3}},
        "secret/data/minions/web1": {"data": {"own": "o", "password": "q", "l": [2]}, "metadata": {}},
        "secret/data/roles/web": {"data": {"web": 1}, "metadata": {}},
        "secret/data/roles/db": {"data": {"db": 2}, "metadata": {}},
        "old/app": {"token": "t"},
    }

    def answer(asked: Any) -> tuple[int, dict[str, str], bytes]:
        path = asked.path.removeprefix("/v1/")
        if path.startswith("sys/internal/ui/mounts/"):
            mount = path.removeprefix("sys/internal/ui/mounts/").split("/")[0]
            if mount == "denied":
                return 403, {}, b'{"errors": ["preflight capability check returned 403"]}'
            body = {"data": {"path": f"{mount}/", "options": {"version": "2"} if mount == "secret" else None}}
        elif path in secrets:
            body = {"data": secrets[path]}
        else:
            return 404, {}, b'{"errors": []}'
        return 200, {}, json.dumps(body).encode()

    class Anything(dict[str, Any]):
        def get(self, path: str, default: Any = None) -> Any:
            return answer if path.startswith("/v1/") else default

    kept, web.answers = web.answers, Anything()
    yield {"vault": {"url": web.url, "auth": {"method": "token", "token": "s.x"}}}
    web.answers = kept


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (["path=secret/salt"], {"password": "p", "l": [1]}),
        (["path=secret/salt", "path=secret/minions/{minion}"], {"password": "q", "own": "o", "l": [2]}),
        ([{"conf": "path=secret/salt", "nesting_key": "v"}], {"v": {"password": "p", "l": [1]}}),
        (["path=old/app"], {"token": "t"}),
        (["path=secret/roles/{pillar[roles]}"], {"web": 1, "db": 2}),
        (["path=secret/roles/{pillar[main][role]}"], {"web": 1}),
        (["path=secret/roles/{pillar[nothing]}"], {}),
        (["path=secret/missing"], {}),
        (["path=denied/x"], {}),
    ],
)
def test_vault(wanted: list[Any], expected: Any, vault: dict[str, Any], compiled: Compiled) -> None:
    sls = "roles: [web, db]\nmain: {role: web}\n"
    own = compiled([{"vault": each} for each in wanted], pillar=sls, **vault)
    assert own == {"roles": ["web", "db"], "main": {"role": "web"}, **expected}


def test_vault_merges_lists(vault: dict[str, Any], compiled: Compiled) -> None:
    conf = {"conf": "path=secret/{pillar[paths]}", "merge_lists": True, "nesting_key": "v", "slashes": True}
    own = compiled([{"vault": conf}], pillar="paths: [salt, minions/web1]\n", **vault)
    assert own["v"]["l"] == [1, 2]


@pytest.mark.parametrize(
    ("conf", "opts", "message"),
    [
        ("secret/salt", {}, "'secret/salt' names no path"),
        ("path=a", {"url": "http://127.0.0.1:1"}, "Vault at http://127.0.0.1:1 does not answer"),
        ("path=a", {"url": ""}, "Vault: no server is named"),
    ],
)
def test_vault_faults(conf: str, opts: dict[str, Any], message: str, vault: dict[str, Any], compiled: Compiled) -> None:
    assert message in error_of(compiled([{"vault": conf}], vault={**vault["vault"], **opts}))


# --------------------------------------------------------------------------------------------------------------- LDAP

_LDIF = """dn: dc=example
objectClass: dcObject
objectClass: organization
dc: example
o: example

dn: cn=web1,dc=example
objectClass: device
cn: web1
description: ntp=ntp.example
description: vhost=a.example
l: site=north
l: site=south
serialNumber: ü1

dn: cn=web2,dc=example
objectClass: device
cn: web2
serialNumber: 2
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """An OpenLDAP server; its port."""
    with slapd(tmp_path_factory.mktemp("ldap"), _LDIF) as port:
        yield port


_ADMIN = "binddn: cn=admin,dc=example\n  bindpw: sesame"


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        (
            f"{_ADMIN}\n  filter: (cn={{{{ id }}}})\n  mode: map\n  attrs: [cn, dn, serialNumber]\n  lists: [l]",
            {
                "s": [
                    {"dn": "cn=web1,dc=example", "cn": "web1", "serialNumber": "ü1", "l": ["site=north", "site=south"]}
                ]
            },
        ),
        (
            "filter: (objectClass=device)\n  scope: 1\n  mode: dict\n  attrs: [serialNumber]\n  dict_key_attr: cn",
            {"s": {"web1": [{"serialNumber": "ü1"}], "web2": [{"serialNumber": "2"}]}},
        ),
        (
            "filter: (cn=web2)\n  mode: dict\n  attrs: [cn]",
            {"s": {"cn=web2,dc=example": [{"cn": "web2"}]}},
        ),
        (
            f"{_ADMIN}\n  filter: (cn=web1)\n  attrs: [description]\n  lists: [l]",
            {"ntp": "ntp.example", "vhost": "a.example", "site": ["north", "south"]},
        ),
        ("filter: (cn=web1)\n  attrs: [description]\n  lists: [l]", {"site": ["north", "south"]}),
        ("filter: (cn=nobody)\n  mode: map\n  attrs: [cn]", {}),
        # A slash of a grain is no syntax of a filter.
        ("filter: '(cn={{ role }})'\n  mode: map\n  attrs: [cn]", {}),
    ],
)
def test_ldap(search: str, expected: Any, directory: int, tmp_path: Path, compiled: Compiled) -> None:
    path = tmp_path / "ldap.yaml"
    path.write_text(f"s:\n  server: 127.0.0.1\n  port: {directory}\n  dn: dc=example\n  {search}\nsearch_order: [s]\n")
    assert compiled([{"pillar_ldap": str(path)}]) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s:\n  server: 127.0.0.1\n  port: {port}\n  filter: (cn=\nsearch_order: [s]\n", "filter (cn=: "),
        ("s:\n  server: 127.0.0.1\n  port: 1\n  filter: (cn=x)\nsearch_order: [s]\n", "LDAP at 127.0.0.1:1"),
        (
            "s:\n  server: 127.0.0.1\n  port: {port}\n  filter: (cn=x)\n  binddn: cn=admin,dc=example\n"
            "  bindpw: wrong\n"
            "search_order: [s]\n",
            "invalidCredentials",
        ),
        ("search_order: [s]\n", "the search 's' is no map with a `filter`"),
        ("s: {filter: x}\n", "has no list `search_order`"),
        ("s: {filter: x, mode: tree}\nsearch_order: [s]\n", "has the mode 'tree'; there are map, dict, split"),
        ("s: {{ nothing }}\n", "'nothing' is undefined"),
        ("s: [\n", "is no YAML"),
    ],
)
def test_ldap_faults(text: str, message: str, directory: int, tmp_path: Path, compiled: Compiled) -> None:
    path = tmp_path / "ldap.yaml"
    path.write_text(text.replace("{port}", str(directory)))
    assert message in error_of(compiled([{"pillar_ldap": str(path)}]))
    assert "No such file" in error_of(compiled([{"pillar_ldap": "/nowhere"}]))


# -------------------------------------------------------------------------------------------------------- inventories


def written(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


RECLASS = {
    "nodes/web1.yml": "environment: prod\nclasses: [web]\napplications: [own]\n"
    "parameters: {port: 81, name: '${site:name}'}\n",
    "classes/web.yml": "classes: [common]\napplications: [nginx]\nparameters: {port: 80, l: [2]}\n",
    "classes/common/init.yml": "parameters: {site: {name: north}, l: [1]}\napplications: [ssh]\n",
}


@pytest.fixture
def reclass() -> None:
    """Skips where reclass is not installed: tests/reclass.lock names it, because it asks for enum34, which is of Python 2."""
    pytest.importorskip("reclass", reason="reclass is not installed (pip install --no-deps -r tests/reclass.lock)")


@pytest.mark.usefixtures("reclass")
def test_reclass(tmp_path: Path, compiled: Compiled, tops: Callable[..., Any]) -> None:
    root = written(tmp_path / "inventory", RECLASS)
    settings = {"storage_type": "yaml_fs", "inventory_base_uri": str(root), "reclass_source_path": "/nowhere"}
    own = compiled([{"reclass": settings}])
    assert {name: own[name] for name in ("port", "name", "l", "site")} == {
        "port": 81,
        "name": "north",
        "l": [1, 2],
        "site": {"name": "north"},
    }
    assert own["__reclass__"]["applications"] == ["ssh", "nginx", "own"]
    assert tops(master_tops={"reclass": settings}) == {"prod": ["ssh", "nginx", "own"]}
    roots = {"file_roots": {"base": [str(root)]}}
    assert compiled([{"reclass": {"storage_type": "yaml_fs"}}], **roots)["port"] == 81


@pytest.mark.usefixtures("reclass")
def test_reclass_faults(tmp_path: Path, compiled: Compiled) -> None:
    root = written(tmp_path / "inventory", {**RECLASS, "nodes/web1.yml": "classes: [missing]\n"})
    settings = {"storage_type": "yaml_fs", "inventory_base_uri": str(root)}
    assert "missing" in error_of(compiled([{"reclass": settings}]))


SALTCLASS = {
    "nodes/x/web1.yml": (
        "environment: prod\nclasses: [a, app.*]\nstates: [own]\n"
        "pillars: {own: 1, l: [n], ref: '${cs}', mix: 'pre-${cs}-post', esc: '\\${cs}', miss: '${no:such}', "
        "lst: ['${cs}', x]}\n"
    ),
    "classes/a.yml": "classes: [b, d]\nstates: [sa, shared]\npillars: {a: 1, l: [a], over: a}\n",
    "classes/b.yml": "classes: [c]\nstates: [sb, shared]\npillars: {b: '{{ __pillar__.a }}', l: [b], over: b}\n",
    "classes/c.yml": "pillars: {c: {deep: [1, 2]}, cs: text, over: c}\nstates: [sc]\n",
    "classes/d.yml": "pillars: {d: '{{ minion_id }} {{ __grains__.os }}', l: [d]}\n",
    "classes/app/init.yml": "classes: [c]\npillars: {ai: 1}\nenvironment: dev\n",
    "classes/app/web.yml": "pillars: {web: 1}\n",
    "classes/app/empty.yml": "# nothing\n",
}

_SALTS = """
import copy, json, sys
import salt.utils.saltclass
given = {"__opts__": {}, "__salt__": {}, "__grains__": {"os": "Debian"}, "minion_id": "web1", "path": sys.argv[1]}
print(json.dumps([
    salt.utils.saltclass.get_pillars("web1", {**given, "__pillar__": {}}),
    salt.utils.saltclass.get_tops("web1", {**given, "__pillar__": {}}),
]))
"""


@pytest.mark.oracle
def test_saltclass_as_salt(tmp_path: Path, compiled: Compiled, tops: Callable[..., Any], oracle: Any) -> None:
    root = written(tmp_path / "classes", SALTCLASS)
    pillar, top = json.loads(oracle.run("python", "-c", _SALTS, str(root)))
    own = compiled([{"saltclass": [{"path": str(root)}]}])
    assert own.pop("l") == ["b", "d", "a", "n"]
    # Salt joins the list of a class to that of an outer class, which its template saw, a second time.
    pillar.pop("l")
    # A glob finds classes in any order there, sorted here.
    for each in (own, pillar):
        each["__saltclass__"]["classes"].sort()
    assert own == pillar
    assert tops(master_tops={"saltclass": {"path": str(root)}}) == top == {"prod": ["sc", "sb", "shared", "sa", "own"]}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"nodes/web1.yml": "classes: [a]\npillars: {l: ['^', n]}\n", "classes/a.yml": "pillars: {l: [a]}\n"},
            {"l": ["n"]},
        ),
        ({"nodes/web1.yml": "pillars: {a: '${b:c}', b: {c: '${d}'}, d: [1]}\n"}, {"a": [1], "b": {"c": [1]}, "d": [1]}),
        ({"nodes/db1.yml": "pillars: {a: 1}\n"}, {}),
        ({"nodes/web1.yml": "classes: [missing]\npillars: {a: 1}\n"}, {"a": 1}),
        ({"nodes/web1.yml": "classes: [a]\n", "classes/a.yml": "classes: [a]\npillars: {a: 1}\n"}, {"a": 1}),
    ],
)
def test_saltclass(files: Mapping[str, str], expected: Any, tmp_path: Path, compiled: Compiled) -> None:
    root = written(tmp_path / "classes", files)
    own = compiled([{"saltclass": {"path": str(root)}}])
    own.pop("__saltclass__")
    assert own == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [\n", "nodes/web1.yml is no YAML, line 2 as rendered"),
        ("{% if %}\n", "nodes/web1.yml:1 cannot be rendered"),
        ("- a\n", "nodes/web1.yml must be a map"),
        ("pillars: {a: '${b}', b: '${a}'}\n", "references lead in a circle: b -> a -> b"),
    ],
)
def test_saltclass_faults(text: str, message: str, tmp_path: Path, compiled: Compiled) -> None:
    root = written(tmp_path / "classes", {"nodes/web1.yml": text})
    assert message in error_of(compiled([{"saltclass": {"path": str(root)}}]))


# --------------------------------------------------------------------------------------------------------------- NaCl


@pytest.mark.parametrize("kind", ["sealedbox", "secretbox", "old"])
@pytest.mark.parametrize("of_file", [True, False], ids=["file", "text"])
def test_nacl(kind: str, of_file: bool, tmp_path: Path, compiled: Compiled) -> None:
    key = PrivateKey.generate()
    box: Any = SealedBox(key.public_key) if kind == "sealedbox" else SecretBox(key.encode())
    message = base64.b64encode(bytes(box.encrypt("sesame ü".encode()))).decode()
    (tmp_path / "key").write_text(base64.b64encode(key.encode()).decode() + "\n")
    name = "key" if kind == "old" else "sk"
    config = (
        {f"{name}_file" if name == "sk" else "keyfile": str(tmp_path / "key")}
        if of_file
        else {name: (tmp_path / "key").read_text()}
    )
    opts = {"nacl.config": {**config, **({"box_type": kind} if kind != "old" else {})}}
    sls = f"a: {{b: ['NACL[{message}]', plain]}}\nc: |\n  NACL[{message}]\n"
    expected = {"a": {"b": ["sesame ü", "plain"]}, "c": "sesame ü"}
    assert compiled([{"nacl": {}}], pillar=sls, **opts) == expected
    assert compiled([], pillar=f"#!yaml|nacl\n{sls}", **opts) == expected


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"sk_file": "/nowhere"}, "the key file /nowhere cannot be read: No such file"),
        ({"sk": "AAAA"}, "is no key of 32 bytes in base64"),
        ({"sk": base64.b64encode(bytes(32)).decode()}, "NACL[AAAA...] cannot be decrypted with this key"),
        ({"box_type": "other"}, "the box_type is sealedbox or secretbox, not 'other'"),
    ],
)
def test_nacl_faults(config: dict[str, str], message: str, compiled: Compiled) -> None:
    told = compiled([{"nacl": {}}], pillar="a: 'NACL[AAAA]'\n", **{"nacl.config": config})
    assert message in error_of(told)


# ------------------------------------------------------------------------------------------------------------ Cobbler


@pytest.fixture
def cobbler() -> Iterator[tuple[str, list[Any]]]:
    """A server of Cobbler's XML-RPC interface: its URL, and the calls."""
    calls: list[Any] = []
    with SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False, allow_none=True) as server:

        def login(user: str, password: str) -> str:
            calls.append((user, password))
            return "token"

        def get_blended_data(profile: object, system: str) -> dict[str, Any]:
            calls.append((profile, system))
            return {"status": "production", "mgmt_classes": ["web", "ssh"]} if system == "web1" else {}

        server.register_function(login)
        server.register_function(get_blended_data)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/cobbler_api", calls
        server.shutdown()
        thread.join(10)


def test_cobbler(cobbler: tuple[str, list[Any]], tops: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    url, calls = cobbler
    settings = {"master_tops": {"cobbler": {}}, "cobbler.url": url.replace("/cobbler_api", "/RPC2")}
    assert tops(**settings) == {"production": ["web", "ssh"]}
    assert tops(**settings, **{"cobbler.user": "me", "cobbler.password": "p"}) == {"production": ["web", "ssh"]}
    assert calls == [(None, "web1"), ("me", "p"), (None, "web1")]
    assert tops(**{**settings, "id": "db1"}) == {}
    assert tops(**{**settings, "cobbler.url": "http://127.0.0.1:1/x"}) == {}
    assert "Cobbler at http://127.0.0.1:1/x" in caplog.text
