"""The command ``salt-key``: manages the keys of minions through the master's wheel functions.

Key files are made on the machine where the command runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from saltern.cli.context import CommandContext, run_guarded
from saltern.cli.key_options import list_named, parse_flags
from saltern.kit.command.command_line import CommandError, Exit
from saltern.kit.command.output.flags import Printer
from saltern.kit.links.answers import WheelCall
from saltern.kit.links.control import CONTROL_PATIENCE, wheel_functions
from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    from saltern.cli import key_files
else:
    # Reads and writes key files with cryptography, which the other actions do not need.
    key_files = lazy_module("saltern.cli.key_files")

_STATES: Mapping[str, str] = {
    "minions_pre": "unaccepted",
    "minions_rejected": "rejected",
    "minions": "accepted",
    "minions_denied": "denied",
}


@dataclass(frozen=True)
class _Change:
    """A row of the table of salt-key's actions that accept, reject or delete keys: the wheel function, and how to ask for it."""

    #: Wheel function.
    fun: Literal["key.accept", "key.reject", "key.delete"]
    #: Participle for the messages.
    done: str
    #: States that ``--include-<state>`` adds to the unaccepted ones; empty: the action applies to all states.
    includes: tuple[str, ...]
    #: Whether an empty answer to the question means yes.
    yes_by_default: bool


_CHANGES: Mapping[str, _Change] = {
    "accept": _Change("key.accept", "accepted", ("rejected", "denied"), True),
    "reject": _Change("key.reject", "rejected", ("accepted", "denied"), True),
    "delete": _Change("key.delete", "deleted", (), False),
}

#: Keys in one request. A worker finishes them before the request would be repeated.
_AT_ONCE = 500

#: Options about the consequences of a lost key. If they are not given, the master's configuration applies.
_OF_LOSS = ("rotate_aes_key", "preserve_minions")


def main() -> int:
    """Run the command ``salt-key`` and return the exit code."""
    return run(sys.argv[1:])


def run(argv: Sequence[str], context: CommandContext | None = None, ask: Callable[[str], str] = input) -> int:
    """Run ``salt-key`` with these arguments and return the exit code. ``ask``: asks the operator whether to proceed."""
    return run_guarded(lambda: _salt_key(parse_flags(argv), context or CommandContext(), ask))


def _salt_key(flags: argparse.Namespace, context: CommandContext, ask: Callable[[str], str]) -> int:
    options = context.started("salt-key", flags)
    printer = Printer(flags, options, context.env)
    action, match = flags.action
    if action == "gen-keys":
        # The master is not asked: it may be on another machine.
        return key_files.gen_keys(match, flags, options, printer)
    wheel = wheel_functions(context.control(options, config_dir=flags.config_dir), CONTROL_PATIENCE)
    if action in _WITH_FILES:
        work: Callable[..., int] = getattr(key_files, _WITH_FILES[action])
        return work(match, flags, options, printer, wheel, partial(_confirmed, True, ask))
    if action in _CHANGES:
        return _change(_CHANGES[action], match, flags, wheel, printer, ask)
    printer.show(_SHOWS[action](wheel, match, flags), "key")
    return Exit.OK


def _list(wheel: WheelCall, word: str, flags: argparse.Namespace) -> dict[str, list[str]]:
    keys = wheel("key.list_all")
    if word.startswith("all"):
        return keys
    name = list_named(word)
    return {name: keys.get(name, [])}


def _finger(wheel: WheelCall, match: str, flags: argparse.Namespace) -> object:
    chosen = {"hash_type": flags.finger_hash} if flags.finger_hash else {}
    return wheel("key.finger", match=match, **chosen)


#: Action that changes nothing -> function that returns the output.
_SHOWS: Mapping[str, Callable[[WheelCall, str, argparse.Namespace], object]] = {
    "list": _list,
    "print": lambda wheel, match, flags: wheel("key.key_str", match=match),
    "finger": _finger,
}

#: Map of an action to its function in ``key_files``.
_WITH_FILES: Mapping[str, str] = {
    "gen-signature": "gen_signature",
    "preseed": "preseed",
    "import": "import_keys",
    "export": "export_keys",
}


def _change(
    change: _Change,
    match: str,
    flags: argparse.Namespace,
    wheel: WheelCall,
    printer: Printer,
    ask: Callable[[str], str],
) -> int:
    included = {state for state in change.includes if _is_included(flags, state)}
    states = [name for name, word in _STATES.items() if not change.includes or word in included | {"unaccepted"}]
    found = wheel("key.list_match", match=match)
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
    if not flags.yes and not _confirmed(change.yes_by_default, ask):
        return Exit.OK
    ids = list(dict.fromkeys(minion for listed_ids in keys.values() for minion in listed_ids))
    more = {f"include_{state}": True for state in included}
    more |= {name: value for name in _OF_LOSS if (value := getattr(flags, name)) is not None}
    changed: set[str] = set()
    for start in range(0, len(ids), _AT_ONCE):
        answer = wheel(change.fun, match=ids[start : start + _AT_ONCE], **more)
        changed |= {minion for listed_ids in answer.values() for minion in listed_ids}
    # One line for each key: an id with two keys (accepted and denied) has two lines when it is deleted.
    for minion in ids if change.includes else [minion for listed_ids in keys.values() for minion in listed_ids]:
        if minion in changed:
            say(f"Key for minion {minion} {change.done}.")
        else:
            sys.stderr.write(f"Key for minion {minion} not {change.done}: its state has changed meanwhile.\n")
    return Exit.OK if changed >= set(ids) else Exit.GENERIC


def _is_included(flags: argparse.Namespace, state: str) -> bool:
    # A denied key belongs to another host that uses the id of an accepted minion: --include-all excludes it.
    return bool(getattr(flags, f"include_{state}") or (flags.include_all and state != "denied"))


def _confirmed(yes_by_default: bool, ask: Callable[[str], str]) -> bool:
    try:
        answer = ask(f"Proceed? [{'n/Y' if yes_by_default else 'N/y'}] ")
    except EOFError:
        raise CommandError(
            "the question was not answered, so nothing was done; give -y to answer it in advance"
        ) from None
    return answer.lower().startswith("y") if answer else yes_by_default
