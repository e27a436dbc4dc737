"""Jinja as used by formulas, compared with real Salt: imports, data blocks, scopes, path variables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from statecore.model.errors import SlsError
from statecore.runtime.runtime import Runtime

pytestmark = pytest.mark.oracle

_NAMES = "[sls, saltenv, slspath, slsdotpath, slscolonpath, sls_path, tplfile, tpldir, tpldot]"
_WHERE = f"where: {{{{ {_NAMES} | json }}}}\npath: {{{{ tplpath.split('/base/')[1] }}}}\n"

#: Files that the cases share.
LIBRARY: dict[str, str] = {
    "plain.sls": _WHERE,
    "web/init.sls": _WHERE,
    "web/conf.sls": _WHERE,
    "web/deep/init.sls": _WHERE,
    "web/deep/er.sls": _WHERE,
    "lib/macros.jinja": (
        "{% macro echo(x, y='d') %}{{ x }}-{{ y }}{% endmacro %}"
        "{% macro args() %}{{ varargs | join(',') }};{{ kwargs | dictsort | join(',') }}{% endmacro %}"
        "{% macro block() %}<{{ caller() }}>{% endmacro %}"
        "{% macro block_of(x) %}{% for i in x %}{{ caller(i) }}{% endfor %}{% endmacro %}"
        "{% macro where() %}" + "{{ tplfile }} {{ tpldir }} {{ sls }}" + "{% endmacro %}"
        "{% macro see() %}{{ outer | default('nothing') }}{% endmacro %}"
        "{% set value = 'set in ' ~ tplfile %}{% set _hidden = 1 %}"
    ),
    "lib/data.yaml": "os: {{ grains.os }}\nlist: [1, {{ 1 + 1 }}]\nouter: {{ outer | default('nothing') }}\n",
    "lib/data.json": '{"os": "{{ grains.os }}", "n": [1, null]}',
    "lib/text.txt": "text {{ grains.os }}\n",
    "lib/empty.yaml": "",
    "lib/map.jinja": (
        "{% import_yaml 'lib/data.yaml' as defaults %}"
        "{% set family = salt['grains.filter_by']({'Debian': {'pkg': 'apache2'}, 'RedHat': {'pkg': 'httpd'}}) %}"
        "{% do defaults.update(family) %}"
        "{% set apache = salt['pillar.get']('apache', default=defaults, merge=True) %}"
    ),
    "lib/catalog.jinja": '{% load_yaml as one %}\na: 1\n{% endload %}{% load_json as two %}{"b": 2}{% endload %}'
    "{% set three = 3 %}",
    "lib/parent.j2": "head\n{% block body %}parent{% endblock %}\ntail: {% block end %}x{% endblock %}\n",
    "lib/included.j2": "{{ own | default('no own') }} {{ loop_var | default('no loop') }} {{ grains.os }}",
    "lib/relative/a.jinja": "{% from './b.jinja' import b %}{% set a = 'a+' ~ b %}",
    "lib/relative/b.jinja": "{% set b = 'b' %}",
    "lib/wrong.yaml": "a: [1\n",
    "lib/wrong.json": "{,}",
}

#: Name -> template of ``case.sls``; what it renders to is compared as text.
CASES: dict[str, str] = {
    "import": "{% import 'lib/macros.jinja' as m %}{{ m.echo(1) }} {{ m.value }} {{ m._hidden is defined }}",
    "from import": "{% from 'lib/macros.jinja' import echo, value as v %}{{ echo('x', y=2) }} {{ v }}",
    "from import, nothing of that name": "{% from 'lib/macros.jinja' import nothing %}{{ nothing is defined }}",
    "salt:// in an import": "{% from 'salt://lib/macros.jinja' import echo %}{{ echo(1) }}",
    "a slash in an import": "{% from '/lib/macros.jinja' import echo %}{{ echo(1) }}",
    "without context": "{% set outer = 1 %}{% from 'lib/macros.jinja' import see %}{{ see() }}",
    "with context": "{% set outer = 1 %}{% from 'lib/macros.jinja' import see with context %}{{ see() }}",
    "import with context": "{% set outer = 1 %}{% import 'lib/macros.jinja' as m with context %}{{ m.see() }}",
    "varargs": "{% from 'lib/macros.jinja' import args %}{{ args(1, 2, b=3, a=4) }}",
    "call": "{% from 'lib/macros.jinja' import block %}{% call block() %}in{% endcall %}",
    "call with arguments": (
        "{% from 'lib/macros.jinja' import block_of %}{% call(i) block_of([1, 2]) %}[{{ i }}]{% endcall %}"
    ),
    "import_yaml": "{% import_yaml 'lib/data.yaml' as d %}{{ d | json }} {{ d.list[1] }}",
    "import_yaml without context": "{% set outer = 1 %}{% import_yaml 'lib/data.yaml' as d %}{{ d.outer }}",
    "import_yaml with context": "{% set outer = 1 %}{% import_yaml 'lib/data.yaml' as d with context %}{{ d.outer }}",
    "import_json": "{% import_json 'lib/data.json' as d %}{{ d.os }} {{ d.n[1] is none }}",
    "import_text": "{% import_text 'lib/text.txt' as t %}[{{ t }}]",
    "import of nothing": "{% import_yaml 'lib/empty.yaml' as d %}{{ d is none }}",
    "import by a name": "{% set f = 'lib/' ~ 'data.yaml' %}{% import_yaml f as d %}{{ d.os }}",
    "import in a branch": "{% if false %}{% import_yaml 'lib/none.yaml' as d %}{% endif %}ok",
    "import in a loop": (
        "{% for k in ['yaml', 'json'] %}{% import_text 'lib/data.' ~ k as t %}{{ t | length }} {% endfor %}"
    ),
    "import that is not there": "{% import_yaml 'lib/none.yaml' as d %}",
    "import of wrong YAML": "a\n{% import_yaml 'lib/wrong.yaml' as d %}",
    "import of wrong JSON": "a\n{% import_json 'lib/wrong.json' as d %}",
    "load_yaml": "{% load_yaml as d %}\na: {{ grains.os }}\nb:\n  - 1\n  - x: y\n{% endload %}{{ d | json }}",
    "load_yaml in a macro": (
        "{% macro m(x) %}{% load_yaml as d %}\nv: {{ x }}\n{% endload %}{{ d.v + 1 }}{% endmacro %}{{ m(4) }}"
    ),
    "load_yaml in a loop": (
        "{% for i in [1, 2] %}{% load_yaml as d %}\nv: {{ i }}{{ loop.index }}\n{% endload %}{{ d.v }} {% endfor %}"
    ),
    "load_yaml, filtered": "{% load_yaml as d %}{{ {'a': [1]} | yaml }}{% endload %}{{ d.a[0] }}",
    "load_yaml of nothing": "{% load_yaml as d %}{% endload %}{{ d is none }}",
    "load_yaml of a list": "{% load_yaml as d %}[1, yes, 0644]{% endload %}{{ d }}",
    "load_json": '{% load_json as d %}{"a": [1, {"b": null}]}{% endload %}{{ d.a[1].b is none }}',
    "load_text": "{% load_text as t %} raw: {\n {{ 1 }}{% endload %}[{{ t }}]",
    "load_yaml, wrong": "{% load_yaml as d %}\na: {\n{% endload %}",
    "load_yaml, a key twice": "{% load_yaml as d %}\na: 1\na: 2\n{% endload %}",
    "catalog": "{% from 'lib/catalog.jinja' import one, two, three %}{{ one.a }}{{ two.b }}{{ three }}",
    "catalog as a module": "{% import 'lib/catalog.jinja' as c %}{{ c.one.a }}{{ c.two.b }}{{ c.three }}",
    "a map": "{% from 'lib/map.jinja' import apache %}{{ apache | json }}",
    "a map with context": "{% from 'lib/map.jinja' import apache with context %}{{ apache.pkg }}",
    "include": "{% include 'lib/included.j2' %}",
    "include sees": "{% set own = 1 %}{% include 'lib/included.j2' %}",
    "include in a loop": "{% for loop_var in [1, 2] %}{% include 'lib/included.j2' %};{% endfor %}",
    "include without context": "{% set own = 1 %}{% include 'lib/included.j2' without context %}",
    "include that may be missing": "a{% include 'lib/none.j2' ignore missing %}b",
    "include of a list": "{% include ['lib/none.j2', 'lib/included.j2'] %}",
    "include that is missing": "{% include 'lib/none.j2' %}",
    "extends": "{% extends 'lib/parent.j2' %}{% block body %}child of {{ super() }}{% endblock %}",
    "relative": "{% from './lib/relative/a.jinja' import a %}{{ a }}",
    "where a macro is": "{% from 'lib/macros.jinja' import where %}{{ where() }}",
    "where this is, behind an import": "{% from 'lib/macros.jinja' import where %}{{ tplfile }} {{ tpldir }}",
    "do": "{% set l = [] %}{% do l.append(1) %}{% do l.extend([2, 3]) %}{{ l }}",
    "do of a map": "{% set m = {} %}{% do m.update({'a': 1}) %}{% do m.setdefault('b', []).append(2) %}{{ m }}",
    "break and continue": (
        "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}{% break %}{% endif %}{{ i }}{% endfor %}"
    ),
    "loop": "{% for i in 'abc' %}"
    "{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }} {% endfor %}",
    "loop, its neighbours": "{% for i in [1, 1, 2] %}"
    "{{ loop.previtem | default('-') }}{{ loop.nextitem | default('-') }}{{ loop.changed(i) }} {% endfor %}",
    "loop, cycle and depth": "{% for i in range(3) %}{{ loop.cycle('a', 'b') }}{{ loop.depth }}{% endfor %}",
    "loop, filtered": "{% for i in range(9) if i is odd %}{{ i }}{{ loop.length }}{% else %}none{% endfor %}",
    "loop, recursive": (
        "{% for n in [{'v': 1, 'c': [{'v': 2, 'c': []}]}] recursive %}{{ n.v }}({{ loop(n.c) }}){% endfor %}"
    ),
    "loop over a map": "{% for k, v in {'b': 1, 'a': 2}.items() %}{{ k }}{{ v }}{% endfor %}",
    "loop over nothing": "{% for i in [] %}{{ i }}{% else %}none{% endfor %}",
    "scope of a loop": "{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{% endfor %}{{ x }}",
    "namespace": "{% set ns = namespace(x=1) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "set block": "{% set x %}a{{ 1 }}b{% endset %}{{ x }}",
    "set block, filtered": "{% set x | upper %}abc{% endset %}{{ x }}",
    "with": "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}",
    "filter block": "{% filter upper %}abc{% endfilter %}",
    "raw": "{% raw %}{{ x }}{% endraw %}",
    "whitespace": "a\n  {%- if 1 %}\n  b\n  {%- endif %}\nc\n{{- 'd' -}}\n e",
    "comments": "a{# b {{ c }} #}d",
    "profile": "{% profile as 'x' %}a{{ 1 }}{% set in_it = 5 %}{% endprofile %}{{ in_it }}",
    "profile by a name": "{% set n = 'x' %}{% profile as n %}a{% endprofile %}",
    "raise": "a\n{{ raise('no ' ~ grains.os) }}",
    "raise in a branch": "{% if grains.os == 'Debian' %}{% do raise('not here') %}{% endif %}",
    "undefined": "a\n{{ nothing }}",
    "undefined attribute": "{{ grains.nothing }}",
    "undefined item": "{{ pillar['nothing'] }}",
    "undefined, deeper": "{{ pillar.nothing.more }}",
    "undefined in a comparison": "{{ nothing == 1 }}",
    "undefined, by default": (
        "{{ nothing | default('x') }}{{ pillar.nothing | default('y') }}{{ (pillar.a.b) | default('z') }}"
    ),
    "undefined, asked": "{{ nothing is defined }}{{ grains.os is defined }}{{ pillar.nothing is undefined }}",
    "undefined, tested": "{% if nothing %}a{% endif %}",
    "none": "{{ none }}{{ none is none }}",
    "true and false": "{{ true }} {{ False }} {{ [true, none] }}",
    "functions": "{{ salt['test.echo']('a') }}{{ salt.test.echo('b') }}{{ salt['test.echo'](text='c') }}",
    "functions, asked": "{{ 'test.echo' in salt }}{{ 'no.such' in salt }}{{ salt['test.echo'] is defined }}",
    "a function that fails": "a\n{{ salt['test.exception']('why') }}",
    "a wrong argument": "{{ salt['test.echo']() }}",
    "grains and pillar": "{{ grains['os'] }}{{ grains.n.k }}{{ pillar.name }}{{ pillar['users']['ann'].uid }}",
    "grains, get": (
        "{{ grains.get('os') }}{{ grains.get('x', 'd') }}{{ pillar.get('name') }}{{ salt['grains.get']('n:k') }}"
    ),
    "opts": "{{ opts.id }}{{ opts['id'] }}{{ opts.get('nothing') is none }}",
    "a syntax error": "a\nb\n{% if %}",
    "an open block": "a\n{% for i in [1] %}\nb",
    "an unknown tag": "a\n{% nothing %}",
    "an unknown filter": "a\n{{ 1 | nothing }}",
    "an unknown test": "{{ 1 is nothing }}",
    "an unclosed expression": "{{ 1",
    "division": "a\n\n{{ 1 / 0 }}",
    "attributes that are not safe": "{{ ''.__class__ }}",
    "methods that are not safe": "{{ 'x'.__class__.__mro__ }}",
    "large ranges": "{{ range(1000000) | length }}",
    "slices": "{{ [1, 2, 3][1:] }}{{ 'abc'[-1] }}{{ 'abc'[::-1] }}",
    "operators": (
        "{{ 7 // 2 }}{{ 7 % 2 }}{{ 2 ** 3 }}{{ 'a' * 3 }}{{ 1 ~ 2 }}{{ not 1 }}{{ 1 if 0 else 2 }}{{ 'a' in 'abc' }}"
    ),
    "methods": (
        "{{ 'a,b'.split(',') }}{{ ' x '.strip() }}{{ '%s-%d' % ('a', 1) }}{{ '{}'.format(1) }}{{ 'a'.join(['1', '2']) }}"
    ),
    "jinja's filters": (
        "{{ [3, 1, 2] | sort | join(',') }}{{ 'a b' | title }}{{ [1, 2] | sum }}{{ 'x' | upper }}{{ [1, [2]] | list | length }}"
    ),
    "select and map": "{{ [1, 2, 3] | select('odd') | list }}"
    "{{ [{'a': 1}] | map(attribute='a') | list }}{{ [0, 1] | reject('equalto', 0) | list }}",
    "groupby": "{% for g, l in [{'a': 1}, {'a': 2}, {'a': 1}] | groupby('a') %}{{ g }}{{ l | length }}{% endfor %}",
    "the last newline": "a\n",
    "last newlines": "a\n\n\n",
    "no last newline": "a",
    "windows": "a\r\nb\r\n",
    "printed maps": "{{ {'a': {'b': 'x\\ny'}, 'c': [1, 'd', None]} }}{{ [{'a': \"it's\"}] }}",
    "joined": "{{ 'a' ~ {'b': 1} }}",
}


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return LIBRARY | {f"case{number}.sls": text for number, text in enumerate(CASES.values())}


@pytest.fixture(scope="module")
def salts(ask_salt: Any, files: Mapping[str, str]) -> dict[str, tuple[str, Any]]:
    asks = [
        *(["sls", path, sls, {}] for path, sls in _SLS.items()),
        *(["sls", f"case{number}.sls", f"case{number}", {"renderer": "jinja"}] for number in range(len(CASES))),
    ]
    return dict(zip([*_SLS, *CASES], ask_salt(files, asks), strict=True))


@pytest.fixture(scope="module")
def runtime(own_runtime: Any, files: Mapping[str, str]) -> Runtime:
    made: Runtime = own_runtime(files)
    return made


#: Path -> reference, of the files that say where they are.
_SLS = {
    "plain.sls": "plain",
    "web/init.sls": "web",
    "web/conf.sls": "web.conf",
    "web/deep/init.sls": "web.deep",
    "web/deep/er.sls": "web.deep.er",
}

#: Name -> why ours answers otherwise.
DIFFERS: dict[str, str] = {
    "salt:// in an import": "it names the same file",
    "a slash in an import": "it names the same file",
    "relative": "meant from the importing file; Salt takes the directory of the file imported last, or of the SLS",
    "windows": "lines end in LF once a file is read; YAML reads them alike",
}


@pytest.mark.parametrize("path", _SLS)
def test_where_it_is(path: str, salts: Mapping[str, Any], runtime: Runtime) -> None:
    tree = runtime.contexts.run_context({}).tree
    assert ("value", tree.data(_SLS[path], "base")) == salts[path]


@pytest.mark.parametrize(("number", "name"), list(enumerate(CASES)), ids=CASES)
def test_as_salt(number: int, name: str, salts: Mapping[str, Any], runtime: Runtime) -> None:
    tree = runtime.contexts.run_context({}).tree
    source = tree.source(f"case{number}", "base")
    try:
        own = ("value", json.loads(json.dumps(tree._pipes.data(source, tree._names(source), "jinja"))))
    except SlsError as error:
        own = ("error", error.faults[0].message.removeprefix(f"Rendering SLS 'base:case{number}' failed: "))
    kind, value = salts[name]
    if name in DIFFERS:
        assert own != (kind, value), "no difference any more"
    elif kind == "error":
        # Ours may say more: which kind of error, in which line.
        assert own[0] == "error", f"Salt refuses it: {value}; ours: {own[1]}"
        # Salt's own maps have a name of their own.
        words = value.split("; line ")[0].replace("salt.utils.optsdict.DictProxy object", "dict object")
        assert own[1].splitlines()[0].startswith(words), value
    else:
        assert own == (kind, value)
