"""The command line of ``salt`` as a value: the target, the functions with their arguments, and the options."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from saltern.cli.region_choice import add_region_flag
from saltern.cli.sign_in import add_eauth_flags
from saltern.kit.command.arguments import on_the_wire, parse_arguments, value_of
from saltern.kit.command.command_line import (
    ROSTER,
    CommandParser,
    add_async_flag,
    add_doc_flag,
    add_executor_flags,
    add_no_parse_flag,
    executors,
)
from saltern.kit.command.output.flags import add_output_flags
from saltern.kit.config.durations import seconds_of
from saltern.kit.jobs.batch import batch_size

#: Short option, long option, target type, help text.
_TARGETS = (
    ("-E", "--pcre", "pcre", "the target is a regular expression for minion ids"),
    ("-L", "--list", "list", "the target is a list of minion ids, separated by commas or spaces"),
    ("-G", "--grain", "grain", "the target is grain:glob, as in 'os:Debian'"),
    ("-P", "--grain-pcre", "grain_pcre", "the target is grain:regular expression"),
    ("-I", "--pillar", "pillar", "the target is pillar key:glob"),
    ("-J", "--pillar-pcre", "pillar_pcre", "the target is pillar key:regular expression"),
    ("-S", "--ipcidr", "ipcidr", "the target is a subnet or an IP address"),
    ("-N", "--nodegroup", "nodegroup", "the target is a node group of the master's configuration"),
    ("-R", "--range", "range", "the target is a range expression for the configured range server"),
    ("-C", "--compound", "compound", "the target combines several kinds, as in 'G@os:Debian and web* or E@db[0-9]+'"),
)

#: Value of --when-back if none is given. Set before argparse, which would take the target for the value.
_A_DAY = "1d"

_EPILOG = """\
examples:
  salt '*' test.ping
  salt -G 'os:Debian' state.apply web test=True
  salt -L web1,web2 cmd.run 'uptime' --out=json --static

Arguments are read as YAML where that makes sense: 5 is a number, [a, b] a list, name=value a named argument.
Exit codes: 0 done; 1 a minion failed or did not return, or the master refused; 2 no minion matched;
64 wrong command line; 69 the master does not answer; 78 wrong configuration. Ctrl-C leaves the job running: 0.
"""


@dataclass(frozen=True)
class SaltRequest:
    """One parsed command line of ``salt``: target and target type, functions with arguments, and options."""

    tgt: str | list[str]
    tgt_type: str
    fun: str | list[str]
    arg: list[Any]
    #: Fields of the publication beside the call: metadata, delimiter, start_event ...
    kwargs: dict[str, Any]
    flags: argparse.Namespace = field(compare=False)

    @property
    def fun_name(self) -> str:
        """Return the name of the function to run, or of the first of several functions."""
        return self.fun if isinstance(self.fun, str) else self.fun[0]


def parse_request(argv: Sequence[str]) -> SaltRequest:
    """Return the parsed command line of ``salt``. Raise SystemExit: 64 for a wrong one, 0 after --help and --version."""
    made = parser()
    flags = made.parse([f"{word}={_A_DAY}" if word == "--when-back" else word for word in argv])
    if flags.when_back and (flags.batch or flags.batch_safe_limit):
        made.error(
            "--when-back waits for minions that are away, --batch runs on those that answer: give only one of them"
        )
    words = _with_doc(made, flags.words) if flags.doc else flags.words
    if flags.config_dump:
        words = ["*", "test.ping"]
    elif flags.preview and len(words) == 1:
        words = [*words, "test.ping"]
    if len(words) < 2:
        made.error("a target and a function are needed, as in: salt '*' test.ping")
    target, fun, *rest = words
    kwargs: dict[str, Any] = {}
    if flags.delimiter != ":":
        kwargs["delimiter"] = flags.delimiter
    if flags.metadata:
        kwargs["metadata"] = value_of(flags.metadata)
    for name in ("ret_config", "ret_kwargs"):
        if getattr(flags, name):
            kwargs[name] = value_of(getattr(flags, name))
    if not isinstance(kwargs.get("ret_kwargs", {}), dict):
        made.error("--return_kwargs takes a map, as in '{db: 2}'")
    if flags.start_event:
        kwargs["start_event"] = True
    kwargs |= executors(flags)
    no_parse = [name.strip() for name in flags.no_parse.split(",")]
    tgt = names_of(target) if flags.tgt_type == "list" else target
    if "," not in fun:
        arg = on_the_wire(*parse_arguments(rest, no_parse))
        return SaltRequest(tgt, flags.tgt_type, fun, arg, kwargs, flags)
    functions = fun.split(",")
    calls = _calls(made, functions, rest, flags.args_separator)
    arg = [on_the_wire(*parse_arguments(call, no_parse)) for call in calls]
    return SaltRequest(tgt, flags.tgt_type, functions, arg, kwargs, flags)


def names_of(target: str) -> list[str]:
    """Return the minion ids in a list target, which separates them by commas."""
    return target.replace(" ", "").split(",") if "," in target else target.split()


def _with_doc(parser: CommandParser, words: list[str]) -> list[str]:
    """Return the target and function of the sys.doc call, as command-line words, that ``salt -d``, ``salt '*' -d`` or
    ``salt '*' -d mod.fun`` is short for. ``words`` are the positional arguments of the command.
    """
    target, *rest = words or ["*"]
    if rest[:1] == ["sys.doc"]:
        rest = rest[1:]
    if len(rest) > 1:
        parser.error("documentation can be asked for one function or module at a time")
    return [target, "sys.doc", *rest]


def _calls(parser: CommandParser, functions: list[str], words: list[str], separator: str) -> list[list[str]]:
    """Return a list with the arguments of each function, for a command line with several functions.

    The words are split at words that equal the separator, or, if there is no such word, at separators inside words. If the
    number of parts is not that of the functions, the command ends with 64.
    """
    standing_alone = words.count(separator) == len(functions) - 1
    pieces = words if standing_alone else [piece for word in words for piece in _pieces(word, separator)]
    calls: list[list[str]] = [[]]
    for piece in pieces:
        if piece == separator:
            calls.append([])
        elif piece:
            calls[-1].append(piece)
    if len(calls) != len(functions):
        parser.error(
            f"{len(functions)} functions need {len(functions)} lists of arguments, separated by '{separator}'; "
            f"found {len(calls)}"
        )
    return calls


def _pieces(word: str, separator: str) -> list[str]:
    first, *others = word.split(separator)
    return [first, *(piece for other in others for piece in (separator, other))]


def _batch(text: str) -> str:
    try:
        batch_size(text, 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is neither a number of minions nor a percentage") from None
    return text


def _length(text: str) -> int:
    try:
        seconds = math.ceil(seconds_of(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if seconds < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time of one second or more")
    return seconds


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of minions from 1 on")
    return int(text)


def parser() -> CommandParser:
    """Return the parser for the command line of ``salt``."""
    made = CommandParser(
        "salt",
        "salt [options] '<target>' <function> [arguments]",
        "Runs a function on the minions that the target matches, and shows what they return.",
        _EPILOG,
    )
    made.add_argument(
        "-t",
        "--timeout",
        type=int,
        metavar="SEC",
        help="seconds to wait for returns before asking the minions whether they still work (default: option timeout)",
    )
    made.add_argument("-s", "--static", action="store_true", help="show all returns together after the last one")
    add_async_flag(made)
    _add_batch_flags(made)
    _add_display_flags(made)
    _add_return_flags(made)
    made.add_argument("--start-event", action="store_true", help="let each minion fire an event when it starts the job")
    add_executor_flags(made)
    _add_away_flags(made)
    add_doc_flag(made)
    made.add_argument(
        "--args-separator",
        default=",",
        metavar="WORD",
        help="separator between the arguments of several functions (default: a comma)",
    )
    add_no_parse_flag(made)
    add_target_flags(made).add_argument(
        "--delimiter",
        default=":",
        metavar="CHAR",
        help="separator between the parts of a nested grain or pillar key (default: a colon)",
    )
    made.add_argument(
        "--config-dump", action="store_true", help="show the options of the master's configuration and end"
    )
    made.add_argument(
        "--preview-target",
        dest="preview",
        action="store_true",
        help="show the minions that the target matches, and run nothing",
    )
    made.read_stdin()
    add_region_flag(made)
    add_eauth_flags(made)
    add_output_flags(made)
    return made


def _add_batch_flags(parser: CommandParser) -> None:
    """Add the options that choose how many minions run a job, and how many at the same time."""
    parser.add_argument(
        "-b",
        "--batch",
        "--batch-size",
        dest="batch",
        type=_batch,
        metavar="N",
        help="run on at most N minions at the same time; N is a number or a percentage of the target, as in 10%%",
    )
    parser.add_argument(
        "--batch-wait",
        type=float,
        default=0,
        metavar="SEC",
        help="seconds to wait after a minion returns before the next minion starts (with --batch; default: 0)",
    )
    parser.add_argument(
        "--batch-safe-limit",
        type=int,
        default=None,
        metavar="N",
        help="run as a batch if at least N minions match; 0: never (default: batch_safe_limit)",
    )
    parser.add_argument(
        "--batch-safe-size",
        type=_batch,
        default=None,
        metavar="N",
        help="number or percentage of minions at the same time in such a batch (default: batch_safe_size)",
    )
    parser.add_argument(
        "--subset",
        type=_count,
        default=0,
        metavar="N",
        help="run on N random minions of the target that have the function",
    )
    parser.add_argument("-p", "--progress", action="store_true", help="show a progress bar on the terminal")
    parser.add_argument(
        "--failhard", action="store_true", help="start no further minions after the first failure (with --batch)"
    )


def _add_display_flags(parser: CommandParser) -> None:
    """Add the options that choose what is shown of a job beside its minions' returns."""
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="show the job's id; with --summary also the ids of minions that failed or did not return",
    )
    parser.add_argument("--show-jid", action="store_true", help="show the job's id")
    parser.add_argument(
        "--show-timeout",
        dest="show_timeout",
        action="store_true",
        default=None,
        help="show the minions that do not return (default: show_timeout of the configuration)",
    )
    parser.add_argument(
        "--hide-timeout", dest="show_timeout", action="store_false", help="do not show the minions that do not return"
    )
    parser.add_argument(
        "--summary", action="store_true", help="show the number of minions that returned, failed and did not return"
    )


def _add_return_flags(parser: CommandParser) -> None:
    """Add the options for data that is stored with a job, and for the returners of its minions."""
    parser.add_argument(
        "--metadata", default="", metavar="YAML", help="data that is stored with the job, as YAML, to find the job by"
    )
    parser.add_argument(
        "--return",
        dest="returner",
        default="",
        metavar="NAME",
        help="returners to which minions also send their returns, separated by commas",
    )
    parser.add_argument(
        "--return_config",
        dest="ret_config",
        default="",
        metavar="NAME",
        help="name of the alternative configuration that these returners use",
    )
    parser.add_argument(
        "--return_kwargs",
        dest="ret_kwargs",
        default="",
        metavar="YAML",
        help="settings of these returners, as a YAML map",
    )


def _add_away_flags(parser: CommandParser) -> None:
    """Add the options for minions that are away when the job is published."""
    away = parser.add_mutually_exclusive_group()
    away.add_argument(
        "--when-back",
        type=_length,
        metavar="DURATION",
        help="let the job wait this long for minions that are away, as in --when-back=2h30m (without a value: 1d)",
    )
    away.add_argument(
        "--no-replay", action="store_true", help="do not run the job on minions that are away now and return later"
    )


def add_target_flags(parser: CommandParser, taken: str = "") -> argparse._ArgumentGroup:
    """Add the options for the target type to a parser and return their group.

    ``taken``: a short option that the command uses for something else.
    """
    group = parser.add_argument_group("target (default: a glob for minion ids)")
    kinds = group.add_mutually_exclusive_group()
    for short, long, kind, meaning in _TARGETS:
        names = [name for name in (short, long) if name != taken]
        kinds.add_argument(*names, dest="tgt_type", action="store_const", const=kind, default="glob", help=meaning)
    parser.refuse(ROSTER)
    return group
