"""Finding and rendering SLS files: references, pipes, path variables, lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statecore.render import SlsTree
from statecore.sources.local_tree import LocalFiles

from .conftest import Plant, fault_of

NAMES = "x: '{{ [sls, slspath, slsdotpath, slscolonpath, sls_path, tpldir, tplfile, tpldot] | join(' ') }}'\n"

WHERE: dict[str, tuple[str, str, str]] = {
    "a plain SLS": ("x", "x.sls", "x     . x.sls "),
    "in a directory": ("p.q.x", "p/q/x.sls", "p.q.x p/q p.q p:q p_q p/q p/q/x.sls p.q"),
    "an init": ("p.q", "p/q/init.sls", "p.q p/q p.q p:q p_q p/q p/q/init.sls p.q"),
}

PIPES: dict[str, tuple[str, Any]] = {
    "by default": ("x: {{ 1 + 1 }}\n", {"x": 2}),
    "YAML alone": ("#!yaml\nx: '{{ 1 }}'\n", {"x": "{{ 1 }}"}),
    "Jinja, then JSON": ('#!jinja|json\n{"x": {{ 1 + 1 }}}\n', {"x": 2}),
    "JSON": ('#!json\n{"x": [null]}\n', {"x": [None]}),
    "empty JSON": ("#!json\n", {}),
    "with arguments": ("#!jinja -s|yaml\nx: {{ 1 }}\n", {"x": 1}),
    "with spaces": ("#! jinja | yaml\nx: {{ 1 }}\n", {"x": 1}),
    "Python": (
        "#!py\ndef run():\n    return {'x': __grains__['os'] + sls + __salt__['test.echo']('y')}\n",
        {"x": "Debianay"},
    ),
    "Python that gives YAML": ("#!py|yaml\ndef run():\n    return 'x: 1'\n", {"x": 1}),
    "a comment is none": ("# !yaml\nx: {{ 1 }}\n", {"x": 1}),
    "nothing": ("\n# nothing\n", {}),
}

FAULTS: dict[str, tuple[str, tuple[str, str, str]]] = {
    "an unknown renderer": (
        "#!moko|yaml\nx: 1\n",
        (
            "a.sls:1",
            "Rendering SLS 'base:a' failed: there is no renderer 'moko'; there are gpg, jinja, json, mako, msgpack, nacl, py,"
            " pyobjects, stateconf, text, toml, yaml, yamlex",
            "#!moko|yaml",
        ),
    ),
    "a list": ("\n- a\n", ("a.sls:1", "SLS a does not render to a dictionary", "")),
    "JSON": (
        '#!json\n{\n"x": }\n',
        ("a.sls:3", "Rendering SLS 'base:a' failed: not JSON: Expecting value: line 3 column 6 (char 8)", '"x": }'),
    ),
    "Python, as it is read": (
        "#!py\n\ndef run(:\n",
        ("a.sls:3", "Rendering SLS 'base:a' failed: invalid syntax (SyntaxError); line 3", "def run(:"),
    ),
    "Python, as it runs": (
        "#!py\ndef run():\n    return deeper()\ndef deeper():\n    return __pillar__['x']\n",
        ("a.sls:5", "Rendering SLS 'base:a' failed: 'x' (KeyError); line 5", "    return __pillar__['x']"),
    ),
    "Python without run": (
        "#!py\nx = 1\n",
        ("a.sls:1", "Rendering SLS 'base:a' failed: a #!py file must define run(); line 1", ""),
    ),
    "no UTF-8": ("x: \xff\n", ("a.sls:1", "SLS 'base:a' is not UTF-8 text: byte 3", "")),
}


@pytest.mark.parametrize(("sls", "path", "expected"), WHERE.values(), ids=WHERE)
def test_where_it_is(planted: Plant, sls: str, path: str, expected: str) -> None:
    assert planted({path: NAMES}).render(sls, "base").high == {"x": expected}


@pytest.mark.parametrize(("text", "expected"), PIPES.values(), ids=PIPES)
def test_pipes(planted: Plant, text: str, expected: Any) -> None:
    assert planted({"a.sls": text}).render("a", "base").high == expected


def test_behind_a_shebang_a_file_is_still_itself(planted: Plant) -> None:
    """A first line that names renderers changes neither relative imports nor line numbers."""
    tree = planted(
        {
            "app/a.sls": "#!jinja|yaml\n{% from './v.jinja' import v %}\nx: {{ v }}\ny: z: 1\n",
            "app/b.sls": "#!jinja|yaml\n{% from './v.jinja' import v %}\nx: {{ v }}\n{{ nothing }}\n",
            "app/v.jinja": "{% set v = 7 %}",
        }
    )
    assert fault_of(lambda: tree.render("app.a", "base"))[::2] == ("a.sls:4", "y: z: 1")
    assert fault_of(lambda: tree.render("app.b", "base"))[::2] == ("b.sls:4", "{{ nothing }}")


def test_the_option_renderer(planted: Plant) -> None:
    assert planted({"a.sls": '{"x": "{{ 1 }}"}'}, opts={"renderer": "json"}).render("a", "base").high == {
        "x": "{{ 1 }}"
    }


@pytest.mark.parametrize(("text", "expected"), FAULTS.values(), ids=FAULTS)
def test_faults(planted: Plant, text: str, expected: tuple[str, str, str]) -> None:
    tree = planted({"a.sls": text})
    place, message, excerpt = fault_of(lambda: tree.render("a", "base"))
    assert (place, message) == expected[:2]
    assert not expected[2] or excerpt == expected[2]


FOUND: dict[str, list[str]] = {
    "web": ["web"],
    "web.one": ["web.one"],
    "web.*": ["web.deep.two", "web.one"],
    "*": ["db", "web", "web.deep.two", "web.one"],
    "d?": ["db"],
    "[dw]*": ["db", "web", "web.deep.two", "web.one"],
    "[!d]*b": ["web"],
    "nothing": [],
    "nothing.*": [],
}


@pytest.mark.parametrize(("pattern", "expected"), FOUND.items())
def test_find(planted: Plant, pattern: str, expected: list[str]) -> None:
    tree = planted({"web/init.sls": "", "web/one.sls": "", "web/deep/two.sls": "", "db.sls": "", "web/file.txt": ""})
    assert tree.find(pattern, "base") == expected


def test_the_parts_of_a_file(planted: Plant) -> None:
    sls = planted({"a.sls": "include: [b]\nextend: {x: {}}\nexclude: [c]\ny: test.nop\n"}).render("a", "base")
    assert (sls.include, sls.extend, sls.exclude, sls.high) == (["b"], {"x": {}}, ["c"], {"y": "test.nop"})


def test_a_file_is_rendered_once(planted: Plant) -> None:
    tree = planted({"a.sls": "{% do grains.roles.append('more') %}x: {{ grains.roles | length }}\n"})
    assert tree.render("a", "base") is tree.render("a", "base")


LINES: list[tuple[tuple[str, ...], int]] = [
    (("x",), 4),
    (("x", "test"), 5),
    (("x", "test", "require"), 6),
    (("x", "test", "require", "cmd"), 7),
    (("x", "test", "nothing"), 5),
    (("x", "cmd"), 4),
    (("id2",), 2),
    (("e",), 9),
    (("e", "test", "name"), 11),
    (("nowhere",), 0),
]


@pytest.mark.parametrize(("keys", "line"), LINES)
def test_lines(planted: Plant, keys: tuple[str, ...], line: int) -> None:
    tree = planted(
        {
            "a.sls": "{% for n in [1, 2] %}\nid{{ n }}: test.nop\n{% endfor %}\nx:\n  test.nop:\n    - require:\n      - cmd: z\n"
            "extend:\n  e:\n    test:\n      - name: y\n"
        }
    )
    tree.render("a", "base")
    mark = tree.locate("a", "base", *keys)
    assert mark is not None
    assert mark.line == line


def test_lines_of_what_was_never_rendered(planted: Plant) -> None:
    assert planted({}).locate("a", "base", "x") is None
    assert planted({}).excerpt(None) == ""


def test_columns_are_those_of_the_template(tmp_path: Path) -> None:
    text = (
        "{% set way = 'managed' %}\n/etc/motd:\n  file.{{ way }}:\n    - source: salt://{{ way }}\n    - mode: '0644'\n"
    )
    (tmp_path / "a.sls").write_text(text)
    tree = SlsTree(LocalFiles({"base": [tmp_path]}), opts={}, grains={}, pillar={}, functions={})
    tree.source("a", "base")
    places: dict[tuple[str, ...], tuple[int, int]] = {
        ("/etc/motd",): (2, 1),
        # The state is found by its module: its function is another word in the template.
        ("/etc/motd", "file"): (3, 3),
        ("/etc/motd", "file", "source"): (4, 7),
        ("/etc/motd", "file", "mode"): (5, 7),
    }
    for keys, place in places.items():
        mark = tree.locate("a", "base", *keys)
        assert mark is not None
        assert (mark.line, mark.column) == (place[0], 0)
    tree.report_columns()
    for keys, place in places.items():
        mark = tree.locate("a", "base", *keys)
        assert mark is not None
        assert (mark.line, mark.column) == place


def test_lines_are_found_behind_tags_that_take_white_space(tmp_path: Path) -> None:
    text = """\
{%- set x = 1 %}

{% for one in [1, 2] -%}

id{{ one }}:
  {%- if x %}
  test.nop:
    - name: a
    {#- nobody sees this #}
    - size: 1
    {%- for each in [1] %}
    - each: {{ each }}
    {%- endfor %}
    - last: 1
  {%- endif %}
{% endfor %}
"""
    (tmp_path / "a.sls").write_text(text)
    tree = SlsTree(LocalFiles({"base": [tmp_path]}), opts={}, grains={}, pillar={}, functions={})
    tree.source("a", "base")
    found = {}
    for key in ("name", "size", "each", "last"):
        mark = tree.locate("a", "base", "id2", "test", key)
        assert mark is not None
        found[key] = mark.line
    assert found == {"name": 8, "size": 10, "each": 12, "last": 14}
    mark = tree.locate("a", "base", "id2")
    assert mark is not None
    assert mark.line == 5
