"""Templates of managed files: ``template: jinja``, ``mako`` and ``py``, their variables, and the lines of their
errors.
"""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Plant, fault_of

FILES = {
    "web/lib.jinja": "{% set v = 7 %}",
    "web/part.mako": "part ${own}",
    "x.sls": "",
}

#: Engine, text -> what it renders to, with ``own: 1`` in its context.
RENDERED: dict[str, tuple[str, str, str]] = {
    "jinja": ("jinja", "{{ own }} {{ grains.os }} {{ saltenv }} {{ env }}\n", "1 Debian base base\n"),
    "jinja, functions": ("jinja", "{{ salt['test.echo']('a') }}{{ pillar.p }}", "av"),
    "jinja, where it is": ("jinja", "{{ tplfile }} {{ tpldir }} {{ tpldot }}", "web/x.conf web web"),
    "jinja, relative": ("jinja", "{% from './lib.jinja' import v %}{{ v }}", "7"),
    "jinja, a header": ("jinja", '#jinja2: {"trim_blocks": true}\n{% if 1 %}\nx\n{% endif %}\n', "x\n\n"),
    "jinja, a program": ("jinja", "#!/bin/sh\necho {{ own }}\n", "#!/bin/sh\necho 1\n"),
    "jinja, nothing in it": ("jinja", "a\n\n\n", "a\n\n\n"),
    "jinja, carriage returns": ("jinja", "a\r\n{{ own }}\r\n", "a\n1\n"),
    "mako": ("mako", "${own} ${grains['os']}\n% if own:\nyes\n% endif\n", "1 Debian\nyes\n"),
    "mako, functions": ("mako", "${salt['test.echo']('a')}${pillar['p']}", "av"),
    "mako, relative": ("mako", '<%include file="part.mako"/>', "part 1"),
    "py": (
        "py",
        'def run():\n    return f\'{own} {__grains__["os"]} {saltenv} {context["own"]}\'\n',
        "1 Debian base 1",
    ),
    "py, functions": ("py", "def run():\n    return __salt__['test.echo']('a') + __pillar__['p']\n", "av"),
    "py, bytes": ("py", "def run():\n    return b'x'\n", "x"),
}

FAULTS: dict[str, tuple[str, str, tuple[str, str]]] = {
    "jinja": ("jinja", "a\n{{ nothing }}\n", ("x.conf:2", "Jinja variable 'nothing' is undefined")),
    "mako": ("mako", "a\n${nothing}\n", ("x.conf:2", "Mako error: 'nothing' is not defined (NameError)")),
    "py": ("py", "def run():\n    return 1 / 0\n", ("x.conf:2", "division by zero (ZeroDivisionError)")),
    "py without run": ("py", "x = 1\n", ("x.conf:1", "a #!py file must define run()")),
    "an engine that is not there": ("cheetah", "x", ("x.conf:0", "'cheetah' is not a template engine")),
}


def _render(plant: Plant, engine: str, text: str, **context: Any) -> str:
    tree = plant(FILES, pillar={"p": "v"})
    return tree.templates.render(text, engine, context, saltenv="base", source="salt://web/x.conf")


@pytest.mark.parametrize(("engine", "text", "expected"), RENDERED.values(), ids=RENDERED)
def test_rendered(planted: Plant, engine: str, text: str, expected: str) -> None:
    assert _render(planted, engine, text, own=1) == expected


@pytest.mark.parametrize(("engine", "text", "expected"), FAULTS.values(), ids=FAULTS)
def test_faults(planted: Plant, engine: str, text: str, expected: tuple[str, str]) -> None:
    place, message, _ = fault_of(lambda: _render(planted, engine, text, own=1))
    assert place == expected[0]
    assert message.startswith(expected[1])


def test_the_context_goes_before_our_names(planted: Plant) -> None:
    assert _render(planted, "jinja", "{{ saltenv }} {{ tpldir }}", saltenv="mine", tpldir="here") == "mine here"


def test_a_text_is_compiled_once(planted: Plant) -> None:
    """A template used by a thousand files is compiled once, and each file has its own context."""
    templates = planted(FILES).templates
    seen = [
        templates.render("{{ n }}", "jinja", {"n": n}, saltenv="base", source="salt://web/x.conf") for n in range(3)
    ]
    assert seen == ["0", "1", "2"]
    (env,) = templates._pipes.jinja._engine._environments.values()
    assert len(env.memory._codes._made) == 1
