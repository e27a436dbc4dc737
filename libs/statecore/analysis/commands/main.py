"""Entry point of ``statecore``: which verb, with which options; what it says, how it ends."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn

from statecore.analysis.commands import check, explain, graph, plan
from statecore.analysis.commands.ending import CommandFault, Exit
from statecore.model.errors import StatecoreError


class Verb(NamedTuple):
    """One thing that the command does."""

    what: str
    configure: Callable[[argparse.ArgumentParser], None]
    #: Exit code and what to print. Raises CommandFault, StatecoreError.
    run: Callable[[argparse.Namespace], tuple[int, str]]


VERBS: Mapping[str, Verb] = {
    "check": Verb("finds what is wrong or odd in a state tree", check.configure, check.run),
    "plan": Verb("shows what a run would change", plan.configure, plan.run),
    "apply": Verb("does what was planned, or refuses", plan.configure_apply, plan.run_apply),
    "graph": Verb("draws the states of a run and their requisites", graph.configure, graph.run),
    "explain": Verb("says why a state runs when it does", explain.configure, explain.run),
}


class _ArgumentParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(Exit.USAGE, f"{self.prog}: error: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code. What goes wrong is one line on stderr."""
    given = _parser().parse_args(argv)
    logging.basicConfig(level=logging.CRITICAL if not given.verbose else logging.DEBUG, stream=sys.stderr)
    try:
        code, text = VERBS[given.verb].run(given)
        if text:
            sys.stdout.write(text.rstrip("\n") + "\n")
            sys.stdout.flush()
    except CommandFault as fault:
        return _failed(str(fault), fault.code)
    except StatecoreError as error:
        return _failed(str(error), Exit.ERRORS)
    except BrokenPipeError:
        # The reader (less, head) has seen enough. Python would complain again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except OSError as error:
        return _failed(f"{error.filename}: {error.strerror}" if error.filename else str(error), Exit.ERRORS)
    except KeyboardInterrupt:
        return _failed("interrupted", Exit.ERRORS)
    return int(code)


def _parser() -> argparse.ArgumentParser:
    parser = _ArgumentParser(prog="statecore", description="Salt's state system without a master.", allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=_ArgumentParser)
    for name, verb in VERBS.items():
        own = verbs.add_parser(name, help=verb.what, description=f"statecore {name} {verb.what}.", allow_abbrev=False)
        own.add_argument("-v", "--verbose", action="store_true", help="log to stderr")
        verb.configure(own)
    return parser


def _failed(message: str, code: int) -> int:
    sys.stderr.write(f"statecore: {message}\n")
    return code
