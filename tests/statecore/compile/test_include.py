"""The pass ``include``: which SLS files are rendered, in which order, and which includes are faults."""

from __future__ import annotations

import pytest

from .conftest import Compile, order, told

STATE = "{{ sls }}: test.nop\n"

ORDERS = {
    "before those that include": (
        {"a.sls": f"include: [b]\n{STATE}", "b.sls": f"include: [c]\n{STATE}", "c.sls": STATE},
        "c b a",
    ),
    "in the order of the list": ({"a.sls": f"include: [c, b]\n{STATE}", "b.sls": STATE, "c.sls": STATE}, "c b a"),
    "nothing twice": (
        {"a.sls": f"include: [b, c, b]\n{STATE}", "b.sls": f"include: [c]\n{STATE}", "c.sls": STATE},
        "c b a",
    ),
    "itself": ({"a.sls": f"include: [a, 'a*']\n{STATE}"}, "a"),
    "in a circle": ({"a.sls": f"include: [b]\n{STATE}", "b.sls": f"include: [a]\n{STATE}"}, "b a"),
    "globs, sorted": (
        {
            "a.sls": f"include: ['b.*', 'c?']\n{STATE}",
            "b/y.sls": STATE,
            "b/x.sls": STATE,
            "b/z/i.sls": STATE,
            "cc.sls": STATE,
        },
        "b.x b.y b.z.i cc a",
    ),
    "relative to the file": (
        {
            "a.sls": f"include: [w.s.x]\n{STATE}",
            "w/s/x.sls": f"include: [.y, ..z, ...b]\n{STATE}",
            "w/s/y.sls": STATE,
            "w/z.sls": STATE,
            "b.sls": STATE,
        },
        "w.s.y w.z b w.s.x a",
    ),
    "relative to the directory of an init": (
        {"a.sls": f"include: [w]\n{STATE}", "w/init.sls": f"include: [.x]\n{STATE}", "w/x.sls": STATE},
        "w.x w a",
    ),
    "a dot: the directory's init": (
        {"a.sls": f"include: [d.b]\n{STATE}", "d/b.sls": f"include: ['.']\n{STATE}", "d/init.sls": STATE},
        "d d.b a",
    ),
    "a dot: the directory's init, beside a file of its name": (
        {
            "a.sls": f"include: [d.b, d]\n{STATE}",
            "d/b.sls": f"include: ['.']\n{STATE}",
            "d.sls": "file: test.nop\n",
            "d/init.sls": "include: [.c, '.']\ndirectory: test.nop\n",
            "d/c.sls": STATE,
        },
        "d.c directory d.b file a",
    ),
    "a file before a directory of its name": (
        {"a.sls": f"include: [b]\n{STATE}", "b.sls": "file: test.nop\n", "b/init.sls": "directory: test.nop\n"},
        "file a",
    ),
}

FAULTS = {
    "missing, with what is near": (
        {"a.sls": "include:\n  - b\n  - wbe\n", "b.sls": "", "web.sls": ""},
        [
            "a.sls:3 Specified SLS wbe in saltenv base is not available on the salt master or through a configured fileserver"
        ],
        "the nearest is 'web'",
    ),
    "missing glob": (
        {"a.sls": "include: ['web.*']\n"},
        [
            "a.sls:1 Specified SLS web.* in saltenv base is not available on the salt master or through a configured fileserver"
        ],
        "there is neither salt://web/*.sls nor salt://web/*/init.sls",
    ),
    "not a list": (
        {"a.sls": "# comment\ninclude: b\n", "b.sls": ""},
        ["a.sls:2 Include Declaration in SLS a is not formed as a list"],
        "",
    ),
    "nothing below include": (
        {"a.sls": "# comment\ninclude:\nx: test.nop\n"},
        ["a.sls:2 Include Declaration in SLS a is not formed as a list"],
        "",
    ),
    "a number": (
        {"a.sls": "include:\n  - b\n  - 2024\n", "b.sls": ""},
        ["a.sls:3 An include of SLS 'a' is not an SLS or one environment: SLS"],
        "it is 2024",
    ),
    "a directory without init.sls": (
        {"a.sls": "include:\n  - b\n", "b/c.sls": ""},
        [
            "a.sls:2 Specified SLS b in saltenv base is not available on the salt master or through a configured fileserver"
        ],
        "there is neither salt://b.sls nor salt://b/init.sls",
    ),
    "beyond the top": (
        {"a.sls": "include:\n  - ..b\n"},
        ["a.sls:2 Attempted relative include of '..b' within SLS 'base:a' goes beyond top level package"],
        "",
    ),
    "no environment": (
        {"a.sls": "include:\n  - prod: b\n"},
        ["a.sls:2 Nonexistent saltenv 'prod' found in include of 'b' within SLS 'base:a'"],
        "",
    ),
    "two in one entry": (
        {"a.sls": "include:\n  - base: b\n    dev: c\n"},
        ["a.sls:1 An include of SLS 'a' is not an SLS or one environment: SLS"],
        "it is {'base': 'b', 'dev': 'c'}",
    ),
    "no environment of the run has it": (
        {"a.sls": "x: test.nop\n\ninclude:\n  - _xenv: b\n"},
        ["a.sls:4 Unknown include: Specified SLS _xenv: b is not available on the salt master in saltenv(s): base"],
        "",
    ),
    "cannot be rendered": (
        {"a.sls": "include: [b]\n", "b.sls": "x: test.nop\n{{ nothing }}\n"},
        ["b.sls:2 Rendering SLS 'base:b' failed: Jinja variable 'nothing' is undefined; line 2"],
        "",
    ),
    "through a template that moves lines": (
        {"a.sls": "{% for one in [1, 2, 3] %}\nid{{ one }}: test.nop\n{% endfor %}\ninclude:\n  - b\n"},
        [
            "a.sls:5 Specified SLS b in saltenv base is not available on the salt master or through a configured fileserver"
        ],
        "there is neither salt://b.sls nor salt://b/init.sls",
    ),
}


@pytest.mark.parametrize(("files", "expected"), ORDERS.values(), ids=ORDERS)
def test_order(compiled: Compile, files: dict[str, str], expected: str) -> None:
    found = compiled(files)
    assert told(found.faults) == []
    assert order(found) == expected.split()


@pytest.mark.parametrize(("files", "faults", "hint"), FAULTS.values(), ids=FAULTS)
def test_faults(compiled: Compile, files: dict[str, str], faults: list[str], hint: str) -> None:
    found = compiled(files)
    assert told(found.faults) == faults
    assert found.faults[0].hint == hint
    assert found.chunks == ()


def test_another_environment(compiled: Compile) -> None:
    """Includes of an SLS from another saltenv are searched in that saltenv."""
    found = compiled(
        {"a.sls": f"include:\n  - dev: b\n{STATE}", "c.sls": "base: test.nop\n"},
        dev={"b.sls": f"include: [c]\n{STATE}", "c.sls": "dev: test.nop\n"},
    )
    assert [(low["__id__"], low["__env__"]) for low in found.chunks] == [("dev", "dev"), ("b", "dev"), ("a", "base")]


def test_the_environment_that_has_it(compiled: Compile) -> None:
    found = compiled(
        {"a.sls": f"include:\n  - _xenv: b\n{STATE}"}, dev={"b.sls": STATE}, matches={"base": ["a"], "dev": ["b"]}
    )
    assert order(found) == ["b", "a"]


def test_two_environments_have_it(compiled: Compile) -> None:
    found = compiled(
        {"b.sls": STATE},
        dev={"a.sls": "include:\n  - _xenv: b\n", "b.sls": STATE},
        matches={"base": ["b"], "dev": ["a"]},
    )
    # The includer's own environment has it, so there is no doubt; one ID in two environments is one too many.
    assert told(found.faults) == ["b.sls:1 Detected conflicting IDs, SLS IDs need to be globally unique."]


def test_an_environment_that_is_not_there(compiled: Compile) -> None:
    found = compiled({"a.sls": STATE}, matches={"prod": ["a"]})
    assert told(found.faults) == ["No matching salt environment for environment 'prod' found"]
    assert found.faults[0].hint == "there is base"


def test_asked_for_but_missing(compiled: Compile) -> None:
    found = compiled({"web.sls": STATE}, matches={"base": ["wbe", "web"]})
    assert told(found.faults) == ["No matching sls found for 'wbe' in env 'base'"]
    assert found.faults[0].hint == "the nearest is 'web'"


def test_told_through_which_it_came(compiled: Compile) -> None:
    found = compiled({"a.sls": f"include: [b]\n{STATE}", "b.sls": f"include: [c]\n{STATE}", "c.sls": STATE})
    assert [low.get("__sls_included_from__") for low in found.chunks] == [["b", "a"], ["a"], None]
