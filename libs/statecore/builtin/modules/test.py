"""Functions without side effects, which test the connection, arguments, returns and errors: Salt's ``test`` execution
module.
"""

from __future__ import annotations

import builtins
import hashlib
import logging
import platform
import random
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

from statecore.model import errors
from statecore.model.context import Context
from statecore.model.errors import InvocationError, NotAvailable, StatecoreError
from statecore.model.salt_version import SALT_VERSION, SALTERN_VERSION, both_versions

log = logging.getLogger(__name__)

ALIASES = {
    "true": "true_",
    "false": "false_",
    "try": "try_",
    "versions": "versions_report",
    "versions_report": "versions_report",
}

#: Salt's name of an exception -> our exception.
_SALT_EXCEPTIONS: Mapping[str, type[StatecoreError]] = {
    "SaltInvocationError": errors.InvocationError,
    "CommandExecutionError": errors.CommandError,
    "SaltException": errors.StatecoreError,
}


def ping(ctx: Context) -> bool:
    """Return True, which shows that the minion runs and answers. No ICMP is involved.

    CLI Example:

        salt '*' test.ping
    """
    return True


def echo(ctx: Context, text: object) -> object:
    """Return the argument ``text`` unchanged.

    CLI Example:

        salt '*' test.echo 'foo bar baz'
    """
    return text


def version(ctx: Context) -> str:
    """Return the release of Salt whose functions and states the minion has, and the version of Saltern:
    ``3008.3+saltern.0.1.0``. A stock minion returns its release only.

    CLI Example:

        salt '*' test.version
    """
    return both_versions()


def versions_information(ctx: Context) -> dict[str, dict[str, str | None]]:
    """Return versions as {section: {name: version}}; the version of a missing library is None. The sections are "Salt
    Version", "Dependency Versions" and "System Versions".
    """
    return {
        "Salt Version": {"Salt": SALT_VERSION, "Saltern": SALTERN_VERSION},
        "Dependency Versions": {
            "Python": platform.python_version(),
            **{name: _installed(name) for name in ("Jinja2", "PyYAML", "msgpack", "pyzmq", "cryptography")},
        },
        "System Versions": {
            "dist": " ".join(str(ctx.grains.get(key, "")) for key in ("os", "osrelease", "oscodename")).strip(),
            "machine": platform.machine(),
            "release": platform.release(),
            "system": platform.system(),
        },
    }


def _installed(name: str) -> str | None:
    # Imported here because it loads much of the email package, and test.ping is in this file.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def versions_report(ctx: Context) -> str:
    """Return the versions of Saltern, its dependencies and the system as aligned lines of text."""
    lines: list[str] = []
    for section, entries in versions_information(ctx).items():
        lines.append(f"{section}:")
        width = max(len(name) for name in entries)
        lines.extend(f"{name:>{width + 10}}: {found or 'Not Installed'}" for name, found in entries.items())
        lines.append("")
    return "\n".join(lines)


def arg(ctx: Context, *args: object, **kwargs: object) -> dict[str, object]:
    """Return the arguments of the call as they arrived: {"args": list, "kwargs": map}.

    CLI Example:

        salt '*' test.arg 1 "two" 3.1 txt="hello" wow='{a: 1, b: "hello"}'
    """
    return {"args": args, "kwargs": kwargs}


def arg_repr(ctx: Context, *args: object, **kwargs: object) -> dict[str, str]:
    """Return the arguments of the call as Python's repr shows them: {"args": text, "kwargs": text}."""
    return {"args": repr(args), "kwargs": repr(kwargs)}


def arg_type(ctx: Context, *args: object, **kwargs: object) -> dict[str, object]:
    """Return the types of the arguments of the call: {"args": list of type names, "kwargs": map of name to type
    name}.
    """
    return {
        "args": [str(type(value)) for value in args],
        "kwargs": {key: str(type(value)) for key, value in kwargs.items()},
    }


def arg_clean(ctx: Context, *args: object, **kwargs: object) -> dict[str, object]:
    """Return the arguments of the call without those that the publication adds (``__pub_*``): {"args": list, "kwargs":
    map}.
    """
    return {"args": args, "kwargs": {key: value for key, value in kwargs.items() if not key.startswith("__")}}


def kwarg(ctx: Context, **kwargs: object) -> dict[str, object]:
    """Return the keyword arguments of the call as they arrived, as a map."""
    return kwargs


def fib(ctx: Context, num: int) -> tuple[int, float]:
    """Return a pair: the ``num``-th Fibonacci number, and the seconds that its calculation took.

    CLI Example:

        salt '*' test.fib 3
    """
    count = int(num)
    if count < 0:
        raise InvocationError("Negative number is not allowed!")
    start = time.time()
    previous, current = 1, 0
    for _ in range(count):
        previous, current = current, previous + current
    return current, time.time() - start


def collatz(ctx: Context, start: int) -> tuple[list[int], float]:
    """Return a pair: the Collatz sequence from ``start`` down to, but without, 1, and the seconds that its calculation
    took.
    """
    number = int(start)
    if number < 1:
        raise InvocationError(f"The sequence starts at a number above 0, not at {start}")
    begin = time.time()
    steps: list[int] = []
    while number != 1:
        steps.append(number)
        number = number // 2 if number % 2 == 0 else number * 3 + 1
    return steps, time.time() - begin


def sleep(ctx: Context, length: int | float) -> bool:
    """Sleep for ``length`` seconds and return True."""
    time.sleep(float(length))
    return True


def rand_sleep(ctx: Context, max: int = 60) -> bool:
    """Sleep for a random number of seconds up to ``max`` and return True."""
    time.sleep(random.randint(0, int(max)))
    return True


def true_(ctx: Context) -> bool:
    """Return True."""
    return True


def false_(ctx: Context) -> bool:
    """Return False."""
    return False


def retcode(ctx: Context, code: int = 42) -> bool:
    """Return True and set ``code`` as the job's exit code."""
    ctx.scratch["retcode"] = code
    return True


def outputter(ctx: Context, data: object) -> object:
    """Return the argument ``data`` unchanged, to try an outputter on it."""
    return data


def exception(ctx: Context, message: str = "Test Exception") -> None:
    """Raise an Exception with the text ``message``."""
    raise Exception(message)


def raise_exception(ctx: Context, name: str, *args: object, **kwargs: object) -> bool:
    """Raise the exception with this name: one of Python, or ``salt.exceptions.X``. Return False for an unknown name."""
    plain = {key: value for key, value in kwargs.items() if not key.startswith("__")}
    found = _SALT_EXCEPTIONS.get(name.removeprefix("salt.exceptions.")) or getattr(builtins, name, None)
    if isinstance(found, type) and issubclass(found, Exception):
        raise found(*args, **plain)
    return False


def assertion(ctx: Context, assertion: object) -> None:
    """Raise AssertionError if the argument ``assertion`` is not true. Return None."""
    if not assertion:
        raise AssertionError(f"{assertion!r} is not true")


def try_(ctx: Context, module: str, return_try_exception: bool = False, **kwargs: object) -> object:
    """Call an execution function and return its value. If it raises an exception, return None, or the error's text with
    ``return_try_exception``.
    """
    try:
        return ctx.call(module, **{key: value for key, value in kwargs.items() if not key.startswith("__")})
    except Exception as error:  # noqa: BLE001 - the function exists to catch every error
        return str(error) if return_try_exception else None


def cross_test(ctx: Context, func: str, args: list[object] | None = None) -> object:
    """Call the execution function ``func`` through the loader and return its value."""
    return ctx.call(func, *(args or []))


def attr_call(ctx: Context) -> object:
    """Call ``grains.items`` through the loader and return its value, the map of all grains."""
    return ctx.call("grains.items")


def get_opts(ctx: Context) -> dict[str, object]:
    """Return a map of the options of this minion."""
    return dict(ctx.opts)


def opts_pkg(ctx: Context) -> dict[str, object]:
    """Return a map of the options of this minion, and of its grains under the key ``grains``."""
    return {**ctx.opts, "grains": dict(ctx.grains)}


def conf_test(ctx: Context) -> object:
    """Return the value of the minion's option ``test.foo``, or its default."""
    return ctx.call("config.option", "test.foo")


def provider(ctx: Context, module: str) -> str:
    """Return the name of the file that implements an execution module on this host (``pkg`` -> ``pkg_apt``), "" if
    there is none.
    """
    names = ctx.catalog.names(module=module) if module else []
    return _file_of(ctx, names[0]) if names else ""


def providers(ctx: Context) -> dict[str, str]:
    """Return a map of the name of each execution module's file to the module that it implements (``pkg_apt`` ->
    ``pkg``).
    """
    first: dict[str, str] = {}
    for name in ctx.catalog.names():
        first.setdefault(name.partition(".")[0], name)
    return {_file_of(ctx, name): module for module, name in first.items()}


def _file_of(ctx: Context, name: str) -> str:
    try:
        return ctx.functions[name].__module__.rpartition(".")[2]
    except NotAvailable:
        return ""


def rand_str(ctx: Context, size: int = 9999999999, hash_type: str | None = None) -> str:
    """Return the hexadecimal digest of a random number, as ``test.random_hash`` does."""
    return random_hash(ctx, size, hash_type)


def random_hash(ctx: Context, size: int = 9999999999, hash_type: str | None = None) -> str:
    """Return the hexadecimal digest of a random number between 1 and ``size``."""
    kind = hash_type or str(ctx.opts.get("hash_type", "sha256"))
    if kind not in hashlib.algorithms_available:
        raise InvocationError(f"Unknown hash_type '{kind}'")
    number = random.SystemRandom().randint(1, int(size))
    return hashlib.new(kind, str(number).encode()).hexdigest()


def tty(ctx: Context, *args: object, **kwargs: object) -> str:
    """Return the sentence that this function has moved to ``cmd.tty``."""
    return "ERROR: This function has been moved to cmd.tty"


def deprecation_warning(ctx: Context) -> bool:
    """Log a warning about a deprecated feature that does not exist. Return True.

    CLI Example:

        salt '*' test.deprecation_warning
    """
    log.warning("This is a test deprecation warning by version.")
    return True


def module_report(ctx: Context) -> dict[str, list[str]]:
    """Return a map of lists of names: all execution ``functions`` and ``modules``, those that can be reached as
    attributes (``*_attrs``) and by subscription (``*_subs``), and those that cannot (``missing_*``).

    CLI Example:

        salt '*' test.module_report
    """
    functions = sorted(ctx.functions)
    modules = sorted({name.partition(".")[0] for name in functions})
    reached: dict[str, list[str]] = {"functions": functions, "function_attrs": functions, "function_subs": functions}
    return reached | {"modules": modules, "module_attrs": modules, "missing_attrs": [], "missing_subs": []}


def not_loaded(ctx: Context) -> list[str]:
    """Return the names of the built-in files of execution modules that cannot be used on this host.

    CLI Example:

        salt '*' test.not_loaded
    """
    loaded = set(providers(ctx))
    names = {path.stem for path in Path(__file__).parent.glob("*.py")} | {
        path.parent.name for path in Path(__file__).parent.glob("*/__init__.py")
    }
    return sorted(name for name in names - loaded if not name.startswith("_"))


def stack(ctx: Context) -> str:
    """Return the Python call stack of this call as text."""
    return "".join(traceback.format_stack())
