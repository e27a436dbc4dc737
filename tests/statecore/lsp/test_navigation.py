"""Definition, references and rename over the protocol."""

from __future__ import annotations

from typing import Any

import pytest
from pygls.exceptions import JsonRpcException

SLS = "srv/salt/nav.sls"

#: (name, document with █, places)
DEFINITIONS = [
    ("ID in a requisite", "x:\n  cmd.run:\n    - require:\n      - file: mo█td\n", ["srv/salt/common/init.sls:1:1"]),
    (
        "ID of this file",
        "own:\n  test.nop: []\nx:\n  cmd.run:\n    - require:\n      - test: ow█n\n",
        ["srv/salt/nav.sls:1:1"],
    ),
    ("by name", "x:\n  cmd.run:\n    - require:\n      - file: /etc/mo█td\n", ["srv/salt/common/init.sls:1:1"]),
    ("of another module", "x:\n  cmd.run:\n    - require:\n      - service: mo█td\n", []),
    ("in brackets", "x:\n  cmd.run:\n    - require: [{file: mo█td}]\n", ["srv/salt/common/init.sls:1:1"]),
    ("bare ID", "x:\n  cmd.run:\n    - require:\n      - mo█td\n", ["srv/salt/common/init.sls:1:1"]),
    ("extended ID", "extend:\n  ngi█nx:\n    pkg.installed: []\n", ["srv/salt/web/init.sls:4:1"]),
    ("include", "include:\n  - common.us█ers\n", ["srv/salt/common/users.sls:1:1"]),
    ("include of a directory", "include:\n  - we█b\n", ["srv/salt/web/init.sls:1:1"]),
    ("relative include", "include:\n  - .common.us█ers\n", ["srv/salt/common/users.sls:1:1"]),
    ("SLS of a requisite", "x:\n  cmd.run:\n    - require:\n      - sls: we█b\n", ["srv/salt/web/init.sls:1:1"]),
    (
        "file of the tree",
        "x:\n  file.managed:\n    - source: salt://common/files/mo█td\n",
        ["srv/salt/common/files/motd:1:1"],
    ),
    ("template", '{% from "web/map.ji█nja" import site %}\n', ["srv/salt/web/map.jinja:1:1"]),
    (
        "macro",
        '{% from "web/map.jinja" import site with context %}\nx: {{ si█te(1) }}\n',
        ["srv/salt/web/map.jinja:1:10"],
    ),
    (
        "macro under another name",
        '{% from "web/map.jinja" import site as s %}\nx: {{ s█(1) }}\n',
        ["srv/salt/web/map.jinja:1:10"],
    ),
    ("macro of a module", '{% import "web/map.jinja" as m %}\nx: {{ m.si█te(1) }}\n', ["srv/salt/web/map.jinja:1:10"]),
    ("variable", "{% set a = 1 %}\nx: {{ █a }}\n", ["srv/salt/nav.sls:1:8"]),
    ("pillar key", "x: {{ pillar['site']['po█rt'] }}\n", ["srv/pillar/site.sls:2:3"]),
    ("pillar.get", "x: {{ salt['pillar.get']('site:po█rt', 1) }}\n", ["srv/pillar/site.sls:2:3"]),
    ("user's state", "x:\n  rack.fil█led: []\n", ["srv/salt/_states/shelf.py:4:1"]),
    ("user's function", "x: {{ salt['stock.le█vel'](1) }}\n", ["srv/salt/_modules/stock.py:1:1"]),
    ("nothing", "x:\n  cmd.run:\n    - name: no█thing\n", []),
    ("nothing in text", "x: {{ 'gra█ins' }}\n", []),
]


@pytest.mark.parametrize(("document", "places"), [pytest.param(*case[1:], id=case[0]) for case in DEFINITIONS])
def test_definition(editor: Any, document: str, places: list[str]) -> None:
    assert editor.definition(SLS, document) == places


REFERENCES = [
    (
        "ID",
        "srv/salt/nav.sls",
        "x:\n  cmd.run:\n    - require:\n      - file: mo█td\n",
        ["srv/salt/common/init.sls:1:1", "srv/salt/nav.sls:4:15", "srv/salt/web/init.sls:9:15"],
    ),
    (
        "declaration",
        "srv/salt/web/init.sls",
        "include:\n  - common\n\nngi█nx:\n  pkg.installed: []\n  service.running:\n    - require:\n      - pkg: nginx\n"
        "      - file: motd\n",
        ["srv/salt/web/init.sls:4:1", "srv/salt/web/init.sls:8:14"],
    ),
    ("SLS", "srv/salt/nav.sls", "include:\n  - comm█on\n", ["srv/salt/nav.sls:2:5", "srv/salt/web/init.sls:2:5"]),
    (
        "pillar",
        "srv/salt/nav.sls",
        "x: {{ pillar.site.na█me }}\n",
        ["srv/pillar/site.sls:3:3", "srv/salt/nav.sls:1:19"],
    ),
    (
        "variable",
        "srv/salt/nav.sls",
        "{% set a = 1 %}\nx: {{ a█ + b.a + 'a' }}\n",
        ["srv/salt/nav.sls:1:8", "srv/salt/nav.sls:2:7"],
    ),
    ("state", "srv/salt/nav.sls", "x: rack.fil█led\n", ["srv/salt/nav.sls:1:4"]),
]


@pytest.mark.parametrize(("path", "document", "places"), [pytest.param(*case[1:], id=case[0]) for case in REFERENCES])
def test_references(editor: Any, path: str, document: str, places: list[str]) -> None:
    editor.open(SLS, "")
    assert editor.references(path, document) == places
    editor.close(path)


def test_rename_with_requisites(editor: Any) -> None:
    editor.close(SLS)
    made = editor.rename(
        "srv/salt/web/init.sls",
        (editor.folder / "srv/salt/web/init.sls").read_text().replace("nginx:", "ngi█nx:", 1),
        "proxy",
    )
    editor.close("srv/salt/web/init.sls")
    assert made == {
        "srv/salt/web/init.sls": "include:\n  - common\n\nproxy:\n  pkg.installed:\n    - name: nginx\n  service.running:\n"
        "    - name: nginx\n    - require:\n      - pkg: proxy\n      - file: motd\n"
    }


def test_rename_across_files_from_a_requisite(editor: Any) -> None:
    document = "extend:\n  'motd':\n    file:\n      - mode: '1'\nx:\n  cmd.run:\n    - require: [file: mo█td]\n"
    made = editor.rename(SLS, document, "message of the day: now")
    assert made[SLS] == document.replace("█", "").replace("'motd'", "'message of the day: now'").replace(
        "[file: motd]", "[file: 'message of the day: now']"
    )
    assert made["srv/salt/common/init.sls"].startswith(
        "'message of the day: now':\n  file.managed:\n    - name: /etc/motd\n"
    )
    assert "      - file: 'message of the day: now'\n" in made["srv/salt/web/init.sls"]
    assert sorted(made) == ["srv/salt/common/init.sls", SLS, "srv/salt/web/init.sls"]


def test_rename_of_the_short_form_keeps_the_package(editor: Any) -> None:
    assert (
        editor.rename(SLS, "nu█ll-mailer: pkg.installed\n", "mail")[SLS]
        == "mail:\n  pkg.installed:\n    - name: null-mailer\n"
    )
    document = "ma█il:\n  pkg:\n  - installed\n  - version: '1'\n"
    assert (
        editor.rename(SLS, document, "post")[SLS] == "post:\n  pkg:\n  - installed\n  - name: mail\n  - version: '1'\n"
    )


@pytest.mark.parametrize(
    ("document", "new", "reason"),
    [
        ("x:\n  cmd.run:\n    - na█me: a\n", "y", "only IDs"),
        ("x-{{ grains.█os }}:\n  test.nop: []\n", "y", "only IDs"),
        ("x:\n  cmd.run:\n    - require:\n      - file: /etc/mo█td\n", "y", "a state's name is not an ID"),
        ("o█wn:\n  test.nop: []\n", "motd", "already declared in common/init.sls"),
        ("o█wn:\n  test.nop: []\n", " ", "one line of text"),
    ],
)
def test_what_cannot_be_renamed(editor: Any, document: str, new: str, reason: str) -> None:
    with pytest.raises(JsonRpcException, match=reason):
        editor.rename(SLS, document, new)


def test_the_part_that_a_rename_replaces(editor: Any) -> None:
    found = editor.prepare_rename(
        SLS, '"my id":\n  test.nop: []\nx:\n  cmd.run:\n    - require:\n      - test: "my █id"\n'
    )
    assert (found.start.character, found.end.character) == (15, 20)
