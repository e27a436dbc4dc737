"""Findings, code actions, format and outline over the protocol; and that a foreign tree runs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.statecore.lsp.conftest import TREE, Editor, plant

SLS = "srv/salt/found.sls"

#: (name, file, document, findings as "line:column rule")
CASES = [
    ("fine", SLS, "x:\n  file.managed:\n    - name: /x\n", []),
    ("argument", SLS, "x:\n  file.managed:\n    - nmae: /x\n", ["3:7 unknown-argument"]),
    ("function", SLS, "x:\n  file.manged:\n    - name: /x\n", ["2:3 unknown-function"]),
    ("YAML", SLS, "x:\n  file.managed\n    - name: /x\n", ["3:5 render"]),
    ("Jinja", SLS, "x:\n  file.managed:\n    - name: {{ pillar.site.port | nofilter }}\n", ["3:5 render"]),
    ("undefined", SLS, "{% if grains.os == 'x' %}{{ missing }}{% endif %}\n", ["1:29 undefined-name"]),
    (
        "through the pipe",
        SLS,
        "{% for i in [1, 2] %}\nx{{ i }}:\n  file.managed:\n    - nmae: a\n{% endfor %}\n",
        ["4:7 unknown-argument"],
    ),
    ("pillar key", SLS, "x:\n  cmd.run:\n    - name: {{ pillar.sites }}\n", ["3:23 render"]),
    ("ID of another SLS", SLS, "x:\n  cmd.run:\n    - require:\n      - file: motd\n", ["4:15 needs-other-sls"]),
    ("ID of none", SLS, "x:\n  cmd.run:\n    - require:\n      - file: mtod\n", ["4:15 requisite-to-nothing"]),
    ("included", SLS, "include: [common]\nx:\n  cmd.run:\n    - require:\n      - file: motd\n", []),
    ("no such SLS", SLS, "include:\n  - nowhere\n", ["2:5 missing-sls"]),
    ("user's state", SLS, "x:\n  rack.filled: []\n", []),
    ("user's function", SLS, "x:\n  cmd.run:\n    - name: {{ salt['stock.level']('a') }}\n", ["3:22 not-rendered"]),
    ("top file", "srv/salt/top.sls", "base:\n  '*':\n    - web\n    - gone\n", ["4:7 missing-sls"]),
    ("template", "srv/salt/web/map.jinja", "{% set x = %}\n", ["1:1 render"]),
    ("pillar", "srv/pillar/site.sls", "site:\n  port: {{ nothing }}\n", ["2:3 render"]),
    ("half a line", SLS, "x:\n  fi", ["1:1 shape"]),
    ("half a tag", SLS, "x:\n  file.managed:\n    - name: {{ grains[", ["3:5 render"]),
]


@pytest.mark.parametrize(("path", "document", "found"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_findings(editor: Any, path: str, document: str, found: list[str]) -> None:
    assert editor.problems(path, document) == found


def test_a_finding_in_an_included_file_is_shown_at_the_include(editor: Any) -> None:
    editor.open("srv/salt/broken.sls", "x:\n  - {{\n")
    (found,) = editor.diagnostics(SLS, "include:\n  - web\n  - broken\n")
    assert (found.range.start.line, found.range.start.character) == (2, 4)
    assert found.message.startswith("broken.sls:2:")
    assert found.related_information[0].location.uri.endswith("broken.sls")


def test_findings_follow_other_documents(editor: Any) -> None:
    document = "x:\n  cmd.run:\n    - require:\n      - test: later\n"
    assert editor.problems(SLS, document) == ["4:15 requisite-to-nothing"]
    editor.open("srv/salt/later.sls", "later:\n  test.nop: []\n")
    assert editor.problems(SLS, document) == ["4:15 needs-other-sls"]


ACTIONS = [
    (
        "include",
        "x:\n  cmd.run:\n    - require:\n      - file: mo█td\n",
        "Include 'common', which declares 'motd'",
        "include:\n  - common\n\nx:\n  cmd.run:\n    - require:\n      - file: motd\n",
    ),
    (
        "one more include",
        "include:\n  - common.users\n\nx:\n  cmd.run:\n    - require:\n      - file: mo█td\n",
        "Include 'common', which declares 'motd'",
        "include:\n  - common.users\n  - common\n\nx:\n  cmd.run:\n    - require:\n      - file: motd\n",
    ),
    (
        "include in brackets",
        "include: [common.users]\nx:\n  cmd.run:\n    - require:\n      - file: mo█td\n",
        "Include 'common', which declares 'motd'",
        "include: [common.users, common]\nx:\n  cmd.run:\n    - require:\n      - file: motd\n",
    ),
    (
        "include below the imports",
        "# words\n{% set a = 1 %}\nx:\n  cmd.run:\n    - require:\n      - file: mo█td\n",
        "Include 'common', which declares 'motd'",
        "# words\n{% set a = 1 %}\ninclude:\n  - common\n\nx:\n  cmd.run:\n    - require:\n      - file: motd\n",
    ),
    (
        "long form",
        "x:\n  file.mana█ged:\n    - name: /x\n",
        "Write 'file.managed' as the long form",
        "x:\n  file:\n    - managed\n    - name: /x\n",
    ),
    (
        "short form",
        "x:\n  file:\n    - mana█ged\n    - name: /x\n",
        "Write 'file.managed' as the short form",
        "x:\n  file.managed:\n    - name: /x\n",
    ),
    (
        "short form alone",
        "x:\n  pkg:\n    - inst█alled\n",
        "Write 'pkg.installed' as the short form",
        "x:\n  pkg.installed: []\n",
    ),
    ("open", "x: pkg.inst█alled\n", "Write the state on a line of its own", "x:\n  pkg.installed: []\n"),
    ("close", "x:\n  pkg.inst█alled: []\n", "Write the state on the line of its ID", "x: pkg.installed\n"),
    (
        "nearest argument",
        "x:\n  file.managed:\n    - nm█ae: /x\n",
        "Change 'nmae' to 'name'",
        "x:\n  file.managed:\n    - name: /x\n",
    ),
    (
        "nearest ID",
        "motto:\n  file.managed:\n    - name: /x\nx:\n  cmd.run:\n    - require:\n      - file: mo█to\n",
        "Change 'moto' to 'motto'",
        "motto:\n  file.managed:\n    - name: /x\nx:\n  cmd.run:\n    - require:\n      - file: motto\n",
    ),
    (
        "quotes",
        "x:\n  file.managed:\n    - name: /x\n    - mo█de: 0644\n",
        "Write '0644' with quotes",
        "x:\n  file.managed:\n    - name: /x\n    - mode: '0644'\n",
    ),
]


@pytest.mark.parametrize(("document", "title", "after"), [pytest.param(*case[1:], id=case[0]) for case in ACTIONS])
def test_code_actions(editor: Any, document: str, title: str, after: str) -> None:
    made = editor.actions(SLS, document)
    assert title in made
    assert made[title] == after


def test_no_action_where_nothing_is_wrong(editor: Any) -> None:
    assert editor.actions(SLS, "x:\n  file.managed:\n    - na█me: /x\n    - require:\n      - file: x\n").keys() == {
        "Write 'file.managed' as the long form"
    }


def test_format(editor: Any) -> None:
    assert (
        editor.format(SLS, "x:\n    file.managed:\n        -   name:  /x \n\n\n")
        == "x:\n  file.managed:\n    - name: /x\n"
    )
    assert editor.format(SLS, "x:\n  file.managed:\n    - name: /x\n") == "x:\n  file.managed:\n    - name: /x\n"


def test_outline(editor: Any) -> None:
    text = "include: [web]\n{% macro m(a) %}{% endmacro %}\nx:\n  file.managed:\n    - name: /x\n  cmd.run: []\ny: pkg.installed\n"
    found = editor.symbols(SLS, text)
    assert [(one.name, [each.name for each in one.children]) for one in found] == [
        ("web", []),
        ("m", []),
        ("x", ["file.managed", "cmd.run"]),
        ("y", ["pkg.installed"]),
    ]
    assert [one.children[0].detail for one in found if one.name == "x"] == ["/x"]
    keys = editor.symbols("srv/pillar/site.sls", "a:\n  b:\n    c: 1\nd: 2\n")
    assert [(one.name, [each.name for each in one.children]) for one in keys] == [("a", ["b"]), ("d", [])]


# ------------------------------------------------------------------------------------------------------------- foreign trees


#: What a tree could contain to run code when it is opened: path -> text; {done} is a file that the code would write.
ATTACKS = {
    "srv/salt/call.sls": "x:\n  cmd.run:\n    - name: {{ salt['cmd.run']('touch {done}') }}\n",
    "srv/salt/dotted.sls": "x:\n  cmd.run:\n    - name: {{ salt.cmd.run('touch {done}') }}\n",
    "srv/salt/renderer.sls": "#!py\nopen('{done}', 'w')\ndef run():\n    open('{done}', 'w')\n    return {{}}\n",
    "srv/salt/objects.sls": "#!pyobjects\nopen('{done}', 'w')\n",
    "srv/salt/mako.sls": "#!mako|yaml\n<% open('{done}', 'w') %>\nx: y\n",
    "srv/salt/stateconf.sls": "#!stateconf -o mako . yaml\n<% open('{done}', 'w') %>\nx: y\n",
    "srv/salt/slsutil.sls": "x: {{ salt['slsutil.renderer'](string=\"#!py\\nopen('{done}', 'w')\") }}\n",
    "srv/salt/users.sls": "x:\n  danger.present: []\n{{% set y = salt['danger.present']('a') %}}\n",
    "srv/salt/own.sls": "#!own\nx: y\n",
    "srv/salt/_modules/danger.py": "open('{done}', 'w')\ndef present(name):\n    open('{done}', 'w')\n",
    "srv/salt/_states/danger.py": "open('{done}', 'w')\ndef present(name):\n    pass\n",
    "srv/salt/_grains/danger.py": "open('{done}', 'w')\ndef main():\n    return {{}}\n",
    "srv/salt/_renderers/own.py": "open('{done}', 'w')\ndef render(*a, **k):\n    return {{}}\n",
    "srv/salt/_pillar/danger.py": "open('{done}', 'w')\n",
    "srv/pillar/site.sls": "a: {{ salt['cmd.run']('touch {done}') }}\n",
    "srv/pillar/py.sls": "#!py\nopen('{done}', 'w')\ndef run():\n    return {{}}\n",
}


def test_opening_a_foreign_tree_runs_nothing_of_it(tmp_path: Path) -> None:
    done = tmp_path / "done"
    # The files must be attacks: {{ }} of Jinja stays, {done} is the path.
    files = {
        path: text.replace("{done}", str(done)).replace("{{}}", "{}").replace("{{%", "{%").replace("%}}", "%}")
        for path, text in ATTACKS.items()
    }
    plant(tmp_path, {**TREE, **files, ".vscode/settings.json": '{"statecore.trust": true}'})
    # The editor's settings may be the tree's own: they cannot grant trust.
    editor = Editor(tmp_path, settings={"trust": True, "grains": "grains.yaml"})
    try:
        for path, text in files.items():
            if path.endswith(".sls"):
                found = editor.diagnostics(path, text)
                assert [each for each in found if each.code in ("not-rendered", "render", "unknown-function")], path
        assert "danger.present(name)" in editor.hover("srv/salt/users.sls", "x:\n  danger.pre█sent: []\n")
        editor.hover("srv/salt/call.sls", files["srv/salt/call.sls"].replace("['cmd", "['c█md"))
        assert any("'trust'" in message for message in editor.messages)
    finally:
        editor.end()
    assert not done.exists()


def test_a_trusted_tree_runs_its_functions(tmp_path: Path) -> None:
    plant(tmp_path, TREE)
    editor = Editor(tmp_path, "--trust", settings={"grains": "grains.yaml"})
    try:
        document = "x:\n  cmd.run:\n    - name: {{ salt['stock.level']('a')█ }}\n"
        assert editor.problems(SLS, document.replace("█", "")) == []
        assert "\n1\n" in editor.hover(SLS, document)
    finally:
        editor.end()


def test_a_foreign_tree_sees_nothing_of_this_machine(editor: Any) -> None:
    for expression in (
        "'/etc/passwd' | file_hashsum",
        "'localhost' | dns_check(22)",
        "'/etc' | list_files | length > 1",
    ):
        text = editor.hover(SLS, f"x:\n  cmd.run:\n    - name: {{{{ {expression}█ }}}}\n")
        assert "not rendered" in text or "False" in text, (expression, text)
    text = editor.hover(SLS, "x:\n  cmd.run:\n    - name: {% include '/etc/passwd' %}{{ 1█ }}\n")
    assert "root:" not in text
    assert "not rendered" in text
