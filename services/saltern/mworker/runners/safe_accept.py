"""The runner manage.safe_accept: accepts a pending key if the minion's machine reports the same fingerprint over SSH.

The roster file gives the address of each minion, as for salt-ssh: YAML of id to host, or to a map with host, user,
port, priv, sudo. The machine must be in known_hosts of the worker's user; no password is used.
"""

from __future__ import annotations

import contextlib
import fnmatch
import re
import shlex
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from saltern.kit.config.master import MasterOptions
from saltern.kit.links.control import wheel_functions
from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from saltwire import tags
from statecore.model import yaml
from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    from concurrent import futures
else:
    # Most workers never use SSH.
    futures = lazy_module("concurrent.futures")

#: Machines that are queried at the same time.
_AT_ONCE = 16

#: Bytes of output that are read, and characters of it in an error. Limited, because the machine is not trusted.
_MOST, _TOLD = 65536, 500

_FINGERPRINT = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2})+")

#: Valid host and user names: nothing that ssh would parse as an option.
_WORD = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.:%\]-]*")

#: Command run on the machine, with any minion found by the user's PATH.
_QUESTION = "salt-call --local --out=txt key.finger"

#: Supported keys of a roster entry.
_KEYS = frozenset({"host", "user", "port", "priv", "sudo", "timeout"})

_MATCHERS: Mapping[str, Callable[[object, str], bool]] = {
    "glob": lambda target, minion: fnmatch.fnmatchcase(minion, str(target)),
    "pcre": lambda target, minion: re.match(str(target), minion) is not None,
    "list": lambda target, minion: minion in _listed(target),
}


def safe_accept(tools: RunnerTools, target: object, tgt_type: str = "glob") -> list[dict[str, str]]:
    """Accept the pending keys of minions in the roster whose machines report the same fingerprint over SSH.

    target, tgt_type
        minion ids in the roster: glob, pcre or list

    Returns a list of two maps: {minion: fingerprint} of the keys accepted now, and {minion: reason} of all other minions.
    """
    machines = {minion: row for minion, row in _roster(tools.options).items() if _meant(target, tgt_type, minion)}
    if not machines:
        raise RunnerFault(f"no minion of the roster {_place(tools.options)} is meant by {target!r} ({tgt_type})")
    known = wheel_functions(tools.control)("key.finger", match="*")
    accepted, pending = known.get("minions", {}), known.get("minions_pre", {})
    unaccepted = {minion: row for minion, row in machines.items() if minion not in accepted}
    with futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        reported = dict(
            zip(unaccepted, pool.map(lambda row: _said(row, tools.options), unaccepted.values()), strict=True)
        )
    failures = {minion: why for minion, report in reported.items() if (why := _fault(minion, report, pending))}
    good = {minion: report for minion, report in reported.items() if minion not in failures}
    if good:
        tools.control.call("wheel", fun="key.accept", user=tools.user, kwarg={"match": sorted(good)})
    tools.sender.fire(f"{tags.run(tools.jid)}/progress", {"message": f"Accepted {len(good)} keys"})
    return [good, failures]


def _fault(minion: str, report: str, pending: Mapping[str, str]) -> str:
    """Return the reason why a minion's key is not accepted, or "" if it is accepted."""
    if not _FINGERPRINT.fullmatch(report):
        return report
    if minion not in pending:
        return f"Minion key {minion} not found by salt-key"
    if pending[minion] != report:
        return f"Minion key {report} does not match the key in salt-key: {pending[minion]}"
    return ""


def _said(row: Mapping[str, Any], options: MasterOptions) -> str:
    """Return the fingerprint of the minion key that a machine reports over SSH, or an error message."""
    seconds = int(row.get("timeout") or options.ssh_timeout)
    words = ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={seconds}"]
    words += ["-p", str(int(row.get("port") or options.ssh_port))]
    if priv := row.get("priv") or options.ssh_priv:
        words += ["-o", "IdentitiesOnly=yes", "-i", str(priv)]
    words += ["-l", str(row.get("user") or options.ssh_user), "--", str(row["host"])]
    words.append(f"{'sudo -n ' if row.get('sudo') else ''}{_QUESTION}")
    try:
        code, out, err = _ended(words, 2.0 * seconds)
    except OSError as error:
        return f"ssh cannot be run here: {error.strerror}"
    if max(len(out), len(err)) > _MOST:
        return f"it says more than {_MOST} bytes: {shlex.join(words)}"
    if code is None:
        return f"no answer within {2 * seconds} s from: {shlex.join(words)}"
    plain = out.decode(errors="replace")
    found = _FINGERPRINT.search(plain) if code == 0 else None
    if found:
        return found[0]
    report = (err.decode(errors="replace") or plain).strip() or "no output"
    return f"{shlex.join(words)} ended with {code}: {report[:_TOLD]}"


def _ended(words: Sequence[str], seconds: float) -> tuple[int | None, bytes, bytes]:
    """Run a command for at most ``seconds`` seconds; return (exit code, stdout, stderr).

    The exit code is None if the command was killed at the end of that time. Output is limited to the bytes that are needed.
    """
    late = threading.Event()
    with (
        subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        contextlib.ExitStack() as reading,
    ):

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, end)
        timer.start()
        reading.callback(timer.cancel)
        # Read both pipes at once: a process that writes into a full pipe blocks.
        errors = threading.Thread(target=_read, args=(process.stderr, process, written := bytearray()))
        errors.start()
        _read(process.stdout, process, answer := bytearray())
        errors.join()
        code = process.wait()
    return None if late.is_set() else code, bytes(answer), bytes(written)


def _read(pipe: IO[bytes] | None, process: subprocess.Popen[bytes], into: bytearray) -> None:
    """Read a pipe to its end into ``into``. Kill the process if it writes more bytes than are needed."""
    assert pipe is not None, "it was opened with one"
    into += pipe.read(_MOST + 1)
    if len(into) > _MOST:
        process.kill()


def _roster(options: MasterOptions) -> dict[str, dict[str, object]]:
    """Return {minion id: address and login} from the roster file. Raises RunnerFault."""
    roster_path = _place(options)
    try:
        found = yaml.load(roster_path.read_text("utf-8")) or {}
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise RunnerFault(f"{roster_path}: {why}; the option roster_file names a file of `minion: host`") from error
    except yaml.YamlFault as error:
        raise RunnerFault(f"{roster_path}: not YAML: {error.placed}") from error
    if not isinstance(found, Mapping):
        raise RunnerFault(f"{roster_path}: it must map minions to machines")
    return {str(minion): _row(roster_path, str(minion), row) for minion, row in found.items()}


def _row(roster_path: Path, minion: str, given: object) -> dict[str, object]:
    row = {"host": given} if isinstance(given, str) else given
    if not isinstance(row, Mapping) or not isinstance(row.get("host"), str):
        raise RunnerFault(f"{roster_path}: {minion} must be a host, or a map with one")
    if "passwd" in row:
        raise RunnerFault(
            f"{roster_path}: {minion}: passwd is not supported; name a key (priv, or the option ssh_priv)"
        )
    wrong = [f"{key}: {row[key]!r}" for key in ("host", "user") if key in row and not _WORD.fullmatch(str(row[key]))]
    wrong += [f"{key}: {row[key]!r}" for key in ("port", "timeout") if not str(row.get(key, 1)).isdecimal()]
    if wrong:
        raise RunnerFault(f"{roster_path}: {minion}: not usable: {', '.join(wrong)}")
    return {key: value for key, value in row.items() if key in _KEYS}


def _place(options: MasterOptions) -> Path:
    return Path(options.roster_file or Path(options.conf_file).parent / "roster")


def _meant(target: object, tgt_type: str, minion: str) -> bool:
    matcher = _MATCHERS.get(str(tgt_type))
    if matcher is None:
        raise RunnerFault(
            f"tgt_type is one of {', '.join(_MATCHERS)}: of a roster nothing else is known, not {tgt_type!r}"
        )
    try:
        return matcher(target, minion)
    except re.error as error:
        raise RunnerFault(f"{target!r} is not a valid regular expression: {error}") from error


def _listed(target: object) -> Sequence[str]:
    return [str(each).strip() for each in (target if isinstance(target, list) else str(target).split(","))]
