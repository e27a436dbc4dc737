"""The renderer ``stateconf``, rendered and compiled beside real Salt."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from statecore.runtime.runtime import Runtime

from .conftest import fault_of

_HEAD = "#!stateconf -G yaml . jinja\n"

#: Path -> text of an SLS that both render.
CASES: dict[str, str] = {
    "config.sls": f"""{_HEAD}.sls_params:
  stateconf.set:
    - name1: value1
    - name2: value2
.extra:
  stateconf:
    - set
    - name: value
# --- end of state config ---
test:
  cmd.run:
    - name: echo name1={{{{sls_params.name1}}}} {{{{sls_params['name2']}}}} {{{{extra.name}}}}
    - cwd: /
""",
    "default-pipe.sls": "#!stateconf\n.web:\n  test.nop: []\n{% for n in 'ab' %}\n{{ n }}:\n  cmd.run:\n    - cwd: /\n"
    "{% endfor %}\n",
    "path/to/sls.sls": f"{_HEAD}test:\n  cmd.run:\n    - name: '{{{{ sls_dir }}}} {{{{ slspath }}}} {{{{ sls }}}}'\n",
    "top-dir.sls": f"{_HEAD}test:\n  cmd.run:\n    - name: '{{{{ sls_dir }}}}'\n",
    "short.sls": f"{_HEAD}test1:\n  pkg.installed\n.test2:\n  user.present\n",
    "names.sls": f"{_HEAD}.test:\n  pkg.installed:\n    - cwd: /\n.test2:\n  pkg.installed:\n    - name: vim\n.c:\n"
    f"  stateconf.set: []\n",
    "order-of-ids.sls": f"{_HEAD}.a:\n  test.nop: []\nb:\n  test.nop: []\n.c:\n  test.nop: []\nd:\n  test.nop: []\n",
    "references.sls": _HEAD
    + ".test:\n  cmd.run: []\n"
    + "".join(
        f"{name}{end}:\n  cmd.run:\n    - {name}{end}:\n      - cmd: .test\n      - cmd: other\n      - .plain\n"
        for name in ("require", "watch", "use", "listen", "onchanges", "onfail", "prereq", "require_any")
        for end in ("", "_in")
    ),
    "a/work.sls": f"""{_HEAD}include:
  - some.helper
  - .utils
  - dev: .other
exclude:
  - sls: .never
  - id: x
id:
  cmd.run:
    - require:
      - cmd: .utils::state
extend:
  .utils::some:
    cmd.run:
      - name: overridden
      - watch:
        - cmd: .mine
  .utils::named:
    cmd.run: []
  .mine:
    stateconf.set:
      - x: 1
""",
    "a/b/deep.sls": f"{_HEAD}include:\n  - .shared\n  - ..utils\n  - ...helper\nid:\n  cmd.run:\n    - require:\n"
    f"      - cmd: ..utils::x\n",
    "a/init.sls": f"{_HEAD}include:\n  - .c\n.x:\n  test.nop: []\n",
    "start.sls": "#!stateconf -s -o yaml . jinja\nA:\n  cmd.run:\n    - cwd: /\nB:\n  cmd.run:\n    - cwd: /\n",
    "goal.sls": "#!stateconf\n{% for n in 'AB' %}\n{{n}}:\n  cmd.run: []\n  file.managed: []\n{% endfor %}\nextend:\n"
    "  x:\n    cmd.run: []\n",
    "ordered.sls": """#!stateconf -o yaml . jinja
{% for n in 'ABC' %}
{{n}}:
  cmd.run:
    - cwd: /
{% endfor %}
F:
  cmd.run:
    - require:
      - cmd: A
      - cmd: B
.G:
  file.managed:
    - watch:
      - cmd: C
  cmd.run: []
""",
    "clustered.sls": "#!stateconf -Gos\nA:\n  test.nop: []\n.B:\n  test.nop: []\n",
    "high.sls": "#!jinja|yaml|stateconf -p\n.A:\n  test.nop: []\nB:\n  test.nop:\n    - require:\n      - test: .A\n",
    "high-start.sls": "#!yaml|stateconf -psG\n.A:\n  test.nop: []\n",
    "json.sls": '#!stateconf -G json . jinja\n{".a": {"cmd.run": [{"cwd": "{{ 1 }}"}]}}\n',
    "escaped-dot.sls": f"{_HEAD}# -- end of state config --\n.a.b:\n  test.nop: []\n",
    "empty.sls": "#!stateconf\n",
    "a-map.sls": f"{_HEAD}a:\n  test.nop:\n    x: 1\n",
    "marker.sls": f"{_HEAD}.p:\n  stateconf.set:\n    - l: [1, 2]\n#---end of state config---\n{{% for n in p.l %}}\n"
    f"a{{{{ n }}}}:\n  test.nop: []\n{{% endfor %}}\n",
}

#: What fails in both: text, our message in part, our line.
FAULTS: dict[str, tuple[str, str, int]] = {
    "beyond": (f"{_HEAD}include:\n  - ...shared\n", "goes beyond top level package", 0),
    "unknown option": ("#!stateconf -x yaml . jinja\na:\n  test.nop: []\n", "option -x not recognized", 1),
    "one renderer": ("#!stateconf yaml\na:\n  test.nop: []\n", "does not name two renderers", 1),
    "unknown renderer": ("#!stateconf nope . jinja\na:\n  test.nop: []\n", "Renderer: 'nope' is not available!", 1),
    "ordered json": ("#!stateconf -o json . jinja\n{}\n", "Implicit ordering is only supported if", 1),
    "ordered names": (
        "#!stateconf -o yaml . jinja\na:\n  test.nop:\n    - names: [x]\n",
        "'names' declaration(found in state id: a) is not supported with implicitly ordered states!",
        0,
    ),
    "against the order": (
        "#!stateconf -o yaml . jinja\na:\n  cmd.run:\n    - require:\n      - cmd: b\nb:\n  cmd.run: []\n",
        "State(a:cmd) can't require/watch/listen/onchanges/onfail a state(b:cmd) defined after it!",
        0,
    ),
    "against the order, in": (
        "#!stateconf -o yaml . jinja\na:\n  cmd.run: []\nb:\n  cmd.run:\n    - watch_in:\n      - cmd: a\n",
        "a state(a:cmd) defined before it!",
        0,
    ),
    "goal taken": ("#!stateconf\n.goal:\n  test.nop: []\n", "Can't generate goal state(.goal)!", 0),
    "start taken": ("#!stateconf -s yaml . jinja\n.start:\n  test.nop: []\n", "Can't generate start state(.start)!", 0),
    "id taken": (f"{_HEAD}.x:\n  test.nop: []\na::x:\n  test.nop: []\n", "Can't rename state id(.x) into a::x", 0),
    "template": (f"{_HEAD}a:\n  test.nop: []\n{{{{ undefined_name }}}}\n", "'undefined_name' is undefined", 4),
    "YAML": (f"{_HEAD}{{% if 1 %}}\n{{% endif %}}\na: [\n", "", 4),
    "no map": (f"{_HEAD}- a\n", "must render to a map", 1),
}

#: A tree whose SLS files extend each other's configuration.
TREE: dict[str, str | bytes] = {
    "web/init.sls": """#!stateconf
include:
  - .db
extend:
  .db::params:
    stateconf.set:
      - port: 9
      - require:
        - test: own
own:
  test.nop: []
needs:
  test.nop:
    - require:
      - stateconf: .db::goal
""",
    "db.sls": """#!stateconf yaml . jinja
.params:
  stateconf.set:
    - port: 1
    - host: h
    - require:
      - test: other
# -- end of state config --
other:
  test.nop: []
.one:
  test.configurable_test_state:
    - comment: '{{ params.port }} {{ params.host }}'
two:
  test.nop: []
""",
    "both.sls": "include:\n  - web\n",
}


def _sls(name: str) -> str:
    return name.removesuffix(".sls").replace("/init", "").replace("/", ".")


@pytest.fixture(scope="module")
def salts(ask_salt: Any) -> dict[str, Any]:
    """Map of name to Salt's result."""
    files = {**CASES, **{f"f{at}/a.sls": text for at, (text, *_) in enumerate(FAULTS.values())}}
    asks = [["sls", name, _sls(name), {}] for name in CASES]
    asks += [["sls", f"f{at}/a.sls", "a", {}] for at in range(len(FAULTS))]
    return dict(zip(files, ask_salt(files, asks), strict=True))


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_as_salt(name: str, salts: Mapping[str, Any], own_runtime: Callable[..., Runtime]) -> None:
    kind, value = salts[name]
    assert kind == "value", value
    tree = own_runtime(CASES).contexts.run_context({}).tree
    own = json.loads(json.dumps(tree._data(tree.source(_sls(name), "base"))))
    assert list(own.items()) == list(value.items())


@pytest.mark.oracle
@pytest.mark.parametrize("at", range(len(FAULTS)), ids=FAULTS)
def test_salt_fails_too(at: int, salts: Mapping[str, Any]) -> None:
    kind, value = salts[f"f{at}/a.sls"]
    assert kind == "error", value


@pytest.mark.parametrize(("text", "expected", "line"), FAULTS.values(), ids=FAULTS)
def test_faults(text: str, expected: str, line: int, own_runtime: Callable[..., Runtime]) -> None:
    tree = own_runtime({"a.sls": text}).contexts.run_context({}).tree
    place, message, _ = fault_of(lambda: tree.render("a", "base"))
    assert expected in message
    assert place == f"a.sls:{line}"


@pytest.mark.oracle
@pytest.mark.parametrize("sls", ["both", "web"])
def test_compiled_as_salt(sls: str, ask_salt: Any, own_runtime: Callable[..., Runtime]) -> None:
    files = {"web/init.sls": TREE["web/init.sls"], "db.sls": TREE["db.sls"], "both.sls": TREE["both.sls"]}
    ((kind, value),) = ask_salt(files, [["call", "state.sls", [sls], {}]])
    assert kind == "value", value
    own = own_runtime(files).call("state.sls", [sls], {}).value
    assert isinstance(own, dict)
    assert _results(own) == _results(value)
    assert own["test_|-db::one_|-one_|-configurable_test_state"]["comment"] == "9 h"


def _results(running: Mapping[str, Any]) -> dict[str, Any]:
    return {
        tag: [
            each.get(key) for key in ("name", "result", "comment", "changes", "__sls__", "__run_num__", "__state_ran__")
        ]
        for tag, each in running.items()
    }


def test_a_run(own_runtime: Callable[..., Runtime]) -> None:
    running = own_runtime(TREE).call("state.apply", ["both"], {}).value
    assert isinstance(running, dict)
    assert all(each["result"] for each in running.values())
    order = [each["__id__"] for each in sorted(running.values(), key=lambda each: each["__run_num__"])]
    assert order.index("other") < order.index("db::one") < order.index("db::goal") < order.index("needs")


def test_lines_of_faults(own_runtime: Callable[..., Runtime]) -> None:
    text = (
        f"{_HEAD}{{% for n in [1] %}}\nfirst:\n  test.nop: []\n{{% endfor %}}\n.web:\n  test.nop:\n"
        f"    - require:\n      - test: none\n"
    )
    told = own_runtime({"d/a.sls": text}).call("state.apply", ["d.a"], {}).value
    assert isinstance(told, list)
    assert "a.sls:9" in told[0] or "a.sls:8" in told[0]


def test_a_template_that_is_a_users(own_runtime: Callable[..., Runtime]) -> None:
    shout = (
        "def render(data, saltenv='base', sls='', argline='', **kwargs):\n"
        "    return data.read().replace('@', argline)\n"
    )
    files = {"a.sls": "#!stateconf -G yaml . mine arg\nx@:\n  test.nop: []\n", "../extmods/renderers/mine.py": shout}
    tree = own_runtime(files).contexts.run_context({}).tree
    assert list(tree.render("a", "base").high) == ["xarg"]
