"""Jinja: the variables of templates, and the file and line of every error."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Plant, fault_of

LIB = "{% macro good() %}fine{% endmacro %}\n{% macro bad() %}\n{{ nothing }}\n{% endmacro %}\n"

FAULTS: dict[str, tuple[dict[str, str], tuple[str, str, str]]] = {
    "undefined": (
        {"a.sls": "x: 1\n\ny: {{ nothing }}\n"},
        ("a.sls:3", "Jinja variable 'nothing' is undefined; line 3", "y: {{ nothing }}"),
    ),
    "undefined attribute": (
        {"a.sls": "x: {{ grains.nothing.more }}\n"},
        ("a.sls:1", "Jinja variable 'dict object' has no attribute 'nothing'; line 1", "x: {{ grains.nothing.more }}"),
    ),
    "undefined in a macro that is imported": (
        {"a.sls": "{% import 'lib.jinja' as lib %}\n\n\n\nx: {{ lib.bad() }}\n", "lib.jinja": LIB},
        ("lib.jinja:3", "Jinja variable 'nothing' is undefined; line 3", "{{ nothing }}"),
    ),
    "undefined in an included file": (
        {"a.sls": "\n\n\n\n{% include 'part.sls' %}\n", "part.sls": "\nx: {{ nothing }}\n"},
        ("part.sls:2", "Jinja variable 'nothing' is undefined; line 2", "x: {{ nothing }}"),
    ),
    "undefined in a file imported by an imported one": (
        {
            "a.sls": "{% import 'lib/x.jinja' as x %}\n",
            "lib/x.jinja": "\n{% import './y.jinja' as y %}\n{{ y.bad() }}",
            "lib/y.jinja": LIB,
        },
        ("y.jinja:3", "Jinja variable 'nothing' is undefined; line 3", "{{ nothing }}"),
    ),
    "undefined in a call block": (
        {"a.sls": "{% macro m() %}{{ caller() }}{% endmacro %}\n{% call m() %}\n{{ nothing }}\n{% endcall %}\n"},
        ("a.sls:3", "Jinja variable 'nothing' is undefined; line 3", "{{ nothing }}"),
    ),
    "syntax": (
        {"a.sls": "x: 1\n{% if %}\n"},
        ("a.sls:2", "Jinja syntax error: Expected an expression, got 'end of statement block'; line 2", "{% if %}"),
    ),
    "an open block": (
        {"a.sls": "x: 1\n{% if true %}\ny: 2\n"},
        ("a.sls:2", "Jinja syntax error: Unexpected end of template.", "{% if true %}"),
    ),
    "syntax of an imported file": (
        {"a.sls": "\n\n{% import 'lib.jinja' as lib %}\n", "lib.jinja": "\n{{ 1 + }}\n"},
        (
            "lib.jinja:2",
            "Jinja syntax error: unexpected 'end of print statement'; line 2",
            "{{ 1 + }}",
        ),
    ),
    "unknown filter": (
        {"a.sls": "x: 1\ny: {{ 1 | nothing }}\n"},
        ("a.sls:2", "Jinja syntax error: No filter named 'nothing'.; line 2", "y: {{ 1 | nothing }}"),
    ),
    "a file that is not there": (
        {"a.sls": "x: 1\n{% import 'nothing.jinja' as x %}\n"},
        ("a.sls:2", "Jinja error: nothing.jinja is not in saltenv 'base'; line 2", "{% import 'nothing.jinja' as x %}"),
    ),
    "out of the tree": (
        {"a.sls": "{% import '../x.jinja' as x %}\n"},
        (
            "a.sls:1",
            "Jinja error: ../x.jinja leads out of the tree from 'a.sls'; line 1",
            "{% import '../x.jinja' as x %}",
        ),
    ),
    "a function that is not there": (
        {"a.sls": "\nx: {{ salt['nothing.at_all']() }}\n"},
        ("a.sls:2", "Jinja variable 'nothing.at_all' is not available.; line 2", "x: {{ salt['nothing.at_all']() }}"),
    ),
    "a function that is not there, and why": (
        {"a.sls": "\nx: {{ salt.no.such() }}\n"},
        (
            "a.sls:2",
            "Jinja variable 'no.such' is not available. Reason: no such module; line 2",
            "x: {{ salt.no.such() }}",
        ),
    ),
    "a function that fails": (
        {"a.sls": "x: 1\ny: {{ salt['test.fail']() }}\n"},
        ("a.sls:2", "Jinja error: a reason (ValueError); line 2", "y: {{ salt['test.fail']() }}"),
    ),
    "raised": (
        {"a.sls": "x: 1\n{{ raise('not on ' ~ grains.os) }}\n"},
        ("a.sls:2", "Jinja error: not on Debian; line 2", "{{ raise('not on ' ~ grains.os) }}"),
    ),
    "out of the sandbox": (
        {"a.sls": "x: {{ ''.__class__ }}\n"},
        (
            "a.sls:1",
            "Jinja syntax error: access to attribute '__class__' of 'str' object is unsafe.; line 1",
            "x: {{ ''.__class__ }}",
        ),
    ),
    "without end": (
        {"a.sls": "{% macro m() %}{{ m() }}{% endmacro %}\n{{ m() }}\n"},
        ("a.sls:2", "Jinja error: a macro or an include calls itself without end; line 2", "{{ m() }}"),
    ),
    "YAML of an import": (
        {"a.sls": "\n{% import_yaml 'x.yaml' as x %}\n", "x.yaml": "a: [1\n"},
        (
            "a.sls:2",
            "Jinja syntax error: Encountered error loading yaml: while parsing a flow sequence",
            "{% import_yaml 'x.yaml' as x %}",
        ),
    ),
    "JSON of a block": (
        {"a.sls": "{% load_json as x %}\n{,}\n{% endload %}\n"},
        ("a.sls:1", "Jinja syntax error: Unable to load json from", "{% load_json as x %}"),
    ),
    "YAML behind a loop": (
        {"a.sls": "{% for n in [1, 2, 3] %}\nid{{ n }}: test.nop\n{% endfor %}\nx:\n  - a\n b\n"},
        ("a.sls:6", "while parsing a block mapping", " b"),
    ),
    "YAML in a loop": (
        {"a.sls": "a: 1\n{% for n in ['x', 'y: z', 'v'] %}\n\n{{ n }}: 1\n{% endfor %}\n"},
        ("a.sls:4", "mapping values are not allowed in this context", "{{ n }}: 1"),
    ),
    "a key twice, by a loop": (
        {"a.sls": "{% for n in [1, 1] %}\n\nsame: {{ n }}\n{% endfor %}\n"},
        ("a.sls:3", "while constructing a mapping", "same: {{ n }}"),
    ),
    "YAML behind a tag over several lines": (
        {"a.sls": "{%- set x = [\n  1,\n  2,\n] -%}\na: 1\n{# a\ncomment #}\nb: c: d\n"},
        ("a.sls:8", "mapping values are not allowed in this context", "b: c: d"),
    ),
}

RENDERED: dict[str, tuple[str, object]] = {
    "grains, both ways": ("x: {{ grains.os }}-{{ grains['os'] }}", {"x": "Debian-Debian"}),
    "functions, both ways": ("x: {{ salt['test.echo']('a') }}{{ salt.test.echo('b') }}", {"x": "ab"}),
    "whether there is a function": (
        "x: [{{ salt['a.b'] is defined }}, {{ 'a.b' in salt }}, {{ 'test.echo' in salt }}]",
        {"x": [False, False, True]},
    ),
    "a function or another": ("x: {{ salt.get('a.b', salt['test.echo'])('c') }}", {"x": "c"}),
    "where it is": ("x: {{ sls }} {{ saltenv }} {{ tplfile }} {{ tpldir }}", {"x": "a base a.sls ."}),
    "do and loop controls": (
        "{% set l = [] %}{% for n in [1, 2, 3] %}{% if n == 2 %}{% continue %}{% endif %}{% do l.append(n) %}{% endfor %}"
        "x: {{ l }}",
        {"x": [1, 3]},
    ),
    "printed maps are YAML": (
        "x: {{ {'a': 'two\\nlines', 'b': [{'c': \"it's\"}]} }}",
        {"x": {"a": "two\nlines", "b": [{"c": "it's"}]}},
    ),
    "import_yaml": ("{% import_yaml 'data.yaml' as d %}x: {{ d.key }}", {"x": "Debian"}),
    "import_json": ("{% import_json 'data.json' as d %}x: {{ d.key }}", {"x": 1}),
    "import_text": ("{% import_text 'data.json' as d %}x: {{ d | length }}", {"x": 10}),
    "load_yaml": ("{% load_yaml as d %}\nkey: {{ grains.os }}\n{% endload %}\nx: {{ d.key }}", {"x": "Debian"}),
    "profile": ("{% profile as 'x' %}x: 1{% endprofile %}", {"x": 1}),
    "the whole context": ("x: {{ 'grains' in show_full_context() }}", {"x": True}),
    "an ordered map": ("x: {{ odict([('b', 1), ('a', 2)]) }}", {"x": {"b": 1, "a": 2}}),
}


@pytest.mark.parametrize(("files", "expected"), FAULTS.values(), ids=FAULTS)
def test_faults(planted: Plant, files: dict[str, str], expected: tuple[str, str, str]) -> None:
    tree = planted(files)
    place, message, excerpt = fault_of(lambda: tree.render("a", "base"))
    assert (place, excerpt) == (expected[0] if ":" in expected[0] else f"{expected[0]}:0", expected[2])
    assert message.startswith(f"Rendering SLS 'base:a' failed: {expected[1]}")


@pytest.mark.parametrize(("text", "expected"), RENDERED.values(), ids=RENDERED)
def test_rendered(planted: Plant, text: str, expected: object) -> None:
    tree = planted({"a.sls": text, "data.yaml": "key: {{ grains.os }}\n", "data.json": '{"key": 1}'})
    assert tree.render("a", "base").high == expected


def test_a_key_twice_names_both_lines_of_the_template(planted: Plant) -> None:
    tree = planted({"a.sls": "{% for n in [1, 2, 3] %}\nid{{ n }}: 1\n{% endfor %}\nx: 1\n{# a\ncomment #}\nid2: 3\n"})
    place, message, _ = fault_of(lambda: tree.render("a", "base"))
    assert place == "a.sls:7"
    assert message.endswith("found conflicting ID 'id2'; the first one is in line 2")


def test_an_imported_file_knows_where_it_is(planted: Plant) -> None:
    tree = planted(
        {
            "app/a.sls": "{% from 'lib/map.jinja' import dir %}{% from './near.jinja' import near %}"
            "x: {{ dir }} {{ near }} {{ tpldir }}",
            "lib/map.jinja": "{% set dir = tpldir ~ ' ' ~ tplfile ~ ' ' ~ tplroot %}",
            "app/near.jinja": "{% set near = tpldot %}",
        }
    )
    assert tree.render("app.a", "base").high == {"x": "lib lib/map.jinja lib app app"}


def test_an_included_file_belongs_to_the_sls(planted: Plant) -> None:
    tree = planted({"app/a.sls": "{% set v = 1 %}{% include 'lib/x' %}", "lib/x": "x: {{ tpldir }} {{ v }}\n"})
    assert tree.render("app.a", "base").high == {"x": "app 1"}


def test_an_absolute_path_is_the_trees_or_the_hosts(planted: Plant, tmp_path: Path) -> None:
    """As Salt's search path has it, ``/x`` is read from the tree, and then from the host below ``host_root``."""
    (tmp_path / "host/opt").mkdir(parents=True)
    (tmp_path / "host/opt/x.jinja").write_text("{% from './y.jinja' import w %}{% set v = w %}")
    (tmp_path / "host/opt/y.jinja").write_text("{% set w = 'host' %}")
    files = {
        "a.sls": "{% from '/opt/x.jinja' import v %}x: {{ v }}",
        "b.sls": "{% from '/lib.jinja' import v %}x: {{ v }}",
        "c.sls": "{% from '/opt/nothing.jinja' import v %}x: {{ v }}",
        "lib.jinja": "{% set v = 'tree' %}",
    }
    tree = planted(files, opts={"host_root": str(tmp_path / "host")})
    assert tree.render("a", "base").high == {"x": "host"}
    assert tree.render("b", "base").high == {"x": "tree"}
    place, message, _ = fault_of(lambda: tree.render("c", "base"))
    assert place == "c.sls:1"
    assert "/opt/nothing.jinja is not in saltenv 'base'" in message


def test_http_query_is_an_option(planted: Plant) -> None:
    files = {"a.sls": "x: {{ 'http://127.0.0.1:1/' | http_query(status=true) }}"}
    _, message, _ = fault_of(lambda: planted(files).render("a", "base"))
    assert "jinja_http_query: true" in message
    tree = planted(files, opts={"jinja_http_query": True}, functions={"http.query": lambda url, **given: [url, given]})
    assert tree.render("a", "base").high == {"x": ["http://127.0.0.1:1/", {"method": "GET", "status": True}]}


def test_the_last_newline(planted: Plant) -> None:
    """As in Salt, a template keeps its last newline, even after a trimmed block. Included templates lose theirs."""
    tree = planted({"x": "<{% include 'y' %}>\n", "y": "text\n"})
    assert tree.templates.render("<{% include 'y' %}>\n", "jinja", {}, saltenv="base", source="salt://x") == "<text>\n"
    assert tree.templates.render("x", "jinja", {}, saltenv="base") == "x"


OPTIONS: dict[str, tuple[dict[str, object], str, str]] = {
    "jinja_trim_blocks": ({"jinja_trim_blocks": True}, "{% if 1 %}\nx: 1\n{% endif %}\n", "x: 1\n\n"),
    "jinja_lstrip_blocks": (
        {"jinja_lstrip_blocks": True, "jinja_trim_blocks": True},
        "  {% if 1 %}\nx\n  {% endif %}\n",
        "x\n\n",
    ),
    "jinja_env": (
        {"jinja_env": {"variable_start_string": "<<", "variable_end_string": ">>"}},
        "<< 1 >>{{ 2 }}",
        "1{{ 2 }}",
    ),
    "jinja_sls_env is for SLS": ({"jinja_sls_env": {"variable_start_string": "<<"}}, "{{ 1 }}", "1"),
}


@pytest.mark.parametrize(("opts", "text", "expected"), OPTIONS.values(), ids=OPTIONS)
def test_options_of_templates(planted: Plant, opts: dict[str, object], text: str, expected: str) -> None:
    assert planted({}, opts=opts).templates.render(text, "jinja", {}, saltenv="base") == expected


def test_a_template_of_a_file(planted: Plant) -> None:
    tree = planted({"web/x.conf": "\n{{ nothing }}\n", "web/lib.jinja": "{% set v = 7 %}"})
    text = "{% from './lib.jinja' import v %}{{ v }} {{ own }} {{ tplfile }} {{ saltenv }}"
    assert tree.templates.render(
        text, "jinja", {"own": 1}, saltenv="base", source="salt://web/x.conf?saltenv=base"
    ) == ("7 1 web/x.conf base")
    place, message, _ = fault_of(
        lambda: tree.templates.render("\n{{ nothing }}\n", "jinja", {}, saltenv="base", source="salt://web/x.conf")
    )
    assert (place, message) == ("x.conf:2", "Jinja variable 'nothing' is undefined")


def test_another_engine(planted: Plant) -> None:
    _, message, _ = fault_of(lambda: planted({}).templates.render("x", "moko", {}, saltenv="base"))
    assert message == "'moko' is not a template engine; there are jinja, mako, py"
