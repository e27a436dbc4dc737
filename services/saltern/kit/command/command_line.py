"""Shared by all salt commands: option parser, exit codes, and an end without a traceback.

Exit codes are Salt's, and those of sysexits.h where Salt has none or ends with 0 after a failure.
Source: docs/execution.md#return-codes.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import pwd
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from saltern.kit.command import standard_output
from saltern.kit.command.arguments import value_of
from saltern.kit.command.launcher import SAID
from saltern.kit.config.reading import ConfigError
from statecore.model.option_parser import OptionParser
from statecore.model.salt_version import SALTERN_VERSION
from statecore.model.text_lines import lines_of

#: Values of ``--log-level``.
LOG_LEVELS = ("all", "garbage", "trace", "debug", "profile", "info", "warning", "error", "critical", "quiet")


class Exit(IntEnum):
    """Exit codes of the salt commands."""

    OK = 0
    #: A minion, a state or a runner failed; the master refused.
    GENERIC = 1
    #: No minion matched, or nothing came back.
    NO_RETURN = 2
    #: A wrong command line (EX_USAGE).
    USAGE = 64
    #: The master did not answer (EX_UNAVAILABLE). Salt's commands end with 0 here.
    UNAVAILABLE = 69
    #: A configuration that cannot be used (EX_CONFIG).
    CONFIG = 78


class CommandError(Exception):
    """Raised when a salt command cannot continue. The message is printed on stderr; ``code`` becomes the exit code."""

    def __init__(self, message: str, code: int = Exit.GENERIC) -> None:
        super().__init__(message)
        self.code = code


class RefusedOption(NamedTuple):
    """An option of Salt's command that Saltern does not have: its names, whether it takes a value, and the advice."""

    names: tuple[str, ...]
    takes_word: bool
    instead: str


_NOT_SUPPORTED = (RefusedOption(("--saltfile",), True, "give the options on the command line or in the configuration"),)

#: Refused options of the commands that send requests about minions to a master.
EXTERNAL_AUTH = (
    RefusedOption(("-a", "--auth", "--eauth", "--external-auth"), True, "who may do what is said by keys: control_acl"),
    RefusedOption(("-T", "--make-token"), False, "who may do what is said by keys: control_acl"),
    RefusedOption(("--username",), True, "who may do what is said by keys: control_acl"),
    RefusedOption(("--password",), True, "who may do what is said by keys: control_acl"),
)
ROSTER = (RefusedOption(("-H", "--hosts"), False, "there is no salt-ssh here, whose rosters it lists"),)
PROFILING = (
    RefusedOption(("--profiling-path",), True, "use `python -m cProfile`"),
    RefusedOption(("--enable-profiling",), False, "use `python -m cProfile`"),
)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """The help of a command, which begins with "Usage:" as that of Salt's commands does."""

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, prefix or "Usage: ")


class CommandParser(OptionParser):
    """A parser that takes options and words in any order, as Salt does.

    A wrong command line ends with 64 and the usage on stderr.
    """

    usage_code = Exit.USAGE

    def __init__(
        self,
        prog: str,
        usage: str,
        description: str,
        epilog: str = "",
        *,
        log_flags: Sequence[str] = ("-l", "--log-level"),
    ) -> None:
        super().__init__(
            prog=prog,
            usage=usage,
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=_Formatter,
        )
        self._reads_stdin = False
        self.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
        self.add_argument(
            "-c", "--config-dir", metavar="DIR", help="directory of the configuration (default: /etc/salt)"
        )
        self.add_argument("-V", "--versions-report", action=_Versions, nargs=0, help="show all versions and exit")
        self.add_argument(
            *log_flags, choices=LOG_LEVELS, metavar="LEVEL", help="least severity that is logged on stderr"
        )
        self.add_argument("--log-file", metavar="FILE", help="file that also receives the log")
        self.add_argument(
            "--log-file-level", choices=LOG_LEVELS, metavar="LEVEL", help="least severity that is written to that file"
        )
        # Accepted without effect: an unexpected exception always shows its traceback.
        self.add_argument("--hard-crash", action="store_true", help=argparse.SUPPRESS)
        self.refuse(_NOT_SUPPORTED)
        self.add_argument("words", nargs="*", help=argparse.SUPPRESS)

    def _unknown(self, words: Sequence[str]) -> str:
        """Return Salt's message about the first unknown option."""
        options = [word.partition("=")[0] for word in words if word.startswith("-")]
        return f"no such option: {options[0]}" if options else ""

    def refuse(self, options: Iterable[RefusedOption]) -> None:
        """Register options of Salt's command that Saltern does not have: using one ends with 64 and its advice."""
        for row in options:
            nargs = 1 if row.takes_word else 0
            self.add_argument(*row.names, action=_Refuses, nargs=nargs, const=row.instead, help=argparse.SUPPRESS)

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Return the parsed options. The attribute ``words`` of the result holds the words that are no options."""
        return self.parse_intermixed_args(words_of_stdin(argv) if self._reads_stdin else argv)

    def read_stdin(self) -> None:
        """Add the option ``--args-stdin``, which reads further arguments from standard input."""
        self._reads_stdin = True
        meaning = "read more options and arguments from standard input, one a line"
        self.add_argument("--args-stdin", action="store_true", help=meaning)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        sys.stdout.write(f"{parser.prog} {SALTERN_VERSION} (Saltern)\n")
        parser.exit(0)


class _Refuses(argparse.Action):
    def __call__(
        self, parser: argparse.ArgumentParser, namespace: object, values: object, option_string: str | None = None
    ) -> None:
        parser.error(f"not supported: {option_string}; {self.const}")


class _Versions(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        # Imported only here: it takes longer than the rest of the start.
        from importlib.metadata import PackageNotFoundError, version

        sys.stdout.write(f"Saltern:\n{'':>4}saltern-services: {SALTERN_VERSION}\n\nPackages:\n")
        for name in _PACKAGES:
            try:
                found = version(name)
            except PackageNotFoundError:
                found = "Not Installed"
            sys.stdout.write(f"{'':>4}{name}: {found}\n")
        sys.stdout.write(f"{'':>4}Python: {sys.version.split()[0]}\n")
        parser.exit(0)


#: Packages whose versions ``--versions-report`` shows.
_PACKAGES = ("cryptography", "Jinja2", "msgpack", "PyYAML", "pyzmq", "redis")


def words_of_stdin(words: Sequence[str]) -> list[str]:
    """Return the words of a command line as a list.

    If ``--args-stdin`` is one of them, it is removed, and the lines of standard input are added at the end, one word a line.
    """
    if "--args-stdin" not in words:
        return list(words)
    kept = [word for word in words if word != "--args-stdin"]
    return [*kept, *lines_of(sys.stdin.read())]


def run_command(body: Callable[[], int], interrupted: int = Exit.OK) -> int:
    """Call ``body``, which carries out a salt command, and return its exit code.

    CommandError and ConfigError are printed as one line on stderr and give their exit code. Ctrl-C is printed as one line and gives
    the exit code ``interrupted``. Any other exception is a defect and shows its traceback.
    """
    # A command is short and keeps most objects to the end. With a server's settings garbage collection takes 10 % of the time.
    gc.set_threshold(500_000, 20, 50)
    _open_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A minion may return characters that the terminal's encoding lacks; the rest of the output must still appear.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = body()
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stderr.write(SAID)
        return interrupted
    except BrokenPipeError:
        # The program that reads the output (less, head) has closed the pipe.
        standard_output.silence()
        return Exit.OK
    except ConfigError as error:
        return _failed(str(error), Exit.CONFIG)
    except CommandError as error:
        return _failed(str(error), error.code)
    except OSError:
        if why := standard_output.fault():
            return _failed(f"standard output cannot be written: {why}", Exit.GENERIC)
        raise
    return code


def _open_streams() -> None:
    """Open the null device in place of standard streams that the caller closed (``>&-``), which Python presents as None."""
    null = Path(os.devnull)
    sys.stdin = sys.stdin or null.open(encoding="utf-8")
    sys.stdout = sys.stdout or null.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or null.open("w", encoding="utf-8")


def _failed(message: str, code: int) -> int:
    if message:
        sys.stderr.write(f"ERROR: {message}\n")
    return code


def user_name(env: Mapping[str, str], uid: int) -> str:
    """Return the name of the operating system's user who runs a command, for the job's record.

    For root by way of sudo it is ``sudo_<name>``.
    """
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        # In a container the user id may have no name.
        name = str(uid)
    if name == "root" and env.get("SUDO_USER"):
        return f"sudo_{env['SUDO_USER']}"
    return name


def add_executor_flags(parser: CommandParser) -> None:
    """Add the options ``--module-executors`` and ``--executor-opts`` to the parser of ``salt`` or ``salt-call``."""
    parser.add_argument(
        "--module-executors", metavar="LIST", help="executors in place of the minion's, as in '[splay, direct_call]'"
    )
    parser.add_argument("--executor-opts", metavar="YAML", help="their options, as in '{splaytime: 30}'")


def add_async_flag(parser: CommandParser) -> None:
    """Add the option ``--async`` to the parser of a command that starts a job: it does not wait for the result."""
    parser.add_argument(
        "--async",
        dest="asynchronous",
        action="store_true",
        help="print the job's id and end without waiting for the result",
    )


def add_doc_flag(parser: CommandParser) -> None:
    """Add the option ``-d`` to the parser of a command that runs functions: it shows documentation instead."""
    parser.add_argument(
        "-d",
        "--doc",
        "--documentation",
        dest="doc",
        action="store_true",
        help="show the documentation of the function or module",
    )


def add_no_parse_flag(parser: CommandParser) -> None:
    """Add the option ``--no-parse`` to the parser of a command whose arguments are read as YAML."""
    parser.add_argument(
        "--no-parse",
        default="",
        metavar="NAMES",
        help="names of named arguments that are not read as YAML, separated by commas",
    )


def executors(flags: argparse.Namespace) -> dict[str, object]:
    """Return the map with the values of ``--module-executors`` and ``--executor-opts``, for the load of the job that
    the command starts. A flag that was not given has no key.
    """
    given = {name: getattr(flags, name) for name in ("module_executors", "executor_opts")}
    return {name: value_of(text) for name, text in given.items() if text}
