"""Ctrl-C at any moment of a command: a line, and the exit code that it has later in its life; never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from saltern.entry import COMMANDS as TOOLS
from saltern.kit.command.launcher import INTERRUPTED, SAID

_SECONDS = 60
_SCRIPTS = Path(__file__).parents[2] / "services" / "pyproject.toml"


class Command(NamedTuple):
    """A command: its function in ``saltern.start``, its code after Ctrl-C, modules that it imports early and late."""

    main: str
    code: int
    imports: tuple[str, ...]
    words: tuple[str, ...] = ("--nosuch",)


_KIT = ("saltern.kit.command.command_line", "argparse", "saltern.kit.config.reading")

COMMANDS: Mapping[str, Command] = {
    "salt": Command("salt", 0, ("saltern.cli", "saltern.cli.request", *_KIT)),
    "salt-key": Command("salt_key", 0, ("saltern.cli", "saltern.cli.key_options", *_KIT)),
    "salt-run": Command("salt_run", 0, ("saltern.cli", "saltern.cli.run", *_KIT)),
    "salt-cp": Command("salt_cp", 0, ("saltern.cli", "saltern.cli.request", *_KIT)),
    "salt-call": Command("salt_call", 0, ("saltern.minion", "statecore.runtime.runtime", *_KIT)),
    "salt-minion": Command("salt_minion", INTERRUPTED, ("saltern.minion", "saltern.minion.minion", *_KIT)),
    "salt-master": Command("salt_master", INTERRUPTED, ("saltern.master", "saltern.master.own_keys", *_KIT)),
    "eventlisten": Command("eventlisten", 0, ("saltern.cli", "saltern.cli.watch_events", *_KIT)),
    "saltern": Command("saltern", INTERRUPTED, ("saltern.entry", "masterstore.schema", *_KIT), ("store", "check")),
}

#: A command that presses Ctrl-C itself, when the module that the first word names is about to be imported.
_PRESSED_AT_IMPORT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == pressed:
            os.kill(os.getpid(), signal.SIGINT)

from saltern import start
pressed, main = sys.argv.pop(1), getattr(start, sys.argv.pop(1))
sys.meta_path.insert(0, Finder())
sys.exit(main())
"""

#: The same for a program beside it.
_PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, getattr(signal, sys.argv[1]))
from saltern.kit.command.launcher import run
sys.exit(run("program", 130))
"""

_PRESS = "import os, signal, sys, atexit\npress = lambda: os.kill(os.getpid(), signal.SIGINT)\n"


def python(code: str, *words: str, cwd: Path | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        cwd=cwd,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("command", "module"), [(name, each) for name, row in COMMANDS.items() for each in row.imports]
)
def test_ctrl_c_while_a_command_is_loaded(command: str, module: str) -> None:
    row = COMMANDS[command]
    assert python(_PRESSED_AT_IMPORT, module, row.main, *row.words) == (row.code, "", SAID)


def test_every_command_starts_there() -> None:
    scripts = tomllib.loads(_SCRIPTS.read_text("utf-8"))["project"]["scripts"]
    assert scripts == {command: f"saltern.start:{row.main}" for command, row in COMMANDS.items()}


@pytest.mark.parametrize(
    ("program", "ended"),
    [
        ("def main(): press()", (130, "", SAID)),
        ("def main():\n print('half', flush=True)\n press()", (130, "half\n", SAID)),
        ("def main(): atexit.register(press); return 3", (3, "", "")),
        ("def main(): atexit.register(press); sys.exit(64)", (64, "", "")),
        ("def main(): return 3", (3, "", "")),
        ("import threading\ndef main(): threading.Timer(0.1, print, ['late']).start(); return 3", (3, "late\n", "")),
        ("def main(): sys.stdout.write('unflushed'); return 3", (3, "unflushed", "")),
        ("def main(): sys.stdout = None; return 3", (3, "", "")),
        # Who catches everything while it imports something.
        ("try:\n press()\nexcept BaseException: pass\ndef main(): return 0", (130, "", SAID)),
    ],
)
def test_ctrl_c_in_a_program(program: str, ended: tuple[int, str, str], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_PRESS + program)
    assert python(_PROGRAM, "default_int_handler", cwd=tmp_path) == ended


def test_who_is_started_with_ctrl_c_ignored_goes_on(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(f"{_PRESS}press()\ndef main(): press(); return 3")
    assert python(_PROGRAM, "SIG_IGN", cwd=tmp_path) == (3, "", "")


def test_next_to_nothing_is_imported_first() -> None:
    code = "import sys\nbefore = {*sys.modules}\nimport saltern.start\nprint(*sorted({*sys.modules} - before))"
    _, loaded, _ = python(code)
    late = {"argparse", "contextlib", "importlib", "statecore", "threading", "typing"}
    assert {name for name in loaded.split() if name.split(".")[0] in late} == set()


@pytest.mark.parametrize("tool", [name for name in TOOLS if name != "complete"])
def test_a_wrong_command_line_ends_with_64(tool: str) -> None:
    code = "import sys\nfrom saltern.entry import main\nsys.exit(main(sys.argv[1:]))"
    ended, out, err = python(code, tool, "--nosuch")
    assert (ended, out) == (64, "")
    assert err.startswith("usage: ")
    assert "--nosuch" in err or "required" in err


@pytest.mark.parametrize(
    ("words", "unbuffered"),
    [
        (["--help"], ""),
        (["--help"], "1"),
        (["completion", "bash"], ""),
        (["completion", "bash"], "1"),
        # Without a buffer later versions of argparse say nothing of it.
        (["keygen", "--help"], ""),
        (["lab", "--help"], ""),
    ],
)
def test_a_full_disk_is_told_by_every_tool(words: list[str], unbuffered: str) -> None:
    code = "import sys\nfrom saltern.start import saltern\nsys.argv[0] = 'saltern'\nsaltern()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    said = "ERROR: standard output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_a_reader_that_has_seen_enough_is_no_fault() -> None:
    code = "import sys\nfrom saltern.start import saltern\nsys.argv[0] = 'saltern'\nsaltern()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert (running.stderr.read(), running.wait(60)) == ("", 0)
