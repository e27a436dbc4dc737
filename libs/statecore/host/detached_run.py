"""Run commands that may start daemons. The output goes to files on the host instead of pipes.

A daemon inherits the pipe of its parent: a reader would wait for the end of the output as long as the daemon lives.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence

from statecore.host.content import private_files
from statecore.model.errors import HostError
from statecore.model.ports import CommandResult, ManagedHost

#: Shell script: runs its arguments as a command, with the output in the files named by the first two arguments.
_REDIRECT = 'out=$1; err=$2; shift 2; exec "$@" >"$out" 2>"$err" </dev/null'


def run_detached(
    host: ManagedHost, argv: Sequence[str], *, env: Mapping[str, str] | None = None, timeout: float | None = None
) -> CommandResult:
    """Run a program of the host, wait for its end (but not for daemons that it started), and return exit code and output.

    Raises HostError if the program cannot be started.
    """
    name = f"/tmp/.saltern-run-{os.urandom(8).hex()}"
    places = [f"{name}.{suffix}" for suffix in ("out", "err")]
    files = [host.path(place) for place in places]
    try:
        files[0].parent.mkdir(parents=True, exist_ok=True)
        for file in files:
            private_files.new_file(file).close()
        result = host.run(["/bin/sh", "-c", _REDIRECT, "sh", *places, *argv], env=env, timeout=timeout)
        out, err = (file.read_bytes().decode("utf-8", "replace") for file in files)
    except OSError as error:
        raise HostError(f"Unable to run command '{argv[0]}': its output cannot be kept in {name}: {error}") from error
    finally:
        for file in files:
            with contextlib.suppress(OSError):
                file.unlink()
    # Messages of the shell itself (the program could not be started) are not in the files.
    return result._replace(stdout=out + result.stdout, stderr=err + result.stderr)
