"""Finding 38.21: commands that the console offers to copy. What others chose (functions, targets, ids, JIDs, arguments) is
one word each in every shell that is here, and never an option or a second command.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import saltern

PAGE = Path(saltern.__file__).parent / "api/page"

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")

#: Texts that somebody else may have chosen.
HOSTILE = (
    "x; touch done",
    "x && touch done",
    "x | touch done",
    "x & touch done",
    "$(touch done)",
    "`touch done`",
    "x\ntouch done",
    "x\r\ntouch done\r\n",
    "'; touch done; '",
    '"; touch done; "',
    "\\'; touch done; \\'",
    "'\\''; touch done; #",
    "\\\ntouch done",
    "$'\\n'; touch done",
    "x > done",
    "<(touch done)",
    "=(touch done)",
    "{a,b}; touch done",
    "~; touch done",
    "x\0; touch done",
    "x\u2028touch done",
    "\u202eenod hcuot",
    "!!; touch done",
    "#'; touch done",
    "--config-dir=/tmp/evil",
    "-c/tmp/evil",
    "-",
    "--",
    "",
    " ",
    "it's",
)

#: Where the text stands in the chunk of low data, and the words that the program must get.
FORMS: dict[str, tuple[Any, Any]] = {
    "target": (lambda it: {"client": "local", "tgt": it, "fun": "f.g"}, lambda it: [it, "f.g"]),
    "function": (lambda it: {"client": "local_async", "tgt": "*", "fun": it}, lambda it: ["--async", "*", it]),
    "target type": (lambda it: {"client": "local", "tgt": "a", "tgt_type": it, "fun": "f.g"}, lambda it: ["a", "f.g"]),
    "runner": (lambda it: {"client": "runner", "fun": it}, lambda it: [it]),
    "key": (
        lambda it: {"client": "wheel", "fun": "key.accept_dict", "match": {"minions_pre": [it]}},
        lambda it: [f"--accept={it}"] if it.startswith("-") else ["-a", it],
    ),
    "argument": (lambda it: {"client": "local", "tgt": "a", "fun": "f.g", "arg": [it]}, None),
    "keyword": (lambda it: {"client": "local", "tgt": "a", "fun": "f.g", "kwarg": {it: 1}}, lambda it: ["a", "f.g", f"{it}=1"]),
    "keyword's value": (lambda it: {"client": "runner", "fun": "f.g", "kwarg": {"a": it}}, None),
    "runner's keyword": (lambda it: {"client": "runner", "fun": "f.g", it or "x": 1}, None),
}  # fmt: skip

#: Prints what a program got: its name and its words.
PROGRAM = """#!/bin/sh
printf '%s\\0' "${0##*/}" "$@" >>got
printf '\\1\\0' >>got
"""


def commands(chunks: list[dict[str, Any]], directory: Path) -> list[str]:
    """The commands that the console shows for chunks of low data."""
    shutil.copy(PAGE / "shell_words.js", directory / "shell_words.mjs")
    script = (
        "import { saltOf } from './shell_words.mjs';"
        "let text = ''; for await (const part of process.stdin) text += part;"
        "console.log(JSON.stringify(JSON.parse(text).map(saltOf)));"
    )
    (directory / "main.mjs").write_text(script)
    done = subprocess.run(
        ["node", "main.mjs"],
        input=json.dumps(chunks).encode(),
        cwd=directory,
        capture_output=True,
        timeout=60,
        check=True,
    )
    return list(json.loads(done.stdout))


def run(shell: str, command: str, directory: Path) -> list[list[str]]:
    """What programs got when a shell read the command: for each call the program's name and its words."""
    programs = directory / "bin"
    programs.mkdir(exist_ok=True)
    for name in ("salt", "salt-run", "salt-key", "curl"):
        (programs / name).write_text(PROGRAM)
        (programs / name).chmod(0o755)
    work = directory / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
        "HOME": str(directory),
        "TOKEN": "t",
    }
    subprocess.run(
        [shell], input=command.encode() + b"\n", cwd=work, env=environment, capture_output=True, timeout=60, check=False
    )
    assert not {path.name for path in work.iterdir()} - {"got"}, f"{shell} did more: {command}"
    got = (work / "got").read_bytes().decode() if (work / "got").exists() else ""
    return [call.split("\0")[:-1] for call in got.split("\1\0") if call]


@pytest.fixture(scope="module")
def all_commands(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    places = [(form, text) for form in FORMS for text in HOSTILE]
    found = commands([FORMS[form][0](text) for form, text in places], tmp_path_factory.mktemp("node"))
    return dict(zip(places, found, strict=True))


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh", "fish"])
@pytest.mark.parametrize("form", FORMS)
def test_a_copied_command_is_one_command(
    all_commands: dict[tuple[str, str], str], form: str, shell: str, tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    for text in HOSTILE:
        command = all_commands[form, text]
        calls = run(shell, command, tmp_path)
        assert len(calls) <= 1, f"{shell} ran {calls}: {command}"
        words = FORMS[form][1]
        # dash and fish do not know $'...'. No shell and no program can have a zero byte in a word.
        if "$'" in command and (shell in ("dash", "fish") or "\0" in text):
            continue
        assert calls, f"{shell} ran nothing: {command}"
        (_, *got) = calls[0]
        end = got.index("--") if "--" in got else None
        if words is not None:
            assert [word for at, word in enumerate(got) if at != end] == words(text)
        options = [word for word in got[: len(got) if end is None else end] if word.startswith("-")]
        assert not [word for word in options if text.startswith("-") and word == text and form != "key"]


def test_nothing_unseen_is_in_a_command(all_commands: dict[tuple[str, str], str]) -> None:
    assert [command for command in all_commands.values() if not command.isprintable()] == []


def test_every_command_of_the_page_is_made_of_quoted_words() -> None:
    """No file but shell_words.js writes a program's name and something else into one text."""
    for path in sorted(PAGE.rglob("*.js")):
        text = path.read_text("utf-8")
        if path.name != "shell_words.js":
            for program in ("salt ", "salt-run ", "salt-key ", "curl "):
                assert f"`{program}$" not in text, path
                lines = [line for line in text.splitlines() if f"`{program}" in line and "${" in line]
                assert lines == [], path
