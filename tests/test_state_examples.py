"""The examples of states in the reference are true: each is applied twice to a host that is a directory.

``python -m tests.test_state_examples`` writes what the functions say into docs/state-examples.yaml.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from statecore.loader import Loader
from statecore.runtime.masterless_ports import NoEvents
from statecore.runtime.runtime import local_runtime
from tests import case_files

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs/state-examples.yaml"
EXAMPLES: Mapping[str, Mapping[str, Any]] = case_files.read(FILE)

#: Names that the engine calls: no SLS has them, so there is nothing to show.
OF_THE_ENGINE = ("mod_watch", "mod_aggregate", "mod_init")

#: What the host has in each example.
HOST = {"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n", "tmp": "/"}

#: The state functions without an example, at most: most of them need recorded programs or a service. The number only falls:
#: whoever adds a state adds an example.
WITHOUT = 180

GRAINS = {"id": "web1", "os": "Debian", "os_family": "Debian", "kernel": "Linux", "osmajorrelease": 12}


def write(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = directory / name
        (path if text == "/" else path.parent).mkdir(parents=True, exist_ok=True)
        if text != "/":
            path.write_text(text)


class Master(NoEvents):
    """A master that takes every event of the example."""

    def fire(self, *_: Any, **__: Any) -> bool:
        return True


def apply(function: str, directory: Path) -> list[dict[str, Any]]:
    """Return what the function of an example returned in the first and in the second run; all states of both succeeded."""
    example = EXAMPLES[function]
    host, tree = directory / "host", directory / "tree"
    write(host, {**HOST, **example.get("have", {})})
    write(tree, {**example.get("tree", {}), "example.sls": example["sls"]})
    opts = {
        "id": "web1",
        "host_root": str(host),
        "file_roots": {"base": [str(tree)]},
        "pillar_roots": {},
        "cachedir": str(directory / "cache"),
        "extension_modules": str(directory / "extmods"),
        "conf_file": str(host / "etc/salt/minion"),
    }
    found = []
    for _ in range(2):
        # Grains are gathered only where the example is about them: that takes longer than all the rest.
        grains = None if function.startswith("grains.") else GRAINS
        runtime = local_runtime(opts, grains=grains, pillar=example.get("pillar"), events=Master())
        run = runtime.call("state.apply", ["example"], {}).value
        assert isinstance(run, dict), run
        assert {key: entry["comment"] for key, entry in run.items() if entry["result"] is not True} == {}
        kind, _, name = function.partition(".")
        (own,) = (entry for key, entry in run.items() if key.startswith(f"{kind}_|") and key.endswith(f"_|{'-'}{name}"))
        found.append(own)
    return found


def left(function: str, directory: Path) -> dict[str, str]:
    """Return what the host has of the files that the example names afterwards."""
    names = EXAMPLES[function].get("left", {})
    paths = {name: directory / "host" / name for name in names}
    return {name: path.read_text() if path.exists() else "gone" for name, path in paths.items()}


@pytest.mark.parametrize("function", EXAMPLES)
def test_an_example_does_what_the_page_shows(function: str, tmp_path: Path) -> None:
    example = EXAMPLES[function]
    first, second = apply(function, tmp_path)
    assert first["comment"].replace(str(tmp_path), "") == example["says"]
    assert bool(second["changes"]) is example.get("each_time", False), second
    assert left(function, tmp_path) == example.get("left", {})


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


def test_new_states_have_an_example() -> None:
    shown = reference().state_examples()
    listed = {
        f"{name}.{function}"
        for name, serving in Loader().built_in("states").items()
        for served in serving
        for function in served.listed
        if function not in OF_THE_ENGINE
    }
    assert shown.keys() <= listed
    assert len(listed - shown.keys()) <= WITHOUT, sorted(listed - shown.keys())


def main() -> int:
    """Write the comments that the functions return into the file of examples."""
    text = FILE.read_text("utf-8")
    failed = 0
    for function in EXAMPLES:
        with tempfile.TemporaryDirectory() as name:
            try:
                first, second = apply(function, Path(name))
            except (AssertionError, ValueError, KeyError) as error:
                failed += 1
                sys.stderr.write(f"{function}: {str(error)[:300]}\n")
                continue
            says = first["comment"].replace(name, "")
            if bool(second["changes"]) is not EXAMPLES[function].get("each_time", False):
                sys.stderr.write(f"{function}: the second run: {second['changes']}\n")
            if left(function, Path(name)) != EXAMPLES[function].get("left", {}):
                sys.stderr.write(f"{function}: left: {left(function, Path(name))}\n")
        entry = re.compile(rf"^{re.escape(function)}:\n(?: .*\n|\n)*", re.MULTILINE)
        found = entry.search(text)
        assert found is not None
        kept = re.sub(r"^  says: .*\n", "", found[0], flags=re.MULTILINE)
        text = text[: found.start()] + kept.rstrip("\n") + f"\n  says: {quoted(says)}\n" + text[found.end() :]
    FILE.write_text(text, "utf-8")
    return 1 if failed else 0


def quoted(text: str) -> str:
    """Return a text as a YAML scalar on one line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


if __name__ == "__main__":
    sys.exit(main())
