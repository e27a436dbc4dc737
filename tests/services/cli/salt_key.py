"""Run by the oracle's Python: real Salt's ``salt-key`` on a directory of keys, one call a line.

A JSON map in: ``config`` (directory with a file ``master``), ``words``, ``stdin``. A JSON map out: ``out``, ``err``, ``code``.
Salt is loaded once; each call is a process of its own that is forked from here.
"""

import io
import json
import os
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout

import salt.cache.localfs_key
import salt.key
import salt.output.key
import salt.wheel
from salt.cli.key import SaltKey


class NoBus:
    """No master runs here that would hear of changes; the real one is waited for, seconds each time."""

    def fire_event(self, data, tag):
        pass

    def destroy(self):
        pass


salt.key.Key.event = NoBus()


def answered(call):
    out, err, code = io.StringIO(), io.StringIO(), 0
    sys.argv = ["salt-key", "-c", call["config"], *call["words"]]
    sys.stdin = io.StringIO(call.get("stdin", ""))
    with redirect_stdout(out), redirect_stderr(err):
        try:
            SaltKey().run()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        except Exception:  # noqa: BLE001 - what Salt dies of is an answer
            traceback.print_exc()
            code = 1
    return {"out": out.getvalue(), "err": err.getvalue(), "code": code}


def forked(call):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writing, "w") as pipe:
            json.dump(answered(call), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


for line in sys.stdin:
    sys.stdout.write(forked(json.loads(line)) + "\n")
    sys.stdout.flush()
