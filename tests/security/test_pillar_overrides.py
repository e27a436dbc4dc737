"""Finding 38.7: a minion's own pillar request chooses other hosts' pillar by an override, or has the master decrypt its text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.services.mworker.conftest import FakeMinion, Worker

pytestmark = pytest.mark.redis

SECRET = "of-databases"

#: The pillar tree: each file gives the secret away to whom the override calls a database.
TREE = {
    "top.sls": """
base:
  '*': [plain]
  'I@role:db': [{match: compound}, by_target]
  'role:db': [{match: pillar}, by_pillar]
  'role:d.': [{match: pillar_pcre}, by_pcre]
  'more:role:db': [{match: pillar_exact}, by_exact]
{% if pillar.get('role') == 'db' %}
  'web*': [by_top_template]
{% endif %}
""",
    "plain.sls": """
{% if pillar.get('role') == 'db' %}
by_template: of-databases
{% endif %}
{% if salt['pillar.get']('more:role') == 'db' %}
by_function: of-databases
{% endif %}
sealed: plain
""",
    **{f"{name}.sls": f"{name}: of-databases\n" for name in ("by_target", "by_pillar", "by_pcre", "by_exact")},
    "by_top_template.sls": "by_top_template: of-databases\n",
    "mako.sls": "#!mako|yaml\nx: 1\n",
    "include.sls": "{% if pillar.get('inc') %}include: [{{ pillar['inc'] }}]{% endif %}\n",
}

PLUGIN = """
def ext_pillar(minion_id, pillar):
    found = {"seen": sorted(map(str, pillar))}
    if pillar.get("role") == "db" or __pillar__.get("role") == "db":
        found["by_plugin"] = "of-databases"
    return found
"""

RENDERER = """
def render(text, saltenv="base", sls="", **kwargs):
    value = text.read() if hasattr(text, "read") else text
    return value.replace("cipher:", "decrypted:") if isinstance(value, str) else value
"""


class Case(NamedTuple):
    """What a minion sends as override, and options of the master."""

    override: dict[str, Any]
    options: Mapping[str, Any] = {}


PLUGGED: dict[str, Any] = {"ext_pillar": [{"spy": []}]}
DECRYPTS: dict[str, Any] = {
    "decrypt_pillar": ["sealed", "deep:sealed"],
    "decrypt_pillar_default": "unseal",
    "decrypt_pillar_renderers": ["unseal"],
}

ATTACKS = {
    "a role that the top file and templates ask for": Case({"role": "db"}),
    "a deep value": Case({"more": {"role": "db"}}),
    "both": Case({"role": "db", "more": {"role": "db"}}),
    "a list beside it": Case({"role": "db", "x": [1, 2, {"y": None}]}),
    "an external pillar": Case({"role": "db"}, PLUGGED),
    "an external pillar that comes first": Case({"role": "db"}, {**PLUGGED, "ext_pillar_first": True}),
    "with pillar_cache": Case({"role": "db"}, {"pillar_cache": True}),
    "another way of merging": Case({"role": "db"}, {"pillar_source_merging_strategy": "recurse"}),
    "overwriting": Case({"role": "db"}, {"pillar_source_merging_strategy": "overwrite"}),
    "text that the master decrypts": Case({"sealed": "cipher:text"}, DECRYPTS),
    "deep text that the master decrypts": Case({"deep": {"sealed": "cipher:text"}}, DECRYPTS),
    "text beside a role": Case({"role": "db", "sealed": "cipher:text"}, {**DECRYPTS, **PLUGGED}),
}


@pytest.fixture
def make(new_worker: Callable[..., Worker], tmp_path: Path) -> Callable[..., Worker]:
    def made(**options: Any) -> Worker:
        worker = new_worker(**options)
        for name, text in TREE.items():
            (tmp_path / "pillar" / name).write_text(text)
        for folder, name, text in (("pillar", "spy", PLUGIN), ("renderers", "unseal", RENDERER)):
            (tmp_path / "extmods" / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / "extmods" / folder / f"{name}.py").write_text(text)
        return worker

    return made


def asked(minion: FakeMinion, override: Mapping[str, Any]) -> dict[str, Any]:
    return minion.pillar(pillar_override=dict(override))


def chose_nothing(pillar: Mapping[str, Any], override: Mapping[str, Any]) -> None:
    """The pillar is the minion's own, with the override over it as it was sent."""
    assert SECRET not in json.dumps(pillar)
    assert "decrypted:" not in json.dumps(pillar)
    assert not set(pillar.get("seen", ())) & {"role", "more"}
    assert {name: pillar[name] for name in override} == override


@pytest.mark.parametrize("case", ATTACKS.values(), ids=list(ATTACKS))
def test_a_minions_own_override_chooses_nothing(make: Callable[..., Worker], case: Case) -> None:
    chose_nothing(asked(make(**case.options).minion("web1"), case.override), case.override)


def published(master: Worker, tgt: str = "web1", pillar: Any = None, **fields: Any) -> str:
    """The JID of a job that an operator publishes with an override."""
    wanted = {"fun": "state.apply", "arg": [{"__kwarg__": True, "pillar": pillar or {"role": "db"}}], "tgt": tgt}
    return str(master.control("publish", **{**wanted, **fields})["jid"])


def _to_another(master: Worker, minion: FakeMinion) -> None:
    published(master, "web2")


def _with_another_override(master: Worker, minion: FakeMinion) -> None:
    published(master, pillar={"role": "web"})


def _with_more(master: Worker, minion: FakeMinion) -> None:
    published(master, pillar={"role": "db", "more": 1})


def _as_another_argument(master: Worker, minion: FakeMinion) -> None:
    published(master, fun="test.kwarg", arg=[{"__kwarg__": True, "pillars": {"role": "db"}}])


def _as_a_positional_argument(master: Worker, minion: FakeMinion) -> None:
    published(master, fun="test.arg", arg=[{"pillar": {"role": "db"}}])


def _answered(master: Worker, minion: FakeMinion) -> None:
    jid = published(master)
    ret = {"jid": jid, "fun": "state.apply", "fun_args": [], "return": {}, "retcode": 0, "success": True}
    minion.ask("_return", **ret)


def _by_itself(master: Worker, minion: FakeMinion) -> None:
    """A job that the minion started itself, as a schedule does."""
    arg = [{"__kwarg__": True, "pillar": {"role": "db"}}]
    ret = {"jid": "req", "fun": "state.apply", "fun_args": arg, "arg": arg, "return": {}, "retcode": 0, "success": True}
    minion.ask("_return", **ret)


def _by_peer(master: Worker, minion: FakeMinion) -> None:
    """A job that the minion has the master publish to it."""
    job = {
        "fun": "state.apply",
        "arg": ["pillar={'role': 'db'}"],
        "tgt": "web1",
        "tgt_type": "glob",
        "ret": "",
        "tmo": 5,
    }
    assert minion.ask("minion_pub", **job)["minions"] == ["web1"]


def _in_redis(master: Worker, minion: FakeMinion) -> None:
    """A load that a writer of Redis changed."""
    jid = published(master, pillar={"role": "web"})
    with master.store.jobs._client.calling() as server:
        data = server.get(f"load:{jid}") or b""
        assert b'"web"' in data
        server.set(
            f"load:{jid}", data.replace(b'"role":"web"', b'"role":"db"').replace(b'"role": "web"', b'"role": "db"')
        )


BEFORE = [
    *(_to_another, _with_another_override, _with_more, _as_another_argument, _as_a_positional_argument),
    *(_answered, _by_itself, _by_peer, _in_redis),
]


@pytest.mark.parametrize("before", BEFORE, ids=lambda before: before.__name__.strip("_").replace("_", " "))
def test_another_job_is_no_excuse(make: Callable[..., Worker], before: Callable[[Worker, FakeMinion], None]) -> None:
    master = make(peer={".*": ["state.*"]})
    master.accept("web2")
    minion = master.minion("web1")
    before(master, minion)
    chose_nothing(asked(minion, {"role": "db"}), {"role": "db"})


@pytest.mark.ordinary
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"fun": "state.highstate"},
        {"fun": "pillar.items"},
        {"arg": ["web", {"__kwarg__": True, "pillar": {"role": "db"}, "test": True}], "fun": "state.sls"},
        {"arg": ["pillar={role: db}"]},
        {"fun": ["test.ping", "state.apply"], "arg": [[], [{"__kwarg__": True, "pillar": {"role": "db"}}]]},
    ],
)
def test_a_published_override_counts_as_in_salt(make: Callable[..., Worker], fields: dict[str, Any]) -> None:
    master = make(**PLUGGED)
    minion = master.minion("web1")
    published(master, **fields)
    pillar = asked(minion, {"role": "db"})
    by = {"by_target", "by_pillar", "by_pcre", "by_template", "by_plugin"}
    assert by <= {name for name, value in pillar.items() if value == SECRET}


@pytest.mark.ordinary
def test_the_option_lets_each_override_count_as_in_salt(make: Callable[..., Worker]) -> None:
    pillar = asked(make(pillar_override_from_minions=True).minion("web1"), {"role": "db"})
    assert pillar["by_template"] == SECRET
