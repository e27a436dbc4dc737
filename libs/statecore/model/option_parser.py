"""A parser of command lines whose message about an unknown option names the most similar option."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import NoReturn

from statecore.model.nearest import close_matches

_UNKNOWN = "unrecognized arguments: "


class OptionParser(argparse.ArgumentParser):
    """argparse's parser with a hint in its message about an unknown option. A wrong command line ends with ``usage_code``."""

    #: Exit code for a wrong command line; argparse's own is 2.
    usage_code = 2

    def error(self, message: str) -> NoReturn:
        """Print the usage and ``message`` on stderr and exit with ``usage_code``."""
        self.print_usage(sys.stderr)
        self.exit(self.usage_code, f"{self.prog}: error: {self._hinted(message)}\n")

    def _hinted(self, message: str) -> str:
        """Return an error message of argparse. In a message about an unknown long option, name the most similar option
        that the help shows.
        """
        if not message.startswith(_UNKNOWN):
            return message
        words = message.removeprefix(_UNKNOWN).split()
        word = next((each.partition("=")[0] for each in words if each.startswith("--")), "")
        near = close_matches(word, _options(self), n=1) if word else []
        told = self._unknown(words) or message
        return f"{told}; did you mean '{near[0]}'?" if near else told

    def _unknown(self, words: Sequence[str]) -> str:
        """Return the message about words that are no options of the command; empty: argparse's message."""
        return ""


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the options of a parser, and of its subcommands, that the help shows."""
    for action in parser._actions:
        if action.help != argparse.SUPPRESS:
            yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for below in (action.choices or {}).values():
                yield from _options(below)
