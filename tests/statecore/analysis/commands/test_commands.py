"""The command ``statecore`` as people and CI run it, without a master, without root."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from statecore.analysis.commands.main import VERBS, main

ROOT = Path(__file__).parents[4]

_SECONDS = 60.0


class Shell:
    """A directory with a tree, pillar, grains and a host."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory = directory
        self.capsys = capsys
        self.host = directory / "host"
        (self.host / "etc").mkdir(parents=True)
        self.write("srv/top.sls", "base:\n  '*': [web]\n")
        self.write(
            "srv/web.sls", "motd:\n  file.managed:\n    - name: /etc/motd\n    - contents: {{ pillar['text'] }}\n"
        )
        self.write("pillar.yaml", "text: hello\n")
        self.write("grains.yaml", "id: web1\nos: Debian\nos_family: Debian\n")

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(self, *words: str) -> tuple[int, str, str]:
        """Exit code, stdout, stderr, of the command in this process."""
        try:
            code = main(words)
        except SystemExit as end:
            code = int(end.code or 0)
        return code, *self.capsys.readouterr()

    def process(self, *words: str) -> tuple[int, str, str]:
        """The same of a process of its own."""
        done = subprocess.run(
            [str(Path(sys.executable).with_name("statecore")), *words],
            cwd=self.directory,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "libs"), str(ROOT)])},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def verb(self, verb: str, *words: str) -> tuple[int, str, str]:
        """A verb with everything that says which minion is meant."""
        told = ("--file-root", "srv", "--pillar", "pillar.yaml", "--grains", "grains.yaml", "--root", "host")
        # Whatever else runs on this machine is not this test's.
        cache = ("--cachedir", "cache") if verb == "apply" and "--cachedir" not in words else ()
        return self.run(verb, *words, *told, *cache)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys)


def test_check(shell: Shell) -> None:
    words = ("check", "srv", "--grains", "grains.yaml", "--pillar", "pillar.yaml")
    assert shell.run(*words) == (0, "nothing found\n", "")
    shell.write("srv/bad.sls", "x:\n  file.managed:\n    - nmae: /x\n    - mode: 0644\n")
    code, out, _ = shell.run(*words)
    assert code == 1
    assert out.splitlines()[:2] == [
        "srv/bad.sls:3:7: error: 'nmae' is not an argument of file.managed and would be ignored [unknown-argument]",
        "    the nearest is 'name'",
    ]
    assert out.splitlines()[-1] == "1 error, 1 warning"
    _, out, _ = shell.run(*words, "--out", "json")
    assert [each["rule"] for each in json.loads(out)["findings"]] == ["unknown-argument", "unquoted-mode"]
    assert json.loads(out)["summary"] == {"errors": 1, "warnings": 1, "notes": 0}
    _, out, _ = shell.run(*words, "--out", "sarif")
    (first, _) = json.loads(out)["runs"][0]["results"]
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "srv/bad.sls"


def test_check_of_several_minions_and_its_exit_codes(shell: Shell) -> None:
    shell.write("bsd.yaml", "id: bsd1\nos: FreeBSD\n")
    shell.write("srv/odd.sls", "{% if grains.os == 'FreeBSD' %}\nx:\n  cmd.wait: []\n{% endif %}\n")
    words = ("check", "srv", "--grains", "grains.yaml", "--pillar", "pillar.yaml")
    assert shell.run(*words)[:2] == (0, "nothing found\n")
    code, out, _ = shell.run(*words, "--grains", "bsd.yaml")
    assert code == 0
    assert out.splitlines()[:3] == [
        "srv/odd.sls:3:3: warning: cmd.wait is deprecated [old-form]",
        "    use cmd.run with onchanges",
        "    with bsd.yaml",
    ]
    assert shell.run(*words, "--grains", "bsd.yaml", "--warnings")[0] == 1


def test_plan_and_apply(shell: Shell) -> None:
    code, out, _ = shell.verb("plan", "--out-file", "plan.json")
    assert code == 0
    assert out.splitlines() == [
        "~ file.managed /etc/motd (ID motd, srv/web.sls:2)",
        "    --- /dev/null",
        "    +++ /etc/motd",
        "    @@ -0,0 +1 @@",
        "    +hello",
        "",
        "1 to change, 0 unchanged",
    ]
    assert stat.S_IMODE((shell.directory / "plan.json").stat().st_mode) == 0o600
    assert not (shell.host / "etc/motd").exists()
    (shell.host / "etc/motd").write_text("somebody was here\n")
    code, out, err = shell.run("apply", "plan.json", "--cachedir", "cache")
    assert (code, out) == (3, "")
    assert err.startswith("statecore: nothing was done: this is no longer what plan.json was made of\n")
    assert "file.managed /etc/motd (ID motd)" in err
    assert (shell.host / "etc/motd").read_text() == "somebody was here\n"
    (shell.host / "etc/motd").unlink()
    code, out, _ = shell.process("apply", "plan.json", "--cachedir", "cache")
    assert (code, out.splitlines()[-1]) == (0, "1 changed, 0 failed, 0 unchanged")
    assert (shell.host / "etc/motd").read_text() == "hello\n"
    assert shell.verb("plan", "--exit-code")[:2] == (0, "0 to change, 1 unchanged\n")


def test_plan_for_programs(shell: Shell) -> None:
    code, out, _ = shell.verb("plan", "web", "--out", "json", "--exit-code")
    assert code == 4
    data = json.loads(out)
    assert (data["version"], data["summary"]) == (1, "1 to change, 0 unchanged")
    assert [(each["verdict"], each["id"]) for each in data["states"]] == [("change", "motd")]


def test_a_minions_options_and_several_environments(shell: Shell) -> None:
    shell.write("srv/top.sls", "base:\n  N@webs: [web]\ndev:\n  '*': [more]\n")
    shell.write("dev/more.sls", "y: test.nop\n")
    words = ("--grains", "grains.yaml", "--pillar", "pillar.yaml")
    code, out, _ = shell.run("check", "srv", *words)
    assert code == 1
    assert "there is no node group 'webs'" in out
    shell.write(
        "minion",
        f"nodegroups: {{webs: web1}}\nfile_roots: {{base: ['{shell.directory}/srv'], dev: ['{shell.directory}/dev']}}\n",
    )
    assert shell.run("check", "srv", "--file-root", "dev=dev", "--config", "minion", *words)[1] == "nothing found\n"
    _, out, _ = shell.run("plan", "--config", "minion", "--root", "host", "--all", *words)
    assert out.endswith("1 to change, 1 unchanged\n")


@pytest.fixture
def other_run(shell: Shell) -> Iterator[str]:
    """A state run of this host in a process of its own; its sentence."""
    jid = "20260102030405678901"
    code = (
        "import sys\nfrom pathlib import Path\nfrom statecore.runtime.state_runs.running_jobs import ProcDirectory\n"
        "from statecore.runtime.runtime import local_runtime\nfrom statecore.runtime.state_runs.state_queue import taken\n"
        "jobs = ProcDirectory(Path('cache/proc'))\n"
        f"with jobs.record({{'jid': '{jid}', 'fun': 'state.highstate'}}):\n"
        "    with taken(local_runtime({'cachedir': 'cache'}, jobs=jobs, grains={}).context):\n"
        "        print('runs', flush=True)\n"
        "        sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=shell.directory,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "libs"), str(ROOT)])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        yield (
            f'The function "state.highstate" is running as PID {process.pid} and was started at'
            f" 2026, Jan 02 03:04:05.678901 with jid {jid}"
        )
        if not process.stdin.closed:
            process.stdin.close()


@pytest.mark.parametrize("what", ["plan.json", "web"])
def test_apply_is_refused_while_states_run(shell: Shell, other_run: str, what: str) -> None:
    shell.verb("plan", "--out-file", "plan.json")
    words = ("apply", "plan.json", "--cachedir", "cache") if what == "plan.json" else None
    code, out, err = shell.run(*words) if words else shell.verb("apply", what)
    assert (code, out) == (75, "")
    assert err == f"statecore: nothing was done: {other_run}\nwait for it, or let apply do that: --queue\n"
    assert not (shell.host / "etc/motd").exists()


@pytest.mark.usefixtures("other_run")
def test_apply_may_wait_for_its_turn(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def sleep(_seconds: float) -> None:
        # The other run ends while this one waits.
        looks.append(_seconds)
        for mark in (shell.directory / "cache/state_queue").glob("20260102*"):
            mark.unlink()

    monkeypatch.setattr("statecore.runtime.state_runs.state_queue.time.sleep", sleep)
    assert shell.verb("apply", "web", "--queue")[0] == 0
    assert len(looks) == 1
    assert (shell.host / "etc/motd").read_text() == "hello\n"


def test_others_see_that_states_are_applied(shell: Shell) -> None:
    shell.write(
        "srv/look.sls",
        'look:\n  cmd.run:\n    - name: cat $(ls -d "$CACHE"/state_queue/[0-9]* "$CACHE"/proc/[0-9]*)\n'
        f"    - env: [{{CACHE: '{shell.directory / 'cache'}'}}]\n",
    )
    code, out, err = shell.run("apply", "look", "--file-root", "srv", "--out", "json", "--cachedir", "cache")
    (result,) = json.loads(out).values()
    assert (code, result["result"], err) == (0, True, "")
    assert '"fun": "state.apply"' in result["changes"]["stdout"]
    assert f'"pid": {os.getpid()}' in result["changes"]["stdout"]
    assert list((shell.directory / "cache/state_queue").glob("[0-9]*")) == []
    assert list((shell.directory / "cache/proc").glob("[0-9]*")) == []


def test_runs_of_a_configured_minion_know_of_each_other(shell: Shell, other_run: str) -> None:
    shell.write("minion.yaml", f"cachedir: {shell.directory / 'cache'}\n")
    code, _, err = shell.run("apply", "web", "--file-root", "srv", "--config", "minion.yaml")
    assert code == 75
    assert other_run in err


def test_apply_needs_a_place_to_be_seen(shell: Shell) -> None:
    shell.write("file", "")
    code, _, err = shell.verb("apply", "web", "--cachedir", "file/cache")
    assert code == 64
    assert "cachedir: " in err
    assert "cannot be written: Not a directory (--cachedir names another)" in err


def test_apply_of_sls(shell: Shell) -> None:
    code, out, _ = shell.verb("apply", "web", "--out", "json")
    assert code == 0
    (entry,) = json.loads(out).values()
    assert entry["result"] is True
    shell.write("srv/bad.sls", "x: test.fail_without_changes\n")
    assert shell.verb("plan", "bad")[0] == 2
    code, out, _ = shell.verb("apply", "bad")
    assert (code, out.splitlines()[-1]) == (2, "0 changed, 1 failed, 0 unchanged")


def test_graph_and_explain(shell: Shell) -> None:
    assert shell.verb("graph", "web", "--format", "dot")[1].startswith("digraph states {")
    assert json.loads(shell.verb("graph", "--format", "json")[1])["states"][0]["at"].endswith("srv/web.sls:2")
    code, out, _ = shell.verb("explain", "highstate", "motd")
    assert code == 0
    assert out.splitlines()[:5] == [
        "motd (SLS web, srv/web.sls:1)",
        "  the top file names web for '*', srv/top.sls:2",
        "",
        "file.managed /etc/motd (srv/web.sls:2)",
        "  runs as 1 of 1",
    ]


def test_what_is_explained_is_as_its_author_wrote_it(shell: Shell) -> None:
    """Places are told from here; a name that begins like one is still where the state works."""
    out = shell.directory / "out"
    shell.write(
        "srv/near.sls",
        f"near:\n  file.managed:\n    - name: {out}\n    - require: [{{file: {out}d}}]\n{out}d:\n  file.directory: []\n",
    )
    lines = shell.verb("explain", "near", "near")[1].splitlines()
    assert f"file.managed {out} (srv/near.sls:2)" in lines
    (name,) = [line for line in lines if line.startswith("    name ")]
    # A long value is cut short.
    assert name.split()[1].startswith(f'"{out}'[:50])
    assert name.endswith("(srv/near.sls:3)")
    assert f"    require file: {out}d (srv/near.sls:4)" in lines


@pytest.mark.parametrize(
    "words",
    [
        ("examples/srv/salt", "--pillar", "examples/srv/pillar"),
        *(
            (f"examples/formulas/{name}", "--pillar", f"examples/formulas/{name}/pillar.example")
            for name in ("accounts", "releases", "webserver")
        ),
    ],
    ids=lambda words: words[0].rpartition("/")[2],
)
def test_our_own_examples_are_clean(shell: Shell, words: tuple[str, ...]) -> None:
    paths = [word if word.startswith("--") else str(ROOT / word) for word in words]
    code, out, _ = shell.run("check", *paths, "--grains", "grains.yaml", "--warnings")
    assert code == 0, out


#: Words of the command line -> (exit code, what stderr says).
WRONG: dict[str, tuple[tuple[str, ...], int, str]] = {
    "nothing": ((), 64, "usage: statecore"),
    "an unknown verb": (("frobnicate",), 64, "invalid choice: 'frobnicate'"),
    "no tree": (("check",), 64, "the following arguments are required: TREE"),
    "a tree that is not there": (("check", "gone"), 64, "state tree: there is no gone"),
    "a tree that is a file": (("check", "pillar.yaml"), 64, "state tree: pillar.yaml is no directory"),
    "a config of a wrong kind": (
        ("plan", "--config", "roots.yaml"),
        64,
        "'file_roots' must be a map of environments to lists of directories, not",
    ),
    "grains that are not there": (("check", "srv", "--grains", "gone"), 64, "grains: there is no gone"),
    "grains that are no map": (("check", "srv", "--grains", "list.yaml"), 64, "must hold values by name, not a list"),
    "a pillar that is no YAML": (("check", "srv", "--pillar", "broken.yaml"), 64, "broken.yaml:3: "),
    "a pillar that is no text": (("check", "srv", "--pillar", "binary"), 64, "binary is not UTF-8 text"),
    "a host that is not there": (("plan", "--file-root", "srv", "--root", "gone"), 64, "host root: there is no gone"),
    "an unknown SLS": (("plan", "wbe", "--file-root", "srv", "--grains", "grains.yaml"), 1, "the nearest is 'web'"),
    "an unknown ID": (
        ("explain", "web", "mtod", "--file-root", "srv", "--pillar", "pillar.yaml", "--grains", "grains.yaml"),
        1,
        "there is no ID 'mtod' in web\n    the nearest is 'motd'",
    ),
    "nothing to apply": (("apply",), 64, "apply takes a plan file, or SLS, or --highstate alone"),
    "a plan that is not there": (("apply", "gone.json"), 65, "the plan file gone.json cannot be read"),
    "a plan that is no plan": (("apply", "pillar.yaml"), 65, "pillar.yaml cannot be applied: it is no JSON"),
    "a plan that is no text": (("apply", "./binary"), 65, "it is no text"),
    "a plan of another version": (
        ("apply", "old.json"),
        65,
        "it is a plan of version 0; this statecore reads version 1",
    ),
    "a plan of no run": (("apply", "norun.json"), 65, "it does not say which run it plans"),
    "a plan file in no directory": (
        ("plan", "--file-root", "srv", "--pillar", "pillar.yaml", "--root", "host", "--out-file", "no/where.json"),
        64,
        "the plan cannot be kept in no/where.json",
    ),
    "a tree that does not render": (("graph", "broken", "--file-root", "srv"), 1, "Rendering SLS 'base:broken' failed"),
}


@pytest.mark.parametrize(("words", "code", "says"), WRONG.values(), ids=list(WRONG))
def test_what_is_wrong_is_a_sentence(shell: Shell, words: tuple[str, ...], code: int, says: str) -> None:
    shell.write("list.yaml", "[1]\n")
    shell.write("roots.yaml", "file_roots: {base: srv}\n")
    shell.write("broken.yaml", "a: 1\nb: [\n")
    shell.write("srv/broken.sls", "{{ nothing }}\n")
    (shell.directory / "binary").write_bytes(b"\xff\xfe\x00")
    shell.write("old.json", json.dumps({"kind": "statecore plan", "version": 0}))
    shell.write(
        "norun.json", json.dumps({"kind": "statecore plan", "version": 1, "salt": "00", "run": {}, "states": []})
    )
    found, out, err = shell.run(*words)
    assert (found, out) == (code, "")
    assert says in err


def test_a_process_ends_with_the_code_and_no_traceback(shell: Shell) -> None:
    code, out, err = shell.process("check", "gone")
    assert (code, out, err) == (64, "", "statecore: state tree: there is no gone\n")


def test_the_pre_commit_hook_names_a_command_that_exists() -> None:
    hooks: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    project = tomllib.loads((ROOT / "libs/statecore/pyproject.toml").read_text())["project"]
    for hook in hooks:
        assert {"id", "name", "entry", "language", "files"} <= hook.keys()
        command, verb, *options = hook["entry"].split()
        # The hook runs in checkouts of pull requests.
        assert options == (["--untrusted"] if verb == "check" else [])
        assert command in project["scripts"]
        assert verb in VERBS
        # A tree is checked as a whole and is an argument of the hook; files are formatted one by one.
        assert hook.get("pass_filenames", True) is (verb == "fmt")
        assert hook.get("args") or verb == "fmt"


def test_the_entry_point_is_there() -> None:
    module, _, function = "statecore.analysis.commands.main:main".partition(":")
    project = tomllib.loads((ROOT / "libs/statecore/pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"statecore": f"{module}:{function}"}


def test_fmt(shell: Shell) -> None:
    shell.write("srv/bad.sls", "x:\n    test.nop:   []\n")
    shell.write("srv/script.sls", "#!py\ndef run():\n   return {}\n")
    (shell.directory / "srv/bad.sls").chmod(0o640)
    assert shell.run("fmt", "--check", "srv") == (1, "srv/bad.sls: would be formatted\n", "")
    code, out, _ = shell.run("fmt", "--diff", "srv/bad.sls")
    assert (code, out.splitlines()[-2:]) == (0, ["-    test.nop:   []", "+  test.nop: []"])
    assert shell.run("fmt", "srv") == (0, "srv/bad.sls: was formatted\n", "")
    assert (shell.directory / "srv/bad.sls").read_text() == "x:\n  test.nop: []\n"
    assert stat.S_IMODE((shell.directory / "srv/bad.sls").stat().st_mode) == 0o640
    assert shell.run("fmt", "--check", "srv") == (0, "", "")
    assert shell.run("fmt", "nowhere") == (64, "", "statecore: there is no nowhere\n")
    (shell.directory / "srv/bad.sls").write_bytes(b"x: \xff\n")
    assert shell.run("fmt", "srv/bad.sls") == (64, "", "statecore: srv/bad.sls is not UTF-8 text: byte 3\n")


def test_lsp_without_its_library_names_the_extra(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        name for name in sys.modules if name.partition(".")[0] == "pygls" or name.startswith("statecore.lsp.")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pygls", None)
    code, out, error = shell.run("lsp")
    assert (code, out) == (1, "")
    assert "pip install 'saltern-statecore[lsp]'" in error
    assert shell.run("lsp", "--grains", "gone.yaml") == (64, "", "statecore: --grains: there is no gone.yaml\n")
