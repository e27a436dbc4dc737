"""What a run does otherwise than real Salt, on purpose (docs/differences.md): both are shown, so that neither changes unseen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from .conftest import Salt, Tree, ours

pytestmark = pytest.mark.oracle

#: Row of docs/differences.md -> SLS; what came of each state, "ID: result" in the order of the run: Salt's, ours.
RUNS: dict[str, tuple[str, list[str], list[str]]] = {
    "what came of a listener that the check of a prereq had left out": (
        """
changed:
  test.succeed_with_changes: []
bad:
  test.fail_without_changes: []
first:
  test.succeed_with_changes:
    - prereq: [{test: second}]
second:
  test.succeed_with_changes:
    - require: [{test: bad}]
    - listen: [{test: changed}]
""",
        ["changed: True", "bad: False", "second: False", "first: False"],
        [
            "changed: True",
            "bad: False",
            "second: False",
            "first: False",
            "listener_second: True, Watch statement fired.",
        ],
    ),
    "`fun` of a guard is looked at again: the target of a prereq": (
        """
first:
  test.succeed_with_changes:
    - prereq: [{test: second}]
second:
  test.succeed_with_changes:
    - onlyif: [{fun: test.false}]
""",
        ["first: True", "second: True, Success!"],
        ["first: True", "second: True, onlyif condition is false"],
    ),
    "`fun` of a guard is looked at again: a watcher": (
        """
changed:
  test.succeed_with_changes: []
watcher:
  test.nop:
    - onlyif: [{fun: cmd.run, cmd: 'cd {{ opts.cachedir }} && { [ -e F ] || { touch F; echo yes; }; }', python_shell: True}]
    - watch: [{test: changed}]
""",
        ["changed: True", "watcher: True, Watch statement fired."],
        ["changed: True", "watcher: True, onlyif condition is false"],
    ),
    "a `listen_in` of a function": (
        """
changed:
  test.succeed_with_changes:
    - listen_in: [{test.nop: heard}]
heard:
  test.nop: []
""",
        ["changed: True", "heard: True", "None: False, Referenced state test.nop: heard does not exist"],
        ["changed: True", "heard: True", "listener_heard: True, Watch statement fired."],
    ),
}


def _came(ran: Mapping[str, Any], expected: list[str]) -> list[str]:
    """Each as far as is expected: comments where the difference is in them."""
    entries = sorted(ran.values(), key=lambda entry: entry.get("__run_num__", len(ran)))
    told = [f"{entry.get('__id__')}: {entry['result']}, {entry['comment']}" for entry in entries]
    cut = [line if "," in want else line.partition(",")[0] for line, want in zip(told, expected, strict=False)]
    return cut + told[len(cut) :]


@pytest.mark.parametrize("row", RUNS)
def test_both(row: str, salt: Salt, tmp_path: Path) -> None:
    sls, theirs, own = RUNS[row]
    tree = Tree(id=row, files={"a.sls": sls})
    answer = salt.ask(tree, ["ran"])
    assert _came(ours(tree, tmp_path / "t", ["ran"])["ran"], own) == own
    assert _came(answer()["ran"], theirs) == theirs
