"""Execution functions that formulas call while rendering, compared with real Salt: slsutil, defaults, match, grains,
config.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from statecore.runtime.runtime import Runtime

pytestmark = pytest.mark.oracle

FILES = {
    "core/defaults.yaml": "users:\n  root: 0\n  admin: {shell: /bin/sh}\nlist: [1, 2]\n",
    "json/defaults.json": '{"a": {"b": 1}}',
    "empty/defaults.yaml": "",
    "app/map.jinja": (
        "#!jinja|yaml\nos: {{ grains.os }}\nname: {{ name | default('none') }}\nwhere: {{ [sls, tplfile, tpldir, tpldot] }}\n"
    ),
    "app/map.py": "#!py\ndef run():\n    return {'os': __grains__['os'], 'sls': __sls__, 'env': __env__}\n",
    "app/init.sls": "x: test.nop\n",
    "app/files/a/one.conf": "{{ grains.os }}\n",
    "app/bare.yaml": "a: {{ 1 }}\n",
    "app/data.json": '#!json\n{"a": [1, null]}\n',
    "app/nothing.sls": "\n\n",
}

CALLS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("slsutil.update", [{"a": {"b": 1}, "l": [1]}, {"a": {"c": 2}, "l": [2]}], {}),
    ("slsutil.update", [{"a": {"b": 1}, "l": [1, 2]}, {"a": {"c": 2}, "l": [2, 3, 3]}], {"merge_lists": True}),
    ("slsutil.update", [{"a": {"b": 1}}, {"a": {"c": 2}}], {"recursive_update": False}),
    ("slsutil.update", [[1], {"a": 1}], {}),
    ("slsutil.merge", [{"a": {"b": 1}, "l": [1]}, {"a": {"c": 2}, "l": [2]}], {}),
    *(
        (
            "slsutil.merge",
            [{"a": {"b": 1}, "l": [1], "x": 1}, {"a": {"c": 2}, "l": [2], "y": 2}],
            {"strategy": strategy},
        )
        for strategy in ("smart", "recurse", "overwrite", "aggregate", "list", "none", "nothing")
    ),
    ("slsutil.merge", [{"l": [1, 2]}, {"l": [2, 3]}], {"merge_lists": True}),
    ("slsutil.merge", [{"l": [1, 2]}, {"l": [2, 3]}], {"renderer": "jinja|yamlex"}),
    ("slsutil.merge_all", [[{"a": 1}, {"a": {"b": 1}}, {"a": {"c": 2}, "d": 3}]], {}),
    ("slsutil.merge_all", [[]], {}),
    ("slsutil.renderer", ["salt://app/map.jinja"], {}),
    ("slsutil.renderer", ["salt://app/map.jinja"], {"name": "given"}),
    ("slsutil.renderer", ["salt://app/map.jinja"], {"context": {"name": "in context"}}),
    ("slsutil.renderer", ["salt://app/map.py"], {}),
    ("slsutil.renderer", ["salt://app/bare.yaml"], {}),
    ("slsutil.renderer", ["salt://app/bare.yaml"], {"default_renderer": "jinja"}),
    ("slsutil.renderer", ["salt://app/data.json"], {}),
    ("slsutil.renderer", ["salt://app/nothing.sls"], {}),
    ("slsutil.renderer", [], {"string": "a: {{ grains.os }}{{ more }}", "more": 1}),
    ("slsutil.renderer", [], {"string": "{{ 1 + 1 }}", "default_renderer": "jinja"}),
    ("slsutil.renderer", [], {"string": '{"a": 1}', "default_renderer": "json"}),
    ("slsutil.renderer", [], {}),
    ("slsutil.renderer", ["salt://app/map.jinja"], {"string": "x"}),
    ("slsutil.serialize", ["json", {"b": [1, None], "a": "é"}], {}),
    ("slsutil.serialize", ["json", {"b": 1}], {"indent": 2}),
    ("slsutil.serialize", ["yaml", {"b": [1, {"c": None}], "a": {"x": "y"}}], {}),
    ("slsutil.serialize", ["yaml", {"b": [1, {"c": None}], "a": "0644"}], {"default_flow_style": False}),
    ("slsutil.serialize", ["yaml", "text"], {}),
    ("slsutil.serialize", ["yamlex", {"b": [1, {"c": None}], "a": {"x": "y"}}], {}),
    ("slsutil.serialize", ["yamlex", {"b": [1]}], {"default_flow_style": False}),
    ("slsutil.deserialize", ["yamlex", "a: !aggregate 1\na: !aggregate 2\nb: x\n"], {}),
    ("slsutil.serialize", ["configparser", {"s": {"k": "v", "n": 1}}], {}),
    ("slsutil.serialize", ["nothing", {}], {}),
    ("slsutil.deserialize", ["json", '{"a": [1, true]}'], {}),
    ("slsutil.deserialize", ["json", "{"], {}),
    ("slsutil.deserialize", ["yaml", "a: [1, yes, 0644, 1.5]"], {}),
    ("slsutil.deserialize", ["yaml", "a: {"], {}),
    ("slsutil.deserialize", ["configparser", "[s]\nk = v\n"], {}),
    ("slsutil.deserialize", ["nothing", ""], {}),
    ("slsutil.banner", [], {}),
    ("slsutil.banner", [], {"commentchar": " *", "borderchar": "*", "blockstart": "/**", "blockend": " */"}),
    ("slsutil.banner", [], {"title": "A title", "text": "one two three", "width": 30, "newline": True}),
    ("slsutil.banner", [], {"commentchar": "//", "width": 40, "title": "long " * 12}),
    ("slsutil.banner", [], {"width": 4}),
    *(("slsutil.boolstr", [value], {}) for value in (True, False, 1, 0, "yes", "no", "", None, [], [0])),
    ("slsutil.boolstr", [True, "on", "off"], {}),
    ("slsutil.file_exists", ["app/map.jinja"], {}),
    ("slsutil.file_exists", ["app"], {}),
    ("slsutil.file_exists", ["app/none"], {}),
    ("slsutil.dir_exists", ["app/files"], {}),
    ("slsutil.dir_exists", ["app/map.jinja"], {}),
    ("slsutil.path_exists", ["app/files/a"], {}),
    ("slsutil.path_exists", ["nothing"], {}),
    ("slsutil.findup", ["app/files/a", "map.jinja"], {}),
    ("slsutil.findup", ["app/files/a/one.conf", ["none", "bare.yaml"]], {}),
    ("slsutil.findup", ["app/files", "core"], {}),
    ("slsutil.findup", ["", "core"], {}),
    ("slsutil.findup", ["app", "none"], {}),
    ("slsutil.findup", ["nowhere", "map.jinja"], {}),
    ("slsutil.findup", ["app", {"a": 1}], {}),
    ("defaults.get", ["core"], {}),
    ("defaults.get", ["core:users:root"], {}),
    ("defaults.get", ["core:users:admin:shell"], {}),
    ("defaults.get", ["core:list:1"], {}),
    ("defaults.get", ["core:nothing"], {}),
    ("defaults.get", ["core:nothing", "else"], {}),
    ("defaults.get", ["json:a:b"], {}),
    ("defaults.get", ["empty"], {}),
    ("defaults.get", ["nowhere"], {}),
    ("defaults.get", ["nowhere:a", 5], {}),
    ("defaults.merge", [{"a": {"b": 1}, "l": [1]}, {"a": {"c": 2}, "l": [2]}], {}),
    ("defaults.merge", [{"l": [1]}, {"l": [1, 2]}], {"merge_lists": True}),
    ("defaults.merge", [{"a": 1}, None], {}),
    ("defaults.merge", [None, {"a": 1}], {}),
    ("defaults.merge", [None, {"a": 1}], {"in_place": False}),
    ("defaults.merge", [None, None], {"in_place": False}),
    ("defaults.merge", [{"a": 1}, None], {"convert_none": False}),
    ("defaults.merge", [{"a": 1}, [1]], {}),
    ("defaults.deepcopy", [{"a": [1]}], {}),
    ("defaults.update", [{"h1": {"i": 1, "l": [1]}, "h2": {"e": False}}, {"e": True, "l": [2]}], {}),
    ("defaults.update", [{"h1": {"l": [1]}}, {"l": [2]}], {"merge_lists": False}),
    ("defaults.update", [{"h1": None}, {"l": [2]}], {}),
    ("defaults.update", [None, {"l": [2]}], {}),
    ("defaults.update", [None, {"l": [2]}], {"in_place": False}),
    ("defaults.update", [{"h1": {"a": 1}}, None], {}),
    ("match.glob", ["web*"], {}),
    ("match.glob", ["db*"], {}),
    ("match.glob", ["db*"], {"minion_id": "db1"}),
    ("match.pcre", ["w.b[0-9]"], {}),
    ("match.list", ["db1,web1"], {}),
    ("match.list", [["web1"]], {}),
    ("match.grain", ["os:Deb*"], {}),
    ("match.grain", ["n:k:v"], {}),
    ("match.grain", ["n|k|v"], {"delimiter": "|"}),
    ("match.grain_pcre", ["os:^D.*n$"], {}),
    ("match.pillar", ["name:val*"], {}),
    ("match.pillar", ["users:ann:uid:1"], {}),
    ("match.pillar_pcre", ["name:^va"], {}),
    ("match.compound", ["G@os:Debian and not E@db.*"], {}),
    ("match.compound", ["I@name:value or db1"], {}),
    ("match.compound", ["L@web1,web2 and ( web* or db* )"], {}),
    ("match.filter_by", [{"db*": 1, "web*": {"a": {"b": 1}}}], {}),
    ("match.filter_by", [{"db*": 1, "web*": {"a": {"b": 1}}}], {"merge": {"a": {"c": 2}}}),
    ("match.filter_by", [{"db*": 1, "default": 2}], {}),
    ("match.filter_by", [{"db*": 1, "other": 2}], {"default": "other"}),
    ("match.filter_by", [{"db*": 1}], {}),
    ("match.filter_by", [{"db*": 1, "web*": 2}], {"minion_id": "db7"}),
    ("match.search_by", [{"a": ["web*"], "b": ["db*"], "c": ["G@os:Debian", "x"]}], {}),
    ("match.search_by", [{"b": ["db*"]}], {}),
    ("match.ifelse", ["db*", 1, "web*", 2, 3], {}),
    ("match.ifelse", ["db*", 1, 3], {}),
    ("match.ifelse", [False, 1, True, 2, 3], {}),
    ("match.ifelse", [5], {}),
    ("match.ifelse", ["db*", 1], {}),
    ("match.ifelse", ["db*", 1, 3], {"minion_id": "db1"}),
    ("grains.filter_by", [{"Debian": {"a": 1}, "default": {"a": 2}}], {}),
    ("grains.filter_by", [{"RedHat": {"a": 1}, "default": {"a": 2}}], {}),
    ("grains.filter_by", [{"RedHat": {"a": 1}}], {}),
    ("grains.filter_by", [{"Deb*": {"a": {"b": 1}}}], {"merge": {"a": {"c": 2}}}),
    ("grains.filter_by", [{"Debian": {"a": {"b": 1}}, "base": {"a": {"x": 0}, "y": 1}}], {"base": "base"}),
    ("grains.filter_by", [{"web": 1, "db": 2}], {"grain": "roles"}),
    ("grains.filter_by", [{"v": 1}], {"grain": "n:k"}),
    ("grains.filter_by", [{"Debian": None, "default": 2}], {}),
    ("grains.filter_by", [{"x": 1}], {"merge": {"a": 1}}),
    ("config.get", ["name"], {}),
    ("config.get", ["users:ann"], {}),
    ("config.get", ["os"], {}),
    ("config.get", ["nothing"], {}),
    ("config.get", ["nothing", "else"], {}),
    ("config.get", ["users|ann|uid"], {"delimiter": "|"}),
    ("config.get", ["users"], {"omit_pillar": True}),
    ("config.get", ["n"], {"merge": "recurse"}),
    ("config.get", ["os"], {"omit_grains": True}),
    ("pillar.get", ["users:ann:uid"], {}),
    ("pillar.get", ["nothing", {"d": 1}], {}),
    ("pillar.get", ["users", {"bob": 1, "ann": {"gid": 2}}], {"merge": True}),
]


@pytest.fixture(scope="module")
def salts(ask_salt: Any) -> list[Any]:
    told: list[Any] = ask_salt(FILES, [["call", *call] for call in CALLS])
    return told


@pytest.fixture(scope="module")
def runtime(own_runtime: Any) -> Runtime:
    made: Runtime = own_runtime(FILES)
    return made


_IDS = [f"{function}{json.dumps(args)[:60]}{json.dumps(kwargs)[:60]}" for function, args, kwargs in CALLS]


@pytest.mark.parametrize("number", range(len(CALLS)), ids=_IDS)
def test_as_salt(number: int, salts: list[Any], runtime: Runtime) -> None:
    function, args, kwargs = json.loads(json.dumps(CALLS[number]))
    try:
        own = ("value", json.loads(json.dumps(runtime.context.call(function, *args, **kwargs))))
    except Exception as error:  # noqa: BLE001 - Salt's functions raise whatever they like
        own = ("error", str(error))
    kind, value = salts[number]
    if kind == "error":
        assert own[0] == "error", f"Salt refuses it: {value}; ours: {own[1]}"
    else:
        assert own == (kind, value)


def test_updates_in_place(runtime: Runtime) -> None:
    """Templates can change a map with ``do``."""
    text = (
        "{% set a = {'x': {'y': 1}} %}{% do salt['slsutil.update'](a, {'x': {'z': 2}}) %}"
        "{% set b = {'p': 1} %}{% do salt['defaults.merge'](b, {'q': 2}) %}"
        "{% set c = {'h': {'i': 1}} %}{% do salt['defaults.update'](c, {'e': 1}) %}"
        "a: {{ a }}\nb: {{ b }}\nc: {{ c }}\n"
    )
    assert runtime.context.call("slsutil.renderer", string=text) == {
        "a": {"x": {"y": 1, "z": 2}},
        "b": {"p": 1, "q": 2},
        "c": {"h": {"e": 1, "i": 1}},
    }
