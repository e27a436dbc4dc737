"""``master_type: func``: a function of an execution module returns the master's address.

The function is called once, before the first sign-in.
Salt: salt/minion.py, eval_master_func
"""

from __future__ import annotations

import dataclasses
import logging
import os
import select
import signal
import time

import msgpack

from saltern.kit.config.minion_options import MinionOptions, extension_directory
from saltern.kit.config.reading import ConfigError, as_opts
from saltern.minion.master.masters import FUNC
from saltern.minion.master.sign_in import Ended, Shutdown
from statecore.runtime.runtime import local_runtime

_LOG = logging.getLogger("saltern.minion")

#: Seconds that the function may take.
_PATIENCE = 60.0

#: Seconds between two checks whether the minion has to end.
_TICK = 0.25


def evaluated(options: MinionOptions, shutdown: Shutdown | None = None) -> MinionOptions:
    """Return the options with ``master`` replaced by the result of the function that ``master`` names (``master_type:
    func``). For another ``master_type`` return the options unchanged.

    Raise ConfigError if the function is missing, fails, or returns neither a text nor a list of texts. Raise Ended if
    the minion is asked to end (``shutdown``) meanwhile.
    """
    if options.master_type != FUNC:
        return options
    name = options.master
    if not isinstance(name, str) or name.count(".") != 1:
        raise ConfigError(f"master: {name!r}: with master_type func it must name a function: module.function")
    answer = _called(options, name, shutdown)
    if not answer["success"]:
        raise ConfigError(f"master: the function {name} (master_type: func) failed: {answer['value']}")
    found = answer["value"]
    if not found or not (
        isinstance(found, str) or (isinstance(found, list) and all(isinstance(n, str) for n in found))
    ):
        raise ConfigError(
            f"master: the function {name} returned {found!r}, which is no address and no list of addresses"
        )
    _LOG.info("the master is %s (returned by the function %s)", found, name)
    return dataclasses.replace(options, master=found, master_type="str")


def _called(options: MinionOptions, name: str, shutdown: Shutdown | None) -> dict[str, object]:
    """Return the reply of the function that names the master, as a map with its result or error.

    It is called in a forked process, so that modules that it loads use no memory of the minion.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        _answer(options, name, writing)
    os.close(writing)
    deadline = time.monotonic() + _PATIENCE
    reply = b""
    try:
        while True:
            if shutdown is not None and shutdown.ended():
                raise Ended
            if time.monotonic() > deadline:
                raise ConfigError(f"master: the function {name} did not return within {_PATIENCE:g} seconds")
            if select.select([reading], [], [], _TICK)[0]:
                part = os.read(reading, 65536)
                if not part:
                    return _opened(reply, name)
                reply += part
    finally:
        os.close(reading)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _opened(reply: bytes, name: str) -> dict[str, object]:
    if not reply:
        raise ConfigError(f"master: the process of the function {name} died; see the log")
    answer: dict[str, object] = msgpack.unpackb(reply, strict_map_key=False)
    return answer


def _answer(options: MinionOptions, name: str, writing: int) -> None:
    """Call the function that names the master, in the forked process; write the result to the pipe ``writing`` and exit."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        opts = as_opts(options, file_client="local", extension_modules=str(extension_directory(options)))
        returned = local_runtime(opts, pillar={}).call(name)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(msgpack.packb({"success": returned.success, "value": returned.value}, default=str))
    except Exception:  # noqa: BLE001 - the process ends here, whatever happened
        _LOG.exception("the function %s failed", name)
    finally:
        logging.shutdown()
        os._exit(0)
