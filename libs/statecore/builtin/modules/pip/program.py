"""Functions that find the pip program for an argument ``bin_env``, and run it. Helpers of the ``pip`` execution
module.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError

_PYTHON = re.compile(r"python(\d+(\.\d+)?)?$")

#: Programs of a mounted host that are searched, in this order: its Python first, then its pip.
_PYTHONS = ("python3", "python")
_PIPS = ("pip3", "pip")

_CHECKED = "pip.version"


def argv(ctx: Context, bin_env: str | None) -> list[str]:
    """Return the first words of a command that runs pip, such as ["/opt/venv/bin/python", "-m", "pip"].

    ``bin_env`` is a virtual environment, a Python, or a pip. None means the Python that runs Saltern, and on a mounted
    host the host's own Python or pip. Raise CommandError if there is no such program.
    """
    if not bin_env:
        return _of_the_host(ctx) if ctx.host.mounted else [sys.executable, "-m", "pip"]
    if not str(bin_env).startswith("/"):
        found = ctx.host.which(str(bin_env))
        if found is None:
            raise CommandError(f"Access denied to {bin_env}, could not find a pip binary")
        bin_env = found
    real_path = ctx.host.path(str(bin_env))
    if real_path.is_dir():
        python = _python_in(ctx, str(bin_env))
        if python is None:
            raise CommandError(f"Could not find a pip binary in virtualenv {bin_env}")
        return [python, "-m", "pip"]
    if not _executable(real_path):
        raise CommandError(f"Access denied to {bin_env}, could not find a pip binary")
    return [bin_env, "-m", "pip"] if "python" in Path(bin_env).name else [bin_env]


def version(ctx: Context, bin_env: str | None = None, cwd: str | None = None, user: str | None = None) -> str:
    """Return pip's version as text, which is stored for the rest of the state run. Raise CommandError if pip cannot be
    run.
    """
    key = f"{_CHECKED}.{bin_env}"
    if key not in ctx.scratch:
        result = run(ctx, [*argv(ctx, bin_env), "--version"], bin_env, user, cwd)
        found = re.match(r"pip (\S+)", result["stdout"])
        if result["retcode"] or found is None:
            raise CommandError("Could not find a `pip` binary")
        ctx.scratch[key] = found[1]
    return str(ctx.scratch[key])


def forget_version(ctx: Context, bin_env: str | None) -> None:
    """Delete the stored version of pip, because an installation may have replaced pip itself."""
    ctx.scratch.pop(f"{_CHECKED}.{bin_env}", None)


def run(
    ctx: Context,
    words: Sequence[str],
    bin_env: str | None,
    user: str | None,
    cwd: str | None,
    env_vars: Mapping[str, object] | None = None,
    redirect_stderr: bool = False,
    use_vt: bool = False,
) -> dict[str, Any]:
    """Run a pip command, with ``use_vt`` on a terminal, and return a map with retcode, stdout and stderr. Raise
    CommandError if it cannot be started.
    """
    env = {}
    if bin_env and str(bin_env).startswith("/") and ctx.host.path(str(bin_env)).is_dir():
        env["VIRTUAL_ENV"] = str(bin_env)
    if env_vars is not None and not isinstance(env_vars, Mapping):
        raise InvocationError(f"env_vars {env_vars} is not a dictionary")
    env |= {str(name): str(value) for name, value in (env_vars or {}).items()}
    options: dict[str, object] = {"python_shell": False, "runas": user, "cwd": cwd, "env": env, "use_vt": use_vt}
    try:
        result: dict[str, Any] = ctx.call("cmd.run_all", list(words), **options, redirect_stderr=redirect_stderr)
    except HostError as error:
        raise CommandError(f"pip could not be run: {error}") from error
    return result


def _of_the_host(ctx: Context) -> list[str]:
    for names, more in ((_PYTHONS, ["-m", "pip"]), (_PIPS, [])):
        for name in names:
            if (found := ctx.host.which(name)) is not None:
                return [found, *more]
    raise CommandError(f"the host at {ctx.host.root} has none of {', '.join((*_PYTHONS, *_PIPS))}")


def _python_in(ctx: Context, environment: str) -> str | None:
    top = environment.rstrip("/") or "/"
    for name in (f"{top}/python", f"{top}/bin/python"):
        if _executable(ctx.host.path(name)):
            return name
    programs = ctx.host.path(f"{top}/bin")
    names = sorted(path.name for path in programs.iterdir()) if programs.is_dir() else []
    names = [name for name in names if _PYTHON.match(name) and _executable(ctx.host.path(f"{top}/bin/{name}"))]
    return f"{top}/bin/{min(names, key=lambda name: (name != 'python3', name))}" if names else None


def _executable(real_path: Path) -> bool:
    try:
        return real_path.is_file() and bool(real_path.stat().st_mode & 0o111)
    except OSError:
        return False
