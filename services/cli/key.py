"""``salt-key``: lists, accepts, rejects and deletes the keys of minions, through the master's wheel."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.cli.outside import Outside, run_guarded
from services.kit.commandline import CommandError, CommandParser, Exit
from services.kit.control import CONTROL_PATIENCE, ControlClient
from services.kit.output.flags import Printer, add_output_flags

#: First letters of ``--list``'s word -> the list in the master's answer; "all" is every list.
_LISTS: Mapping[str, str] = {
    "acc": "minions",
    "pre": "minions_pre",
    "un": "minions_pre",
    "rej": "minions_rejected",
    "den": "minions_denied",
}

_STATES: Mapping[str, str] = {
    "minions_pre": "unaccepted",
    "minions": "accepted",
    "minions_rejected": "rejected",
    "minions_denied": "denied",
}

_EPILOG = """\
MATCH is a glob for minion ids, or several separated by commas. Without an action all keys are listed.

examples:
  salt-key -L
  salt-key -y -a web1
  salt-key -d 'web*' --yes

Exit codes: 0 done (also when nothing matched); 1 the master refused or the question was not answered;
64 wrong command line; 69 the master does not answer; 78 wrong configuration.
"""

Wheel = Callable[..., Any]


@dataclass(frozen=True)
class _Change:
    """An action that changes keys."""

    #: Function of the wheel.
    fun: str
    #: What happened to the key, in the words that are printed.
    done: str
    #: States that ``--include-<word>`` may add to the unaccepted ones; empty: every state is meant.
    includes: tuple[str, ...]
    #: Whether an empty answer to the question means yes.
    yes_by_default: bool


_CHANGES: Mapping[str, _Change] = {
    "accept": _Change("key.accept", "accepted", ("rejected", "denied"), True),
    "reject": _Change("key.reject", "rejected", ("accepted", "denied"), True),
    "delete": _Change("key.delete", "deleted", (), False),
}


def main() -> int:
    """Entry point of ``salt-key``; returns the exit code."""
    return run(sys.argv[1:])


def run(argv: Sequence[str], outside: Outside | None = None, ask: Callable[[str], str] = input) -> int:
    """``salt-key`` with these words; ``ask`` puts the question whether to proceed."""
    return run_guarded(lambda: _salt_key(_parse(argv), outside or Outside(), ask))


def _salt_key(flags: argparse.Namespace, outside: Outside, ask: Callable[[str], str]) -> int:
    options = outside.load(flags.config_dir)
    printer = Printer(flags, options, outside.env)
    control = outside.control(options, config_dir=flags.config_dir)
    action, match = flags.action or ("list", "all")
    if action in _CHANGES:
        return _change(_CHANGES[action], match, flags, control, printer, ask)
    printer.show(_SHOWS[action](control, match), "key")
    return Exit.OK


def _wheel(control: ControlClient, fun: str, **kwarg: Any) -> Any:
    return control.call("wheel", timeout=CONTROL_PATIENCE, fun=fun, kwarg=kwarg)


def _list(control: ControlClient, word: str) -> dict[str, list[str]]:
    keys: dict[str, list[str]] = _wheel(control, "key.list_all")
    if word.startswith("all"):
        return keys
    name = _list_named(word)
    return {name: keys.get(name, [])}


def _list_named(word: str) -> str:
    return next((name for start, name in _LISTS.items() if word.startswith(start)), "")


#: Action that only shows -> what it shows.
_SHOWS: Mapping[str, Callable[[ControlClient, str], Any]] = {
    "list": _list,
    "print": lambda control, match: _wheel(control, "key.key_str", match=match),
    "finger": lambda control, match: _wheel(control, "key.finger", match=match),
}


def _change(
    change: _Change,
    match: str,
    flags: argparse.Namespace,
    control: ControlClient,
    printer: Printer,
    ask: Callable[[str], str],
) -> int:
    included = {state for state in change.includes if _is_included(flags, state)}
    states = [name for name, word in _STATES.items() if not change.includes or word in included | {"unaccepted"}]
    found: dict[str, list[str]] = _wheel(control, "key.list_match", match=match)
    keys = {name: found[name] for name in states if found.get(name)}
    say = (lambda text: None) if flags.quiet else printer.say
    if not keys:
        *others, last = [_STATES[name] for name in states]
        listed = f"{', '.join(others)} or {last}" if others else last
        say(f"The key glob '{match}' does not match any {listed} keys.")
        return Exit.OK
    say(f"The following keys are going to be {change.done}:")
    if not flags.quiet:
        printer.show(keys, "key")
    if not flags.yes and not _confirmed(change, ask):
        return Exit.OK
    ids = [minion for listed_ids in keys.values() for minion in listed_ids]
    includes = {f"include_{state}": True for state in included}
    answer: dict[str, list[str]] = _wheel(control, change.fun, match=ids, **includes)
    changed = {minion for listed_ids in answer.values() for minion in listed_ids}
    for minion in ids:
        if minion in changed:
            say(f"Key for minion {minion} {change.done}.")
        else:
            sys.stderr.write(f"Key for minion {minion} not {change.done}: its state has changed meanwhile.\n")
    return Exit.OK if changed >= set(ids) else Exit.GENERIC


def _is_included(flags: argparse.Namespace, state: str) -> bool:
    # Denied keys belong to somebody else who uses the id of an accepted minion: --include-all does not mean them.
    return bool(getattr(flags, f"include_{state}") or (flags.include_all and state != "denied"))


def _confirmed(change: _Change, ask: Callable[[str], str]) -> bool:
    try:
        answer = ask(f"Proceed? [{'n/Y' if change.yes_by_default else 'N/y'}] ")
    except EOFError:
        raise CommandError("the question was not answered and nothing was done; -y answers it beforehand") from None
    return answer.lower().startswith("y") if answer else change.yes_by_default


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    flags = parser.parse(argv)
    if flags.words:
        hint = "-D takes no ids; use -d" if flags.action == ("delete", "*") else "separate several ids by commas"
        parser.error(f"unexpected argument '{flags.words[0]}': {hint}")
    action, word = flags.action or ("list", "all")
    if action == "list" and not word.startswith("all") and not _list_named(word):
        parser.error(f"'{word}' is not a valid argument to '--list'")
    return flags


class _Action(argparse.Action):
    """Remembers which action was asked for, and the match; ``const`` is (action, match or None: the option's word)."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        action, match = self.const
        setattr(namespace, self.dest, (action, values if match is None else match))


#: Short option, long option, action, what it matches (None: the word that follows), meaning.
_ACTIONS = (
    ("-l", "--list", "list", None, "list keys: all, acc[epted], pre, un[accepted], rej[ected], den[ied]"),
    ("-L", "--list-all", "list", "all", "list all keys"),
    ("-a", "--accept", "accept", None, "accept unaccepted keys"),
    ("-A", "--accept-all", "accept", "*", "accept all unaccepted keys"),
    ("-r", "--reject", "reject", None, "reject unaccepted keys"),
    ("-R", "--reject-all", "reject", "*", "reject all unaccepted keys"),
    ("-d", "--delete", "delete", None, "delete keys in whatever state"),
    ("-D", "--delete-all", "delete", "*", "delete all keys"),
    ("-p", "--print", "print", None, "print public keys"),
    ("-P", "--print-all", "print", "*", "print all public keys"),
    ("-f", "--finger", "finger", None, "print fingerprints"),
    ("-F", "--finger-all", "finger", "*", "print all fingerprints"),
)


def _parser() -> CommandParser:
    # -l is --list here, as in Salt.
    parser = CommandParser(
        "salt-key", "salt-key [options]", "Manages the keys of minions.", _EPILOG, log_flags=("--log-level",)
    )
    actions = parser.add_argument_group("actions").add_mutually_exclusive_group()
    for short, long, action, match, meaning in _ACTIONS:
        takes_word = match is None
        actions.add_argument(
            short,
            long,
            dest="action",
            action=_Action,
            nargs=None if takes_word else 0,
            const=(action, match),
            metavar=("WORD" if action == "list" else "MATCH") if takes_word else None,
            help=meaning,
        )
    for state in ("all", "accepted", "rejected", "denied"):
        parser.add_argument(f"--include-{state}", action="store_true", help=f"mean {state} keys, too")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but what was asked for")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    add_output_flags(parser)
    return parser
