"""The command ``saltern complete WORDS...``, which the shells' scripts call: prints the completions of the word at the cursor.

It runs at each press of Tab, so it imports little. Functions, runners and options come from ``names.json``, which `make reference`
writes. Minions, keys and node groups come from a cache file, which is renewed in the background when it is older than 20
seconds.
"""

from __future__ import annotations

import fnmatch
import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypedDict

NAMES = Path(__file__).with_name("names.json")

#: Seconds for which cached names from the master count as current.
_FRESH = 20.0

#: Seconds to wait for the master if there are no cached names.
_PATIENCE = 1.5

#: Module that asks the master, run as a background process.
_ASKS = "saltern.cli.complete_master"

#: Files of a state tree that are looked at; a larger tree is completed in part, to be quick.
_MOST_FILES = 5000


class CompletionNames(TypedDict):
    """The content of ``names.json``: names of commands and their options, execution functions, runners, outputters, log levels."""

    #: Subcommands of ``saltern``.
    commands: list[str]
    #: Execution functions.
    functions: list[str]
    log_levels: list[str]
    #: Command -> {option: whether it takes a value}.
    options: dict[str, dict[str, bool]]
    outputters: list[str]
    runners: list[str]


#: Returns names from the master: of minions ("minions"), or of keys by state ("keys").
Ask: TypeAlias = Callable[[str], Mapping[str, Sequence[str]]]

_LISTS = ("accepted", "all", "denied", "pre", "rejected", "un", "unaccepted")

#: Option of salt-key -> states of the keys that complete it.
_KEYS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("-a", "--accept"), ("minions_pre", "minions_rejected", "minions_denied")),
    **dict.fromkeys(("-r", "--reject"), ("minions_pre", "minions")),
    **dict.fromkeys(
        ("-d", "--delete", "-p", "--print", "-f", "--finger"),
        ("minions", "minions_pre", "minions_rejected", "minions_denied"),
    ),
}

#: Execution functions whose first argument is SLS names.
_APPLIES = frozenset(("state.apply", "state.sls", "state.show_sls", "state.sls_exists", "state.sls_id"))

#: Runner functions whose first argument is SLS names.
_ORCHESTRATES = frozenset(
    ("state.orch", "state.orchestrate", "state.sls", "state.orch_show_sls", "state.orchestrate_show_sls")
)

#: Functions and runners whose arguments are names of functions or runners.
_DOCUMENTS = frozenset(("sys.doc", "sys.argspec", "doc.runner"))

#: Options for targets that are no minion ids.
_NOT_IDS = frozenset(
    (
        *("-G", "--grain", "-P", "--grain-pcre", "-I", "--pillar", "-J", "--pillar-pcre"),
        *("-S", "--ipcidr", "-R", "--range", "-C", "--compound"),
    )
)

#: Option -> its possible values.
_VALUES: Mapping[str, tuple[str, ...]] = {
    "--state-output": tuple(
        f"{form}{ids}" for form in ("full", "terse", "mixed", "changes", "filter") for ids in ("", "_id")
    ),
    "--state-verbose": ("true", "false"),
}

#: Command of saltern -> its possible first words.
_VERBS: Mapping[str, tuple[str, ...]] = {
    "completion": ("bash", "fish", "zsh"),
    "lab": ("up", "down"),
    "store": ("check", "repair", "migrate"),
}


class CommandLine(NamedTuple):
    """A command line up to the cursor, split for completion: program, earlier words, options, and the unfinished word."""

    program: str
    #: Words before the cursor without options and their values.
    before: tuple[str, ...]
    #: Options before the cursor.
    options: frozenset[str]
    #: Option whose value is at the cursor; empty: none.
    option: str
    #: The word at the cursor, as far as it is typed.
    word: str


def main(argv: Sequence[str]) -> int:
    """Print the completions, one a line. Always return 0: a shell cannot show an error at this point."""
    with open(NAMES, encoding="utf-8") as file:
        names: CompletionNames = json.load(file)
    line = parsed(argv, names)
    for candidate in candidates(line, names, known):
        sys.stdout.write(f"{candidate}\n")
    return 0


def parsed(words: Sequence[str], names: CompletionNames) -> CommandLine:
    """Return the words as a CommandLine; the last word is at the cursor. bash splits ``--out=js`` into three words."""
    joined: list[str] = []
    for word in words:
        if joined and (word == "=" or joined[-1].endswith("=")) and joined[-1].startswith("--"):
            joined[-1] += word
        else:
            joined.append(word)
    program, *rest = joined or [""]
    program = program.rpartition("/")[2]
    takes = names["options"].get(program, {})
    before: list[str] = []
    options: set[str] = set()
    belongs = ""
    *passed, last = rest or [""]
    for word in passed:
        if belongs:
            belongs = ""
        elif word.startswith("-") and word != "-":
            name, sign, _ = word.partition("=")
            options.add(name)
            belongs = name if takes.get(name) and not sign else ""
        else:
            before.append(word)
    if not belongs and last.startswith("--") and "=" in last:
        belongs, _, last = last.partition("=")
    return CommandLine(program, tuple(before), frozenset(options), belongs, last.lstrip("'\""))


def candidates(line: CommandLine, names: CompletionNames, ask: Ask) -> list[str]:
    """Return the sorted completions of the word at the cursor. ``ask`` is called only if names from the master are needed."""
    if line.option:
        return _fitting(_of_option(line, names, ask), line.word)
    if line.word.startswith("-"):
        return _fitting(names["options"].get(line.program, {}), line.word)
    return _of_place(line, names, ask)


def _of_option(line: CommandLine, names: CompletionNames, ask: Ask) -> Iterable[str]:
    if line.option in _VALUES:
        return _VALUES[line.option]
    if line.option in ("--out", "--output"):
        return [str(name) for name in names["outputters"]]
    if line.option.endswith("log-level") or line.option == "--log-file-level":
        return [str(name) for name in names["log_levels"]]
    if line.program != "salt-key":
        return [str(name) for name in names["log_levels"]] if line.option == "-l" else []
    if line.option in ("-l", "--list"):
        return _LISTS
    return [minion for state in _KEYS.get(line.option, ()) for minion in ask("keys").get(state, ())]


def _of_place(line: CommandLine, names: CompletionNames, ask: Ask) -> list[str]:
    position = len(line.before)
    if line.program == "saltern":
        words = names["commands"] if position == 0 else _VERBS.get(line.before[0], ()) if position == 1 else ()
        return _fitting(words, line.word)
    if line.program == "salt-run":
        return _of_runner(line.before, line.word, names)
    if line.program == "salt-call":
        return _of_call(line.before, line.word, names)
    if line.program not in ("salt", "salt-cp"):
        return []
    if position == 0:
        if line.options & _NOT_IDS:
            return []
        if line.options & {"-N", "--nodegroup"}:
            return _fitting(ask("minions").get("nodegroups", ()), line.word)
        minions = ask("minions").get("minions", ())
        return _in_list(minions, line.word) if line.options & {"-L", "--list"} else _fitting(minions, line.word)
    return _of_call(line.before[1:], line.word, names) if line.program == "salt" else []


def _of_call(before: Sequence[str], word: str, names: CompletionNames) -> list[str]:
    """Return the completions of a word after the target: functions (several with commas), or SLS names for a state run."""
    if not before:
        return _in_list(names["functions"], word)
    if before[0] in _DOCUMENTS:
        return _fitting(names["functions"], word)
    return _in_list(_sls_names(), word) if before[0] in _APPLIES and len(before) == 1 else []


def _of_runner(before: Sequence[str], word: str, names: CompletionNames) -> list[str]:
    if not before or before[0] in _DOCUMENTS:
        return _fitting(names["runners"], word)
    return _in_list(_sls_names(), word) if before[0] in _ORCHESTRATES and len(before) == 1 else []


def _fitting(found: Iterable[str], word: str) -> list[str]:
    return sorted({name for name in found if name.startswith(word)})


def _in_list(found: Iterable[str], word: str) -> list[str]:
    """Return the completions of ``word``, a list of names separated by commas: one word for each name in ``found``
    that begins like the last name and is not in the list yet.
    """
    listed, comma, last = word.rpartition(",")
    named = set(listed.split(","))
    return [f"{listed}{comma}{name}" for name in _fitting(found, last) if name not in named]


def _sls_names() -> list[str]:
    """Return the SLS names of the state trees on this machine, in the form that state.apply takes."""
    names: list[str] = []
    for root in known("minions").get("file_roots", ()):
        left = _MOST_FILES
        for directory, below, files in os.walk(root):
            below[:] = [name for name in below if not name.startswith((".", "_"))]
            left -= len(files)
            if left < 0:
                break
            for name in fnmatch.filter(files, "*.sls"):
                path = os.path.relpath(os.path.join(directory, name), root)[: -len(".sls")]
                names.append(path.replace(os.sep, ".").removesuffix(".init"))
    return names


def known(about: str) -> Mapping[str, list[str]]:
    """Return the names that the master knows, as a map.

    For "minions" its keys are ``minions``, ``nodegroups`` and ``file_roots``; for "keys" it maps a key state to minion ids.
    Old names are returned while new ones are fetched in the background. Without a cache file the call waits 1.5 seconds for
    the master; the result is {} if the master does not answer.
    """
    path = kept(about)
    try:
        age = time.time() - path.stat().st_mtime
    except OSError:
        age = None
    if age is None or not 0 <= age < _FRESH:
        asking = _started([sys.executable, "-m", _ASKS, about, str(path)])
        # If there are cached names, the process continues in the background.
        if age is None and not _ended(asking, _PATIENCE):
            return {}
    try:
        found: dict[str, list[str]] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def _started(words: Sequence[str]) -> int:
    """Start a background process without output and return its process id. ``subprocess`` would take long to import."""
    silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    return os.posix_spawn(words[0], list(words), os.environ, file_actions=silent, setsid=True)


def _ended(process: int, seconds: float) -> bool:
    """Return whether the process with this id ended within ``seconds``."""
    pidfd = os.pidfd_open(process)
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(pidfd)


def kept(about: str) -> Path:
    """Return the path of the file that caches the master's names for this user and this configuration."""
    config = os.environ.get("SALT_CONFIG_DIR", "/etc/salt").strip("/").replace("/", "-")
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home, "saltern", f"{about}-{config}.json")
