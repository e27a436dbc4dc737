"""The examples of states in the reference are true: each is applied twice to a host of its own (tests/example_hosts.py).

``python -m tests.test_state_examples [FUNCTION ...]`` writes what the functions say into docs/state-examples/.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from statecore.loader import Loader
from statecore.model.errors import StatecoreError
from tests import case_files
from tests.example_hosts import Servers, Stage

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "docs/state-examples").glob("*.yaml"))
EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    function: example for path in FILES for function, example in case_files.read(path).items()
}

#: Names that the engine calls: no SLS has them, so there is nothing to show.
OF_THE_ENGINE = ("mod_watch", "mod_aggregate", "mod_init")

#: State function without an example -> why.
WITHOUT: Mapping[str, str] = {
    "file.shortcut": "it fails on every host but Windows",
    "pkg.downloaded": "packages are downloaded in real userlands only (tests/statecore/userlands)",
    "pkg.patch_downloaded": "advisories are those of a real SUSE or Red Hat repository (tests/statecore/userlands)",
}


def apply(function: str, directory: Path, servers: Servers) -> tuple[Stage, list[dict[str, Any]]]:
    """Return what the function of an example returned in the first and in the second run; all other states succeeded."""
    example = EXAMPLES[function]
    stage = Stage(example, directory, servers)
    kind, _, name = function.partition(".")
    if "first" in example:
        assert failed(stage.apply(example["first"])) == {}
    found = []
    for _ in range(2):
        # Grains are gathered only where the example is about them.
        run = stage.apply(example["sls"], gather=function.startswith("grains."))
        (key,) = (key for key in run if key.startswith(f"{kind}_|") and key.endswith(f"_|-{name}"))
        own = run.pop(key)
        assert failed(run) == {}
        assert own["result"] is not example.get("fails", False), own
        found.append(own)
    return stage, found


def failed(run: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return {key: comment} of the states that did not succeed."""
    return {key: entry["comment"] for key, entry in run.items() if entry["result"] is not True}


def left(function: str, directory: Path) -> dict[str, str]:
    """Return what the host has of the files that the example names afterwards."""
    names = EXAMPLES[function].get("left", {})
    paths = {name: directory / "host" / name for name in names}
    return {name: path.read_text() if path.exists() else "gone" for name, path in paths.items()}


def differs(function: str, stage: Stage, first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return a text for each thing that is not as the example says, the comment aside."""
    example = EXAMPLES[function]
    found = []
    if bool(second["changes"]) is not example.get("each_time", False):
        found.append(f"changes of the second run: {second['changes']}")
    if changed(stage, first) != example.get("changes"):
        found.append(f"changes of the first run: {first['changes']}")
    if left(function, stage.directory) != example.get("left", {}):
        found.append(f"left: {left(function, stage.directory)}")
    return found


def changed(stage: Stage, entry: Mapping[str, Any]) -> list[str]:
    """Return the keys of a result's changes, sorted."""
    return sorted(stage.shown(str(key)) for key in entry["changes"])


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """Servers that examples ask for; they end with the tests of this module."""
    started = Servers()
    yield started
    started.close()


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with a short path: a socket's path, such as that of GnuPG's agent on a host, has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="ex-", ignore_cleanup_errors=True) as made:
        yield Path(made)


@pytest.mark.parametrize("function", EXAMPLES)
def test_an_example_does_what_the_page_shows(function: str, place: Path, servers: Servers) -> None:
    stage, (first, second) = apply(function, place, servers)
    assert comment(stage, first) == EXAMPLES[function]["says"]
    assert differs(function, stage, first, second) == []


def test_each_example_is_in_one_file() -> None:
    names = [
        name for path in FILES for name in re.findall(r"^(\w+\.\w+):(?: &\w+)?$", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert sorted(names) == sorted(EXAMPLES)


def comment(stage: Stage, entry: Mapping[str, Any]) -> str:
    """Return the comment of a result as the page shows it."""
    return stage.shown(entry["comment"])


def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_shows_the_examples() -> None:
    page = reference().reference_pages()["states/file.md"]
    section = page.partition("\n## file.append\n")[2].partition("\n## ")[0]
    assert "```yaml\n" + EXAMPLES["file.append"]["sls"] in section
    assert f"`{EXAMPLES['file.append']['says']}`" in section


def test_a_state_without_an_own_example_shows_a_case_of_its_tests() -> None:
    page = reference().reference_pages()["states/sysctl.md"]
    assert "```yaml\n" in page.partition("\n## sysctl.present\n")[2]


def test_every_state_has_an_example() -> None:
    shown = reference().state_examples()
    listed = {
        f"{name}.{function}"
        for name, serving in Loader().built_in("states").items()
        for served in serving
        for function in served.listed
        if function not in OF_THE_ENGINE
    }
    assert shown.keys() <= listed
    assert listed - shown.keys() == WITHOUT.keys()


def main(wanted: list[str]) -> int:
    """Write the comments that the functions return into the files of examples."""
    failures = 0
    servers = Servers()
    for path in FILES:
        text = path.read_text("utf-8")
        for function in case_files.read(path):
            if wanted and function not in wanted and function.partition(".")[0] not in wanted:
                continue
            with tempfile.TemporaryDirectory() as name:
                try:
                    stage, (first, second) = apply(function, Path(name), servers)
                except (AssertionError, ValueError, KeyError, OSError, StatecoreError, pytest.skip.Exception) as error:
                    failures += 1
                    sys.stderr.write(f"{function}: {type(error).__name__}: {str(error)[:600]}\n")
                    continue
                for problem in differs(function, stage, first, second):
                    failures += 1
                    sys.stderr.write(f"{function}: {problem}\n")
                text = with_answer(text, function, comment(stage, first), changed(stage, first))
        path.write_text(text, "utf-8")
    servers.close()
    return 1 if failures else 0


def with_answer(text: str, function: str, says: str, changes: list[str]) -> str:
    """Return the text of a file of examples with another comment and other changes of a function."""
    found = re.search(rf"^{re.escape(function)}:(?: &\w+)?\n(?: .*\n|\n)*", text, re.MULTILINE)
    assert found is not None
    kept = re.sub(r"^  (says|changes): .*\n", "", found[0], flags=re.MULTILINE).rstrip("\n")
    keys = ", ".join(quoted(key) for key in changes)
    answer = f"  says: {quoted(says)}\n  changes: [{keys}]\n"
    return f"{text[: found.start()]}{kept}\n{answer}{text[found.end() :]}"


def quoted(text: str) -> str:
    """Return a text as a YAML scalar on one line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
