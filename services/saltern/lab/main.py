"""The command ``saltern lab``: a master and two minions on loopback, forked from one process, in one directory.

``up`` starts all programs that do not run, accepts the minions' keys and applies the example states. ``down`` ends all programs
and keeps their data.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from masterstore.store import Store
from saltern.kit.command.launcher import INTERRUPTED
from saltern.kit.config.master import ConfigError
from saltern.lab import files, settings
from saltern.lab.minions import accept_keys, master, wheel_of
from saltern.lab.plan import LOOPBACK, KeyStuckError, LabError, Paths, Program, Settings, check_free, programs
from saltern.lab.readiness import Readiness, log_sizes
from saltern.lab.redis_server import find_redis_server
from saltern.lab.supervisor import Supervisor, clean_environment, end_all, marked, wait_until
from statecore.host.content import private_files
from statecore.model.option_parser import OptionParser

_DEFAULT_DIR = ".lab"

#: Seconds for the supervisor to stop all programs; each may take 15, most take less than one.
_DOWN_SECONDS = 90.0

#: Seconds to wait for the returns of one test.ping.
_PING_SECONDS = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``saltern lab``. Return 0 for success, 1 for an error (text on stderr), else the exit code of `state.apply`."""
    flags = _parser().parse_args(argv)
    lab = Lab(Paths(flags.dir.absolute()), Path(sys.executable).parent)
    try:
        with _alone(lab.paths, make=flags.command == "up"):
            code: int = flags.run(lab, flags)
        return code
    except (LabError, ConfigError) as error:
        sys.stderr.write(f"saltern lab: {error}\n")
    except OSError as error:
        sys.stderr.write(f"saltern lab: {error.filename}: {error.strerror}\n")
    except KeyboardInterrupt:
        sys.stderr.write("\nsaltern lab: interrupted\n")
        return INTERRUPTED
    return 1


@dataclass(frozen=True)
class Lab:
    """A lab as its commands use it: the paths in its directory, and the directory of the programs python, salt and saltern."""

    paths: Paths
    #: Directory of the programs python, salt and saltern.
    programs: Path

    @property
    def supervisor(self) -> Supervisor:
        """Return a client of the lab's supervisor."""
        return Supervisor(self.paths, self.programs)


def up(lab: Lab, flags: argparse.Namespace) -> int:
    """Start the lab's programs that do not run, accept the minions' keys and apply the example states.

    Return 0, or the exit code of `salt -L IDS state.apply`. Raise LabError; a lab that this call started is then ended again.
    """
    paths, supervisor = lab.paths, lab.supervisor
    last = settings.load(paths.settings)
    chosen = settings.settle(settings.requested_settings(flags), last)
    rows = programs(chosen)
    running = supervisor.pid() is not None
    if running:
        _check_same(paths, last, chosen)
    missing = _missing(rows, supervisor) if running else list(rows)
    if not running:
        _end_leftovers(paths)
    check_free(missing)
    redis = files.write_all(chosen, paths, find_redis_server(), lab.programs)
    files.write(paths.settings, settings.dump(chosen))
    _say(f"the lab in {paths.root} {'runs' if running else 'starts'}: {', '.join(row.name for row in rows)}")
    try:
        sizes = log_sizes(paths, rows)
        _start(supervisor, missing, running=running)
        store = Store.open(redis, client_name="lab")
        _bring_up(lab, chosen, rows, Readiness(supervisor, store, paths, sizes, flags.wait))
    except KeyStuckError:
        raise
    except BaseException:
        # Do not stop a lab that was running before this command.
        if not running:
            _stop(paths, supervisor)
        raise
    code = 0 if flags.no_apply else _apply(lab, chosen.minions)
    _say(_closing(paths, chosen))
    return code


def down(lab: Lab, flags: argparse.Namespace) -> int:
    """End all programs of the lab and keep their data. Return 0, also if no lab runs. Raise LabError if a process remains."""
    if lab.supervisor.pid() is None and not marked(lab.paths):
        _say(f"no lab runs in {lab.paths.root}")
        return 0
    _stop(lab.paths, lab.supervisor)
    _say(f"the lab in {lab.paths.root} has ended; its data is kept, rm -r removes it")
    return 0


def _check_same(paths: Paths, last: Settings | None, chosen: Settings) -> None:
    """Raise LabError if the running lab has other settings than the requested ones."""
    if last is None:
        raise LabError(
            f"a lab runs in {paths.root}, but its settings {paths.settings} are missing; end it with `saltern lab down`"
        )
    different = settings.differences(last, chosen)
    if different:
        raise LabError(
            f"the lab in {paths.root} runs with {', '.join(different)}. `saltern lab down` ends it; then start it so"
        )


def _missing(rows: Sequence[Program], supervisor: Supervisor) -> list[Program]:
    states = supervisor.states()
    return [row for row in rows if row.name not in states or not states[row.name].under_way]


def _start(supervisor: Supervisor, missing: list[Program], *, running: bool) -> None:
    if not running:
        supervisor.start()
        return
    for row in missing:
        _say(f"{row.name} does not run; it is started")
        supervisor.start_program(row)


def _bring_up(lab: Lab, chosen: Settings, rows: Sequence[Program], ready: Readiness) -> None:
    """Wait until the lab's master is ready, accept the minions' keys, and wait until each minion answers test.ping.

    Raise LabError if a program or a minion does not become ready in time.
    """
    paths, seconds = lab.paths, ready.seconds
    ready.wait_for([row for row in rows if not row.minion])
    _say("the master is ready")
    with master(paths) as control:
        accepted = accept_keys(wheel_of(control), paths, chosen.minions, seconds)
    _say(f"accepted the keys of {', '.join(accepted)}" if accepted else "the minions' keys are accepted already")
    ready.wait_for([row for row in rows if row.minion])
    if not wait_until(lambda: _answering(lab, chosen.minions) >= set(chosen.minions), seconds):
        silent = sorted(set(chosen.minions) - _answering(lab, chosen.minions))
        logs = ", ".join(str(paths.log_of(f"minion-{minion}")) for minion in silent)
        raise LabError(f"no answer to test.ping from {', '.join(silent)} within {seconds:g} s; see {logs}")
    _say(f"the minions answer: {', '.join(chosen.minions)}")


def _answering(lab: Lab, minions: Sequence[str]) -> set[str]:
    words = ["-L", ",".join(minions), "test.ping", "--out=json", "--static", f"--timeout={_PING_SECONDS}"]
    done = subprocess.run(
        _salt(lab, *words), env=_environment(lab), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    try:
        answers = json.loads(done.stdout)
    except ValueError:
        # No minion has returned, or the command failed. The caller tries again.
        return set()
    return {minion for minion, answer in answers.items() if answer is True} if isinstance(answers, dict) else set()


def _apply(lab: Lab, minions: Sequence[str]) -> int:
    # By name: the keys of an earlier start's minions may still be accepted, and these minions do not run.
    words = ("-L", ",".join(minions), "state.apply")
    _say(f"$ salt {' '.join(words)}")
    return subprocess.run(_salt(lab, *words), env=_environment(lab), check=False).returncode


def _salt(lab: Lab, *words: str) -> list[str]:
    return [str(lab.programs / "salt"), "--config-dir", str(lab.paths.etc), *words]


def _environment(lab: Lab) -> dict[str, str]:
    return clean_environment(os.environ, lab.paths.root, lab.programs)


def _stop(paths: Paths, supervisor: Supervisor) -> None:
    """End all programs of the lab and wait for their end. Raise LabError with the ids of processes that remain."""
    pid = supervisor.pid()
    if pid is not None:
        supervisor.shut_down()
        if not wait_until(lambda: pid not in marked(paths), _DOWN_SECONDS):
            _say(f"the supervisor ({pid}) does not end; its programs are ended one by one")
    _end_leftovers(paths)
    supervisor.forget_socket()


def _end_leftovers(paths: Paths) -> None:
    found = marked(paths)
    if not found:
        return
    _say(f"ends processes that the lab has left behind: {', '.join(map(str, found))}")
    stay = end_all(paths)
    if stay:
        raise LabError(f"processes of the lab that do not end: {', '.join(map(str, stay))}")


@contextlib.contextmanager
def _alone(paths: Paths, *, make: bool) -> Iterator[None]:
    """Hold the lab's lock in the ``with`` block. Raise LabError if another command holds it."""
    if make:
        private_files.top(paths.root)
    if not paths.root.is_dir():
        yield
        return
    with private_files.opened(paths.root / "lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LabError(f"another `saltern lab` is at work in {paths.root}") from error
        yield


def _closing(paths: Paths, chosen: Settings) -> str:
    url, password = f"http://{LOOPBACK}:{chosen.ports['api_port']}", shlex.quote(str(paths.api_password))
    login = f"""\n  curl -si {url}/login -d eauth=file -d username={files.API_USER} -d password="$(cat {password})\""""
    return f"""
Try:
  . {shlex.quote(str(paths.env))}
  salt '*' test.ping
  salt {chosen.minions[0]} state.apply test=True
  salt-run jobs.list_jobs{login if chosen.api else ""}
The host of each minion is a plain directory without programs: cmd.run, packages and services need the lab in containers
(docker compose up), or a minion on a real host. On this machine itself: salt-call --local cmd.run uptime
`saltern lab down` ends the lab."""


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = OptionParser(prog="saltern lab", description="Run a master and its minions on loopback, in one directory.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="up|down")
    start = commands.add_parser("up", help="start all programs that do not run, and apply the example states")
    settings.add_flags(start)
    start.add_argument("--no-apply", action="store_true", help="do not apply the example states")
    start.add_argument(
        "--wait",
        type=float,
        default=60.0,
        metavar="SEC",
        help="seconds to wait for each step of the start (default: 60)",
    )
    start.set_defaults(run=up)
    stop = commands.add_parser("down", help="end all programs; data is kept")
    stop.set_defaults(run=down)
    for one in (start, stop):
        one.add_argument(
            "--dir",
            type=Path,
            default=Path(_DEFAULT_DIR),
            metavar="DIR",
            help=f"directory of the lab (default: {_DEFAULT_DIR})",
        )
    return parser
