"""The states that only look: status.loadavg, status.process, disk.status; beside real Salt's sentences."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from statecore.host.host import Host

_SALT = Path(__file__).parent / "salt_states.py"

OK, LOAD_OK = "Disk used space in acceptable range", "Load avg in acceptable range"

#: (state, arguments, result, comment); numbers of the machine are N.
CASES = [
    ("disk.status", {"name": "/"}, True, OK),
    ("disk.status", {"name": "/", "maximum": "100%", "minimum": 0}, True, OK),
    ("disk.status", {"name": "/", "maximum": 0}, False, "Disk used space is above maximum of N % at N %"),
    ("disk.status", {"name": "/", "minimum": "100 %"}, False, "Disk used space is below minimum of N % at N %"),
    (
        "disk.status",
        {"name": "/", "maximum": "1 KB", "absolute": True},
        False,
        "Disk used space is above maximum of N KB at N KB",
    ),
    (
        "disk.status",
        {"name": "/", "maximum": 0, "free": True},
        False,
        "Disk available space is above maximum of N % at N %",
    ),
    (
        "disk.status",
        {"name": "/", "minimum": 100, "free": True},
        False,
        "Disk available space is below minimum of N % at N %",
    ),
    ("disk.status", {"name": "/", "maximum": 5, "minimum": 7}, False, "minimum must be less than maximum "),
    ("disk.status", {"name": "/", "maximum": "x"}, False, "maximum must be an integer "),
    ("disk.status", {"name": "/", "minimum": 101}, False, "minimum must be in the range [N, N] "),
    ("disk.status", {"name": "/etc"}, True, OK),
    ("disk.status", {"name": "/etc", "maximum": 0}, False, "Disk used space is above maximum of N % at N %"),
    (
        "disk.status",
        {"name": "/none"},
        False,
        "Disk mount /none not present. Directory /none does not exist or is not a directory",
    ),
    ("status.loadavg", {"name": "1-min"}, True, LOAD_OK),
    ("status.loadavg", {"name": "2-min"}, False, "Requested load average N-min not available "),
    ("status.loadavg", {"name": "5-min", "maximum": "100000"}, True, LOAD_OK),
    ("status.loadavg", {"name": "5-min", "minimum": "100000"}, False, "Load avg is below minimum of N at N"),
    ("status.loadavg", {"name": "5-min", "maximum": "-1"}, False, "Load avg above maximum of -N at N"),
    ("status.loadavg", {"name": "5-min", "minimum": "2", "maximum": "1"}, False, "Min must be less than max"),
    ("status.process", {"name": "pytest"}, True, 'Process signature "pytest" was found '),
    ("status.process", {"name": "no-such-process-xyz"}, False, 'Process signature "no-such-process-xyz" not found '),
]


def shown(entry):
    words = []
    for word in entry["comment"].split(" "):
        bare = word.strip("[],-%").removesuffix("-min")
        words.append(word.replace(bare, "N") if bare.replace(".", "", 1).isdecimal() else word)
    return entry["result"], " ".join(words), entry["changes"], bool(entry["data"])


@pytest.mark.parametrize("number", range(len(CASES)))
def test_state(plain, number):
    state, args, result, comment = CASES[number]
    for test in (True, False):
        entry = plain.context(host=Host("/"), test=test).states[state](**args)
        assert shown(entry)[:3] == (result, comment, {})
        assert bool(entry["data"]) is (
            ("range" in comment and "must" not in comment)
            or "minimum of" in comment
            or "maximum of" in comment
            or "was found" in comment
        )


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"maximum": "much"}, "maximum must be a number, not 'much'"),
        ({"minimum": []}, "minimum must be a number, not []"),
    ],
)
def test_limits_that_are_none(plain, args, why):
    assert plain.state("status.loadavg", name="1-min", **args)["comment"] == why


@pytest.mark.oracle
def test_as_salt(oracle, tmp_path):
    phases = []
    for number, (state, args, *_) in enumerate(CASES):
        module, _, function = state.partition(".")
        declared = [{key: value} for key, value in args.items()]
        phases.append([False, {f"case{number}": {module: [function, *declared], "__sls__": "s", "__env__": "base"}}])
    (tmp_path / "tree").mkdir()
    asked = {"directory": str(tmp_path), "tree": str(tmp_path / "tree"), "pillar": {}, "grains": {}, "phases": phases}
    told = json.loads(oracle.run("python", str(_SALT), stdin=json.dumps(asked), timeout=240))
    for (state, args, result, comment), running in zip(CASES, told, strict=True):
        entry = next(iter(running.values()))
        if state == "disk.status" and args["name"] == "/etc" and not os.path.ismount("/etc"):
            # Salt puts nothing between what it found and what it says of it.
            entry["comment"] = entry["comment"].removeprefix("Disk mount /etc not present. ")
        assert shown(entry)[:3] == (result, comment, {}), (state, args)
