"""Finding 38.2, the editor's half: what a foreign tree names (settings, links) stays in the folder that was opened."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from statecore.analysis.sls_text.formatting import formatted
from statecore.lsp.catalogue import users_module
from statecore.lsp.facts import facts_of
from statecore.lsp.index import InTree, TreeIndex
from statecore.lsp.rendering import Session
from statecore.lsp.settings import Settings, with_editor
from statecore.lsp.worker import Worker, WorkerFailed
from statecore.lsp.workspace import Workspace
from statecore.model.errors import StatecoreError
from tests.statecore.lsp.conftest import CURSOR, Editor, plant


class Machine(NamedTuple):
    """A user's directory: the folder that is opened, and secrets beside it."""

    folder: Path
    secrets: Path


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    plant(
        tmp_path,
        {
            "secrets/grains.yaml": "token: hunter2\n",
            "secrets/states/key.sls": "hunter2:\n  test.nop: []\n",
            "secrets/pillar/top.sls": "base:\n  '*': [all]\n",
            "secrets/pillar/all.sls": "token: hunter2\n",
            "folder/srv/salt/web.sls": "x:\n  test.nop: []\n",
            "folder/grains.yaml": "id: web1\n",
            "folder/pillar.yaml": "port: 80\n",
        },
    )
    os.mkfifo(tmp_path / "folder/pipe")
    for name in ("states", "pillar", "grains.yaml", "pillar/all.sls"):
        (tmp_path / "folder" / f"link-{name.replace('/', '-')}").symlink_to(tmp_path / "secrets" / name)
    (tmp_path / "folder/inside").symlink_to("grains.yaml")
    (tmp_path / "folder/loop").symlink_to("loop")
    (tmp_path / "folder/gone").symlink_to("../nowhere")
    return Machine(tmp_path / "folder", tmp_path / "secrets")


#: Setting -> values that lead out of the folder or that are no file. {secrets} is the directory beside it.
SETTINGS: Mapping[str, list[object]] = {
    "fileRoots": [
        "..",
        "../..",
        "/",
        "/etc",
        "~",
        "~/.ssh",
        "srv/../..",
        "./srv/salt/../../../secrets/states",
        "{secrets}/states",
        "link-states",
        "link-pillar",
        "gone",
        ["srv/salt", "../secrets/states"],
        {"base": ["srv/salt"], "dev": ["../secrets/states"]},
        {"base": "../secrets/states"},
        "\0/etc",
        "~nobody-of-this-name/x",
    ],
    "pillar": [
        "..",
        "/etc/passwd",
        "~/.aws/credentials",
        "../secrets/pillar",
        "../secrets/pillar/all.sls",
        "{secrets}/pillar",
        "link-pillar",
        "link-pillar-all.sls",
        "srv/salt/../../../secrets/pillar",
        "gone",
        "loop",
        "pipe",
        "/dev/zero",
        "/proc/self/environ",
        "a\0b",
    ],
    "grains": [
        "..",
        "/etc/passwd",
        "/proc/self/environ",
        "~/.aws/credentials",
        "../secrets/grains.yaml",
        "{secrets}/grains.yaml",
        "link-grains.yaml",
        "srv/salt",
        "gone",
        "loop",
        "pipe",
        "/dev/stdin",
        "~root/.ssh/id_rsa",
        "a\0b",
    ],
}

CASES = [(name, value) for name, values in SETTINGS.items() for value in values]


def _filled(value: object, secrets: Path) -> object:
    return value.replace("{secrets}", str(secrets)) if isinstance(value, str) else value


@pytest.mark.parametrize(("name", "value"), CASES, ids=[f"{name} {value!r}" for name, value in CASES])
def test_a_setting_of_the_tree_names_nothing_outside(machine: Machine, name: str, value: object) -> None:
    settings, problems = with_editor(Settings(), {name: _filled(value, machine.secrets)}, str(machine.folder))
    assert problems
    assert [path for path in settings.paths() if not Path(path).resolve().is_relative_to(machine.folder)] == []
    assert not settings.outside()


@pytest.mark.parametrize("name", SETTINGS)
def test_without_a_folder_a_setting_names_nothing(machine: Machine, name: str) -> None:
    settings, problems = with_editor(Settings(), {name: str(machine.secrets / "grains.yaml")}, "")
    assert (settings.paths(), bool(problems)) == ([], True)


#: Links in the place of directories and files that are found without a setting: path in the folder -> target.
GUESSED = {
    "states": ("srv/salt", "states"),
    "states of salt": ("salt", "states"),
    "states of states": ("states", "states"),
    "pillar": ("srv/pillar", "pillar"),
    "pillar of pillar": ("pillar", "pillar"),
}


@pytest.mark.parametrize("name", GUESSED)
def test_no_tree_is_found_behind_a_link(tmp_path: Path, machine: Machine, name: str) -> None:
    folder = tmp_path / "other"
    link, target = GUESSED[name]
    (folder / link).parent.mkdir(parents=True, exist_ok=True)
    (folder / link).symlink_to(machine.secrets / target)
    settings, _ = with_editor(Settings(), {}, str(folder))
    assert [path for path in settings.paths() if not Path(path).resolve().is_relative_to(folder)] == []


@pytest.mark.ordinary
def test_settings_inside_the_folder_are_taken(machine: Machine) -> None:
    given = {"fileRoots": ["srv/salt"], "pillar": "pillar.yaml", "grains": "inside"}
    settings, problems = with_editor(Settings(), given, str(machine.folder))
    assert (settings.paths(), problems) == (
        [f"{machine.folder}/srv/salt", f"{machine.folder}/pillar.yaml", f"{machine.folder}/inside"],
        [],
    )


@pytest.mark.ordinary
def test_the_command_line_and_a_trusted_tree_name_any_path(machine: Machine) -> None:
    outside = Settings({"base": [str(machine.secrets / "states")]}, grains=str(machine.secrets / "grains.yaml"))
    settings, problems = with_editor(outside, {}, str(machine.folder))
    assert (settings.file_roots, settings.grains, problems) == (outside.file_roots, outside.grains, [])
    assert settings.outside() == []
    given = {"pillar": "../secrets/pillar", "fileRoots": ["link-states"]}
    settings, problems = with_editor(Settings(trust=True), given, str(machine.folder))
    assert (settings.pillar, problems) == (str(machine.secrets / "pillar"), [])
    assert settings.outside() == []


# --------------------------------------------------------------------------------------------------------------- exchanged


#: What is exchanged after the editor has started, as a checkout of another branch does: path in the folder -> target.
EXCHANGED = {
    "grains": ("grains.yaml", "grains.yaml"),
    "pillar": ("pillar.yaml", "pillar/all.sls"),
    "root": ("srv/salt", "states"),
}


@pytest.mark.parametrize("name", EXCHANGED)
def test_a_path_that_became_a_link_is_not_read(machine: Machine, name: str) -> None:
    given = {"fileRoots": ["srv/salt"], "pillar": "pillar.yaml", "grains": "grains.yaml"}
    settings, problems = with_editor(Settings(), given, str(machine.folder))
    assert not problems
    worker = Worker(settings)
    try:
        assert worker.ask("minion", 60) == {"grains": {"id": "web1"}, "pillar": {"port": 80}}
        path, target = EXCHANGED[name]
        (machine.folder / path).rename(machine.folder / "before")
        (machine.folder / path).symlink_to(machine.secrets / target)
        with pytest.raises(WorkerFailed, match="leads out of the folder"):
            worker.ask("minion", 60)
        assert worker.pid == 0
        # The index of the server, which is not confined, does not read it either.
        listed = {**settings.roots().states, **settings.roots().pillar}
        assert all(Path(each).resolve().is_relative_to(machine.folder) for paths in listed.values() for each in paths)
    finally:
        worker.stop()


@pytest.mark.ordinary
def test_a_file_that_an_editor_replaces_is_read_again(machine: Machine) -> None:
    settings, _ = with_editor(Settings(), {"grains": "grains.yaml"}, str(machine.folder))
    worker = Worker(settings)
    try:
        assert worker.ask("minion", 60) == {"grains": {"id": "web1"}, "pillar": {}}
        (machine.folder / "new").write_text("id: web2\n")
        (machine.folder / "new").rename(machine.folder / "grains.yaml")
        assert worker.ask("minion", 60) == {"grains": {"id": "web2"}, "pillar": {}}
    finally:
        worker.stop()


# -------------------------------------------------------------------------------------------------------------- links


def _link_file(root: Path, secrets: Path) -> None:
    (root / "key.sls").symlink_to(secrets / "states/key.sls")


def _link_relative(root: Path, secrets: Path) -> None:
    (root / "key.sls").symlink_to("../../../secrets/states/key.sls")


def _link_directory(root: Path, secrets: Path) -> None:
    (root / "sub").symlink_to(secrets / "states")


def _link_chain(root: Path, secrets: Path) -> None:
    (root / "one").symlink_to("two")
    (root / "two").symlink_to(secrets / "states")
    (root / "key.sls").symlink_to("one/key.sls")


def _link_through_proc(root: Path, secrets: Path) -> None:
    (root / "key.sls").symlink_to(f"/proc/self/root{secrets}/states/key.sls")


def _link_to_folder(root: Path, secrets: Path) -> None:
    (root / "up").symlink_to("../../..")


#: Name -> (makes the link in the root, what an SLS asks for).
LINKS: Mapping[str, tuple[Callable[[Path, Path], None], str]] = {
    "file": (_link_file, "key.sls"),
    "relative file": (_link_relative, "key.sls"),
    "directory": (_link_directory, "sub/key.sls"),
    "chain": (_link_chain, "key.sls"),
    "directory of a chain": (_link_chain, "one/key.sls"),
    "by /proc": (_link_through_proc, "key.sls"),
    "directory above": (_link_to_folder, "up/secrets/states/key.sls"),
}

#: What reads the file: SLS.
READERS = {
    "import": "{{% import_text '{path}' as found %}}found: {{{{ found | json }}}}\n",
    "include of a template": "{{% set found %}}{{% include '{path}' %}}{{% endset %}}found: {{{{ found | json }}}}\n",
    "include of an SLS": "include: [{sls}]\n",
    "import of YAML": "{{% import_yaml '{path}' as found %}}found: {{{{ found | json }}}}\n",
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("tree", ["states", "pillar"])
def test_no_link_of_a_tree_leads_out(machine: Machine, tmp_path: Path, tree: str, link: str, reader: str) -> None:
    make, path = LINKS[link]
    root = machine.folder / "srv/salt" if tree == "states" else machine.folder / "srv/pillar"
    text = READERS[reader].format(path=path, sls=path.removesuffix(".sls").replace("/", "."))
    plant(root, {"asks.sls": text, "top.sls": "base:\n  '*': [asks]\n"})
    make(root, machine.secrets)
    settings = Settings(
        {"base": [str(machine.folder / "srv/salt")]},
        pillar=str(machine.folder / "srv/pillar") if tree == "pillar" else "",
        grains=str(machine.folder / "grains.yaml"),
    )
    # The session without its second wall, which would hide this one.
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    session = Session(settings, scratch)
    at = InTree(tree, "base", "asks.sls")
    shown = str(session.minion()["pillar"])
    for finding in session.check(str(root / "asks.sls"), at):
        shown += f"{finding.message}{finding.excerpt}{finding.hint}"
    try:
        shown += str(session.values(at, 0))
    except StatecoreError as error:
        shown += str(error)
    assert "hunter2" not in shown


@pytest.mark.parametrize("link", LINKS)
def test_no_link_leads_the_index_out(machine: Machine, link: str) -> None:
    make, path = LINKS[link]
    root = machine.folder / "srv/salt"
    make(root, machine.secrets)
    index = TreeIndex(with_editor(Settings(), {}, str(machine.folder))[0].roots())
    index.scan()
    # An editor reports changes of any path that it watches, and closes documents that it opened by it.
    index.reread(str(root / path))
    index.close(str(root / path))
    index.reread(str(machine.secrets / "states/key.sls"))
    index.close(str(machine.secrets / "states/key.sls"))
    assert "hunter2" not in str([each.text for each in index.files.values()])
    assert str(root / "web.sls") in index.files


def test_a_named_pipe_or_a_large_file_is_not_waited_for(machine: Machine) -> None:
    root = machine.folder / "srv/salt"
    os.mkfifo(root / "pipe.sls")
    (root / "large.sls").write_bytes(b"#" * 5_000_000)
    index = TreeIndex(with_editor(Settings(), {}, str(machine.folder))[0].roots())
    index.scan()
    for name in ("pipe.sls", "large.sls"):
        index.close(str(root / name))
        assert str(root / name) not in index.files


@pytest.mark.ordinary
def test_links_inside_a_root_are_followed(machine: Machine, tmp_path: Path) -> None:
    root = machine.folder / "srv/salt"
    (root / "again.sls").symlink_to("web.sls")
    settings, _ = with_editor(Settings(), {"grains": "grains.yaml"}, str(machine.folder))
    index = TreeIndex(settings.roots())
    index.scan()
    assert index.files[str(root / "again.sls")].text == (root / "web.sls").read_text()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert Session(settings, scratch).values(InTree("states", "base", "again.sls"), 1)


# ------------------------------------------------------------------------------------------------------------------- editor


def test_an_editor_shows_nothing_of_the_machine_and_says_how_it_is_confined(machine: Machine) -> None:
    root = machine.folder / "srv/salt"
    (root / "key.sls").symlink_to(machine.secrets / "states/key.sls")
    settings = {"fileRoots": ["../secrets/states"], "pillar": "../secrets/pillar", "grains": "link-grains.yaml"}
    editor = Editor(machine.folder, settings=settings)
    try:
        assert editor.logged("the renderer is").startswith("statecore: the renderer is confined by: limits")
        assert len([message for message in editor.messages if "is not in the folder" in message]) == 3
        for expression in ("pillar.get('token')", "grains.get('token')", "salt['slsutil.file_exists']('key.sls')"):
            text = editor.hover("srv/salt/web.sls", f"x:\n  cmd.run:\n    - name: {{{{ {expression}{CURSOR} }}}}\n")
            assert "hunter2" not in text
            assert "True" not in text
        assert "token" not in editor.labels("srv/salt/web.sls", f"x: {{{{ pillar['{CURSOR}")
    finally:
        editor.end()


@pytest.mark.ordinary
def test_a_trusted_editor_says_that_it_is_not_confined(machine: Machine) -> None:
    editor = Editor(machine.folder, "--trust", settings={"grains": "grains.yaml"})
    try:
        assert editor.logged("the renderer is") == (
            "statecore: the renderer is not confined; not by: the tree is trusted (--trust)"
        )
    finally:
        editor.end()


# ------------------------------------------------------------------------------------------------- texts that cost the server

#: Characters of a text of each kind, and the seconds of processor time that it may cost. A cost that grows with the square of the
#: length is above it by a factor of two or more.
_CHARACTERS, _FORMATTED, _SECONDS = 400_000, 100_000, 12.0

#: Name -> (text that is repeated, text before, text behind).
SLS_TEXTS = {
    "braces": ("{{", "", ""),
    "statements": ("{%", "", ""),
    "comments": ("{#", "", ""),
    "colons": ("a:", "", ""),
    "dashes": ("- ", "", ""),
    "quotes": ('"', "", ""),
    "blanks": (" ", "", ""),
    "lines": ("\n", "", ""),
    "a word": ("a", "", ""),
    "conditions": ("{% if a %}", "", ""),
    "a path": ("a.", "{{ ", " }}"),
    "parentheses": ("(", "{{ ", " }}"),
    "open texts": ("{{ '", "", ""),
    "brackets": ("x: [", "", ""),
    "includes": ("  - a\n", "include:\n", ""),
    "keys with tags": ("{{ a }}: b\n", "", ""),
    "filters": ("|b", "{{ a", " }}"),
    "macros": ("{% macro ", "", ""),
    "a path of the pillar": ("['b']", "{{ pillar['a']", " }}"),
    "a path of grains": (".b", "{{ grains.a", " }}"),
    "functions": ("salt['a.b'](", "{{ ", " }}"),
    "items": ("  - a: b\n    c: d\n", "x:\n", ""),
    "items without dash": ("    c: d\n", "x:\n  - a: b\n", ""),
}

PYTHON_TEXTS = {
    "parentheses": ("(", "x=", ""),
    "signs": ("-", "x=", "1"),
    "attributes": (".b", "x=a", ""),
    "sums": ("+1", "x=1", ""),
    "calls": ("()", "x=f", ""),
    "negations": ("not ", "x=", "1"),
    "lambdas": ("lambda:", "x=", "1"),
    "powers": ("2**", "x=", "1"),
    "lists": ("[", "x=", ""),
    "texts": ("'a' ", "x=", ""),
    "conditions": ("elif 1: pass\n", "if 1: pass\n", ""),
    "null bytes": ("\0", "", ""),
    "functions": ("def f(a): pass\n", "", ""),
}


def _text_of(kind: tuple[str, str, str], characters: int) -> str:
    repeated, before, behind = kind
    return before + repeated * (characters // len(repeated)) + behind


@pytest.mark.parametrize("name", SLS_TEXTS)
@pytest.mark.parametrize("kind", ["sls", "pillar", "top", "template"])
def test_no_file_keeps_the_index_busy(kind: str, name: str) -> None:
    text = _text_of(SLS_TEXTS[name], _CHARACTERS)
    began = time.process_time()
    facts_of(text, kind)
    assert time.process_time() - began < _SECONDS


@pytest.mark.parametrize("name", SLS_TEXTS)
def test_no_file_fills_the_memory(name: str) -> None:
    text = _text_of(SLS_TEXTS[name], 40_000)
    kept = sum(len(one.name) for one in facts_of(text, "sls").references)
    assert kept < 100 * len(text)


@pytest.mark.parametrize("length", [2_000, 20_000, 200_000])
def test_no_key_of_a_pillar_file_fills_the_memory(length: int) -> None:
    below = "".join(f"  k{number}:\n    x: 1\n" for number in range(1_000))
    text = f"{'k' * length}:\n{below}other:\n  key: 1\n"
    keys = facts_of(text, "pillar").keys
    assert sum(len(key) for key in keys) < 100 * 22_000
    assert "other:key" in keys


@pytest.mark.parametrize("name", SLS_TEXTS)
def test_no_file_keeps_the_formatter_busy(name: str) -> None:
    text = _text_of(SLS_TEXTS[name], _FORMATTED)
    began = time.process_time()
    formatted(text)
    assert time.process_time() - began < _SECONDS


@pytest.mark.parametrize("name", PYTHON_TEXTS)
def test_a_module_that_python_cannot_parse_is_none(name: str) -> None:
    found = users_module("/srv/salt/_modules/aaa.py", _text_of(PYTHON_TEXTS[name], _CHARACTERS))
    assert found is None or found.name == "aaa"


@pytest.mark.parametrize("name", PYTHON_TEXTS)
def test_no_module_of_a_tree_ends_the_reading(tmp_path: Path, name: str) -> None:
    plant(tmp_path, {"_modules/aaa.py": _text_of(PYTHON_TEXTS[name], _CHARACTERS), "web.sls": "x:\n  test.nop: []\n"})
    settings, _ = with_editor(Settings(grains="/dev/null"), {}, str(tmp_path))
    workspace = Workspace(settings, lambda file, found: None, lambda confinement: None)
    workspace.start()
    try:
        assert workspace.ready.wait(60)
        with workspace.lock:
            assert str(tmp_path / "web.sls") in workspace.index.files
    finally:
        workspace.stop()
