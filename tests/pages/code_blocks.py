"""Reads the code blocks of pages, and says what is wrong with each: no block is left unlooked at.

A block's kind is the word after its fence; a block that is only indented is commands, or configuration in YAML or JSON.
Commands are checked word by word: the shell can read them, the program is known, and so are the functions, runners and options
of ours, and the targets of the Makefile. ``text`` is output, or a picture made of letters.
"""

from __future__ import annotations

import configparser
import json
import re
import shlex
import subprocess
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import yaml

ROOT = Path(__file__).resolve().parents[2]

#: What shells complete: names of functions, runners, commands and options.
NAMES: Mapping[str, list[str]] = json.loads((ROOT / "services/saltern/cli/names.json").read_text("utf-8"))
OPTIONS: Mapping[str, list[str]] = NAMES["options"]  # type: ignore[assignment]

TARGETS = frozenset(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))

_STATECORE = ROOT / "libs/statecore/analysis/commands"
SUBCOMMANDS = frozenset(re.findall(r'^    "([a-z]+)": _?V', (_STATECORE / "main.py").read_text("utf-8"), re.MULTILINE))

#: Programs of others that pages use. What follows them is theirs.
OTHERS = frozenset(
    [
        ".",
        ".ci/docker-engine",
        ".ci/podman",
        ".ci/run",
        ".venv/bin/pip",
        ".venv/bin/python",
        "/var/tmp/saltern-cluster/kubectl",
        ":",
        "[",
        "apt",
        "apt-get",
        "awk",
        "base64",
        "bash",
        "cat",
        "cd",
        "chmod",
        "chown",
        "code",
        "codespell",
        "cosign",
        "cp",
        "crontab",
        "curl",
        "date",
        "dmesg",
        "do",
        "docker",
        "docker-compose",
        "docker/base-image",
        "docker/images",
        "docs/site/versions",
        "done",
        "echo",
        "export",
        "fi",
        "for",
        "git",
        "grep",
        "head",
        "htpasswd",
        "id",
        "if",
        "install",
        "journalctl",
        "jq",
        "k8s/pin-images",
        "kill",
        "kubectl",
        "ls",
        "mkdir",
        "mv",
        "npm",
        "npx",
        "openssl",
        "pepper",
        "pip",
        "pip3",
        "pipx",
        "podman",
        "printf",
        "python",
        "python3",
        "redis-cli",
        "redis-server",
        "rm",
        "rmdir",
        "sed",
        "set",
        "sh",
        "sha256sum",
        "skopeo",
        "sleep",
        "sort",
        "source",
        "ssh",
        "ssh-keygen",
        "ssh-keyscan",
        "sudo",
        "systemctl",
        "tail",
        "tar",
        "tee",
        "test",
        "then",
        "touch",
        "tr",
        "cut",
        "cmp",
        "true",
        "twine",
        "umask",
        "unset",
        "until",
        "wait",
        "while",
    ]
)


@dataclass(frozen=True)
class Block:
    """A code block of a page. ``line``: its first line of code in the page, from 1."""

    page: Path
    line: int
    #: The word after the fence; "indented" for a block without a fence, "" for a fence without a word.
    kind: str
    text: str


def read_blocks(page: Path) -> Iterator[Block]:
    """Yield the code blocks of a page of Markdown."""
    lines = page.read_text("utf-8").splitlines()
    number = 0
    while number < len(lines):
        fence = re.match(r"^( *)```(\{?[\w-]*\}?)", lines[number])
        end = number + 1
        if fence:
            while lines[end].strip() != "```":
                end += 1
            text = textwrap.dedent("\n".join(lines[number + 1 : end]))
            yield Block(page, number + 2, fence[2], text)
            end += 1
        elif lines[number].startswith("    ") and not lines[number - 1].strip():
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield Block(page, number + 1, "indented", textwrap.dedent("\n".join(lines[number:end])).rstrip())
        number = end


# --- commands ----------------------------------------------------------------------------------------------------

_KEYWORDS = frozenset(
    ("do", "then", "else", "if", "while", "until", "!", "{", "(", "time", "exec", "sudo", "nice", "env", "nohup")
)
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_FUNCTION = re.compile(r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$")


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of a shell script, without variables before it. Raises ValueError for an open quote."""
    joined = re.sub(r"\\\n *", " ", text)
    for line in _logical_lines(joined):
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        words.commenters = "#"
        command: list[str] = []
        for word in [*words, ";"]:
            if re.fullmatch(r"[;&|()]+", word):
                if named := _without_prefix(command):
                    yield named
                command = []
            else:
                command.append(word)


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines, joined where a quote goes on in the next one."""
    waiting = ""
    for line in text.splitlines():
        waiting = f"{waiting}\n{line}" if waiting else line
        try:
            shlex.split(waiting, comments=True)
        except ValueError:
            continue
        yield waiting
        waiting = ""
    if waiting:
        raise ValueError(f"a quote is open: {waiting.splitlines()[0]}")


def _without_prefix(words: list[str]) -> list[str]:
    while words and (words[0] in _KEYWORDS or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    return words


def command_fault(words: Sequence[str]) -> str | None:
    """Return what is wrong with a command, or None."""
    program = words[0].rpartition(".venv/bin/")[2] or words[0]
    if program in _OURS:
        return _OURS[program](program, words[1:])
    if program in OTHERS or re.match(r"^[$<>]|^\d*[<>]", program):
        return None
    return f"the program {program} is unknown"


def _make(_: str, words: Sequence[str]) -> str | None:
    skipped = {at + 1 for at, word in enumerate(words) if word in ("-C", "-f")}
    wanted = [
        word for at, word in enumerate(words) if at not in skipped and "=" not in word and not word.startswith("-")
    ]
    missing = [word for word in wanted if re.fullmatch("[a-z0-9-]+", word) and word not in TARGETS]
    return f"the Makefile has no target {missing[0]}" if missing else None


def _functions(known: frozenset[str]) -> Callable[[str, Sequence[str]], str | None]:
    def fault(program: str, words: Sequence[str]) -> str | None:
        if bad := _option_fault(program, words):
            return bad
        named = [word for word in words if _FUNCTION.match(word)][:1]
        modules = {name.partition(".")[0] for name in known}
        for word in named:
            # A module of the reader's own has another name than ours.
            if word not in known and word.partition(".")[0] in modules:
                return f"{program} has no function {word}"
        return None

    return fault


def _option_fault(program: str, words: Sequence[str]) -> str | None:
    known = OPTIONS.get(program)
    if known is None:
        return None
    # What follows a runner is the runner's own: jobs.rerun JID --failed.
    words = (
        words[: next((at for at, word in enumerate(words) if _FUNCTION.match(word)), len(words))]
        if program == "salt-run"
        else words
    )
    given = [word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)]
    return next((f"{program} has no option {each}" for each in given if each not in known), None)


def _saltern(_: str, words: Sequence[str]) -> str | None:
    named = [word for word in words if not word.startswith("-")][:1]
    return next(
        (f"saltern has no command {each}" for each in named if each not in NAMES["commands"] and each.islower()), None
    )


def _statecore(_: str, words: Sequence[str]) -> str | None:
    named = [word for word in words if not word.startswith("-")][:1]
    return next(
        (f"statecore has no command {each}" for each in named if each not in SUBCOMMANDS and each.islower()), None
    )


_EXECUTION = _functions(frozenset(NAMES["functions"]))

#: Our programs -> what finds a fault in the words after them.
_OURS: Mapping[str, Callable[[str, Sequence[str]], str | None]] = {
    "make": _make,
    "salt": _EXECUTION,
    "salt-call": _EXECUTION,
    "salt-run": _functions(frozenset(NAMES["runners"])),
    "salt-key": lambda program, words: _option_fault(program, words),
    "salt-cp": lambda program, words: _option_fault(program, words),
    "eventlisten": lambda program, words: _option_fault(program, words),
    "salt-minion": lambda program, words: _option_fault(program, words),
    "salt-master": lambda program, words: _option_fault(program, words),
    "saltern": _saltern,
    "statecore": _statecore,
}


def shell_fault(text: str) -> str | None:
    """Return what is wrong with the commands of a block, or None."""
    # A name in angle brackets stands for what the reader has; the shell would read a redirection.
    text = re.sub(r"<([A-Za-z][\w -]*)>", r"\1", text)
    read = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    if read.returncode:
        return f"the shell cannot read it: {read.stderr.strip()}"
    try:
        found = [command_fault(words) for words in commands(text)]
    except ValueError as error:
        return str(error)
    return next((fault for fault in found if fault), None)


# --- other kinds -------------------------------------------------------------------------------------------------


def console_fault(text: str) -> str | None:
    """Return what is wrong with the commands behind ``$ ``, or None; the other lines are output."""
    typed = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    if not typed:
        return "no line begins with $"
    return shell_fault("\n".join(typed))


def yaml_fault(text: str) -> str | None:
    """Return what is wrong with YAML, or None. With Jinja in it, what is not Jinja's own is not known: Jinja alone reads it."""
    if "{{" in text or "{%" in text or text.startswith("#!"):
        try:
            jinja2.Environment(extensions=["jinja2.ext.do"]).parse(text)
        except jinja2.TemplateSyntaxError as error:
            return f"Jinja cannot read it: {error}"
        return None
    try:
        list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        return f"no YAML: {error}"
    return None


def _with(
    reader: Callable[[str], object], errors: type[Exception] | tuple[type[Exception], ...]
) -> Callable[[str], str | None]:
    def fault(text: str) -> str | None:
        try:
            reader(text)
        except errors as error:
            return str(error)
        return None

    return fault


def indented_fault(text: str) -> str | None:
    """Return what is wrong with a block without a fence: it is commands, or a mapping in YAML or JSON; else None."""
    wrong = shell_fault(text)
    if wrong is None:
        return None
    if isinstance(_loaded(text), dict | list):
        return None
    return f"neither commands ({wrong}) nor configuration: give it a fence with its kind"


def _loaded(text: str) -> object:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _balanced(text: str) -> str | None:
    """Return the first bracket without a partner, or None: for languages that nothing here can read."""
    open_ones = []
    for char in re.sub(r"\"(?:[^\"\\]|\\.)*\"", "", text):
        if char in "([{":
            open_ones.append(")]}"["([{".index(char)])
        elif char in ")]}" and (not open_ones or open_ones.pop() != char):
            return f"{char} has no partner"
    return f"{open_ones[-1]} is missing" if open_ones else None


def _dockerfile(text: str) -> str | None:
    known = ("FROM", "RUN", "COPY", "USER", "ENV", "ARG", "LABEL", "#")
    lines = [line for line in re.sub(r"\\\n", " ", text).splitlines() if line.strip()]
    return next((f"no instruction: {line}" for line in lines if not line.startswith(known)), None)


#: Kind of a block -> what finds its fault.
KINDS: Mapping[str, Callable[[str], str | None]] = {
    "console": console_fault,
    "sh": shell_fault,
    "indented": indented_fault,
    "yaml": yaml_fault,
    "json": _with(json.loads, ValueError),
    "toml": _with(tomllib.loads, tomllib.TOMLDecodeError),
    "python": _with(
        lambda text: compile(text, "page", "exec", flags=0x2000), SyntaxError
    ),  # with await outside of functions
    "dockerfile": _dockerfile,
    "sql": _balanced,
    "lua": _balanced,
    "elisp": _balanced,
    "{toctree}": lambda text: None,  # the menu, which Sphinx and tests/test_pages.py read
    "ini": _with(lambda text: configparser.ConfigParser().read_string(text), configparser.Error),
    "text": lambda text: None,
}


def fault(block: Block) -> str | None:
    """Return what is wrong with a block, or None."""
    if block.kind not in KINDS:
        return f"a block has a kind, one of {', '.join(sorted(KINDS))}, not {block.kind or 'none'}"
    return KINDS[block.kind](block.text)
