"""Entry point of the command ``statecore``: parses the command line, runs one subcommand and returns its exit code."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from statecore.analysis.commands import check, fmt, lsp, plan
from statecore.analysis.commands.exit_codes import CommandFault, Exit
from statecore.analysis.commands.explain_graph import configure_explain, configure_graph, run_explain, run_graph
from statecore.model.errors import StatecoreError
from statecore.model.log_levels import GARBAGE, PROFILE, TRACE
from statecore.model.option_parser import OptionParser


class Verb(NamedTuple):
    """One subcommand of ``statecore`` (check, plan ...): its help text, the function that adds its options, and the
    function that runs it.
    """

    what: str
    configure: Callable[[argparse.ArgumentParser], None]
    #: Returns (exit code, output). Raises CommandFault or StatecoreError.
    run: Callable[[argparse.Namespace], tuple[int, str]]


VERBS: Mapping[str, Verb] = {
    "check": Verb(
        "finds errors and suspicious forms in a state tree; it runs the tree's code unless --untrusted is given",
        check.configure,
        check.run,
    ),
    "plan": Verb("shows the changes that a state run would make", plan.configure, plan.run),
    "apply": Verb(
        "applies states or a stored plan; refuses a plan that is out of date", plan.configure_apply, plan.run_apply
    ),
    "graph": Verb("draws the states of a run and their requisites", configure_graph, run_graph),
    "explain": Verb(
        "shows why a state runs at its position, and where its arguments come from",
        configure_explain,
        run_explain,
    ),
    "fmt": Verb("formats SLS files without changing what they say", fmt.configure, fmt.run),
    "lsp": Verb("serves editors: completion, documentation, findings and more while you type", lsp.configure, lsp.run),
}


class _ArgumentParser(OptionParser):
    usage_code = Exit.USAGE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command ``statecore`` with the arguments ``argv`` (None: ``sys.argv``) and return its exit code.

    The result is printed to stdout. An error is written to stderr as one line.
    """
    given = _parser().parse_args(argv)
    _configure_log(given)
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
        # The reader of the pipe (less, head) has exited. /dev/null prevents a second error when Python closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except OSError as error:
        return _failed(f"{error.filename}: {error.strerror}" if error.filename else str(error), Exit.ERRORS)
    except KeyboardInterrupt:
        return _failed("interrupted", Exit.ERRORS)
    return int(code)


#: Values of ``--log-level`` -> number of the level.
_LEVELS: Mapping[str, int] = {
    "all": logging.NOTSET,
    "garbage": GARBAGE,
    "trace": TRACE,
    "debug": logging.DEBUG,
    "profile": PROFILE,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "quiet": logging.CRITICAL + 10,
}


def _configure_log(given: argparse.Namespace) -> None:
    """Send the log of ``statecore`` to stderr, with the level of ``--log-level``, and to the file of ``--log-file``.
    Raises OSError if the file cannot be opened.
    """
    level = _LEVELS[given.log_level] if given.log_level else logging.DEBUG if given.verbose else logging.CRITICAL
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    handlers[0].setLevel(level)
    if given.log_file:
        handlers.append(logging.FileHandler(given.log_file, encoding="utf-8"))
        least = _LEVELS[given.log_file_level] if given.log_file_level else min(level, logging.WARNING)
        handlers[1].setLevel(least)
        level = min(level, least)
    logging.basicConfig(level=level, format="%(asctime)s [%(levelname)-8s] %(message)s", handlers=handlers)


def _parser() -> argparse.ArgumentParser:
    parser = _ArgumentParser(prog="statecore", description="Salt's state system without a master.", allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=_ArgumentParser)
    for name, verb in VERBS.items():
        own = verbs.add_parser(name, help=verb.what, description=f"statecore {name} {verb.what}.", allow_abbrev=False)
        own.add_argument("-v", "--verbose", action="store_true", help="log to stderr, as --log-level debug")
        own.add_argument(
            "--log-level", choices=_LEVELS, metavar="LEVEL", help="least severity that is logged on stderr"
        )
        own.add_argument("--log-file", metavar="FILE", help="file that also receives the log")
        own.add_argument(
            "--log-file-level", choices=_LEVELS, metavar="LEVEL", help="least severity that is written to that file"
        )
        verb.configure(own)
    return parser


def _failed(message: str, code: int) -> int:
    sys.stderr.write(f"statecore: {message}\n")
    return code
