"""The programs ``salt-minion`` and ``salt-master`` as processes: the command line that stock Salt's programs have, and
the start in the background (``-d``).

Options of the command line are passed on as environment variables of the configuration, so that every process of the
program reads them.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from saltern.kit.command.command_line import CommandParser
from saltern.kit.config.reading import ENV_PREFIX, ConfigError
from saltern.kit.config.state_options import StateOptions
from saltern.kit.process.process import EX_CONFIG
from statecore.host.content import private_files

#: Directories of the files that a program in the background writes, if the configuration names none.
_LOGS = "var/log/salt"
_PID_FILES = "var/run"

#: Permissions that files of a background process lack, as in Salt.
_UMASK = 0o022

#: Option of the command line -> option of the configuration.
_OVERRIDES = {"user": "USER", "log_file": "LOG_FILE", "log_file_level": "LOG_LEVEL_LOGFILE"}


@dataclass(frozen=True)
class Program:
    """The program ``salt-minion`` or ``salt-master``: its name, its description for ``--help``, the function that
    reads its configuration, and the function that runs it.
    """

    #: ``salt-minion`` or ``salt-master``.
    name: str
    description: str
    #: Reads the configuration from a directory (None: the default one). Raises ConfigError.
    load: Callable[[str | None], StateOptions]
    #: Runs the program with a command line of ``-c DIR`` and ``-l LEVEL``, and returns the exit code.
    run: Callable[[Sequence[str]], int]
    #: Flag of the command line -> its help text, and the function that it runs in place of the program: it takes the
    #: configuration directory and returns the exit code.
    tasks: Mapping[str, tuple[str, Callable[[str | None], int]]] = field(default_factory=dict)


def run_program(program: Program, argv: Sequence[str] | None = None) -> int:
    """Run ``salt-minion`` or ``salt-master`` in the foreground or, with ``-d``, in the background. Return the exit
    code.

    The exit code is 64 for a wrong command line, and 78 if ``-d`` is given and the configuration cannot be used.
    """
    flags = _parser(program).parse_args(sys.argv[1:] if argv is None else argv)
    if flags.words:
        sys.stderr.write(
            f"{program.name}: {' '.join(flags.words)}: there are no arguments; see {program.name} --help\n"
        )
        return os.EX_USAGE
    for flag, option in _OVERRIDES.items():
        if value := getattr(flags, flag):
            os.environ[f"{ENV_PREFIX}{option}"] = value
    for flag, (_, task) in program.tasks.items():
        if getattr(flags, flag.lstrip("-").replace("-", "_")):
            return task(flags.config_dir)
    words = ["-c", str(Path(flags.config_dir).absolute())] if flags.config_dir else []
    words += ["-l", flags.log_level] if flags.log_level else []
    pid_file = Path(flags.pid_file).absolute() if flags.pid_file else None
    if flags.daemon:
        try:
            options = program.load(flags.config_dir)
        except ConfigError as error:
            sys.stderr.write(f"{program.name}: {error}\n")
            return EX_CONFIG
        pid_file = pid_file or Path(str(options.module_settings.get("pidfile") or _below(options, _PID_FILES, program)))
        if not options.log_file:
            os.environ[f"{ENV_PREFIX}LOG_FILE"] = str(_log_file(options, program))
        if _fork_into_background():
            return 0
    with _pid_in(pid_file):
        return program.run(words)


def _parser(program: Program) -> CommandParser:
    parser = CommandParser(program.name, f"{program.name} [options]", program.description)
    parser.add_argument("-d", "--daemon", action="store_true", help="run in the background; the log goes to log_file")
    parser.add_argument("-u", "--user", metavar="NAME", help="user that the process runs as, if root starts it")
    parser.add_argument("--pid-file", metavar="FILE", help="file that has the process id while the program runs")
    for flag, (meaning, _) in program.tasks.items():
        parser.add_argument(flag, action="store_true", help=meaning)
    # Accepted without effect: the connections of ZeroMQ are kept open in any case, and what starts the program restarts it.
    parser.add_argument("--disable-keepalive", action="store_true", help="accepted for Salt's sake")
    parser.add_argument("--no-restart", action="store_true", help="accepted for Salt's sake")
    return parser


def _below(options: StateOptions, directory: str, program: Program) -> Path:
    """Return the path of the program's process id file below ``root_dir``."""
    return Path(options.root_dir) / directory / f"{program.name}.pid"


def _log_file(options: StateOptions, program: Program) -> Path:
    """Return the path of Salt's log file for a program in the background, below ``root_dir``. If the file cannot be
    written, print the reason on stderr.
    """
    path = Path(options.root_dir) / _LOGS / program.name.removeprefix("salt-")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        private_files.opened(path).close()
    except OSError as error:
        sys.stderr.write(f"{program.name}: {path}: {error.strerror}; the log is lost: set log_file\n")
    return path


def _fork_into_background() -> bool:
    """Fork twice. Return True in the first process, which must then exit, and False in the background process, which
    has no terminal and the working directory /.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fork():
        return True
    os.setsid()
    # The second child leads no session, so no terminal that it opens becomes its own.
    if os.fork():
        os._exit(0)
    os.chdir("/")
    os.umask(_UMASK)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    if null > 2:
        os.close(null)
    return False


@contextlib.contextmanager
def _pid_in(path: Path | None) -> Iterator[None]:
    """Context manager that keeps a PID file while its block runs: it writes the number of this process to the file ``path``, as
    text with a newline, and removes the file when the block ends. Missing parent directories are created. None: no file.

    If the file cannot be written, the reason is printed on stderr, and the block runs without a file. Yields nothing.
    """
    if path is None:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{os.getpid()}\n", "utf-8")
    except OSError as error:
        sys.stderr.write(f"{path}: {error.strerror}; there is no process id file\n")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
