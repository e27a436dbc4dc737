"""Shared by both sides of the sweep, and importable by the oracle's Python: make calls and write what came of each."""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path

#: Seconds that a call may take.
SECONDS = 30


class TookTooLong(BaseException):
    """No code of a module catches it."""


def answers(file, side, call, load):
    """Make the calls of ``file`` and write FILE.SIDE: {function: [answer, ...]}.

    An answer is ["return", value, exit code], ["raise", class, message] or ["late"]. The functions of a module are called in a
    process of their own. ``call`` returns (value, exit code); ``load`` loads the module of a function before the fork.
    """
    asked = json.loads(Path(file).read_text())
    modules = {}
    for name in asked:
        modules.setdefault(name.partition(".")[0], []).append(name)
    told = {}
    for module, names in modules.items():
        with contextlib.suppress(Exception):
            load(names[0])
        part = Path(f"{file}.{side}.part")
        part.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            _of_module(part, {name: asked[name] for name in names}, call)
            os._exit(0)
        os.waitpid(child, 0)
        for line in part.read_text().splitlines() if part.exists() else ():
            name, answer = json.loads(line)
            told.setdefault(name, []).append(answer)
        sys.stderr.write(f"{side} {module}\n")
    Path(f"{file}.{side}").write_text(json.dumps(told))


def _of_module(part, asked, call):
    """Write a line for each call. A call that ends the process is missing with all that follow."""

    def late(*_):
        raise TookTooLong

    os.chdir("/")
    silent = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silent, descriptor)
    signal.signal(signal.SIGALRM, late)
    with open(part, "w") as file:
        for name, calls in asked.items():
            for _, args, kwargs in calls:
                file.write(json.dumps([name, _answer(call, name, args, kwargs)], default=str) + "\n")
                file.flush()


def _answer(call, name, args, kwargs):
    signal.alarm(SECONDS)
    try:
        value, code = call(name, args, kwargs)
        return ["return", json.loads(json.dumps(_plain(value), default=str)), code]
    except TookTooLong:
        return ["late"]
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the answer
        return ["raise", type(error).__name__, str(error)[:300]]
    finally:
        signal.alarm(0)


def _plain(value):
    """A return as JSON can hold it: keys are text, and sets and generators are lists."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(each) for each in value), key=str)
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "__next__"):
        return [_plain(each) for each in value]
    return value
