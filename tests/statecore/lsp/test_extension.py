"""The extension for VS Code says what the server takes, and lets no workspace name a command."""

from __future__ import annotations

import json
import re
from pathlib import Path

from statecore.lsp.settings import KNOWN, Settings, with_editor

ROOT = Path(__file__).parents[3]
EXTENSION = ROOT / "examples/editors/vscode"


def test_the_extension_has_the_settings_of_the_server() -> None:
    manifest = json.loads((EXTENSION / "package.json").read_text())
    properties = manifest["contributes"]["configuration"]["properties"]
    assert {name.removeprefix("statecore.") for name in properties} == {*KNOWN, "command"}
    sent = re.search(r"for \(const name of \[([^\]]*)\]", (EXTENSION / "extension.js").read_text())
    assert sent
    assert set(re.findall(r'"(\w+)"', sent[1])) == set(KNOWN)
    for part in (
        manifest["contributes"]["languages"][0]["configuration"],
        manifest["contributes"]["grammars"][0]["path"],
    ):
        json.loads((EXTENSION / part).read_text())


def test_no_workspace_names_the_command() -> None:
    manifest = json.loads((EXTENSION / "package.json").read_text())
    properties = manifest["contributes"]["configuration"]["properties"]
    assert properties["statecore.command"]["scope"] == "machine"
    assert "trust" not in KNOWN
    assert manifest["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"] == ["statecore.command"]
    settings, problems = with_editor(Settings(), {"trust": True}, "/srv")
    assert not settings.trust
    assert problems == ["there is no setting 'trust'; there are fileRoots, pillar, grains, id"]


def test_settings_of_the_editor(tmp_path: Path) -> None:
    for name in ("srv/salt/web", "srv/pillar", "other"):
        (tmp_path / name).mkdir(parents=True)
    folder = str(tmp_path)
    assert with_editor(Settings(), None, folder)[0].file_roots == {"base": [folder]}
    (tmp_path / "srv/salt/web/init.sls").touch()
    (tmp_path / "srv/pillar/top.sls").touch()
    likely, problems = with_editor(Settings(), {}, folder)
    assert (likely.file_roots, likely.pillar, problems) == (
        {"base": [f"{folder}/srv/salt"]},
        f"{folder}/srv/pillar",
        [],
    )
    given = {"statecore": {"fileRoots": {"dev": "other"}, "grains": "gone.yaml", "id": "db1"}}
    found, problems = with_editor(Settings(), given, folder)
    assert (found.file_roots, found.id, found.grains) == ({"dev": [f"{folder}/other"]}, "db1", "")
    assert problems == [f"the setting 'grains' names {folder}/gone.yaml, which does not exist"]
    assert with_editor(Settings({"base": ["/a"]}, id="x"), given, folder)[0].file_roots == {"base": ["/a"]}
    assert with_editor(Settings(), {"fileRoots": 5}, folder)[1][0].startswith("the setting 'fileRoots' must be")
