"""The looks of every outputter: a table of values shown by ours and by real Salt (marker oracle), and pinned samples."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.kit.output import OUTPUTTERS, OutputOptions, render

VALUES: Mapping[str, Any] = {
    "true": {"web1": True},
    "false": {"web1": False},
    "none": {"web1": None},
    "number": {"web1": 42},
    "float": {"web1": 0.1 + 0.2},
    "text": {"web1": "hello"},
    "empty text": {"web1": ""},
    "lines": {"web1": "one\n\n  three\n"},
    "unicode": {"wéb1": "naïve ☃ 日本"},
    "escape": {"web1": "\x1b[31mred\x1b[0m"},
    "empty list": {"web1": []},
    "empty dict": {"web1": {}},
    "list": {"web1": ["a", 1, None, True, 2.5, "two\nlines"]},
    "nested lists": {"web1": [["a", ["b", []]], {"k": "v", "l": [1, {"m": None}]}, [], {}]},
    "tuple": {"web1": (1, "a")},
    "args": {"local": {"args": [1, "a"], "kwargs": {"k": "v"}}},
    "mixed names": {"web1": {1: "one", "two": 2, None: "n"}},
    "number names": {"web1": {10: "a", 9: "b"}},
    "bytes": {"web1": b"plain bytes"},
    "deep": {"web1": {"a": {"b": {"c": {"d": [{"e": "f"}]}}}}},
    "unsorted": {"web2": "b", "web1": "a"},
    "no hosts": {},
    "bare text": "just text\nof two lines",
    "bare list": ["a", {"b": 1}],
    "bare number": 7,
    "yaml words": {"web1": {"a": "yes", "b": "1", "c": "null", "d": "x: y", "e": "#", "f": " lead", "g": "a\nb\n"}},
}

KEYS: Mapping[str, Any] = {
    "all states": {
        "minions": ["web2", "web1"],
        "minions_pre": ["new"],
        "minions_denied": [],
        "minions_rejected": ["bad"],
    },
    "local": {"local": ["master.pem", "master.pub"], "minions": []},
    "fingers": {"minions": {"web1": "2c:d5:3a"}, "minions_denied": {"x": ["aa", "bb"]}},
    "empty": {},
}

NO_RETURN: Mapping[str, Any] = {
    "silent": {"ghost": "Minion did not return. [No response]\nline two\n\nsalt-run jobs.lookup_jid 1"},
    "two": {"b": "Minion did not return. [Not connected]", "a": "x"},
}


def state(number: int, result: bool | None, **more: Any) -> dict[str, Any]:
    return {
        "__id__": f"id{number}",
        "__sls__": "web",
        "__run_num__": number,
        "name": f"/etc/{number}",
        "result": result,
        "comment": "As it should be",
        "changes": {},
        "start_time": "00:16:25.474309",
        "duration": 3.307,
        **more,
    }


RUNS: Mapping[str, Any] = {
    "clean": {"web1": {"test_|-a_|-a_|-nop": state(0, True)}},
    "name differs": {"web1": {"test_|-a_|-/etc/a_|-nop": state(0, True)}},
    "changed": {
        "web1": {"file_|-motd_|-/etc/motd_|-managed": state(0, True, changes={"diff": "New file", "mode": "0644"})}
    },
    "test mode": {
        "local": {
            "file_|-motd_|-/etc/motd_|-managed": state(
                0, None, comment="Would change\nNote: nothing done\n", changes={"newfile": "/etc/motd"}
            ),
            "test_|-b_|-b_|-nop": state(1, None),
        }
    },
    "failed": {
        "web1": {
            "test_|-dep_|-dep_|-nop": state(1, False, comment="One or more requisite failed: fail.bad"),
            "test_|-bad_|-bad_|-fail": state(0, False, comment="Failure!", changes={}),
            "test_|-c_|-c_|-nop": state(2, True, changes={"old": 1, "new": ["a", {"b": "c"}]}),
        }
    },
    "many": {
        "web1": {
            f"test_|-s{n}_|-n{n}_|-nop": state(n, n % 3 != 0, changes={"n": n} if n % 2 else {}) for n in range(12)
        }
    },
    "slow": {"web1": {"cmd_|-a_|-sleep_|-run": state(0, True, duration=1500.25, changes={"pid": 1, "stdout": ""})}},
    "text duration": {"web1": {"cmd_|-a_|-sleep_|-run": state(0, True, duration="12.5 ms")}},
    "parallel": {
        "web1": {
            "cmd_|-a_|-a_|-run": state(0, True, __parallel__=True, duration=100.0),
            "cmd_|-b_|-b_|-run": state(1, True, __parallel__=True, duration=250.5),
            "cmd_|-c_|-c_|-run": state(2, True, duration=3.0),
        }
    },
    "warnings": {
        "web1": {
            "pkg_|-a_|-a_|-installed": state(
                0,
                True,
                warnings=["This argument is old and will be gone in the next release, so use the other one", "second"],
            ),
            "test_|-b_|-b_|-nop": state(1, True),
        }
    },
    "no times": {
        "web1": {"test_|-a_|-a_|-nop": {k: v for k, v in state(0, True).items() if k not in ("start_time", "duration")}}
    },
    "odd comments": {
        "web1": {
            "a_|-a_|-a_|-f": state(0, True, comment=["x", "y"]),
            "b_|-b_|-b_|-f": state(1, True, comment=7),
            "c_|-c_|-c_|-f": state(2, True, comment="  über\nzwei  \n"),
            "d_|-d_|-d_|-f": state(3, True, comment="", data={"k": "v"}),
            "e_|-e_|-e_|-f": state(4, True, comment="c", data=["x", 1]),
            "f_|-f_|-f_|-f": state(5, True, comment="c", data="x"),
        }
    },
    "odd changes": {
        "web1": {"a_|-a_|-a_|-f": state(0, True, changes=["x"]), "b_|-b_|-b_|-f": state(1, True, changes="x")}
    },
    "compile errors": {
        "web1": ["Rendering SLS 'base:x' failed: Jinja variable 'nosuch' is undefined", "line\nof two"],
        "web2": [],
    },
    "escape": {"web1": ["\x1b[31mred"], "\x1b[1mhost": True},
    "plain values": {"web1": "text\nof two lines", "web2": True, "web3": 0, "web4": None},
    "empty run": {"web1": {}},
    "two hosts": {
        "web2": {"test_|-a_|-a_|-nop": state(0, True)},
        "web1": {"test_|-a_|-a_|-nop": state(0, False)},
    },
    "retcode in running": {"web1": {"retcode": 2, "test_|-a_|-a_|-nop": state(0, True)}},
    "orchestrate": {
        "data": {
            "m1_master": {
                "salt_|-deploy_|-deploy_|-state": state(
                    0,
                    True,
                    changes={
                        "out": "highstate",
                        "ret": {"web1": {"test_|-a_|-a_|-nop": state(0, True, changes={"a": 1})}},
                    },
                ),
                "salt_|-fun_|-fun_|-function": state(
                    1, True, changes={"out": "highstate", "ret": {"web1": True, "web2": "x\ny"}}
                ),
                "salt_|-none_|-none_|-state": state(2, True, changes={"out": "highstate", "ret": {"web1": ["broken"]}}),
            }
        },
        "outputter": "highstate",
        "retcode": 0,
    },
    "orchestrate retcode": {"m1_master": {"test_|-a_|-a_|-nop": state(0, True)}, "retcode": 1},
    "runner in runner": {
        "m1_master": {
            "salt_|-orch_|-orch_|-runner": state(
                0,
                True,
                name="state.orch",
                changes={"m1_master": {"test_|-a_|-a_|-nop": state(0, True, changes={"a": "b"})}},
            )
        }
    },
    "looked up": {
        "20260101000000000000": {"jid": "20260101000000000000", "fun": "x", "return": {"data": {"web1": True}}}
    },
    "multi line changes": {
        "web1": {"a_|-a_|-a_|-f": state(0, True, changes={"diff": "--- \n+++ \n@@ -1 +1 @@\n-a\n+b\n"})}
    },
}

PLAIN_OPTIONS: Mapping[str, list[dict[str, Any]]] = {
    "nested": [{}, {"color": True}, {"color": True, "retcode": 1}],
    "json": [{}, {"output_indent": -1}, {"output_indent": 2}, {"output_indent": 0}],
    "yaml": [{}, {"output_indent": -1}, {"output_indent": 4}],
    "txt": [{}],
    "raw": [{}],
    "pprint": [{}, {"output_indent": 4}],
}

RUN_OPTIONS: list[dict[str, Any]] = [
    {},
    {"color": True},
    *(
        {"state_output": mode}
        for mode in ("terse", "mixed", "changes", "full_id", "terse_id", "mixed_id", "changes_id", "FULL")
    ),
    {"state_output": "terse", "color": True},
    {"state_output": "changes", "color": True},
    {"state_verbose": False},
    {"state_verbose": False, "state_output": "mixed"},
    {"state_output_diff": True},
    {"state_output_profile": False},
    {"state_output_profile": False, "state_output": "terse"},
    {"strip_colors": False},
]


def _cases() -> list[tuple[str, Any, str, dict[str, Any]]]:
    cases = [
        (name, data, outputter, options)
        for outputter, variants in PLAIN_OPTIONS.items()
        for options in variants
        for name, data in VALUES.items()
    ]
    cases += [(name, data, "highstate", options) for options in RUN_OPTIONS for name, data in RUNS.items()]
    for outputter, table in (("key", KEYS), ("no_return", NO_RETURN)):
        cases += [(name, data, outputter, options) for options in ({}, {"color": True}) for name, data in table.items()]
    return cases


CASES = _cases()


def ours(data: Any, outputter: str, options: Mapping[str, Any]) -> str:
    named = {"output_indent": "indent"}
    chosen = OutputOptions(out=outputter, **{named.get(name, name): value for name, value in options.items()})
    return render(data, chosen, warn=lambda line: None)


class Salt:
    """Real Salt's outputters, asked one case at a time."""

    def __init__(self, venv: Path) -> None:
        script = Path(__file__).with_name("salt_outputters.py")
        self._process = subprocess.Popen(
            [venv / "bin" / "python", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def shows(self, data: Any, outputter: str, options: Mapping[str, Any]) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{[data, outputter, dict(options)]!r}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline()) or ""

    def close(self) -> None:
        self._process.communicate(timeout=20)


@pytest.fixture
def salt(oracle: object) -> Iterator[Salt]:
    process = Salt(Path(os.environ["SALTERN_ORACLE"]))
    yield process
    process.close()


@pytest.mark.oracle
def test_every_look_is_salts(salt: Salt) -> None:
    assert len(CASES) > 800
    different = [
        f"--- {outputter} {options} {name}: Salt\n{expected}\n+++ ours\n{shown}"
        for name, data, outputter, options in CASES
        if (expected := salt.shows(data, outputter, options)) != (shown := ours(data, outputter, options))
    ]
    assert not different, f"{len(different)} of {len(CASES)} differ\n" + "\n".join(different[:8])


_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.oracle
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=_values, outputter=st.sampled_from(["nested", "json", "yaml", "txt", "raw"]))
def test_random_values_look_as_salts(salt: Salt, value: Any, outputter: str) -> None:
    data = {"web1": value}
    assert ours(data, outputter, {}) == salt.shows(data, outputter, {})


@given(_values, st.sampled_from(sorted(OUTPUTTERS)), st.booleans())
def test_no_value_breaks_an_outputter(value: Any, outputter: str, color: bool) -> None:
    text = render(value, OutputOptions(out=outputter, color=color), warn=lambda line: None)
    assert text == text.rstrip()
