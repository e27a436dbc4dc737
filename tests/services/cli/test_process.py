"""The commands as processes: what they import, and how they end when their surroundings fail them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = ["salt", "key", "run"]

#: Modules that a command has no use for; each would cost it a good part of its start.
HEAVY = {
    "jinja2",
    "cryptography",
    "statecore",
    "saltwire",
    "masterstore",
    "redis",
    "asyncio",
    "ssl",
    "prometheus_client",
}

#: Modules of these packages that are light: they import nothing but the standard library, msgpack and PyYAML.
LIGHT = {
    *("statecore.host.copies", "statecore.host.content.private_files"),
    *("saltwire", "saltwire.errors", "saltwire.pack"),
    *(
        "statecore",
        "statecore.model",
        "statecore.model.lazy",
        "statecore.model.nearest",
        "statecore.model.salt_version",
    ),
    "statecore.model.option_parser",
    *(
        "statecore.model.errors",
        "statecore.model.aggregation",
        "statecore.model.file_name",
        "statecore.model.text_lines",
    ),
    "statecore.model.yaml",
    *(
        f"statecore.model.yaml.{name}"
        for name in ("bounds", "loaders", "plain_events", "reading", "sls", "writing", "yamlex")
    ),
    *("statecore.host", "statecore.host.content", "statecore.host.content.atomic_file"),
    *("statecore.host.beneath", "statecore.host.rooted_path", "statecore.host.copies"),
    *("statecore.host.content.private_files", "statecore.model.text_lines"),
}


def python(code: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60, env={**os.environ, **env}
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_imports_only_what_it_uses(command: str) -> None:
    done = python(f"import saltern.cli.{command}, sys; print(*sys.modules)")
    assert done.returncode == 0, done.stderr
    assert not HEAVY & {name.split(".")[0] for name in set(done.stdout.split()) - LIGHT}


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_option_ends_without_a_traceback(command: str, tmp_path: Path) -> None:
    (tmp_path / "master").write_text("timeout: long\n")
    words = {"salt": ["*", "test.ping"], "key": ["-L"], "run": ["jobs.active"]}[command]
    code = f"import sys; from saltern.cli.{command} import main; sys.exit(main())"
    done = python(code, "-c", str(tmp_path), *words)
    assert done.returncode == 78
    assert done.stdout == ""
    assert done.stderr.startswith(
        f"ERROR: {tmp_path}/master, line 1: option 'timeout' must be a whole number, not 'long'"
    )
    assert done.stderr.count("\n") == 1


PRINT_MUCH = """
import sys
from saltern.kit.command.command_line import run_command

def body():
    for _ in range(100_000):
        sys.stdout.write("a line that nobody reads\\n")
    return 0

sys.exit(run_command(body))
"""


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = subprocess.Popen([sys.executable, "-c", PRINT_MUCH], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) == 0


def test_letters_that_the_terminal_does_not_know() -> None:
    code = (
        "import sys; from saltern.kit.command.command_line import run_command; "
        "sys.exit(run_command(lambda: print('ü\\ud800') or 0))"
    )
    done = python(code, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout, done.stderr) == (0, "\\xfc\\ud800\n", "")


@pytest.mark.parametrize(("lines", "unbuffered"), [(1, ""), (1, "1"), (100_000, "")])
def test_a_full_disk_behind_stdout_is_told(lines: int, unbuffered: str) -> None:
    code = PRINT_MUCH.replace("100_000", str(lines))
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.stderr == "ERROR: standard output cannot be written: No space left on device\n"
    assert done.returncode == 1


def test_what_is_no_fault_of_stdout_shows_as_the_defect_that_it_is() -> None:
    done = python(PRINT_MUCH.replace("return 0", "raise OSError(28, 'elsewhere')").replace("100_000", "1"))
    assert done.returncode == 1
    assert "OSError: [Errno 28] elsewhere" in done.stderr


ASK_STREAMS = """
import sys
from saltern.kit.command.command_line import run_command

def body():
    sys.stdout.write("out\\n")
    sys.stderr.write(f"err {sys.stdin.read()!r} {sys.stdout.isatty()}\\n")
    return 3

sys.exit(run_command(body))
"""


@pytest.mark.parametrize(
    ("closed", "out", "err"), [("1", "", "err '' False\n"), ("2", "out\n", ""), ("0", "out\n", "err '' False\n")]
)
def test_a_command_works_without_a_standard_stream(closed: str, out: str, err: str) -> None:
    words = ["sh", "-c", f'exec "$0" -c "$1" {closed}>&-', sys.executable, ASK_STREAMS]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (3, out, err)
