"""Attack: values of a minion (its id, grains, returns, events) or of its pillar become a format, an option, a second segment of
a path, a template, or the settings of a program of the master (finding 38.20).
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from saltern.kit.config.master import MasterOptions
from saltern.reactor import job_cache
from saltern.reactor.event_return import EventReturns
from saltern.reactor.sls import runtime_of
from statecore.builtin.ext_pillar import consul_pillar
from statecore.builtin.returners import highstate_return, smtp
from statecore.host.plugin_commands import checked_id
from statecore.model import substitution
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.substitution import MalformedPattern, MissingValue, UnsafeValue
from statecore.runtime.runtime import local_runtime
from statecore.sources.vault import VaultClient
from tests.statecore.conftest import PlainMinion
from tests.statecore.loopback_server import Web, serve

#: What a minion puts into a grain, and what a pillar that repeats it then has: (name, value).
HOSTILE: dict[str, object] = {
    "the parent": "..",
    "the directory itself": ".",
    "another minion's path": "../db1",
    "another path behind a name": "web/../../minions/db1",
    "a deeper path": "web/keys",
    "an absolute path": "/sys/raw",
    "a path of Windows": "..\\db1",
    "nothing": "",
    "a line end": "web\nminions/db1",
    "a carriage return": "web\rminions",
    "a null byte": "web\0",
    "a line separator": "web\u2028minions",
    "a next line": "web\x85minions",
    "a change of direction": "\u202eweb",
    "a vertical tab": "web\x0bx",
    "an escape": "\x1b[2J",
    "a map": {"a": "b"},
    "a list in a list": [["web"]],
}

#: Values that are one name, which the program gets as they are.
NAMES: dict[str, str] = {
    "a field of the pattern": "{minion}",
    "a field of pillar": "{pillar[secret]}",
    "a field of an object": "{minion.__class__.__mro__}",
    "a field by number": "{0}",
    "doubled braces": "{{minion}}",
    "an open brace": "{",
    "a percent field": "%(minion_id)s",
    "a percent sign": "%s",
    "an encoded slash": "..%2fdb1",
    "an encoded parent": "%2e%2e",
    "a query": "web?list=true",
    "a fragment": "web#x",
    "a semicolon": "web;x",
    "a user": "me@other",
    "a wildcard": "*",
    "a template": "{{ 7 * 7 }}",
    "an option": "--config=own",
}


Compiled = Callable[..., dict[str, Any]]


@pytest.fixture
def compiled(tmp_path: Path) -> Compiled:
    """compiled(ext_pillar, grains=..., pillar=..., **opts): the pillar of web1."""

    def compile_pillar(
        wanted: list[Any],
        *,
        grains: Mapping[str, Any] | None = None,
        pillar: Mapping[str, Any] | None = None,
        **opts: Any,
    ) -> dict[str, Any]:
        tree = tmp_path / "pillar"
        tree.mkdir(exist_ok=True)
        if pillar:
            (tree / "top.sls").write_text("base:\n  '*':\n    - a\n")
            (tree / "a.sls").write_text(f"#!json\n{json.dumps(pillar)}")
        settings = {"id": "web1", "pillar_roots": {"base": [str(tree)]}, "cachedir": str(tmp_path / "cache"), **opts}
        runtime = local_runtime({**settings, "ext_pillar": wanted}, grains={"id": "web1", **(grains or {})})
        return dict(runtime.pillar)

    return compile_pillar


@pytest.fixture(scope="module")
def running() -> Iterator[Web]:
    with serve() as web:
        yield web


@pytest.fixture
def web(running: Web) -> Iterator[Web]:
    """A server with an answer for every path, which remembers what it was asked."""

    class Anything(dict[str, Any]):
        def get(self, path: str, default: Any = None) -> Any:
            if "/sys/internal/ui/mounts/" in path:
                return 200, {}, json.dumps({"data": {"path": "secret/", "options": None}}).encode()
            if "/v1/kv/" in path:
                return 200, {}, b"[]"
            return 200, {"Content-Type": "application/json"}, b'{"data": {}}'

    running.asked.clear()
    kept, running.answers = running.answers, Anything()
    yield running
    running.answers = kept


def _vault(web: Web) -> dict[str, Any]:
    return {"vault": {"url": web.url, "auth": {"method": "token", "token": "s.x"}}}


def _paths(web: Web) -> list[str]:
    return [asked.path for asked in web.asked]


# ----------------------------------------------------------------------------------------------------------------- Vault

#: Pattern -> where the value comes from.
_PATTERNS = {
    "path=secret/roles/{pillar[role]}": "pillar",
    "path=secret/roles/{pillar[deep][role]}": "deep",
    "path=secret/roles/{grains[role]}": "grains",
    "path=secret/{pillar[list]}/x": "list",
}


def _given(source: str, value: object) -> dict[str, Any]:
    where: dict[str, Any] = {"secret": "kept"}
    pillar = {"pillar": {"role": value}, "deep": {"deep": {"role": value}}, "list": {"list": [value]}}.get(source, {})
    return {"pillar": {**where, **pillar}, "grains": {"role": value} if source == "grains" else {}}


@pytest.mark.parametrize("pattern", _PATTERNS)
@pytest.mark.parametrize("what", HOSTILE)
def test_a_value_names_no_other_secret(what: str, pattern: str, compiled: Compiled, web: Web) -> None:
    found = compiled([{"vault": pattern}], **_given(_PATTERNS[pattern], HOSTILE[what]), **_vault(web))
    assert _paths(web) == []
    assert "_errors" in found or what == "a list in a list"


@pytest.mark.parametrize("pattern", _PATTERNS)
@pytest.mark.parametrize("what", NAMES)
def test_a_value_is_no_format_of_a_path(what: str, pattern: str, compiled: Compiled, web: Web) -> None:
    compiled([{"vault": pattern}], **_given(_PATTERNS[pattern], NAMES[what]), **_vault(web))
    assert _paths(web)
    for path in _paths(web):
        assert "?" not in path
        before, _, rest = pattern.removeprefix("path=").partition("{")
        after = rest.partition("}")[2]
        inner = path.partition(f"/{before}")[2].removesuffix(after)
        assert unquote(inner) == NAMES[what]
        assert "/" not in inner
    assert not any("kept" in path or "web1" in path for path in _paths(web))


@pytest.mark.parametrize(
    "field", ["{pillar.keys}", "{minion.__class__}", "{minion!r}", "{minion:>9}", "{}", "{minion", "}"]
)
def test_a_pattern_reads_no_attributes(field: str, compiled: Compiled, web: Web) -> None:
    found = compiled([{"vault": f"path=secret/{field}"}], **_vault(web))
    assert "malformed" in str(found["_errors"])
    assert _paths(web) == []


@pytest.mark.parametrize(
    "path", ["secret/../sys/raw", "secret/./x", "../sys/raw", "secret//x", "/sys/raw", "secret/a\nb", "secret/\0"]
)
def test_the_client_of_vault_asks_for_no_other_path(path: str, web: Web, plain: PlainMinion) -> None:
    client = VaultClient.of(_vault(web)["vault"], plain.context().host)
    with pytest.raises(CommandError, match="is no path of a secret"):
        client.read(path)
    with pytest.raises(CommandError, match="is no path of a secret"):
        client.write(path, {})
    assert _paths(web) == []


@pytest.mark.ordinary
def test_the_master_may_name_paths_in_pillar(compiled: Compiled, web: Web) -> None:
    pillar = {"apps": ["web/one", "db"]}
    compiled([{"vault": {"conf": "path=secret/{pillar[apps]}", "slashes": True}}], pillar=pillar, **_vault(web))
    assert {path.removeprefix("/v1/") for path in _paths(web)} >= {"secret/web/one", "secret/db"}


@pytest.mark.parametrize("value", ["../db", "a/../../db", "/db", "a//b", "a/./b", "a/"])
def test_a_path_in_pillar_stays_below(value: str, compiled: Compiled, web: Web) -> None:
    wanted = [{"vault": {"conf": "path=secret/apps/{pillar[app]}", "slashes": True}}]
    assert "_errors" in compiled(wanted, pillar={"app": value}, **_vault(web))
    assert _paths(web) == []


def test_a_grain_is_one_name_also_where_pillar_may_have_several(compiled: Compiled, web: Web) -> None:
    wanted = [{"vault": {"conf": "path=secret/{grains[role]}", "slashes": True}}]
    assert "_errors" in compiled(wanted, grains={"role": "web/keys"}, **_vault(web))
    assert _paths(web) == []


# ---------------------------------------------------------------------------------------------------------------- Consul


@pytest.mark.parametrize("field", ["role", "environment"])
@pytest.mark.parametrize("what", HOSTILE)
def test_a_grain_names_no_other_key_of_consul(what: str, field: str, compiled: Compiled, web: Web) -> None:
    host, port = web.url.removeprefix("http://").split(":")
    settings = {"my": {"consul.host": host, "consul.port": int(port)}}
    found = compiled([{"consul": f"my root=salt/%({field})s"}], grains={field: HOSTILE[what]}, **settings)
    assert _paths(web) == []
    assert "_errors" in found


@pytest.mark.parametrize("what", NAMES)
def test_a_grain_is_no_format_of_a_key(what: str, compiled: Compiled, web: Web) -> None:
    host, port = web.url.removeprefix("http://").split(":")
    settings = {"my": {"consul.host": host, "consul.port": int(port)}}
    compiled([{"consul": "my root=salt/%(role)s"}], grains={"role": NAMES[what]}, **settings)
    (path,) = _paths(web)
    assert unquote(path.partition("?")[0]) == f"/v1/kv/salt/{NAMES[what]}/"


@pytest.mark.parametrize("env", ["{env.__class__}", "{0}", "{env}", "{env[0]}"])
def test_the_pillarenv_is_no_format_of_a_data_center(env: str) -> None:
    assert consul_pillar._datacenter({"(?P<env>.*)": "dc-{env}"}, env) == f"dc-{env}"
    with pytest.raises(MalformedPattern):
        consul_pillar._datacenter({"(?P<env>.*)": "dc-{env.__class__}"}, env)


# ------------------------------------------------------------------------------------------------------------ web servers


@pytest.mark.parametrize("what", [name for name, value in HOSTILE.items() if value and isinstance(value, str)])
@pytest.mark.parametrize("name", ["http_json", "http_yaml"])
def test_a_grain_leads_to_no_other_path_of_a_server(what: str, name: str, compiled: Compiled, web: Web) -> None:
    wanted = {"url": f"{web.url}/hosts/<role>/pillar", "with_grains": True}
    found = compiled([{name: wanted}], grains={"role": HOSTILE[what]})
    assert _paths(web) == []
    assert "_errors" in found


@pytest.mark.parametrize("what", NAMES)
def test_a_grain_is_one_part_of_an_address(what: str, compiled: Compiled, web: Web) -> None:
    wanted = {"url": f"{web.url}/hosts/<role>?other=<role>", "with_grains": True}
    compiled([{"http_json": wanted}], grains={"role": NAMES[what]})
    (asked,) = _paths(web)
    path, _, query = asked.partition("?")
    assert (unquote(path), unquote(query)) == (f"/hosts/{NAMES[what]}", f"other={NAMES[what]}")
    assert path.count("/") == 2
    assert query.count("=") + query.count("&") == 1


@pytest.mark.parametrize(
    "grain",
    [
        "127.0.0.1:PORT/",
        "127.0.0.1:PORT#",
        "127.0.0.1:PORT?",
        "me@127.0.0.1:PORT/",
        "127.0.0.1:PORT\\",
        "..",
        "",
        "-x",
        "a b",
    ],
)
def test_a_grain_chooses_no_other_server(grain: str, compiled: Compiled, web: Web) -> None:
    port = web.url.rpartition(":")[2]
    wanted = {"url": "http://<site>.example.invalid/pillar", "with_grains": True}
    found = compiled([{"http_json": wanted}], grains={"site": grain.replace("PORT", port)})
    assert "must be a part of a host's name" in str(found["_errors"]) or "no grain" in str(found["_errors"])
    assert _paths(web) == []


# --------------------------------------------------------------------------------------------------------------- programs

#: Grains of the minion -> what hiera must not get.
_GRAINS: dict[str, dict[str, str]] = {
    "an option with a value": {"--config": "/tmp/own.yaml"},
    "a short option": {"-c": "/tmp/own.yaml"},
    "an option that is a whole": {"--debug": ""},
    "an option with an equals sign": {"--config=/tmp/own.yaml #": "x"},
    "the end of options": {"--": "x"},
    "a name with an equals sign": {"role=admin": "x"},
    "a name with a space": {"role admin": "x"},
    "a name with a line end": {"a\n--config": "/tmp/own.yaml"},
    "an empty name": {"": "x"},
    "an interpolation": {"role": "%{::secret}"},
    "an interpolation of a lookup": {"role": "%{hiera('secret')}"},
    "the parent": {"role": ".."},
    "another file of the hierarchy": {"role": "../nodes/db1"},
    "another file behind a name": {"role": "x/../../nodes/db1"},
    "a line end in a value": {"role": "web\nadmin"},
    "a null byte in a value": {"role": "web\0admin"},
}


@pytest.fixture
def hiera(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "hiera"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s\\0" "$@" > "$0.words"\necho "{}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return program


@pytest.mark.parametrize("what", _GRAINS)
def test_a_grain_is_no_option_of_hiera(what: str, compiled: Compiled, hiera: Path) -> None:
    found = compiled([{"hiera": "/etc/hiera.yaml"}], grains={"os": "Debian", **_GRAINS[what]})
    assert "_errors" not in found
    words = hiera.with_name("hiera.words").read_text().split("\0")[:-1]
    assert words == ["-c", "/etc/hiera.yaml", "--", "id=web1", "os=Debian"]


#: Ids that a command must not get. Minion ids have no slash, but any of these.
_IDS = (
    *(
        "-x",
        "--help",
        "+x",
        "~root",
        "~",
        "a:~root",
        "..",
        ".",
        "a b",
        "$(id)",
        "`id`",
        "a;id",
        "a|id",
        "a&id",
        "a>x",
        "<x",
    ),
    *("a\nb", "'", '"', "*", "?", "[a]", "{a,b}", "!x", "#x", "a\\b", "a$b", "%s", "(a)", "a=b", "\u202ea", ""),
)


@pytest.mark.parametrize("minion_id", _IDS)
def test_an_id_is_no_option_and_no_word_of_a_shell(minion_id: str) -> None:
    with pytest.raises(CommandError):
        checked_id(minion_id)


@pytest.mark.ordinary
@pytest.mark.parametrize("minion_id", ["web1", "web-1.example.com", "a:b", "me@host", "a+b", "a~b", "grün"])
def test_ids_of_minions_are_given_to_commands(minion_id: str) -> None:
    assert checked_id(minion_id) == minion_id


# ------------------------------------------------------------------------------------------------------------------ stack


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    top = tmp_path / "stack"
    (top / "minions").mkdir(parents=True)
    (top / "roles").mkdir()
    (tmp_path / "outside").mkdir()
    (top / "minions/db1.yml").write_text("password: of-db1\n")
    (top / "minions/web1.yml").write_text("own: true\n")
    (top / "roles/web.yml").write_text("web: true\n")
    (tmp_path / "outside/secret.yml").write_text("password: of-the-master\n")
    return top


#: How the list of files prints the grain.
_LISTS = {
    "a grain": "roles/{{ __grains__['role'] }}.yml\nminions/{{ minion_id }}.yml\n",
    "a grain by its function": "roles/{{ __salt__['grains.get']('role') }}.yml\n",
    "a grain in a longer text": "{{ 'roles/' ~ __grains__.role ~ '.yml' }}\n",
    "a grain of a list": "{% for one in __grains__['many'] %}roles/{{ one }}.yml\n{% endfor %}",
    "a name of a grain": "{% for one in __grains__['map'] %}roles/{{ one }}.yml\n{% endfor %}",
    "a grain in capitals": "roles/{{ __grains__['role'] | trim }}.yml\n",
}

_ROLES: dict[str, str] = {
    "another line": "x\nminions/db1",
    "another line behind a carriage return": "x\r\nminions/db1",
    "another line by a form feed": "x\x0cminions/db1",
    "another line by a next line": "x.yml\x85minions/db1",
    "another line by a line separator": "x.yml\u2028minions/db1",
    "another line by a file separator": "x.yml\x1cminions/db1",
    "another minion's file": "../minions/db1",
    "another minion's file behind a name": "web/../../minions/db1",
    "all files": "../minions/*",
    "a wildcard for the directory": "../*/db1",
    "all directories": "../**/db1",
    "a question mark": "../minions/db?",
    "a class of characters": "../minions/[d]b1",
    "an absolute path on its own line": "x\nOUT/secret",
    "a path outside": "../../outside/secret",
    "a list of YAML": "x.yml\n- minions/db1",
}


@pytest.mark.parametrize("printed", _LISTS)
@pytest.mark.parametrize("what", _ROLES)
def test_a_grain_chooses_no_file_of_others(
    what: str, printed: str, stack: Path, compiled: Compiled, tmp_path: Path
) -> None:
    (stack / "stack.cfg").write_text(_LISTS[printed])
    role = _ROLES[what].replace("OUT", str(tmp_path / "outside"))
    found = compiled([{"stack": str(stack / "stack.cfg")}], grains={"role": role, "many": [role], "map": {role: 1}})
    assert "password" not in found


@pytest.mark.parametrize("role", ["*", "we?", "[w]eb", "we*"])
def test_a_grain_is_no_wildcard(role: str, stack: Path, compiled: Compiled) -> None:
    (stack / "stack.cfg").write_text("minions/{{ __grains__['role'] }}.yml\nroles/{{ __grains__['role'] }}.yml\n")
    assert compiled([{"stack": str(stack / "stack.cfg")}], grains={"role": role}) == {}


@pytest.mark.parametrize("env", ["../outside", "..", "x/../../outside", "a\nb", "/etc"])
def test_the_pillarenv_leads_to_no_other_list(env: str, stack: Path, compiled: Compiled, tmp_path: Path) -> None:
    (tmp_path / "outside/stack.cfg").write_text("secret.yml\n")
    wanted = [{"stack": {"opts:id": {"web1": f"{tmp_path}/envs/__env__/stack.cfg"}}}]
    (tmp_path / "envs").mkdir()
    found = compiled(wanted, pillarenv=env)
    assert "password" not in found
    assert "pillarenv" in str(found["_errors"])


@pytest.mark.ordinary
@pytest.mark.parametrize(
    "text",
    [
        "roles/{{ __grains__['role'] }}.yml\nminions/{{ minion_id }}.yml\n",
        "- roles/{{ __grains__['role'] }}.yml\n- minions/*1.yml\n",
        "TOP/roles/{{ __grains__['role'] }}.yml\n{% set base = 'TOP/minions' %}{{ base }}/{{ minion_id }}.yml\n",
        "../stack/roles/{{ __grains__['role'] }}.yml\n../stack/minions/web*.yml\n",
        "{{ __opts__['pillar_roots']['base'][0] }}/../stack/roles/web.yml\nminions/web1.yml\n",
        "{% if __grains__['note'] == 'two\\nlines' %}roles/web.yml{% endif %}\nminions/web1.yml\n",
    ],
)
def test_lists_of_files_are_read_as_before(text: str, stack: Path, compiled: Compiled) -> None:
    (stack / "minions/db1.yml").unlink()
    (stack / "stack.cfg").write_text(text.replace("TOP", str(stack)))
    grains = {"role": "web", "note": "two\nlines"}
    found = compiled([{"stack": str(stack / "stack.cfg")}], grains=grains)
    if "__opts__" in text:
        assert "does not name" in str(found["_errors"])
        return
    assert found == {"own": True, "web": True}


# -------------------------------------------------------------------------------------------------------------- saltclass


@pytest.mark.parametrize(
    "role", ["../../outside/secret", "/OUT/secret", "OUT/secret", "../nodes/db1", "a/../../nodes/db1", "..", "a\\nb"]
)
def test_a_grain_chooses_no_class_outside(role: str, tmp_path: Path, compiled: Compiled) -> None:
    top = tmp_path / "saltclass"
    for name in ("nodes", "classes"):
        (top / name).mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.yml").write_text("pillars: {password: of-the-master}\n")
    (top / "nodes/db1.yml").write_text("pillars: {password: of-db1}\n")
    (top / "nodes/web1.yml").write_text("classes: [\"{{ __grains__['role'] }}\"]\n")
    grains = {"role": role.replace("OUT", str(tmp_path / "outside"))}
    found = compiled([{"saltclass": [{"path": str(top)}]}], grains=grains)
    assert "password" not in found
    assert "is no name of a class" in str(found["_errors"])


# -------------------------------------------------------------------------------------------------------------- returners

RET: dict[str, Any] = {
    "id": "web1",
    "jid": "20260101000000000000",
    "fun": "test.ping",
    "fun_args": [],
    "return": True,
    "retcode": 0,
    "success": True,
}


@pytest.fixture
def mails(monkeypatch: pytest.MonkeyPatch) -> list[EmailMessage]:
    """Return the list of mails that the returner sends."""
    sent: list[EmailMessage] = []
    monkeypatch.setattr(smtp, "send", lambda server, message, sender, receivers: sent.append(message))
    return sent


def called(plain: PlainMinion, name: str, *args: Any) -> Any:
    context = plain.context()
    served, function = plain.loader.function("returners", name, context)
    return served.bound(function, context)(*args)


_TEMPLATES = (
    "{{ 7 * 7 }}",
    "{% set x = 49 %}{{ x }}",
    "{{ salt['cmd.run']('echo 49') }}",
    "{{ opts['id'] ~ 49 }}",
    "{{ grains | length }}",
    "{% include '/etc/passwd' %}",
    "{% raw %}",
    "{{",
    "{# hidden #}",
)


@pytest.mark.parametrize("field", ["fun", "fun_args", "return", "id"])
@pytest.mark.parametrize("text", _TEMPLATES)
def test_a_return_is_no_template_of_a_mail(text: str, field: str, mails: list[EmailMessage], tmp_path: Path) -> None:
    settings = {name: f"{name}@example.com" for name in ("from", "to")}
    settings |= {"host": "127.0.0.1", "fields": "fun,fun_args,return,id", "subject": "{{ jid }}:"}
    context = local_runtime({"id": "web1", "cachedir": str(tmp_path), "smtp": settings}, grains={"id": "web1"}).context
    ret = {**RET, field: [text] if field == "fun_args" else text}
    smtp.returner(context, ret)
    smtp.event_return(context, [{"tag": "x", "data": ret}])
    assert len(mails) == 2
    for mail in mails:
        assert str(mail["Subject"]).startswith("20260101000000000000: ")
        assert text in str(mail["Subject"]).replace('\\"', '"') or repr(text) in str(mail["Subject"])


#: Settings that a return or an event must not choose.
_CHOSEN: dict[str, dict[str, Any]] = {
    "a file": {"ret_kwargs": {"filename": "FILE"}},
    "a database": {"ret_kwargs": {"database": "FILE"}},
    "a server": {"ret_kwargs": {"host": "127.0.0.1", "port": 1}},
    "a receiver of mails": {"ret_kwargs": {"to": "me@evil.example", "template": "/etc/shadow"}},
    "a web server": {"ret_kwargs": {"webhook": "http://127.0.0.1:1/"}},
    "a place of reports": {"ret_kwargs": {"file_output": "FILE"}},
    "other settings": {"ret_config": "other"},
    "both": {"ret_config": "other", "ret_kwargs": {"filename": "FILE"}},
}

_RECORDER = """
import dataclasses
import json
def returner(ret):
    with open({place!r}, "a") as file:
        file.write(json.dumps(ret) + "\\n")
def event_return(events):
    for event in events:
        returner(event["data"])
"""


@pytest.mark.parametrize("path", ["event_return", "master_job_cache"])
@pytest.mark.parametrize("what", _CHOSEN)
def test_a_minion_chooses_no_settings_of_the_masters_returners(what: str, path: str, tmp_path: Path) -> None:
    directory, place = tmp_path / "returners", tmp_path / "seen"
    directory.mkdir()
    (directory / "own.py").write_text(_RECORDER.format(place=str(place)))
    chosen = json.loads(json.dumps(_CHOSEN[what]).replace("FILE", str(tmp_path / "forged")))
    data = {**RET, **chosen}
    options = MasterOptions(
        returner_dirs=[str(directory)], extension_modules=str(tmp_path / "none"), event_return=["own", "rawfile_json"]
    )
    if path == "event_return":
        returns = EventReturns(options, runtime_of(options))
        returns.feed("salt/job/20260101000000000000/ret/web1", data)
        returns.flush()
        seen = [json.loads(line) for line in place.read_text().splitlines()]
    else:
        name, arguments = job_cache._CALLS["job_ret"]
        assert name == "returner"
        seen = [dict(each) for each in arguments(dict(data)) if isinstance(each, dict)]
    assert seen == [RET]
    assert not (tmp_path / "forged").exists()


@pytest.mark.parametrize("grain", ["../x", "..", "a/b", "/etc/x", "a\nb", "a\0b"])
def test_a_grain_leads_no_report_elsewhere(grain: str, plain: PlainMinion) -> None:
    states = {"a_|-b_|-c_|-d": {"result": True, "changes": {"x": 1}, "__run_num__": 0}}
    plain.opts |= {"highstate.file_output": "/reports/{role}.txt"}
    context: Context = dataclasses.replace(plain.context(), grains={"role": grain})
    with pytest.raises(UnsafeValue):
        highstate_return.returner(context, {**RET, "fun": "state.apply", "return": states})


@pytest.mark.parametrize("minion_id", ["../x", "..", "/tmp/x", "a/b", ""])
def test_an_id_leads_no_return_elsewhere(minion_id: str, plain: PlainMinion, tmp_path: Path) -> None:
    plain.opts["cachedir"] = str(tmp_path / "cache")
    with pytest.raises(UnsafeValue):
        called(plain, "local_cache.returner", {**RET, "id": minion_id})
    assert not list(tmp_path.rglob("return.p"))


# -------------------------------------------------------------------------------------------------------------------- SDB


def _with_rest(web: Web, tmp_path: Path) -> Context:
    profile = {"driver": "rest", "user": {"url": f"{web.url}/users/{{{{ user }}}}/keys"}}
    return local_runtime({"id": "web1", "cachedir": str(tmp_path), "api": profile}, grains={"id": "web1"}).context


@pytest.mark.parametrize(
    "value", ["..", ".", "../admin", "a/../admin", "%2e%2e", "..%2fadmin", "a%0ab", "a\nb", "a%00"]
)
def test_a_variable_of_an_sdb_uri_leads_to_no_other_path(value: str, web: Web, tmp_path: Path) -> None:
    context = _with_rest(web, tmp_path)
    with pytest.raises(CommandError):
        context.call("sdb.get", f"sdb://api/user?user={value}")
    assert _paths(web) == []


@pytest.mark.parametrize(
    "value", ["a/b", "a?b=c", "a#b", "a: b", "{{ 7*7 }}", "a%20b", "ü", "- a", "a,b", "[a]", "http://evil.example/"]
)
def test_a_variable_of_an_sdb_uri_is_one_part(value: str, web: Web, tmp_path: Path) -> None:
    _with_rest(web, tmp_path).call("sdb.get", f"sdb://api/user?user={value}")
    (path,) = _paths(web)
    assert path.count("/") == 3
    assert unquote(path) == f"/users/{unquote(value)}/keys"


# -------------------------------------------------------------------------------------------------- the substitution alone


@pytest.mark.parametrize("what", HOSTILE)
def test_a_segment_is_one_name(what: str) -> None:
    with pytest.raises(UnsafeValue):
        substitution.segment(HOSTILE[what], "it")


@pytest.mark.parametrize("what", NAMES)
def test_a_filled_text_is_not_read_again(what: str) -> None:
    for fill, pattern in ((substitution.filled, "a{b}c{b}{{d}}"), (substitution.percent_filled, "a%(b)sc%(b)s{d}")):
        assert fill(pattern, lambda _: NAMES[what]) == f"a{NAMES[what]}c{NAMES[what]}{{d}}"


@pytest.mark.parametrize("field", ["a.b", "a!r", "a:x", "", "a[b", "a]b", "a[b]c", "a[[b]]", "a[{b}]"])
def test_a_field_has_one_form(field: str) -> None:
    with pytest.raises((MalformedPattern, MissingValue)):
        substitution.filled(f"{{{field}}}", lambda name: str(substitution.value_of(name, {"a": {"b": "c"}})))


@pytest.mark.parametrize("field", ["a[__class__]", "a[keys]", "a[9]", "a[-1]", "b", "a[list][x]", "a[text][0]"])
def test_a_field_reads_no_attribute(field: str) -> None:
    with pytest.raises(MissingValue):
        substitution.value_of(field, {"a": {"list": [1], "text": "text"}})


@pytest.mark.ordinary
def test_fields_read_maps_and_lists() -> None:
    values = {"minion": "web1", "pillar": {"a": {"b": ["c", "d"]}, 5: "five"}}
    pattern = "{minion}/{pillar[a][b][1]}/{{x}}/{pillar[5]}"
    assert substitution.fields_of(pattern) == ["minion", "pillar[a][b][1]", "pillar[5]"]
    assert substitution.filled(pattern, lambda field: str(substitution.value_of(field, values))) == "web1/d/{x}/five"


# -------------------------------------------------------------------------------------------------- the class, as a check

#: Rooms whose code sees minions' data and builds paths, addresses, commands and queries from it.
_ROOMS = (
    *(f"libs/statecore/builtin/{room}" for room in ("ext_pillar", "engines", "returners", "sdb", "tops", "beacons")),
    *("libs/statecore/sources", "services/saltern/mworker/runners", "services/saltern/reactor"),
)

_FORMAT = re.compile(r"\.format\(|\.format_map\(|string\.Formatter|string\.Template|shell=True|os\.system|os\.popen")


def test_no_value_is_formatted_by_str_format() -> None:
    root = Path(__file__).parents[2]
    found = [
        f"{path.relative_to(root)}:{number}"
        for room in _ROOMS
        for path in sorted((root / room).rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").split("\n"), 1)
        if _FORMAT.search(line)
    ]
    assert found == []
