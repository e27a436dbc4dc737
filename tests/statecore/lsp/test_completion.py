"""Completion over the protocol: a document with a cursor, and what is and is not proposed there."""

from __future__ import annotations

from typing import Any

import pytest

SLS = "srv/salt/doc.sls"

#: (name, file, document with █, labels that are proposed, labels that are not)
CASES = [
    ("keys of the top level", SLS, "inc█", ["include", "extend", "exclude"], ["file"]),
    ("not twice", SLS, "include:\n  - web\n█", ["extend"], ["include"]),
    ("state modules", SLS, "x:\n  fi█", ["file", "pkg", "rack"], ["shelf", "name"]),
    ("state functions", SLS, "x:\n  file.█", ["file.managed", "file.directory"], ["file.mod_watch", "pkg.installed"]),
    ("functions of a user's state", SLS, "x:\n  rack.█", ["rack.filled"], []),
    ("short form", SLS, "nginx: pkg.█", ["pkg.installed"], []),
    ("function in the list", SLS, "x:\n  file:\n    - mana█", ["managed", "directory"], ["mod_watch"]),
    ("arguments", SLS, "x:\n  file.managed:\n    - so█", ["source", "mode", "require", "onlyif"], ["service"]),
    ("arguments of a user's state", SLS, "x:\n  rack.filled:\n    - █", ["boxes", "name", "watch"], []),
    ("arguments after the function", SLS, "x:\n  file:\n    - managed\n    - █", ["source"], ["directory"]),
    ("not an argument twice", SLS, "x:\n  file.managed:\n    - mode: '1'\n    - █", ["source"], ["mode"]),
    ("list in the key's column", SLS, "x:\n  file.managed:\n  - █", ["source"], []),
    ("true or false", SLS, "x:\n  file.managed:\n    - makedirs: █", ["True", "False"], ["source"]),
    ("templates", SLS, "x:\n  file.managed:\n    - template: █", ["jinja"], []),
    (
        "files of the tree",
        SLS,
        "x:\n  file.managed:\n    - source: salt://com█",
        ["common/files/motd"],
        ["web/map.jinja"],
    ),
    ("requisites", SLS, "x:\n  cmd.run:\n    - require:\n      - █", ["pkg: nginx", "file: motd", "sls"], []),
    ("IDs of a module", SLS, "x:\n  cmd.run:\n    - require:\n      - pkg: █", ["nginx", "base-packages"], ["motd"]),
    ("IDs in brackets", SLS, "x:\n  cmd.run:\n    - require: [pkg: █", ["nginx"], ["motd"]),
    ("SLS of a requisite", SLS, "x:\n  cmd.run:\n    - require:\n      - sls: █", ["common.users"], ["nginx"]),
    ("SLS to include", SLS, "include:\n  - █", ["web", "common", "common.users"], ["top", "doc"]),
    ("IDs to extend", SLS, "extend:\n  █", ["nginx", "motd"], []),
    ("states of an extended ID", SLS, "extend:\n  nginx:\n    pkg.█", ["pkg.installed"], []),
    ("SLS of the top file", "srv/salt/top.sls", "base:\n  '*':\n    - █", ["web", "common.users"], []),
    ("pillar SLS to include", "srv/pillar/doc.sls", "include:\n  - █", ["site"], ["web"]),
    ("pillar items", SLS, "x: {{ pillar['█", ["site", "secret-word"], ["port"]),
    ("pillar below", SLS, "x: {{ pillar['site']['█", ["port", "name"], ["site"]),
    ("pillar by dots", SLS, "x: {{ pillar.site.█ }}", ["port"], ["site"]),
    ("no dash by dots", SLS, "x: {{ pillar.█ }}", ["site", "get"], ["secret-word"]),
    ("pillar.get", SLS, "x: {{ salt['pillar.get']('si█", ["site", "site:port"], []),
    ("grains", SLS, "x: {{ grains['█", ["os", "ip_interfaces"], ["eth0"]),
    ("grains below", SLS, "x: {{ grains.ip_interfaces.█ }}", ["eth0"], ["os"]),
    ("execution modules", SLS, "x: {{ salt['█", ["test", "cmd", "stock"], []),
    ("execution functions", SLS, "x: {{ salt['test.█", ["test.ping"], []),
    ("functions of a user's module", SLS, "x: {{ salt['stock.█", ["stock.level"], []),
    ("execution functions by dots", SLS, "x: {{ salt.test.█ }}", ["test.ping"], []),
    ("filters", SLS, "x: {{ pillar.site | █ }}", ["yaml_dquote", "join", "json"], ["grains"]),
    ("tests", SLS, "{% if pillar is █ %}", ["defined", "match"], ["join"]),
    ("statements", SLS, "{% █ %}", ["set", "import_yaml", "macro"], ["grains"]),
    ("variables", SLS, "{% set own = 1 %}\nx: {{ █ }}", ["own", "grains", "slspath", "range"], ["join"]),
    ("variables in conditions", SLS, "{% set own = 1 %}\n{% if o█ %}", ["own", "grains"], []),
    ("macros", SLS, "{% macro m(arg) %}{{ █ }}{% endmacro %}", ["arg", "m"], []),
    ("templates to import", SLS, '{% from "█" import x %}', ["web/map.jinja"], []),
    ("names to import", SLS, '{% from "web/map.jinja" import █ %}', ["site", "web"], ["port"]),
    ("not in comments", SLS, "x:\n  # fi█", [], ["file"]),
    ("not in Jinja comments", SLS, "{# gr█ #}", [], ["grains"]),
    ("after an open statement", SLS, "{% if grains['os'] ==\nx:\n  file.█", ["file.managed"], []),
    ("after an open bracket", SLS, "x:\n  pkg.installed:\n    - pkgs: [a,\ny:\n  file.█", ["file.managed"], []),
    ("below broken YAML", SLS, "a: b: c\n\t'x\n}\ny:\n  file.█", ["file.managed"], []),
    ("between statements", SLS, "{% if true %}\nx:\n  file.managed:\n    - █\n{% endif %}", ["source"], []),
    ("beyond the plane", SLS, "x:\n  file.managed:\n    - contents: 😀{{ pillar['█", ["site"], []),
    ("outside all trees", "elsewhere.sls", "x:\n  file.█", ["file.managed"], []),
]


@pytest.mark.parametrize(
    ("path", "document", "proposed", "absent"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_completion(editor: Any, path: str, document: str, proposed: list[str], absent: list[str]) -> None:
    labels = editor.labels(path, document)
    assert [label for label in proposed if label not in labels] == [], f"missing among {labels[:30]}"
    assert [label for label in absent if label in labels] == []


def test_what_is_inserted(editor: Any) -> None:
    by_label = {item.label: item for item in editor.items(SLS, "x:\n  file.managed:\n    - so█")}
    source = by_label["source"]
    assert source.text_edit.new_text == "source: "
    assert (source.text_edit.range.start.character, source.text_edit.range.end.character) == (6, 8)
    assert "salt://" in str(source.documentation)
    assert source.detail == "default: None"
    assert by_label["require"].text_edit.new_text == "require:\n      - "


def test_nearest_ids_come_first(editor: Any) -> None:
    labels = editor.labels(SLS, "include:\n  - web\nown:\n  test.nop: []\nx:\n  cmd.run:\n    - require:\n      - █")
    known = [label for label in labels if label in ("test: own", "pkg: nginx", "user: admin")]
    assert set(known) == {"test: own", "pkg: nginx", "user: admin"}


def test_a_changed_file_is_known(editor: Any) -> None:
    editor.open("srv/salt/late.sls", "latecomer:\n  test.nop: []\n")
    document = "x:\n  cmd.run:\n    - require:\n      - test: █"
    assert "latecomer" in editor.labels(SLS, document)
    editor.open("srv/salt/late.sls", "renamed:\n  test.nop: []\n")
    assert "latecomer" not in editor.labels(SLS, document)
    assert "renamed" in editor.labels(SLS, document)
    editor.close("srv/salt/late.sls")
    assert "renamed" not in editor.labels(SLS, document), "the file does not exist on disk"


def test_every_beginning_of_a_document_gets_an_answer(editor: Any) -> None:
    text = (
        '{% from "web/map.jinja" import site with context %}\ninclude: [web]\n{% for a, b in {"c": 1}.items() -%}\n'
        "x-{{ a }}:\n  file.managed:\n    - name: {{ salt['pillar.get']('site:name', \"x\") | yaml_dquote }}\n"
        "    - contents: |\n        a: {{ b }}\n    - require:\n      - {file: motd}\n{%- endfor %}\n"
    )
    for end in range(0, len(text), 3):
        assert isinstance(editor.labels(SLS, f"{text[:end]}█"), list)
        assert isinstance(editor.labels(SLS, f"{text[:end]}█{text[end:]}"), list)
