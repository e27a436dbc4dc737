"""Harmful input to the renderers: every case must end in time with an error that has a file and line, without a
traceback.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from statecore.model import time_limit
from statecore.model.errors import SlsError
from statecore.runtime.runtime import Runtime

from .conftest import Plant, fault_of

#: Seconds that a template may compute in these tests.
LIMIT = 0.3

#: Template without end -> its line, and what is told.
ENDLESS: dict[str, tuple[str, int, str]] = {
    "loops in loops": (
        "a: 1\n{% for i in range(100000) %}\n{% for j in range(100000) %}\n{% set x = j %}{% endfor %}{% endfor %}\n",
        3,
        "takes longer",
    ),
    "a list that grows while it is walked over": (
        "{% set l = [1] %}\n{% for x in l %}{% do l.append(x) %}{% endfor %}\n",
        2,
        "takes longer",
    ),
    "a filter of a loop": (
        "\n{% for i in range(100000) %}\n{% for x in range(100000) if x == -1 %}{% endfor %}{% endfor %}\n",
        3,
        "takes longer",
    ),
    "a macro that calls itself twice": (
        "{% macro m(n) %}\n{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}\n{{ m(90) }}\n",
        2,
        "takes longer",
    ),
    "includes in loops": (
        "{% for i in range(100000) %}\n{% for j in range(100000) %}{% include 'empty.j2' %}{% endfor %}{% endfor %}\n",
        2,
        "takes longer",
    ),
    "in an imported file": ("\n{% import 'endless.j2' as e %}\n{{ e.m() }}\n", 3, "takes longer"),
    "in a block of data": (
        "{% load_yaml as d %}\n{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}\n{% endload %}",
        2,
        "takes longer",
    ),
    "a macro that calls itself": ("{% macro m() %}{{ m() }}{% endmacro %}\n\n{{ m() }}\n", 3, "without end"),
    "a loop that calls itself": ("\n{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}\n", 2, "without end"),
    "a file that includes itself": ("\n\n{% include 'a.sls' %}\n", 3, "without end"),
    "a range": ("\n{% for i in range(10 ** 12) %}{% endfor %}\n", 2, "Range too big"),
    "a product": ("\n{{ 'a' * 10 ** 12 }}\n", 2, "would be too large"),
    "all pairs, in a list": ("\n{{ range(99999) | product(range(99999)) | list }}\n", 2, "product: more than 1000000"),
    "products of products": ("\n{{ [0, 1] | product(repeat=10000000) | list }}\n", 2, "product: more than"),
    "permutations": ("\n{{ range(99999) | permutations | list }}\n", 2, "permutations: more than"),
    "combinations": ("\n{{ range(99999) | combinations(50000) | list }}\n", 2, "combinations: more than"),
    "combinations with replacement": (
        "\n{{ range(9999) | combinations_with_replacement(9999) | list }}\n",
        2,
        "combinations_with_replacement: more than",
    ),
    "a power": ("\n{{ 10 ** (10 ** 10) }}\n", 2, "would be too large"),
    "a network": ("\n{{ '2001:db8::/64' | network_hosts }}\n", 2, "too many to list"),
}

_LIBRARY = {
    "empty.j2": "",
    "endless.j2": (
        "{% macro m() %}\n\n{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}{% endmacro %}"
    ),
}


@pytest.mark.parametrize(("text", "line", "told"), ENDLESS.values(), ids=ENDLESS)
def test_templates_without_end(planted: Plant, text: str, line: int, told: str) -> None:
    # What ends at a bound of its own has time to come to it: collecting the garbage of this whole process counts, too.
    limit = LIMIT if told == "takes longer" else 10 * LIMIT
    tree = planted({"a.sls": text, **_LIBRARY}, opts={"jinja_time_limit": limit})
    began = time.thread_time()
    place, message, _ = fault_of(lambda: tree.render("a", "base"))
    assert time.thread_time() - began < 20 * LIMIT
    assert told in message
    assert place == ("endless.j2:3" if "endless" in text else f"a.sls:{line}")


#: Computing that comes back to no turn of a loop of Jinja's, by renderer -> the last line of its loop, and what is
#: told.
UNTURNED: dict[str, tuple[str, int, str]] = {
    "a regular expression": (
        "\n{{ ('a' * 40 ~ 'b') | regex_match('(?=(a+)+$)') }}\n",
        2,
        "Jinja error: rendering takes longer",
    ),
    "in an imported file": ("\n\n{% import 'slow.j2' as slow %}\n", 2, "Jinja error: rendering takes longer"),
    "a function": ("\n\n{{ salt['spin.forever']() }}\n", 3, "Jinja error: rendering takes longer"),
    "py": ("#!py\ndef run():\n    while True:\n        pass\n", 4, "rendering takes longer"),
    "py, before run": (
        "#!py\nimport itertools\n\nfor x in itertools.count():\n    pass\n",
        5,
        "rendering takes longer",
    ),
    "py that catches all": (
        "#!py\ndef run():\n    while True:\n        try:\n            len('x')\n        except Exception: pass\n",
        6,
        "rendering takes longer",
    ),
    "py, a regular expression": (
        "#!py\nimport re\n\ndef run():\n    return re.match('(a+)+$', 'a' * 40 + 'b')\n",
        5,
        "rendering takes longer",
    ),
    "mako": (
        "#!mako|yaml\nx: 1\n% for x in iter(int, 1):\n${'' if x else ''}\\\n% endfor\n",
        4,
        "Mako error: rendering takes",
    ),
    "a user's": ("#!spin|yaml\nx: 1\n", 3, "the renderer 'spin': rendering takes longer"),
}

#: What grows without end: text -> its line, and what is told.
GROWING: dict[str, tuple[str, int, str]] = {
    "a text, doubled": (
        "{% set n = namespace(x='abcdefgh' * 100000) %}\n{% for i in range(99999) %}\n{% set n.x = n.x ~ n.x %}\n{% endfor %}",
        3,
        "Jinja error: rendering takes more than 64 MiB of memory: a text or a list that grows without end?",
    ),
    "a text, added": (
        "{% set n = namespace(x='abcdefgh' * 100000) %}\n{% for i in range(99999) %}{% set n.x = n.x + n.x %}{% endfor %}",
        2,
        "Jinja error: rendering takes more than 64 MiB",
    ),
    "a list": (
        "{% set x = [1] * 100000 %}\n\n{% for i in range(99999) %}{% do x.extend(x) %}{% endfor %}",
        3,
        "Jinja error: rendering takes more than 64 MiB",
    ),
    "py": ("#!py\ndef run():\n    x = ['a']\n    while True:\n        x += x\n", 5, "rendering takes more than 64 MiB"),
    "mako": (
        "#!mako|yaml\n<% x = ['a'] %>\n% for i in range(99999):\n<% x += x %>\n% endfor\n",
        5,
        "Mako error: rendering takes more than 64 MiB",
    ),
}


@pytest.mark.parametrize(("text", "line", "told"), GROWING.values(), ids=GROWING)
def test_memory_without_end(own_runtime: Any, monkeypatch: pytest.MonkeyPatch, text: str, line: int, told: str) -> None:
    monkeypatch.setattr(time_limit, "_GROWTH", 64 << 20)
    runtime: Runtime = own_runtime({"a.sls": text, "b.sls": "{{ 'b' }}: test.nop\n"})
    (said,) = runtime.call("state.show_sls", ["a"]).value
    assert told in said
    # A loop of several lines may be in any of them.
    assert line - 1 <= int(re.findall(r"a\.sls:(\d+)", said)[-1]) <= line
    assert list(runtime.call("state.show_sls", ["b"]).value) == ["b"]


_SPINS = "def render(data, saltenv='base', sls='', **kwargs):\n    while True:\n        pass\n"


@pytest.mark.parametrize(("text", "line", "told"), UNTURNED.values(), ids=UNTURNED)
def test_computing_without_end(own_runtime: Any, text: str, line: int, told: str) -> None:
    files = {
        "a.sls": text,
        "b.sls": "{% for i in range(300) %}k{{ i }}: test.nop\n{% endfor %}",
        "slow.j2": "\n{{ ('a' * 40 ~ 'b') | regex_match('(?=(a+)+$)') }}",
        "../extmods/renderers/spin.py": _SPINS,
        "../extmods/modules/spin.py": "def forever():\n    while True:\n        pass\n",
    }
    runtime: Runtime = own_runtime(files, jinja_time_limit=LIMIT)
    began = time.process_time()
    (said,) = runtime.call("state.show_sls", ["a"]).value
    assert time.process_time() - began < 10
    assert told in said
    assert "jinja_time_limit" in said
    file = "slow.j2" if "slow" in text else "spin.py" if "spin|" in text else "a.sls"
    places = [int(number) for number in re.findall(rf"{file}:(\d+)", said)]
    # A loop of several lines may be in any of them.
    assert places
    assert line - 3 <= places[-1] <= line
    # Whatever was interrupted, what comes behind it is whole.
    assert len(runtime.call("state.show_sls", ["b"]).value) == 300


def test_what_cannot_be_interrupted_ends_with_its_process(tmp_path: Path) -> None:
    """A loop in C ignores Python's signals.

    Its process is killed, because one dead job is better than one that never ends.
    """
    code = (
        "from statecore.model import time_limit\nfrom itertools import repeat\n"
        "time_limit._GRACE = 0.5\n"
        "with time_limit.computing_limit(0.1):\n"
        "    sum(repeat(1))\n"
    )
    script = tmp_path / "endless.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGVTALRM
    assert f'File "{script}", line 5' in done.stderr


def test_arrangements_of_what_is_few(planted: Plant) -> None:
    text = (
        "{{ [[1, 2] | product([3], repeat=2) | list | length, [] | product(range(99999), range(99999)) | list | length,"
        " [7] | product(repeat=1000) | list | length, range(9) | permutations | list | length,"
        " range(3) | permutations(5) | list | length, range(1000) | combinations(2) | list | length,"
        " range(99999) | combinations(99999) | list | length, range(3) | combinations(5) | list | length,"
        " [1, 2] | combinations_with_replacement(3) | list | length] }}\n"
    )
    data = planted({"a.sls": f"x: {text}"}).data("a", "base", {})
    assert data == {"x": [4, 0, 1, 362880, 0, 499500, 1, 0, 4]}


def test_after_one_without_end_others_are_rendered(planted: Plant) -> None:
    tree = planted(
        {"a.sls": ENDLESS["loops in loops"][0], "b.sls": "{% for i in range(300) %}k{{ i }}: 1\n{% endfor %}"},
        opts={"jinja_time_limit": LIMIT},
    )
    fault_of(lambda: tree.render("a", "base"))
    assert len(tree.render("b", "base").high) == 300


def test_waiting_is_no_computing(planted: Plant) -> None:
    """Time in which a function waits (for a command or request) does not count towards the limit."""
    tree = planted({"a.sls": "{% for i in range(250) %}{% if i == 100 %}{{ wait() }}{% endif %}{% endfor %}x: 1\n"})
    assert tree.data("a", "base", {"wait": lambda: time.sleep(LIMIT + 0.1) or ""}) == {"x": 1}


def test_a_template_in_a_template_has_the_time_that_is_left(own_runtime: Any) -> None:
    inner = "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}"
    outer = (
        "{% for i in range(100) %}\n{{ salt['slsutil.renderer'](string=inner, default_renderer='jinja') }}{% endfor %}"
    )
    runtime: Runtime = own_runtime({"a.sls": f"{{% set inner = '{inner}' %}}{outer}"}, jinja_time_limit=LIMIT)
    began = time.thread_time()
    with pytest.raises(SlsError, match=r"takes longer than 0\.3 seconds"):
        runtime.context.templates.data("{% set inner = '" + inner + "' %}" + outer, "jinja", {}, saltenv="base")
    assert time.thread_time() - began < 20 * LIMIT


#: Path -> bytes of a tree, whose SLS a is asked for -> place and words.
FILES: dict[str, tuple[dict[str, bytes], str, str]] = {
    "no UTF-8": ({"a.sls": b"x:\n  y: \xff\n"}, "a.sls:2", "SLS 'base:a' is not UTF-8 text: byte 8"),
    "no UTF-8, imported": (
        {"a.sls": b"\n{% import 'b.j2' as b %}\n", "b.j2": b"\xff"},
        "a.sls:2",
        "b.j2 is not UTF-8 text: byte 0",
    ),
    "no UTF-8, imported data": (
        {"a.sls": b"\n\n{% import_yaml 'b.yaml' as b %}\n", "b.yaml": b"a: \xff\n"},
        "a.sls:3",
        "b.yaml is not UTF-8 text: byte 3",
    ),
    "UTF-16": ({"a.sls": "x: y\n".encode("utf-16")}, "a.sls:1", "SLS 'base:a' is not UTF-8 text: byte 0"),
    "control characters": ({"a.sls": b"x: y\x00\n"}, "a.sls:1", "control characters are not allowed"),
    "a directory": ({"a.sls/x": b""}, ":", "No matching sls found for 'a' in env 'base'"),
    "a directory, imported": ({"a.sls": b"{% import_yaml 'd' as d %}\n", "d/x": b""}, "a.sls:1", "d is not in saltenv"),
    "a list": ({"a.sls": b"- x\n"}, "a.sls:1", "SLS a does not render to a dictionary"),
    "a text": ({"a.sls": b"x\n"}, "a.sls:1", "SLS a does not render to a dictionary"),
    "a number": ({"a.sls": b"5\n"}, "a.sls:1", "SLS a does not render to a dictionary"),
    "a map as key": ({"a.sls": b"x: {{ '{{' }} y }}\n"}, "a.sls:1", "found unacceptable key"),
    "aliases that multiply": (
        {
            "a.sls": b"a: &a [x,x,x,x,x,x,x,x,x,x]\n"
            + b"".join(b"%c: &%c [%s]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 10)) for n in range(9))
        },
        "a.sls:5",
        "aliases repeat more than 100000 values",
    ),
    "depth": ({"a.sls": b"x: " + b"[" * 100_000}, "a.sls:1", "nests deeper than 200 levels"),
    "depth of JSON": ({"a.sls": b"#!json\n" + b"[" * 100_000}, "a.sls:0", "not JSON: it nests too deep"),
    "depth of TOML": ({"a.sls": b"#!toml\nx = " + b"[" * 100_000}, "a.sls:0", "not TOML: it nests too deep"),
    "depth of msgpack": ({"a.sls": b"#!msgpack\n" + b"\x91" * 100_000}, "a.sls:0", "not msgpack"),
    "depth of Jinja": ({"a.sls": b"\n{{ " + b"(" * 5000 + b"1" + b")" * 5000 + b" }}"}, "a.sls:2", "it nests too deep"),
    "what begins like Jinja": ({"a.sls": b"x:\n" + b"{" * 100_000}, "a.sls:2", "it nests too deep"),
    "depth of Jinja's code": ({"a.sls": b"\n{{ " + b"1 + " * 5000 + b"1 }}"}, "a.sls:0", "it nests too deep"),
    "a template that gives what is no text": (
        {"a.sls": b"#!py\ndef run():\n    return 5\n"},
        "a.sls:1",
        "does not render",
    ),
    "a py that ends the process": (
        {"a.sls": b"#!py\nimport sys\ndef run():\n    sys.exit(3)\n"},
        "a.sls:4",
        "3 (SystemExit)",
    ),
}


@pytest.fixture
def denied(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Make reading fail with "permission denied" for some names.

    Needed because root, who may run the tests, can read all files.
    """
    names: set[str] = set()
    for way in ("read_bytes", "read_text"):
        read = getattr(Path, way)

        def refusing(path: Path, *args: Any, read: Any = read) -> Any:
            if path.name in names:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return read(path, *args)

        monkeypatch.setattr(Path, way, refusing)
    return names


@pytest.mark.parametrize(
    ("name", "text", "place", "words"),
    [
        ("a.sls", "", "a.sls:0", "SLS 'base:a' cannot be read: Permission denied"),
        ("b.j2", "\n{% include 'b.j2' %}\n", "a.sls:2", "b.j2 cannot be read: Permission denied"),
        ("b.yaml", "\n{% import_yaml 'b.yaml' as b %}\n", "a.sls:2", "b.yaml cannot be read: Permission denied"),
        ("top.sls", "", "top.sls:0", "cannot be read: Permission denied"),
    ],
)
def test_what_cannot_be_read(planted: Plant, denied: set[str], name: str, text: str, place: str, words: str) -> None:
    tree = planted({"a.sls": text, "b.j2": "", "b.yaml": "", "top.sls": "base: {}\n"})
    denied.add(name)
    found = fault_of(tree.top if name == "top.sls" else lambda: tree.render("a", "base"))
    assert found[0] == place
    assert words in found[1]


def test_a_file_that_cannot_be_read_is_a_finding(own_runtime: Any, denied: set[str]) -> None:
    runtime: Runtime = own_runtime(
        {"a.sls": "", "lib/b.jinja": "{{ 1 }}", "c.sls": "x:\n  test.configurable_test_state:\n    - nmae: 1\n"}
    )
    denied |= {"a.sls", "b.jinja"}
    told = str(runtime.call("state.check", [], {"text": True}).value)
    assert "a.sls: error: SLS 'base:a' cannot be read: Permission denied" in told
    assert "b.jinja: error: it cannot be read: Permission denied" in told
    assert "'nmae' is not an argument of test.configurable_test_state" in told


def test_a_source_that_cannot_be_read_is_named(own_runtime: Any, denied: set[str], tmp_path: Path) -> None:
    runtime: Runtime = own_runtime({"f.txt": "x"})
    denied.add("f.txt")
    (ran,) = runtime.call(
        "state.single", ["file.managed", f"{tmp_path}/out"], {"source": "salt://f.txt"}
    ).value.values()
    assert ran["result"] is False
    assert ran["comment"] == "Unable to manage file: salt://f.txt cannot be read: Permission denied"


def test_pipes_are_no_files(planted: Plant, tmp_path: Path) -> None:
    """Reading a pipe would block forever, so a pipe is not a file of the tree."""
    tree = planted({"b.sls": "\n{% include 'b.j2' %}\n"})
    for name in ("a.sls", "b.j2"):
        os.mkfifo(tmp_path / "base" / name)
    assert "No matching sls found for 'a'" in fault_of(lambda: tree.render("a", "base"))[1]
    assert "b.j2 is not in saltenv 'base'" in fault_of(lambda: tree.render("b", "base"))[1]


@pytest.mark.parametrize(("files", "place", "words"), FILES.values(), ids=FILES)
def test_files(planted: Plant, tmp_path: Path, files: dict[str, bytes], place: str, words: str) -> None:
    tree = planted({})
    for name, content in files.items():
        path = tmp_path / "base" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    found = fault_of(lambda: tree.render("a", "base"))
    assert words in found[1]
    assert found[0] == place or (place == ":" and not found[0])


TOPS: dict[str, tuple[dict[str, bytes], str, str]] = {
    "no UTF-8": ({"top.sls": b"base: \xff\n"}, "top.sls:1", "is not UTF-8 text"),
    "a text": ({"top.sls": b"x\n"}, "top.sls:1", "The top file must be a map of environments"),
    "no UTF-8 in an included one": ({"top.sls": b"include: [x]\n", "x.sls": b"\xff"}, "x.sls:1", "is not UTF-8 text"),
}


@pytest.mark.parametrize(("files", "place", "words"), TOPS.values(), ids=TOPS)
def test_top_files(planted: Plant, tmp_path: Path, files: dict[str, bytes], place: str, words: str) -> None:
    tree = planted({"unused": ""})
    for name, content in files.items():
        (tmp_path / "base" / name).write_bytes(content)
    found = fault_of(tree.top)
    assert found[0] == place
    assert words in found[1]


@pytest.mark.parametrize("name", ["top.sls", "a.sls"])
def test_a_directory_in_place_of_a_file(own_runtime: Any, name: str) -> None:
    runtime: Runtime = own_runtime({f"{name}/file": "", "b.sls": "x: test.nop\n"})
    ran = runtime.call("state.apply", ["a"] if name == "a.sls" else [])
    assert isinstance(ran.value, list | dict)
    assert "Traceback" not in str(ran.value)


@pytest.mark.parametrize("text", ["", "\n \n", "# nothing\n", "{# nothing #}\n", "---\n", "~\n", "{}\n"])
def test_nothing_is_no_fault(planted: Plant, text: str) -> None:
    assert planted({"a.sls": text}).render("a", "base").high == {}


def test_ten_megabytes(planted: Plant) -> None:
    """The line of an error at the very end of a large file is reported."""
    block = "".join(f"    {n} {'x' * 90}\n" for n in range(100))
    body = "".join(
        f"id{n}:\n  test.nop:\n    - name: |\n        {block.replace('    ', '        ')[8:]}" for n in range(1000)
    )
    assert len(body) > 10_000_000
    tree = planted({"a.sls": f"{body}x: y: z\n"})
    place, message, pointed = fault_of(lambda: tree.render("a", "base"))
    assert place == f"a.sls:{body.count(chr(10)) + 1}"
    assert "mapping values are not allowed" in message
    assert pointed == "x: y: z"


def test_places_of_many_states(planted: Plant) -> None:
    """A tree with a fault in every state is reported in time: positions are indexed."""
    count = 4000
    tree = planted({"a.sls": "".join(f"id{n}:\n  test.nop:\n    - x: 1\n" for n in range(count))})
    tree.render("a", "base")
    began = time.thread_time()
    for n in range(count):
        mark = tree.locate("a", "base", f"id{n}", "cmd", "x")
        assert mark is not None
        assert mark.line == 3 * n + 1
        assert tree.excerpt(mark)
    assert time.thread_time() - began < 5
