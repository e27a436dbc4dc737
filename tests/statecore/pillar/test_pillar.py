"""Pillar: merging, and error messages. test_as_salt.py compares the data with real Salt."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from statecore.pillar import PillarResult, compile_pillar
from statecore.sources.local_tree import LocalFiles

Compile = Callable[..., PillarResult]

TOP = "base:\n  '*': [a]\n"


@pytest.fixture
def pillar(tmp_path: Path) -> Compile:
    """pillar(files, dev=..., override=..., pillarenv=..., **options): the pillar of web1."""

    def compile_tree(
        files: Mapping[str, str],
        *,
        dev: Mapping[str, str] | None = None,
        override: Mapping[str, Any] | None = None,
        saltenv: str | None = None,
        pillarenv: str | None = None,
        **opts: Any,
    ) -> PillarResult:
        roots = {"base": {"top.sls": TOP, **files}} | ({"dev": dev} if dev is not None else {})
        for env, own in roots.items():
            for name, text in own.items():
                path = tmp_path / env / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        return compile_pillar(
            LocalFiles({env: [tmp_path / env] for env in roots}),
            minion_id="web1",
            grains={"os": "Debian"},
            opts=opts,
            functions={"test.echo": str},
            override=override,
            saltenv=saltenv,
            pillarenv=pillarenv,
        )

    return compile_tree


INCLUDES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "under the includer": ({"a.sls": "include: [b]\nx: a\n", "b.sls": "x: b\ny: b\n"}, {"x": "a", "y": "b"}),
    "later over earlier": ({"a.sls": "include: [b, c]\n", "b.sls": "x: b\n", "c.sls": "x: c\n"}, {"x": "c"}),
    "of includes": (
        {"a.sls": "include: [b]\n", "b.sls": "include: [c]\nx: b\n", "c.sls": "x: c\ny: c\n"},
        {"x": "b", "y": "c"},
    ),
    "under a key": ({"a.sls": "include:\n  - b: {key: 'p:q'}\n", "b.sls": "x: b\n"}, {"p": {"q": {"x": "b"}}}),
    "with defaults": ({"a.sls": "include:\n  - b: {defaults: {v: 5}}\n", "b.sls": "x: {{ v }}\n"}, {"x": 5}),
    "twice, with other defaults and keys": (
        {
            "a.sls": "include:\n  - b: {key: one, defaults: {v: 1}}\n  - b: {key: two, defaults: {v: 2}}\n",
            "b.sls": "x: {{ v }}\n",
        },
        {"one": {"x": 1}, "two": {"x": 2}},
    ),
    "again, below another key": (
        {"a.sls": "include:\n  - b\n  - b: {key: one}\n", "b.sls": "x: 1\n"},
        {"x": 1, "one": {"x": 1}},
    ),
    "of itself": ({"a.sls": "include: [a]\nx: a\n"}, {"x": "a"}),
    "in a circle": ({"a.sls": "include: [b]\nx: a\n", "b.sls": "include: [a]\nx: b\ny: b\n"}, {"x": "a", "y": "b"}),
    "globs": ({"a.sls": "include: ['c.*']\n", "c/x.sls": "x: 1\n", "c/y.sls": "y: 1\n"}, {"x": 1, "y": 1}),
    "relative": (
        {
            "a.sls": "include: [c, c.d]\n",
            "c/init.sls": "include: [.x]\n",
            "c/x.sls": "x: 1\n",
            "c/d.sls": "include: [..e]\n",
            "e.sls": "e: 1\n",
        },
        {"x": 1, "e": 1},
    ),
    "empty": ({"a.sls": "include: [b]\nx: 1\n", "b.sls": "# nothing\n"}, {"x": 1}),
}

ERRORS: dict[str, tuple[dict[str, str], dict[str, Any], list[str]]] = {
    "a reference to nothing": (
        {"top.sls": "base:\n  '*': [a, wbe]\n", "a.sls": "x: 1\n", "web.sls": ""},
        {"x": 1},
        ["Specified SLS 'wbe' in environment 'base' is not available on the salt master: the nearest is 'web'"],
    ),
    "an include of nothing": (
        {"a.sls": "include: [wbe]\nx: 1\n", "web.sls": ""},
        {"x": 1},
        ["Specified SLS 'wbe' in environment 'base' is not available on the salt master: the nearest is 'web'"],
    ),
    "Jinja": (
        {"a.sls": "x: 1\ny: {{ nothing }}\n"},
        {},
        ["Rendering SLS 'a' failed. Please see master log for details. (DIR/base/a.sls:2)"],
    ),
    "YAML of an include": (
        {"a.sls": "include: [b]\nx: 1\n", "b.sls": "y: [1\n"},
        {"x": 1},
        ["Rendering SLS 'b' failed. Please see master log for details. (DIR/base/b.sls:1)"],
    ),
    "no map": ({"a.sls": "- 1\n"}, {}, ["SLS 'a' does not render to a dictionary (DIR/base/a.sls:1)"]),
    "the top file": (
        {"top.sls": "base:\n  '*': [{{ nothing }}]\n", "a.sls": "x: 1\n"},
        {},
        ["Rendering Primary Top file failed, render error: Please see master log for details. (DIR/base/top.sls:2)"],
    ),
    "an include that is no list": (
        {"a.sls": "include: b\nx: 1\n"},
        {"x": 1},
        ["Include Declaration in SLS 'a' is not formed as a list"],
    ),
    "options of an include that are none": (
        {"a.sls": "include:\n  - b: c\nx: 1\n", "b.sls": "y: 1\n"},
        {"x": 1},
        ["The include of 'b' in SLS 'a' takes defaults and key, not 'c'"],
    ),
    "the same twice is told once": (
        {"a.sls": "include: [nothing, b]\n", "b.sls": "include: [nothing]\nx: 1\n"},
        {"x": 1},
        [
            "Specified SLS 'nothing' in environment 'base' is not available on the salt master:"
            " there is neither salt://nothing.sls nor salt://nothing/init.sls"
        ],
    ),
}


@pytest.mark.parametrize(("files", "expected"), INCLUDES.values(), ids=INCLUDES)
def test_includes(pillar: Compile, files: dict[str, str], expected: dict[str, Any]) -> None:
    assert pillar(files) == PillarResult(expected, ())


@pytest.mark.parametrize(("files", "data", "errors"), ERRORS.values(), ids=ERRORS)
def test_errors(
    pillar: Compile, tmp_path: Path, files: dict[str, str], data: dict[str, Any], errors: list[str]
) -> None:
    found = pillar(files)
    assert [error.replace(str(tmp_path), "DIR") for error in found.errors] == errors
    assert found.data == data


def test_what_is_wrong_is_for_the_log(pillar: Compile, caplog: pytest.LogCaptureFixture) -> None:
    """An error's text may quote another minion's data, so the minion gets only file and line."""
    files = {"a.sls": "{% set secret = 'hunter2' %}x: {{ raise(secret) }}\n"}
    with caplog.at_level(logging.ERROR):
        found = pillar(files)
    assert "hunter2" not in str(found.errors)
    assert "hunter2" in caplog.text


def test_what_is_wrong_is_told_where_that_is_wanted(pillar: Compile, tmp_path: Path) -> None:
    found = pillar({"a.sls": "\nx: {{ nothing }}\n"}, pillar_safe_render_error=False)
    assert found.errors == (
        "Rendering SLS 'a' failed, render error: Jinja variable 'nothing' is undefined; line 2"
        f" ({tmp_path}/base/a.sls:2)",
    )


def test_included_over_the_includer(pillar: Compile) -> None:
    files = {"a.sls": "include: [b]\nx: a\nz: a\n", "b.sls": "x: b\n"}
    assert pillar(files, pillar_includes_override_sls=True).data == {"x": "b", "z": "a"}


def test_the_override_is_laid_over_and_seen(pillar: Compile) -> None:
    found = pillar({"a.sls": "x: {{ pillar.get('v') }}\nmap: {p: 1}\n"}, override={"v": 7, "map": {"q": 2}})
    assert found.data == {"x": 7, "v": 7, "map": {"p": 1, "q": 2}}


def test_what_templates_see(pillar: Compile) -> None:
    text = "x: '{{ grains.os }} {{ opts.id }} {{ salt[\"test.echo\"](1) }} {{ sls }} {{ saltenv }} {{ tplfile }}'\n"
    assert pillar({"a.sls": text}).data == {"x": "Debian web1 1 a base a.sls"}


ENVIRONMENTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "all": ({}, {"x": "dev", "base": 1, "dev": 1}),
    "one of them": ({"pillarenv": "dev"}, {"x": "dev", "dev": 1}),
    "that of the states": ({"saltenv": "dev", "pillarenv_from_saltenv": True}, {"x": "dev", "dev": 1}),
    "that of the states says nothing else": ({"saltenv": "dev"}, {"x": "dev", "base": 1, "dev": 1}),
    "no merging": ({"pillar_source_merging_strategy": "none"}, {"x": "base", "base": 1}),
    "in an order": ({"env_order": ["dev", "base"]}, {"x": "base", "base": 1, "dev": 1}),
    "in an order that leaves one out": ({"env_order": ["dev"]}, {"x": "base", "base": 1, "dev": 1}),
}


@pytest.mark.parametrize(("options", "expected"), ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_environments(pillar: Compile, options: dict[str, Any], expected: dict[str, Any]) -> None:
    dev = {"top.sls": "dev:\n  '*': [d]\n", "d.sls": "x: dev\ndev: 1\n"}
    assert pillar({"a.sls": "x: base\nbase: 1\n"}, dev=dev, **options) == PillarResult(expected, ())


def test_an_unknown_strategy(pillar: Compile) -> None:
    found = pillar({"a.sls": "x: 1\n"}, pillar_source_merging_strategy="smrat")
    assert found.errors[0].startswith(
        "pillar_source_merging_strategy: Unknown merging strategy 'smrat'; there are smart"
    )


def test_what_may_be_missing(pillar: Compile) -> None:
    top = "base:\n  '*':\n    - ignore_missing: true\n    - nothing\n    - a\n"
    assert pillar({"top.sls": top, "a.sls": "x: 1\n"}) == PillarResult({"x": 1}, ())
