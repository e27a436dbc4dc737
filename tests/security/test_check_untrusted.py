"""Finding 38.4: ``statecore check --untrusted`` runs none of a tree's code, and is what checks pull requests."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from statecore.analysis.commands.exit_codes import CommandFault, Exit
from statecore.analysis.commands.main import main
from statecore.analysis.finding import Finding
from statecore.lsp import untrusted
from tests.statecore.lsp.conftest import TREE, plant
from tests.statecore.lsp.test_findings import ATTACKS

ROOT = Path(__file__).resolve().parents[2]

#: Further trees: SLS or files of a tree -> text. {done} is a file that the code would write.
MORE: Mapping[str, str] = {
    "srv/salt/map.jinja": "{% set x = salt['cmd.run']('touch {done}') %}",
    "srv/salt/imports.sls": "{% from 'map.jinja' import x %}\n",
    "srv/salt/yaml.sls": "x: !!python/object/apply:os.system ['touch {done}']\n",
    "srv/salt/pipe.sls": "#!jinja|py\nopen('{done}', 'w')\ndef run():\n    return {{}}\n",
    "srv/salt/gpg.sls": "#!gpg\nx: y\n",
    "srv/salt/nested.sls": "x: {{ salt['slsutil.renderer']('salt://renderer.sls') }}\n",
    "srv/salt/file.sls": "x: {{ salt['file.write']('{done}', 'a') }}\n",
    "srv/salt/saltutil.sls": "x: {{ salt['saltutil.sync_all']() }}{{ salt['danger.present']('a') }}\n",
    "srv/salt/event.sls": "x: {{ salt['event.send']('a') }}{{ salt['cmd.shell']('touch {done}') }}\n",
    "srv/salt/top.sls": "base:\n  '*':\n    - {{ salt['cmd.run']('touch {done}') }}web\n",
    "srv/salt/_utils/danger.py": "open('{done}', 'w')\n",
    "srv/salt/_renderers/yaml.py": "open('{done}', 'w')\n",
    "srv/salt/_matchers/danger.py": "open('{done}', 'w')\n",
    "srv/salt/_tops/danger.py": "open('{done}', 'w')\n",
    "srv/salt/_sdb/danger.py": "open('{done}', 'w')\n",
    "srv/salt/sdb.sls": "x: {{ salt['config.get']('a') }}{{ salt['sdb.get']('sdb://danger/a') }}\n",
    "srv/pillar/top.sls": "base:\n  '*':\n    - {{ salt['cmd.run']('touch {done}') }}site\n",
    "srv/pillar/include.sls": "include: [py]\n",
}

FILES = {**ATTACKS, **MORE}


def _text(text: str, done: Path) -> str:
    filled = text.replace("{done}", str(done)).replace("{{}}", "{}")
    return filled.replace("{{%", "{%").replace("%}}", "%}")


def _checked(tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    given = ["--pillar", str(tmp_path / "srv/pillar"), "--grains", str(tmp_path / "grains.yaml")]
    code = main(["check", str(tmp_path / "srv/salt"), *given, "--untrusted", *words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.mark.parametrize("path", FILES)
def test_a_checked_tree_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str) -> None:
    done = tmp_path / "done"
    plant(tmp_path, {**TREE, path: _text(FILES[path], done)})
    if path.startswith("srv/pillar/") and path.endswith(("py.sls", "include.sls")):
        plant(tmp_path, {"srv/pillar/top.sls": f"base:\n  '*': [{Path(path).stem}]\n"})
    if path.endswith("include.sls"):
        plant(tmp_path, {"srv/pillar/py.sls": _text(FILES["srv/pillar/py.sls"], done)})
    code, out, _ = _checked(tmp_path, capsys)
    assert code in (Exit.OK, Exit.ERRORS)
    assert out
    assert not done.exists()


@pytest.mark.ordinary
def test_a_check_of_an_own_tree_runs_its_functions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = tmp_path / "done"
    plant(tmp_path, {**TREE, "srv/salt/web/init.sls": _text(FILES["srv/salt/call.sls"], done)})
    main(["check", str(tmp_path / "srv/salt"), "--grains", str(tmp_path / "grains.yaml")])
    assert done.exists()
    with pytest.raises(SystemExit):
        main(["check", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "runs the tree's code unless --untrusted" in told
    assert "for pull requests and trees of others" in told


#: What a template may try to show of the machine that checks. The finding of a failing template shows its text.
LOOKS = {
    "environment": "{{ salt['environ.get']('SALTERN_TEST_SECRET') }}",
    "file": "{{ salt['file.read'](secret) }}",
    "include": "{% include secret %}",
    "import": "{% import_text secret as x %}{{ x }}",
    "hash": "{{ secret | file_hashsum }}",
    "link": "{% import_text 'link' as x %}{{ x }}",
    "linked directory": "{% import_text 'directory/secret' as x %}{{ x }}",
    "command": "{{ salt['cmd.run']('cat ' ~ secret) }}",
    "query": "{{ 'file://' ~ secret | http_query }}",
    "cache": "{{ salt['cp.get_file_str'](secret) }}",
    "copy": "{{ salt['cp.get_file_str']('salt://link') }}",
    "file exists": "{{ salt['slsutil.file_exists']('link') and 'hunter2' }}",
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_checked_tree_sees_nothing_of_the_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    secret = tmp_path / "outside/secret"
    monkeypatch.setenv("SALTERN_TEST_SECRET", "hunter2")
    shown = LOOKS[name].replace("%}", "%}", 1)
    text = f"{{% set secret = '{secret}' %}}{{% set found %}}{shown}{{% endset %}}\nx:\n  test.nop:\n    - {{{{ found }}}}: 1\n"
    plant(tmp_path, {**TREE, "outside/secret": "hunter2", "srv/salt/web/init.sls": text})
    (tmp_path / "srv/salt/link").symlink_to(secret)
    (tmp_path / "srv/salt/directory").symlink_to(tmp_path / "outside")
    _, out, err = _checked(tmp_path, capsys, "--out", "json")
    findings = json.loads(out)["findings"]
    assert "hunter2" not in "".join(str({**one, "excerpt": ""}) for one in findings) + err


#: Control characters and commands of logs, as a name in an SLS.
SHOWN = {
    "escape": "\x1b]0;title\x07",
    "colour": "\x1b[31m",
    "carriage return": "a\rb",
    "backspace": "a\x08\x08b",
    "right to left": "a\u202eb",
    "line separator": "a\u2028::set-output name=a::b",
    "next line": "a\x85b",
    "log command": "\n::set-output name=a::b",
    "log command behind blanks": "\n   ::add-mask::b",
}


@pytest.mark.parametrize("name", SHOWN)
def test_findings_obey_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    text = "x:\n  file.managed:\n    - {{ nam | json }}: 1\n"
    made = f"{{% set nam = {json.dumps(SHOWN[name])} %}}\n{text}"
    plant(tmp_path, {**TREE, "srv/salt/web/init.sls": made})
    code, out, _ = _checked(tmp_path, capsys)
    assert code == Exit.ERRORS
    assert all(one.isprintable() or one == "\n" for one in out)
    assert [line for line in out.splitlines() if line.lstrip().startswith("::")] == []


@pytest.mark.parametrize("option", ["--config", "--root"])
def test_options_that_read_the_machine_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    plant(tmp_path, {**TREE, "minion": "renderer: py\n"})
    value = str(tmp_path / "minion") if option == "--config" else str(tmp_path)
    code, out, err = _checked(tmp_path, capsys, option, value)
    assert (code, out) == (Exit.USAGE, "")
    assert option in err


def test_a_tree_that_never_ends_was_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrusted, "CPU_SECONDS", 3)
    text = "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}"
    plant(tmp_path, {**TREE, "srv/salt/web/init.sls": text})
    code, out, err = _checked(tmp_path, capsys)
    assert (code, out) == (Exit.ERRORS, "")
    assert "the tree was not checked: rendering took longer than 3 seconds" in err


#: What a renderer whose sandbox failed may answer instead of findings.
NO_FINDINGS: Mapping[str, object] = {
    "nothing": None,
    "text": "no finding",
    "no rule": {"message": "x"},
    "unknown rule": {"rule": "owned", "message": "x"},
    "rule of a list": {"rule": ("render",), "message": "x"},
    "message of a list": {"rule": "render", "message": ["x"]},
    "line of a text": {"rule": "render", "message": "x", "file": "a", "line": "1"},
    "line below zero": {"rule": "render", "message": "x", "file": "a", "line": -1},
    "column that is true": {"rule": "render", "message": "x", "file": "a", "line": 1, "column": True},
    "file of a number": {"rule": "render", "message": "x", "file": 1},
    "hint of a map": {"rule": "render", "message": "x", "hint": {}},
    "excerpt of bytes": {"rule": "render", "message": "x", "excerpt": b"x"},
}


@pytest.mark.parametrize("name", NO_FINDINGS)
def test_what_is_no_finding_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a finding"):
        Finding.from_data(NO_FINDINGS[name])


@pytest.mark.ordinary
def test_findings_formats_and_exit_codes_are_those_of_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = "x:\n  file.managed:\n    - nmae: /x\n    - mode: 0644\n{% if a %}{{ nothing }}{% endif %}\n"
    plant(tmp_path, {**TREE, "srv/salt/web/init.sls": wrong})
    for form in ("json", "sarif", "text"):
        code, out, err = _checked(tmp_path, capsys, "--out", form)
        given = ["--pillar", str(tmp_path / "srv/pillar"), "--grains", str(tmp_path / "grains.yaml"), "--out", form]
        assert (code, err) == (Exit.ERRORS, "") or "not by" in err
        assert main(["check", str(tmp_path / "srv/salt"), *given]) == code
        assert capsys.readouterr().out == out
    plant(tmp_path, {"srv/salt/web/init.sls": "x:\n  file.managed:\n    - name: /x\n    - mode: 0644\n"})
    assert _checked(tmp_path, capsys)[0] == Exit.OK
    assert _checked(tmp_path, capsys, "--warnings")[0] == Exit.ERRORS
    given = ["--grains", str(tmp_path / "grains.yaml"), "--saltenv", "base", "--untrusted"]
    assert main(["check", str(tmp_path / "srv/salt"), "common", *given]) == Exit.OK


@pytest.mark.ordinary
def test_a_lost_renderer_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted.Worker, "ask", lambda *_, **__: [{"rule": "owned"}])
    with pytest.raises(CommandFault, match="the tree was not checked"):
        untrusted.findings_of({"base": [str(tmp_path)]}, "", "", "", "", [])


#: Options of ``statecore fmt`` -> exit code for a tree in which a link alone is not in the usual form.
FORMATS = {"": Exit.OK, "--check": Exit.OK, "--diff": Exit.OK}


@pytest.mark.parametrize("option", FORMATS)
@pytest.mark.parametrize("link", ["file", "relative", "directory", "chain"])
def test_a_formatted_tree_changes_and_shows_nothing_outside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], link: str, option: str
) -> None:
    secret = "hunter2:\n    a:   b\n"
    plant(tmp_path, {"outside/secret.sls": secret, "srv/web.sls": "x:\n  test.nop: []\n"})
    outside, tree = tmp_path / "outside", tmp_path / "srv"
    if link == "file":
        (tree / "key.sls").symlink_to(outside / "secret.sls")
    elif link == "relative":
        (tree / "key.sls").symlink_to("../outside/secret.sls")
    elif link == "directory":
        (tree / "sub").symlink_to(outside)
    else:
        (tree / "one.sls").symlink_to(outside / "secret.sls")
        (tree / "key.sls").symlink_to("one.sls")
    code = main(["fmt", *([option] if option else []), str(tree)])
    shown = capsys.readouterr()
    assert (code, shown.out + shown.err) == (FORMATS[option], "")
    assert (outside / "secret.sls").read_text() == secret


# -------------------------------------------------------------------------------------------------------- what CI is told

_USES = re.compile(r"^\s*-?\s*uses:\s*(\S+)", re.MULTILINE)


def _tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def test_no_action_is_named_by_tag() -> None:
    used = [
        (path.name, action)
        for path in _tracked("*.md", "*.yml", "*.yaml")
        for action in _USES.findall(path.read_text("utf-8"))
        if "/" in action
    ]
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one[1])] == []


def test_what_checks_pull_requests_runs_nothing_of_them() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [one["entry"] for one in hooks if one["entry"].startswith("statecore check")] == [
        "statecore check --untrusted"
    ]
    steps = [
        line.strip()
        for path in _tracked("docs/*.md", "docs/**/*.md", "README.md", "examples/**", ".github/**", "*.yml")
        if path.suffix in (".md", ".yml", ".yaml")
        for line in path.read_text("utf-8").splitlines()
        if re.match(r"\s*- run: .*statecore check", line)
    ]
    assert steps
    assert [line for line in steps if "--untrusted" not in line] == []
