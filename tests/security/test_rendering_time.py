"""Finding 38.16: a minion's grains hold a worker, because the tree's expressions or templates run long over them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from saltern.kit.config.master import MasterOptions
from saltern.mworker.commands import pillar as pillar_command
from saltern.reactor.sls import ReactorSls
from statecore.model.errors import SlsError
from tests.services.mworker.conftest import Worker

pytestmark = pytest.mark.redis

EVIL = "a" * 60 + "!"

#: Expression that RE2 does not have, and loops over a number.
AHEAD = "(?=(a+)+$)"
LOOPS = "{% for i in range(grains.n) %}{% for j in range(grains.n) %}{% endfor %}{% endfor %}\nx: 1\n"

#: Seconds of CPU time: the master's limit in these tests, and the most that a request may take with it.
LIMIT = 1
MOST = 4.0


class Case(NamedTuple):
    """Files of pillar_roots, the grains that the minion sends, and the file and line that the error names."""

    files: dict[str, str]
    grains: dict[str, Any]
    place: str = ""


def sls(text: str, place: str = "", **grains: Any) -> Case:
    return Case({"top.sls": "base:\n  '*': [web]\n", "web.sls": text}, grains or {"g": EVIL}, place)


def top(text: str, place: str = "", **grains: Any) -> Case:
    return Case({"top.sls": text, "web.sls": "a: 1\n"}, grains or {"g": EVIL}, place)


#: Expressions that RE2 runs: the pillar is there in a moment, without an error.
LINEAR: dict[str, Case] = {
    "regex_match": sls("x: {{ grains.g | regex_match('(a+)+$') is none }}\n"),
    "regex_search": sls("x: {{ grains.g | regex_search('(a+)+$') is none }}\n"),
    "regex_replace": sls("x: {{ grains.g | regex_replace('(a+)+[$]', '') }}\n"),
    "the test match": sls("x: {{ grains.g is match('(a+)+$') }}\n"),
    "words": sls(r"x: {{ grains.g | regex_match('^(\\w+\\s?)+$') is none }}" + "\n"),
    "words that are not ASCII": sls(
        r"x: {{ grains.g | regex_match('^(\\w+\\s?)+$') is none }}" + "\n", g="\u00e9" + EVIL
    ),
    "case ignored": sls("x: {{ grains.g | regex_match('(A+)+$', ignorecase=True) is none }}\n"),
    "case ignored, not ASCII": sls(
        "x: {{ grains.g | regex_match('(A+)+$', ignorecase=True) is none }}\n", g=EVIL + "\u00e9"
    ),
    "several lines": sls("x: {{ grains.g | regex_search('^(a+)+$', multiline=True) is none }}\n"),
    "a newline at the end": sls("x: {{ grains.g | regex_match('(a+)+$') is none }}\n", g=EVIL + "\n"),
    "alternatives": sls("x: {{ grains.g | regex_match('(a|aa)+$') is none }}\n"),
    "a pcre of a grain in the top file": top(
        "base:\n  'g:(a+)+$':\n    - match: grain_pcre\n    - web\n  '*': [web]\n"
    ),
    "a pcre in a compound of the top file": top(
        "base:\n  'P@g:(a+)+$':\n    - match: compound\n    - web\n  '*': [web]\n"
    ),
    "a list of grains": top("base:\n  'g:(a+)+$':\n    - match: grain_pcre\n    - web\n  '*': [web]\n", g=[EVIL] * 20),
    "a node of grains": top(
        "base:\n  'g:h:(a+)+$':\n    - match: grain_pcre\n    - web\n  '*': [web]\n", g={"h": EVIL}
    ),
}

#: Expressions and loops that only the limit ends.
ENDLESS: dict[str, Case] = {
    "lookahead": sls("x: 1\ny: {{ grains.g | regex_match('(?=(a+)+$)') is none }}\n", "web.sls:2"),
    "a back reference": sls("x: {{ grains.g | regex_match('(a*)*\\\\1b') is none }}\n", "web.sls:1"),
    "a search with lookbehind": sls("\n\nx: {{ grains.g | regex_search('(?<=a)(a+)+$') is none }}\n", "web.sls:3"),
    "a replacement with lookahead": sls("x: {{ grains.g | regex_replace('(?=(a+)+$)', '') }}\n", "web.sls:1"),
    "an expression that the minion chose": sls(
        "x: {{ grains.g | regex_match(grains.e) is none }}\n", "web.sls:1", g=EVIL, e="(?=(a+)+$)"
    ),
    "lookahead in the top file": top("base:\n  'g:(?=(a+)+$)':\n    - match: grain_pcre\n    - web\n", "top.sls:2"),
    "lookahead in a compound": top("base:\n  'P@g:(?=(a+)+$)':\n    - match: compound\n    - web\n", "top.sls:2"),
    "loops over a number": sls(
        "{% for i in range(grains.n) %}{% for j in range(grains.n) %}{% endfor %}{% endfor %}\nx: 1\n",
        "web.sls:1",
        n=90_000,
    ),
    "Python": sls(
        "#!py\nimport re\ndef run():\n    return {'x': bool(re.match('(a+)+$', __grains__['g']))}\n", "web.sls:4"
    ),
    "Mako": sls("#!mako|yaml\n<% import re %>\nx: ${re.match('(a+)+$', grains['g'])}\n", "web.sls:3"),
    "an included template": Case(
        {
            "top.sls": "base:\n  '*': [web]\n",
            "web.sls": "{% import 'm.j2' as m %}\nx: {{ m.f(grains.g) }}\n",
            "m.j2": "\n{% macro f(g) %}{{ g | regex_match('(?=(a+)+$)') is none }}{% endmacro %}\n",
        },
        {"g": EVIL},
        "m.j2:2",
    ),
    "each of many files": Case(
        {
            "top.sls": "base:\n  '*': [" + ", ".join(f"f{n}" for n in range(50)) + "]\n",
            **{f"f{n}.sls": "x: {{ grains.g | regex_match('(?=(a+)+$)') is none }}\n" for n in range(50)},
        },
        {"g": EVIL},
        "f0.sls:1",
    ),
    "a file that includes others": Case(
        {
            "top.sls": "base:\n  '*': [web]\n",
            "web.sls": "include: [" + ", ".join(f"f{n}" for n in range(50)) + "]\n",
            **{f"f{n}.sls": "x: {{ grains.g | regex_match('(?=(a+)+$)') is none }}\n" for n in range(50)},
        },
        {"g": EVIL},
        "f0.sls:1",
    ),
    "many targets of the top file": top(
        "base:\n" + "".join(f"  'g:(?=(a+)+{n}$)':\n    - match: grain_pcre\n    - web\n" for n in range(50)),
        "top.sls:2",
    ),
}

PLUGIN = """
import re
def ext_pillar(minion_id, pillar, *args):
    return {"x": bool(re.match("(a+)+$", __grains__["g"]))}
"""
TOPS = """
import re
def top(**kwargs):
    return {"base": ["x"] if re.match("(a+)+$", kwargs["grains"]["g"]) else []}
"""


def written(base: Path, case: Case) -> None:
    for name, text in case.files.items():
        (base / "pillar" / name).write_text(text)


@pytest.mark.parametrize("case", LINEAR.values(), ids=list(LINEAR))
def test_an_expression_over_a_grain_is_linear(new_worker: Callable[..., Worker], tmp_path: Path, case: Case) -> None:
    minion = new_worker(master_render_time_limit=3).minion("web1")
    written(tmp_path, case)
    started = time.process_time()
    assert "_errors" not in minion.pillar(grains=case.grains)
    assert time.process_time() - started < 1.5


@pytest.mark.parametrize("case", ENDLESS.values(), ids=list(ENDLESS))
def test_a_pillar_has_a_limit_of_time(new_worker: Callable[..., Worker], tmp_path: Path, case: Case) -> None:
    worker = new_worker(master_render_time_limit=LIMIT)
    written(tmp_path, case)
    started = time.process_time()
    pillar = worker.minion("web1").pillar(grains=case.grains)
    assert time.process_time() - started < MOST
    assert any(case.place in error for error in pillar["_errors"]), pillar
    # The worker serves the next one.
    assert worker.minion("db1").ask("_mine_get", tgt="*", fun="f") == {}


def test_an_external_pillar_has_the_limit_too(new_worker: Callable[..., Worker], tmp_path: Path) -> None:
    (tmp_path / "extmods" / "pillar").mkdir(parents=True)
    (tmp_path / "extmods" / "pillar" / "slow.py").write_text(PLUGIN)
    worker = new_worker(master_render_time_limit=LIMIT, ext_pillar=[{"slow": [n]} for n in range(20)])
    started = time.process_time()
    pillar = worker.minion("web1").pillar(grains={"g": EVIL})
    assert time.process_time() - started < MOST
    assert any("master_render_time_limit" in error and "slow.py:4" in error for error in pillar["_errors"])


def test_a_tops_module_has_the_limit_too(new_worker: Callable[..., Worker], tmp_path: Path) -> None:
    (tmp_path / "extmods" / "tops").mkdir(parents=True)
    (tmp_path / "extmods" / "tops" / "slow.py").write_text(TOPS)
    worker = new_worker(master_render_time_limit=LIMIT, master_tops={"slow": True}, ext_pillar_timeout=3600)
    started = time.process_time()
    assert worker.minion("web1").ask("_master_tops", opts={"grains": {"g": EVIL}}) == {}
    assert time.process_time() - started < MOST


def test_a_slow_minion_is_not_compiled_again_at_once(
    new_worker: Callable[..., Worker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = new_worker(master_render_time_limit=LIMIT)
    written(tmp_path, ENDLESS["lookahead"])
    minion = worker.minion("web1")
    minion.pillar(grains={"g": EVIL})
    started = time.process_time()
    for _ in range(10):
        (error,) = minion.pillar(grains={"g": EVIL})["_errors"]
        assert "the master tries again in" in error
    assert time.process_time() - started < LIMIT
    # Another minion is not concerned, and later the minion is compiled again.
    assert "_errors" not in worker.minion("db1").pillar(grains={"g": "aaa"})
    worker.context.slow_pillars["web1"] = 0.0
    assert "_errors" not in minion.pillar(grains={"g": "aaa"})


def test_the_reactor_has_the_limit_too(tmp_path: Path) -> None:
    place = tmp_path / "r.sls"
    place.write_text("{{ data.x | regex_match('(?=(a+)+$)') }}\nx:\n  local.test.ping:\n    - tgt: '*'\n")
    options = MasterOptions(master_render_time_limit=LIMIT, file_roots={"base": [str(tmp_path)]})
    started = time.process_time()
    with pytest.raises(SlsError, match="takes longer than 1 seconds"):
        ReactorSls(options).chunks(place, "tag", {"x": EVIL})
    assert time.process_time() - started < MOST


@pytest.mark.ordinary
def test_memory_of_slow_minions_is_bounded(new_worker: Callable[..., Worker]) -> None:
    context = new_worker(master_render_time_limit=LIMIT).context
    context.slow_pillars.update({f"web{n}": 0.0 for n in range(2000)})
    pillar_command._note_time(context, "db1", LIMIT + 1.0)
    assert list(context.slow_pillars) == ["db1"]
