"""The command ``eventlisten``: prints tag and data of the master's events as they fire.

Source: docs/protocol.md#event-tags
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pprint import pformat

from saltern.cli.context import CommandContext, no_bus, run_guarded
from saltern.cli.watch_events import tag_matches
from saltern.kit.command.command_line import CommandError, CommandParser, Exit
from saltern.kit.command.output.color import OFF, fit_for_terminal

#: Seconds of one wait for an event. The value has no effect on the output.
_ONE_WAIT = 60.0

_EPILOG = """\
examples:
  eventlisten
  eventlisten 'salt/job/*/ret/*' 'salt/auth' --count 10

For lines that a script reads: salt-run state.event. Ctrl-C ends it.

Exit codes: 0 done; 64 wrong command line; 69 the event bus does not answer; 78 wrong configuration.
"""


def main() -> int:
    """Run the command ``eventlisten`` and return the exit code."""
    return run(sys.argv[1:])


def run(argv: Sequence[str], context: CommandContext | None = None) -> int:
    """Run ``eventlisten`` with these arguments and return the exit code."""
    return run_guarded(lambda: _listen(parser().parse(argv), context or CommandContext()))


def shown(tag: str, data: Mapping[str, object], now: datetime) -> str:
    """Return one event as text, in the format of Salt's script ``eventlisten.py``."""
    fired = now.strftime("%a %b %-d %H:%M:%S %Y")
    return f"Event fired at {fired}\n{'*' * 25}\nTag: {fit_for_terminal(tag, OFF)}\nData:\n{pformat(dict(data))}\n"


def _listen(flags: argparse.Namespace, context: CommandContext) -> int:
    options = context.started("eventlisten", flags)
    bus, heard = context.connect_bus(options, flags.config_dir, "")
    if not heard:
        raise CommandError(no_bus(options), Exit.UNAVAILABLE)
    left = flags.count
    try:
        while left:
            event = bus.next(_ONE_WAIT)
            if event is None or not _wanted(event[0], flags.words):
                continue
            sys.stdout.write(f"{shown(*event, datetime.fromtimestamp(time.time()))}\n")
            sys.stdout.flush()
            left -= left > 0
    except KeyboardInterrupt:
        pass
    finally:
        bus.close()
    return Exit.OK


def _wanted(tag: str, globs: Sequence[str]) -> bool:
    return not globs or any(tag_matches(tag, glob) for glob in globs)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of events from 1 on")
    return int(text)


def parser() -> CommandParser:
    """Return the parser for the command line of ``eventlisten``."""
    made = CommandParser(
        "eventlisten",
        "eventlisten [options] [TAG ...]",
        "Shows events of the master's bus as they fire; with tags (globs or regular expressions) those alone.",
        _EPILOG,
    )
    made.add_argument("-n", "--count", type=_count, default=-1, metavar="N", help="end after N events (default: never)")
    return made
