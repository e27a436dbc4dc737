"""Hover over the protocol: documentation, places of definition, and values for the minion."""

from __future__ import annotations

from typing import Any

import pytest

SLS = "srv/salt/hover.sls"

#: (name, document with █, texts in the answer, texts that are not)
CASES = [
    ("state", "x:\n  file.man█aged:\n    - name: /x\n", ["file.managed(name, source=None", "Manage one file"], []),
    ("function in the list", "x:\n  file:\n    - mana█ged\n", ["Manage one file"], []),
    ("short form", "nginx: pkg.inst█alled\n", ["pkg.installed(name", "Install packages."], []),
    ("module", "x:\n  fi█le:\n    - foo\n", ["file"], []),
    ("argument", "x:\n  file.managed:\n    - sou█rce: /y\n", ["source (file.managed), default: None", "salt://"], []),
    ("argument of every state", "x:\n  file.managed:\n    - only█if: /bin/true\n", ["every state"], []),
    ("user's state", "x:\n  rack.fil█led:\n    - boxes: 2\n", ["rack.filled(name, boxes=1)", "Fill a rack."], []),
    ("user's argument", "x:\n  rack.filled:\n    - bo█xes: 2\n", ["number of boxes"], []),
    ("execution function", "x: {{ salt['test.pi█ng']() }}\n", ["test.ping()"], []),
    ("user's function", "{{ salt['stock.le█vel']() }}", ["stock.level(item, unit='kg')", "level of an item"], []),
    ("filter", "x: {{ 1 | yaml_dqu█ote }}\n", ["filter `yaml_dquote` (Salt)"], []),
    ("Jinja's filter", "x: {{ [1] | jo█in }}\n", ["filter `join` (Jinja)"], []),
    ("macro", "{% macro m(a) %}{{ a }}{% endmacro %}\nx:\n  cmd.run:\n    - name: {{ █m(1) }}\n", ["macro m(a)"], []),
    ("grain", "x:\n  cmd.run:\n    - name: {{ grains.os_fa█mily }}\n", ["grain `os_family`", "'Debian'"], []),
    (
        "pillar key and its value",
        "x:\n  cmd.run:\n    - name: {{ pillar['site']['na█me'] }}\n",
        ["pillar key `site:name`", "'web1.example.org'", "`site.sls:3`", "*renders to*"],
        [],
    ),
    (
        "value of an expression",
        "x:\n  cmd.run:\n    - name: {{ pillar.site.port + 1█ }}\n",
        ["*renders to*", "8081"],
        [],
    ),
    ("values in a loop", "{% for i in [5, 6] %}\nx{{ i█ }}: {cmd.run: []}\n{% endfor %}\n", ["\n5\n", "\n6\n"], []),
    ("value of an argument", "x:\n  cmd.run:\n    - na█me: {{ pillar.site.port }}\n", ["*renders to*", "8080"], []),
    ("variable in a statement", "{% set p = pillar.site.port %}\n{% if █p > 1 %}{% endif %}\n", ["8080"], []),
    ("not reached", "{% if false %}{{ gra█ins }}{% endif %}\n", ["not reached"], []),
    ("ID of a requisite", "x:\n  cmd.run:\n    - require:\n      - file: mo█td\n", ["`common/init.sls:1`"], []),
    ("refused", "x:\n  cmd.run:\n    - name: {{ salt['cmd.run']('id')█ }}\n", ["not rendered", "--trust"], ["uid="]),
    ("nothing", "█\n", [], ["a"]),
]


@pytest.mark.parametrize(("document", "said", "unsaid"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_hover(editor: Any, document: str, said: list[str], unsaid: list[str]) -> None:
    text = editor.hover(SLS, document)
    assert [each for each in said if each not in text] == [], text
    assert [each for each in unsaid if each in text] == [], text


def test_texts_of_a_tree_are_code(editor: Any) -> None:
    """An editor must not load the pictures that a foreign tree names, nor show its links."""
    doc = (
        'def f(name):\n    """![x](http://example.org/x.png)\n\n    ````\n    ![y](http://example.org/y.png)\n    """\n'
    )
    editor.open("srv/salt/_states/evil.py", doc)
    text = editor.hover(SLS, "x:\n  evil.█f: []\n")
    fence = next(line for line in text.splitlines() if line.endswith("`text"))
    assert fence == "`````text", "the fence is longer than every run of backticks in the text"
    assert text.count(fence.removesuffix("text")) == 2
    assert text.index(fence) < text.index("![x]") < text.index("![y]") < text.rindex("`````")
