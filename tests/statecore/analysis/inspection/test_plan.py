"""``plan`` and ``apply``: verdicts of every kind, diffs of whole files, and what a plan file lets through."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statecore.analysis.inspection.plan import Planned, apply, plan, report
from statecore.analysis.plan_text import plan_text
from statecore.analysis.planfile import PlanFault, drift, opened, sealed
from statecore.model.errors import SlsError

from .conftest import MakeMinion, Minion

#: SLS -> ID -> (verdict, requisites through which it reacts).
VERDICTS: dict[str, tuple[str, dict[str, tuple[str, list[str]]]]] = {
    "what reacts to a change": (
        """
motd: {file.managed: [{name: /etc/motd}, {contents: hello}]}
onchanges: {test.succeed_with_changes: [{onchanges: [{file: motd}]}]}
watch: {test.succeed_without_changes: [{watch: [{file: motd}]}]}
require: {test.nop: [{require: [{file: motd}]}]}
onfail: {test.succeed_with_changes: [{onfail: [{file: motd}]}]}
""",
        {
            "motd": ("change", []),
            "onchanges": ("change", ["onchanges file motd"]),
            "watch": ("change", ["watch file motd"]),
            "require": ("unchanged", []),
            "onfail": ("unchanged", []),
        },
    ),
    "what reacts to nothing": (
        """
same: test.nop
onchanges: {test.succeed_with_changes: [{onchanges: [{test: same}]}]}
prereq: {test.succeed_with_changes: [{prereq: [{test: same}]}]}
""",
        {"same": ("unchanged", []), "onchanges": ("unchanged", []), "prereq": ("unchanged", [])},
    ),
    "a prereq of a change": (
        """
motd: {file.managed: [{name: /etc/motd}, {contents: hello}]}
before: {test.succeed_with_changes: [{prereq: [{file: motd}]}]}
""",
        {"motd": ("change", []), "before": ("change", ["prereq file motd"])},
    ),
    "what nobody can know": (
        """
told: {cmd.run: [{name: whoami}, {stateful: True}]}
onchanges: {test.succeed_with_changes: [{onchanges: [{cmd: told}]}]}
further: {test.nop: [{watch: [{test: onchanges}]}]}
needs: {test.nop: [{require: [{cmd: told}]}]}
""",
        {
            "told": ("unknown", []),
            "onchanges": ("unknown", ["onchanges cmd told"]),
            "further": ("unknown", ["watch test onchanges"]),
            "needs": ("unchanged", []),
        },
    ),
    "what fails, and what may not fail then": (
        """
bad: {test.fail_without_changes: []}
after: {test.nop: [{require: [{test: bad}]}]}
saved: {test.succeed_with_changes: [{onfail: [{test: bad}]}]}
dir: {file.directory: [{name: /srv}]}
late: {file.exists: [{name: /srv/x}, {require: [{file: dir}]}]}
later: {test.nop: [{require: [{file: late}]}]}
""",
        {
            "bad": ("fail", []),
            "after": ("fail", []),
            "saved": ("change", ["onfail test bad"]),
            "dir": ("change", []),
            "late": ("unknown", []),
            "later": ("unknown", []),
        },
    ),
    "who listens": (
        """
motd: {file.managed: [{name: /etc/motd}, {contents: hello}]}
loud: {file.managed: [{name: /etc/issue}, {contents: hello}, {listen_in: [{test: both}]}]}
both: {test.nop: [{listen: [{file: motd}]}]}
""",
        {
            "motd": ("change", []),
            "loud": ("change", []),
            "both": ("change", ["listen file motd", "listen file loud"]),
        },
    ),
    "a user's own state": (
        """
mine: {thing.made: []}
same: {thing.made: [{there: True}]}
""",
        {"mine": ("change", []), "same": ("unchanged", [])},
    ),
}

THING = """
def made(name, there=False):
    if there:
        return {"name": name, "changes": {}, "result": True, "comment": "there"}
    assert __opts__["test"]
    return {"name": name, "changes": {"made": name}, "result": None, "comment": "would be made"}
"""


@pytest.mark.parametrize(("text", "expected"), VERDICTS.values(), ids=list(VERDICTS))
def test_verdicts(minion: MakeMinion, text: str, expected: dict[str, tuple[str, list[str]]]) -> None:
    made = minion({"a.sls": text, "_states/thing.py": THING})
    states = report(plan(made.run_parts(), ["a"]))["states"]
    # A state that listens has an entry of its own at the end; what it says there counts.
    found = {
        each["id"]: (each["verdict"], [f"{why['requisite']} {why['state']} {why['id']}" for why in each["because"]])
        for each in states
    }
    assert found == expected
    assert not list((made.host / "etc").iterdir())


FILES = {
    "a new file": (
        "{file.managed: [{name: /etc/x}, {contents: new}]}",
        None,
        ["--- /dev/null", "+++ /etc/x", "@@ -0,0 +1 @@", "+new"],
    ),
    "a changed one": (
        "{file.managed: [{name: /etc/x}, {contents: new}]}",
        "old\n",
        ["--- /etc/x", "+++ /etc/x", "@@ -1 +1 @@", "-old", "+new"],
    ),
    "one without an end": (
        "{file.managed: [{name: /etc/x}, {contents: new}]}",
        "old",
        ["--- /etc/x", "+++ /etc/x", "@@ -1 +1 @@", "-old", "\\ No newline at end of file", "+new"],
    ),
    "a removed one": (
        "{file.absent: [{name: /etc/x}]}",
        "old\n",
        ["--- /etc/x", "+++ /dev/null", "@@ -1 +0,0 @@", "-old"],
    ),
    "lines added": (
        "{file.append: [{name: /etc/x}, {text: new}]}",
        "old\n",
        ["--- /etc/x", "+++ /etc/x", "@@ -1 +1,2 @@", " old", "+new"],
    ),
    "one of a directory": (
        "{file.recurse: [{name: /etc}, {source: 'salt://files'}]}",
        "old\n",
        ["--- /etc/x", "+++ /etc/x", "@@ -1 +1 @@", "-old", "+of the tree"],
    ),
    "one that nobody is to see": (
        "{file.managed: [{name: /etc/x}, {contents: hunter2}, {show_changes: False}]}",
        "old\n",
        ["/etc/x: its author wants the change shown to nobody"],
    ),
    "one of a state that is not to be logged": (
        "{file.managed: [{name: /etc/x}, {contents: hunter2}, {no_log: True}]}",
        "old\n",
        ["/etc/x: its author wants the change shown to nobody"],
    ),
    "a binary one": (
        "{file.managed: [{name: /etc/x}, {contents: new}]}",
        "a\0b",
        ["/etc/x: binary, 3 bytes -> 4 bytes"],
    ),
    "an empty new one": ("{file.managed: [{name: /etc/x}]}", None, ["/etc/x: an empty file"]),
}


@pytest.mark.parametrize(("state", "old", "expected"), FILES.values(), ids=list(FILES))
def test_diffs_of_files(minion: MakeMinion, state: str, old: str | None, expected: list[str]) -> None:
    made = minion({"a.sls": f"x: {state}\n", "files/x": "of the tree\n"})
    if old is not None:
        (made.host / "etc/x").write_text(old)
    told = report(plan(made.run_parts(), ["a"]))
    assert told["summary"].startswith("1 to change")
    diffs = [file["diff"] for state in told["states"] for file in state["files"]]
    assert [line for diff in diffs for line in diff.splitlines()] == expected


def test_the_summary_names_what_there_is(minion: MakeMinion) -> None:
    made = minion({"a.sls": VERDICTS["what fails, and what may not fail then"][0]})
    assert report(plan(made.run_parts(), ["a"]))["summary"] == (
        "2 to change, 2 cannot be known before, 2 would fail, 0 unchanged"
    )


WARNED = """x:
  file.managed:
    - name: /etc/x
    - contents: new
    - owmer: me
still:
  file.absent:
    - name: /etc/none
    - force_it: true
same:
  test.nop: []
"""


def test_warnings_are_shown(minion: MakeMinion) -> None:
    """Also those of states that would not change."""
    data = report(plan(minion({"a.sls": WARNED}).run_parts(), ["a"]))
    assert data["summary"] == "1 to change, 2 unchanged, 2 with warnings"
    warned = {each["id"]: each["warnings"] for each in data["states"]}
    assert warned["same"] == []
    assert "owmer" in warned["x"][0]
    assert "a.sls:5" in warned["x"][0]
    lines = plan_text(data).splitlines()
    assert [line.split(" (")[0] for line in lines if line[:1] in "~ " and line[2:3] != " " and line.strip()] == [
        "~ file.managed /etc/x",
        "  file.absent /etc/none",
    ]
    assert [line for line in lines if line.startswith("    warning: ") and "force_it" in line and "a.sls:9" in line]


def test_parallel_states_and_aggregates_are_planned_in_place(minion: MakeMinion) -> None:
    text = "x: {file.managed: [{name: /etc/x}, {contents: new}, {parallel: True}]}\n"
    planned = plan(minion({"a.sls": text}).run_parts(), ["a"])
    assert planned.predictions[0].files[0].after == b"new\n"
    assert planned.graph.chunks[0]["parallel"] is True


def test_what_does_not_compile_says_why(minion: MakeMinion) -> None:
    made = minion({"a.sls": "x: {test.nop: [{require: [{test: y}]}]}\n"})
    with pytest.raises(SlsError, match="Referenced state does not exist"):
        plan(made.run_parts(), ["a"])
    with pytest.raises(SlsError, match="No matching sls found for 'b'"):
        plan(made.run_parts(), ["b"])
    with pytest.raises(SlsError, match="gives this minion nothing"):
        plan(made.run_parts(), None)
    made.pillar = {"_errors": ["it is broken"]}
    with pytest.raises(SlsError, match="it is broken"):
        plan(made.run_parts(), ["a"])


# ---------------------------------------------------------------------------------------------------------------- plan files

SALT = b"0123456789abcdef"

TREE = """
motd: {file.managed: [{name: /etc/motd}, {contents: {{ pillar.get('text', 'hello') }}}, {mode: '0644'}]}
secret: {file.managed: [{name: /etc/secret}, {contents: {{ pillar.get('secret', 'hunter2') }}}, {show_changes: False}]}
after: {test.succeed_with_changes: [{onchanges: [{file: motd}]}]}
"""


def kept(made: Minion) -> tuple[Planned, dict[str, Any]]:
    planned = plan(made.run_parts(), ["a"])
    data = sealed(planned.predictions, planned.places, {"sls": ["a"]}, SALT)
    return planned, opened(json.dumps(data))


def test_what_was_planned_is_applied(minion: MakeMinion) -> None:
    made = minion({"a.sls": TREE})
    _, before = kept(made)
    planned, now = kept(made)
    assert drift(before, now) == []
    running = apply(made.runtime().run_parts({"test": False}), planned)
    assert all(entry["result"] for entry in running.values())
    assert (made.host / "etc/motd").read_text() == "hello\n"
    assert drift(before, kept(made)[1])


def test_the_tree_may_change_while_what_was_planned_is_applied(minion: MakeMinion) -> None:
    made = minion({"a.sls": TREE})
    planned, _ = kept(made)
    made.write({"a.sls": "{{ broken"})
    apply(made.runtime().run_parts({"test": False}), planned)
    assert (made.host / "etc/motd").read_text() == "hello\n"


def _pillar(made: Minion) -> None:
    made.pillar = {"text": "other"}


def _secret(made: Minion) -> None:
    made.pillar = {"secret": "hunter3"}


def _host(made: Minion) -> None:
    (made.host / "etc/motd").write_text("somebody was here\n")


def _secret_on_host(made: Minion) -> None:
    (made.host / "etc/secret").write_text("x\n")


def _mode(made: Minion) -> None:
    (made.host / "etc/motd").write_text("old\n")
    (made.host / "etc/motd").chmod(0o600)


def _less(made: Minion) -> None:
    made.write({"a.sls": "motd: {file.managed: [{name: /etc/motd}, {contents: hello}, {mode: '0644'}]}\n"})


def _more(made: Minion) -> None:
    made.write({"a.sls": TREE + "more: test.nop\n"})


def _order(made: Minion) -> None:
    made.write({"a.sls": TREE.replace("[{name: /etc/secret}", "[{order: 1}, {name: /etc/secret}")})


DRIFTS = {
    "the pillar": (_pillar, "file.managed /etc/motd (ID motd): the tree, the pillar or the grains"),
    "a secret of the pillar": (_secret, "file.managed /etc/secret (ID secret): the tree, the pillar or the grains"),
    "a file on the host": (_host, "/etc/motd on the host is not what it was"),
    "a secret file on the host": (_secret_on_host, "/etc/secret on the host is not what it was"),
    "a state less": (_less, "test.succeed_with_changes after (ID after): it is no longer in the run"),
    "a state more": (_more, "test.nop more (ID more): it is new in the run"),
    "another order": (_order, "file.managed /etc/secret (ID secret): the tree, the pillar or the grains"),
}


@pytest.mark.parametrize(("change", "says"), DRIFTS.values(), ids=list(DRIFTS))
def test_drift(minion: MakeMinion, change: Any, says: str) -> None:
    made = minion({"a.sls": TREE})
    _, before = kept(made)
    change(made)
    found = drift(before, kept(made)[1])
    assert any(says in line for line in found), found


def test_drift_of_what_is_beside_the_content(minion: MakeMinion) -> None:
    made = minion({"a.sls": TREE})
    (made.host / "etc/motd").write_text("hello\n")
    (made.host / "etc/motd").chmod(0o600)
    _, before = kept(made)
    (made.host / "etc/motd").chmod(0o640)
    assert drift(before, kept(made)[1]) == []
    (made.host / "etc/motd").chmod(0o644)
    assert "planned as 'change', now 'unchanged'" in "\n".join(drift(before, kept(made)[1]))


def test_a_plan_file_keeps_no_secret(minion: MakeMinion) -> None:
    made = minion({"a.sls": TREE + "quiet: {cmd.run: [{name: whoami}, {stdin: hunter2}, {no_log: True}]}\n"})
    _, data = kept(made)
    assert "hunter2" not in json.dumps(data)
    assert data["states"][-1]["steps"] == []


BROKEN = {
    "nothing": ("", "no JSON"),
    "no JSON": ("{", "no JSON"),
    "something else": ("[1]", "no plan of statecore"),
    "JSON of others": ('{"version": 1}', "no plan of statecore"),
    "another version": ('{"kind": "statecore plan", "version": 99}', "version 99; this statecore reads version 1"),
    "half of one": ('{"kind": "statecore plan", "version": 1, "salt": "00"}', "taken away"),
    "no salt": ('{"kind": "statecore plan", "version": 1, "salt": "zz", "run": {}, "states": []}', "taken away"),
    "states of a wrong kind": (
        '{"kind": "statecore plan", "version": 1, "salt": "00", "run": {}, "states": [1]}',
        "taken away",
    ),
    "a run of a wrong kind": (
        '{"kind": "statecore plan", "version": 1, "salt": "00", "run": 1, "states": []}',
        "was changed",
    ),
}


@pytest.mark.parametrize(("text", "says"), BROKEN.values(), ids=list(BROKEN))
def test_what_is_no_plan(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(PlanFault, match=says):
        opened(text)
