"""Custom modules in Salt's style, run by real Salt and by us: the same calls give the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statecore.model.errors import NotAvailable
from statecore.runtime.runtime import Runtime, local_runtime
from tests import case_files

HERE = Path(__file__).parent
TREE = HERE / "tree"

#: Options that both minions have.
OPTIONS: dict[str, Any] = {"racks": "a1:web a2:db a3:web", "state_aggregate": ["gathering"]}

#: Our exceptions under Salt's names.
_NAMES = {"CommandError": "CommandExecutionError", "InvocationError": "SaltInvocationError"}
_NAMES |= {"StatecoreError": "SaltException"}

#: What of a state's return differs from run to run.
_TIMES = ("start_time", "duration", "__run_num__")


def _calls() -> list[tuple[str, list[Any], dict[str, Any]]]:
    rows = case_files.read(HERE / "calls.yaml")
    whole = [[row] if isinstance(row, str) else row for row in rows]
    return [(row[0], row[1] if len(row) > 1 else [], row[2] if len(row) > 2 else {}) for row in whole]


CALLS = _calls()


def _plain(value: Any) -> Any:
    """A value as it travels, state returns without their times."""
    plain = json.loads(json.dumps(value, default=str))
    if isinstance(plain, dict):
        for entry in plain.values():
            if isinstance(entry, dict) and "start_time" in entry:
                for name in _TIMES:
                    entry.pop(name, None)
    return plain


@pytest.fixture(scope="module")
def pillar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pillar")
    (folder / "top.sls").write_text("base:\n  '*':\n    - data\n")
    (folder / "data.sls").write_text("color: green\n")
    return folder


def _runtime(folder: Path, pillar: Path, **more: Any) -> Runtime:
    options = {
        "id": "web1",
        "cachedir": str(folder / "cache"),
        "conf_file": str(folder / "minion"),
        "file_roots": {"base": [str(TREE)]},
        "pillar_roots": {"base": [str(pillar)]},
        **OPTIONS,
        **more,
    }
    runtime = local_runtime(options)
    runtime.call("saltutil.sync_all")
    return runtime


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory, pillar: Path) -> list[dict[str, Any]]:
    """Our answers to all calls, in order: what one remembers the next sees."""
    folder = tmp_path_factory.mktemp("ours")
    runtime = _runtime(folder, pillar)
    answers: list[dict[str, Any]] = []
    for fun, args, kwargs in CALLS:
        try:
            answers.append({"value": _plain(runtime.functions[fun](*args, **kwargs))})
        except NotAvailable as error:
            answers.append({"error": "KeyError", "text": str(error)})
        except Exception as error:  # noqa: BLE001 - what is raised is an answer
            answers.append({"error": _NAMES.get(type(error).__name__, type(error).__name__), "text": str(error)})
    return answers


@pytest.fixture(scope="module")
def theirs(oracle: Any, tmp_path_factory: pytest.TempPathFactory, pillar: Path) -> list[dict[str, Any]]:
    """Real Salt's answers; that of ``saltutil.sync_all`` is first."""
    folder = tmp_path_factory.mktemp("theirs")
    asked = {"directory": str(folder), "tree": str(TREE), "pillar": str(pillar), "opts": OPTIONS, "calls": CALLS}
    answers = json.loads(oracle.run("python", str(HERE / "salt_calls.py"), stdin=json.dumps(asked)))
    return [{"value": _plain(answer["value"])} if "value" in answer else answer for answer in answers]


@pytest.mark.oracle
@pytest.mark.parametrize("number", range(len(CALLS)), ids=[f"{at}-{fun}" for at, (fun, _, _) in enumerate(CALLS)])
def test_the_same_answer(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], number: int) -> None:
    mine, expected = ours[number], theirs[number + 1]
    if expected.get("error") == "KeyError":
        assert mine.get("error") == "KeyError", mine
    else:
        assert mine == expected


@pytest.mark.oracle
def test_the_same_files_are_synced(theirs: list[dict[str, Any]], tmp_path: Path, pillar: Path) -> None:
    runtime = _runtime(tmp_path, pillar)
    for path in sorted((tmp_path / "cache/extmods").rglob("*.py")):
        path.unlink()
    synced = runtime.call("saltutil.sync_all").value
    assert {kind: sorted(names) for kind, names in synced.items()} == {
        kind: sorted(names) for kind, names in theirs[0]["value"].items()
    }
