"""Returns of state runs and orchestrations, whole and broken, and the options that they are shown with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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
        "web1": {f"test_|-s{n}_|-n{n}_|-nop": state(n, n % 3 != 0, changes={"n": n} if n % 2 else {}) for n in range(6)}
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
    "retried": {
        "web1": {
            "cmd_|-a_|-false_|-run": state(
                0,
                False,
                comment='Attempt 1: Returned a result of "False", with the following comment: "x"\ny\n',
                changes={"retcode": 1},
                __retries__=2,
            )
        }
    },
    "orchestrated jobs": {
        "data": {
            "m1_master": {
                "salt_|-deploy_|-deploy_|-state": state(
                    0,
                    False,
                    __jid__="20260101000000000001",
                    warnings=["Output from salt state not highstate"],
                    changes={
                        "out": "highstate",
                        "ret": {
                            "web1": {
                                "test_|-a_|-a_|-nop": state(0, False, comment="no\nno", warnings=["old"]),
                                "test_|-b_|-b_|-nop": state(1, None, changes={"a": {"b": ["c"]}}),
                            },
                            "web2": "The minion function caused an exception",
                            "web3": False,
                            "web4": None,
                        },
                    },
                ),
                "salt_|-again_|-again_|-state": state(1, True, changes={"out": "highstate", "ret": {}}),
                "salt_|-wheel_|-wheel_|-wheel": state(2, True, changes={"ret": {"a": 1}}),
            }
        },
        "outputter": "highstate",
        "retcode": 1,
    },
    "runner below runner": {
        "m1_master": {
            "salt_|-outer_|-outer_|-runner": state(
                0,
                True,
                name="state.orchestrate",
                changes={
                    "data": {
                        "m1_master": {
                            "salt_|-inner_|-inner_|-runner": state(
                                0,
                                False,
                                name="state.orch",
                                changes={"m1_master": {"test_|-a_|-a_|-nop": state(0, False)}, "retcode": 1},
                            )
                        }
                    }
                },
            )
        }
    },
    "names of one id": {
        "web1": {
            **{
                f"file_|-gone_|-/tmp/{n}_|-absent": state(
                    n,
                    n != 2,
                    __id__="gone",
                    name=f"/tmp/{n}",
                    changes={"removed": n} if n % 2 else {},
                    duration=n + 0.1,
                )
                for n in range(7)
            },
            "test_|-one_|-one_|-nop": state(7, True),
            "cmd_|-gone_|-x_|-run": state(8, True, __id__="gone", name="x"),
        }
    },
    "warnings, long": {
        "web1": {
            "pkg_|-a_|-a_|-installed": state(0, True, warnings=["word " * 40, "x" * 100, "a\nb"]),
            "pkg_|-b_|-b_|-installed": state(1, False, warnings=[]),
        }
    },
    "escape in states": {"web1": {"a_|-\x1b_|-\x1b[1m_|-f": state(0, True, comment="\x1b[31m", changes={"d": "\x1b"})}},
    "separator in a name": {"web1": {"file_|-a_|-/a_|-b_|-managed": state(0, True)}},
    "seconds": {
        "web1": {"a_|-a_|-a_|-f": state(0, True, duration=999.4), "b_|-b_|-b_|-f": state(1, True, duration=0.1)}
    },
    "multi line changes": {
        "web1": {"a_|-a_|-a_|-f": state(0, True, changes={"diff": "--- \n+++ \n@@ -1 +1 @@\n-a\n+b\n"})}
    },
}


#: Counts of four digits, and a total in seconds.
THOUSANDS: Mapping[str, Any] = {
    "thousands": {"web1": {f"test_|-s{n}_|-s{n}_|-nop": state(n, n % 7 != 0, duration=1.0) for n in range(1100)}}
}


def _one(**more: Any) -> dict[str, Any]:
    return {"web1": {"test_|-a_|-b_|-nop": {**state(0, True), **more}}}


def _without(*names: str) -> dict[str, Any]:
    return {
        "web1": {"test_|-a_|-b_|-nop": {name: value for name, value in state(0, True).items() if name not in names}}
    }


#: Running dicts that are none, or not quite: from users' modules, old minions and accidents.
MISFITS: Mapping[str, Any] = {
    "no result": _without("result"),
    "no changes": _without("changes"),
    "no comment": _without("comment"),
    "no name": _without("name"),
    "no duration": _without("duration"),
    "no start": _without("start_time"),
    "no number": _without("__run_num__"),
    "no numbers": {"web1": {f"test_|-{n}_|-{n}_|-nop": {"result": True, "changes": {}, "comment": n} for n in "abc"}},
    "result of text": _one(result="yes"),
    "result of zero": _one(result=0),
    "result of one": _one(result=1, changes={"a": 1}),
    "result of a list": _one(result=[True]),
    "changes of none": _one(changes=None),
    "changes of text": _one(changes="x"),
    "changes of a number": _one(changes=7),
    "changes, ret of text": _one(changes={"out": "highstate", "ret": "x"}),
    "changes, ret of a list": _one(changes={"out": "highstate", "ret": ["x"]}),
    "changes, number names": _one(changes={1: {2: 3}, "a": None}),
    "comment of none": _one(comment=None),
    "comment of bytes": _one(comment=b"x"),
    "comment of a mapping": _one(comment={"a": 1}),
    "duration of none": _one(duration=None),
    "duration of text": _one(duration="soon"),
    "duration of nothing": _one(duration=""),
    "start of none": _one(start_time=None),
    "warnings of text": _one(warnings="old"),
    "number of text": {"web1": {"a_|-a_|-a_|-f": state(0, True, __run_num__="x"), "b_|-b_|-b_|-f": state(1, True)}},
    "short tag": {"web1": {"a_|-b": state(0, True)}},
    "bare tag": {"web1": {"tag": state(0, True)}},
    "number as tag": {"web1": {1: state(0, True)}},
    "text as state": {"web1": {"test_|-a_|-a_|-nop": "x", "b": None, "c": [1]}},
    "list of states": {"web1": [state(0, True)]},
    "errors of other kinds": {"web1": [1, None, {"a": "b"}, ["c"], b"bytes"]},
    "hosts of numbers": {1: {}, 2: "x"},
    "hosts of bytes": {b"web1": "x"},
    "float": {"web1": 1.5},
    "list": ["a"],
    "number": 7,
    "true": True,
    "float alone": 1.5,
    "nothing": None,
    "text": "text\nof two",
    "return of a list": {"return": ["x"]},
    "return of text": {"return": "x"},
    "data of none": {"data": None},
    "job without return": {"20260101000000000000": {"jid": "1", "fun": "x"}},
    "job with text": {"20260101000000000000": {"jid": "1", "fun": "x", "return": "text"}},
    "orchestration of text": _one(name="state.orch", changes="x"),
    "orchestration of a number": _one(name="state.orch", changes=3),
    "orchestration of none": _one(name="state.orch", changes=None),
    "orchestration of nothing": _one(name="state.sls", changes={}),
}

_MODES = ("full", "terse", "mixed", "changes", "filter")

_FILTERS: list[dict[str, Any]] = [
    {"state_output_exclude": "True,"},
    {"state_output_exclude": ["True", "None"], "state_output_terse": "False"},
    {"state_output_terse": ["True"], "color": True},
    {"state_output_terse": "True,None", "state_output_exclude": "True"},
    {"arg": [{"__kwarg__": True, "exclude": "True,"}]},
    {"arg": ["web", {"__kwarg__": True, "terse": "True,False"}], "state_output_terse": "None", "state_tabular": True},
]

#: Options that every run is shown with.
RUN_OPTIONS: list[dict[str, Any]] = [
    {},
    {"color": True},
    {"color": "YELLOW"},
    *({"state_output": f"{mode}{suffix}"} for mode in _MODES for suffix in ("", "_id")),
    {"state_output": "FULL"},
    {"state_output": "Terse_ID"},
    {"state_output": "nosuch"},
    {"strip_colors": False},
]

#: Options that change one thing each, and the runs where that thing is to be seen.
SPECIAL_OPTIONS: list[dict[str, Any]] = [
    *({"state_output": mode, "color": True} for mode in _MODES),
    *({"state_output": "filter", **given} for given in _FILTERS),
    {"state_verbose": False},
    {"state_verbose": False, "state_output": "mixed"},
    {"state_output_diff": True},
    {"state_output_diff": True, "state_output": "filter_id", "state_output_terse": "False"},
    {"state_output_profile": False},
    {"state_output_profile": False, "state_output": "terse"},
    {"state_output_pct": True},
    {"state_output_pct": True, "color": True},
    {"state_tabular": True},
    {"state_tabular": True, "state_output": "terse"},
    {"state_tabular": True, "state_output": "changes_id", "color": True},
    {"state_tabular": True, "state_output": "terse", "state_output_profile": False},
    {"state_tabular": "{0}{2}.{3} [{4}] {1} {6[result]}{5}", "state_output": "terse", "color": True},
    {"state_tabular": "{2:>12}|{1}", "state_output": "mixed"},
    {"state_compress_ids": True},
    {"state_compress_ids": True, "state_output": "terse_id"},
    {"state_compress_ids": True, "state_output": "changes_id", "color": True, "state_output_pct": True},
]

SPECIAL_RUNS: Mapping[str, Any] = {
    name: RUNS[name]
    for name in (
        "name differs",
        "test mode",
        "failed",
        "many",
        "slow",
        "parallel",
        "warnings",
        "no times",
        "plain values",
        "empty run",
        "orchestrated jobs",
        "names of one id",
    )
}

MISFIT_OPTIONS: list[dict[str, Any]] = [
    {},
    {"color": True},
    {"state_output": "terse"},
    {"state_output": "filter_id", "state_output_terse": "True"},
    {"state_tabular": True, "state_output": "terse_id"},
    {"state_output_diff": True, "state_output_pct": True},
    {"state_compress_ids": True},
]
