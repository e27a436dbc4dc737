"""The start of a process, for the master's roles and the minion: signal handlers, the health port, the command-line
options, and the report of a configuration error that prevents the start.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import faulthandler
import logging
import os
import re
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import TYPE_CHECKING, TypeVar

from saltern.kit.config.reading import ENV_PREFIX, ConfigError, PortTaken, config_directory
from saltern.kit.config.state_options import StateOptions
from saltern.kit.process.health import Health
from saltern.kit.process.logs import LEVELS, configure
from saltern.kit.process.metrics import new_metrics
from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    from statecore.model import option_parser
else:
    option_parser = lazy_module("statecore.model.option_parser")

AnyOptions = TypeVar("AnyOptions", bound=StateOptions)

#: Seconds between two reports to ``/healthz`` during a wait.
_HELD_TURN = 1.0

#: Flag that every role accepts -> option that it overrides.
_OPTIONS = {
    "-c": "config_dir",
    "--config-dir": "config_dir",
    "-l": "log_level",
    "--log-level": "log_level",
    "--log-file": "log_file",
    "--log-file-level": "log_file_level",
}

#: sysexits' EX_CONFIG: the configuration cannot be used.
EX_CONFIG = 78

#: sysexits' EX_UNAVAILABLE: another process listens on a port. A supervisor starts the process again.
EX_UNAVAILABLE = 69


def exit_code(error: ConfigError) -> int:
    """Return the exit code of a process that ends because of ``error``: 69 for a taken port (a later start may work),
    else 78.
    """
    return EX_UNAVAILABLE if isinstance(error, PortTaken) else EX_CONFIG


def _nothing() -> None:
    """Do nothing. Default of ``Stop.hurry``, for loops that notice a signal by the flag or by the file descriptor."""


@dataclass
class Stop:
    """A flag that SIGTERM or SIGINT sets; the process's loop reads it and ends.

    A loop that waits long registers ``fileno`` in its poller, or waits by ``wait``: a signal then ends the wait at once, so that an
    idle process need not wake up to look at the flag.
    """

    requested: bool = False
    #: Called by the signal handler, in the main thread; shortens a wait that no file descriptor ends.
    hurry: Callable[[], None] = _nothing
    #: The ends of the pipe that becomes readable at a signal; made at the first use, in the process that uses them.
    _ends: tuple[int, int] | None = None

    def request(self, number: int, frame: FrameType | None) -> None:
        """Set the flag that ends the process's loop. This is a signal handler."""
        self.requested = True
        if self._ends is not None:
            # A full pipe is readable, too.
            with contextlib.suppress(BlockingIOError):
                os.write(self._ends[1], b"\0")
        self.hurry()

    def fileno(self) -> int:
        """Return the file descriptor that becomes readable when a signal has arrived. ``clear`` empties it."""
        if self._ends is None:
            self._ends = os.pipe()
            for end in self._ends:
                os.set_blocking(end, False)
        return self._ends[0]

    def clear(self) -> None:
        """Empty the file descriptor of ``fileno``. The flag stays set."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fileno(), 4096):
                pass

    def wait(self, seconds: float) -> None:
        """Sleep for ``seconds``, or until a signal arrives."""
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        if poll.poll(max(0.0, seconds) * 1000):
            self.clear()

    def catch(self) -> None:
        """Install handlers of SIGTERM and SIGINT that set this flag. Also enable faulthandler, which logs the stacks
        after a crash.
        """
        # A signal that arrives just before a wait ends the wait.
        self.fileno()
        assert self._ends is not None, "fileno makes it"
        signal.set_wakeup_fd(self._ends[1], warn_on_full_buffer=False)
        # A crash in native code (libzmq, libyaml) then writes the stacks to the log.
        faulthandler.enable()
        signal.signal(signal.SIGTERM, self.request)
        signal.signal(signal.SIGINT, self.request)


def _forget_wakeups() -> None:
    """Detach a new child process from its parent's ``Stop``: signals of the child must not end the waits of the parent."""
    signal.set_wakeup_fd(-1)


os.register_at_fork(after_in_child=_forget_wakeups)


def catch_signals() -> Stop:
    """Return a Stop flag that SIGTERM and SIGINT set from now on."""
    stop = Stop()
    stop.catch()
    return stop


@contextlib.contextmanager
def open_probes(health: Health, options: StateOptions, listener: socket.socket | None = None) -> Iterator[None]:
    """Answer the probes of ``health`` while the ``with`` block runs, on ``listener`` or else on ``health_port``.

    Raises ConfigError if the port is taken.
    """
    try:
        stop = health.serve(options.health_host, options.health_port) if listener is None else health.serve_on(listener)
    except (OSError, OverflowError) as error:
        # OverflowError: the port number is invalid.
        why = getattr(error, "strerror", None) or error
        kind = PortTaken if getattr(error, "errno", None) == errno.EADDRINUSE else ConfigError
        raise kind(f"health_port {options.health_host}:{options.health_port}: {why}") from error
    try:
        yield
    finally:
        stop()


def new_health(name: str) -> Health:
    """Return the Health object with which the process ``name`` reports its state to probes; its metrics are new ones."""
    return Health(name, new_metrics(name).registry)


def hold(health: Health, stop: Stop, log: logging.Logger, error: ConfigError, seconds: float) -> None:
    """Keep a process that cannot start alive for ``seconds``, so that ``/readyz`` gives the reason ``error``;
    then return.

    SIGTERM or SIGINT (``stop``) ends the wait. With 0 seconds it returns at once.
    """
    if seconds <= 0:
        return
    log.error("cannot start: %s; ends in %g s", error, seconds)
    health.check("configuration", lambda: str(error))
    deadline = time.monotonic() + seconds
    while not stop.requested and time.monotonic() < deadline:
        health.record_iteration()
        stop.wait(_HELD_TURN)


def explain(name: str, file_name: str, config_dir: str | None, error: ConfigError) -> None:
    """Report on ``/readyz`` and in the log that the process's options cannot be read, for ``config_error_pause``
    seconds; then return.

    ``error`` is the reason. The health port and the pause come from ``fallback_options``.
    """
    options = fallback_options(file_name, config_dir)
    configure(name, options)
    # If another process has the port, the reason is only in the log.
    health = new_health(name)
    with contextlib.suppress(ConfigError), open_probes(health, options):
        hold(health, catch_signals(), logging.getLogger(f"saltern.{name}"), error, options.config_error_pause)


def role_arguments(
    name: str, argv: Sequence[str] | None = None, flags: Mapping[str, tuple[str, str]] | None = None
) -> SimpleNamespace:
    """Parse the command line of a role. Return a namespace with one attribute for each option, None where the option
    was not given.

    ``flags``: the role's additional options, {flag: (attribute, help text)}.
    """
    words = sys.argv[1:] if argv is None else argv
    taken = _OPTIONS | {flag: option for flag, (option, _) in (flags or {}).items()}
    plain = _pairs(words, taken)
    if plain is not None:
        return SimpleNamespace(**dict.fromkeys(taken.values()) | plain)
    parser = option_parser.OptionParser(prog=f"saltern {name}", description=f"Runs the {name}.")
    parser.add_argument("-c", "--config-dir", default=None, help="directory of the configuration (default: /etc/salt)")
    parser.add_argument("-l", "--log-level", default=None, help="overrides log_level")
    parser.add_argument("--log-file", metavar="FILE", default=None, help="overrides log_file")
    parser.add_argument("--log-file-level", metavar="LEVEL", default=None, help="overrides log_level_logfile")
    for flag, (option, meaning) in (flags or {}).items():
        parser.add_argument(flag, dest=option, metavar="NAME", default=None, help=meaning)
    return SimpleNamespace(**vars(parser.parse_args(words)))


def with_log_flags(options: AnyOptions, arguments: SimpleNamespace) -> AnyOptions:
    """Return a copy of the options with ``log_file`` and ``log_level_logfile`` from the command line, if the command
    line has them.
    """
    given = {"log_file": arguments.log_file, "log_level_logfile": arguments.log_file_level}
    given = {option: value for option, value in given.items() if value is not None}
    # Most processes have no such flags; replacing nothing would run a lot of code.
    return dataclasses.replace(options, **given) if given else options


def _pairs(words: Sequence[str], taken: Mapping[str, str]) -> dict[str, str] | None:
    """Return the map of option to value if the command line holds only flags with a value, else None.

    Supervisors write command lines in this form. Without a parser the process needs less memory for its whole life.
    """
    flags, values = words[::2], words[1::2]
    if len(flags) > len(values) or not all(flag in taken for flag in flags) or any(one[:1] == "-" for one in values):
        return None
    return {taken[flag]: value for flag, value in zip(flags, values, strict=True)}


#: Option -> form of its value.
_LOOKS: Mapping[str, str] = {
    "health_host": r"[0-9A-Za-z.:-]+",
    "health_port": r"\d{1,5}",
    "config_error_pause": r"\d{1,6}",
    "log_format": "text|json",
    "log_level": "|".join(LEVELS),
}

_LINE = re.compile(r"^(\w+):[ \t]*(['\"]?)([^'\"#\s]+)\2[ \t]*(?:#.*)?$", re.MULTILINE)


def fallback_options(
    file_name: str, config_dir: str | None = None, env: Mapping[str, str] | None = None
) -> StateOptions:
    """Return the options of probes and logs, and ``config_error_pause``, for a process whose configuration cannot be used.

    They have the values that can be read from the file ``file_name`` ("master" or "minion") and the environment, else their
    defaults.
    """
    given = os.environ if env is None else env
    values: dict[str, str] = {}
    for text in _texts(config_directory(config_dir, given), file_name):
        values |= {name: value for name, _, value in _LINE.findall(text)}
    values |= {
        name.removeprefix(ENV_PREFIX).lower(): value for name, value in given.items() if name.startswith(ENV_PREFIX)
    }
    usable = {name: values[name] for name, look in _LOOKS.items() if re.fullmatch(look, values.get(name, ""))}
    numbers = {name: int(value) for name, value in usable.items() if value.isdigit()}
    return StateOptions(**usable | numbers)


def _texts(directory: Path, file_name: str) -> Iterator[str]:
    # An unreadable file sets no option; the process reports the error anyway.
    paths = [directory / file_name]
    with contextlib.suppress(OSError):
        paths += sorted((directory / f"{file_name}.d").glob("*.conf"))
    for path in paths:
        with contextlib.suppress(OSError):
            yield path.read_text("utf-8", errors="replace")
