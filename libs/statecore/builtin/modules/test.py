"""Functions that touch nothing: is the minion there, what did it get, how does it fail (Salt's ``test`` module)."""

from __future__ import annotations

import builtins
import hashlib
import platform
import random
import time
import traceback
from collections.abc import Mapping
from typing import Any

from statecore.model import errors
from statecore.model.context import Context
from statecore.model.errors import InvocationError, NotAvailable, StatecoreError

ALIASES = {
    "true": "true_",
    "false": "false_",
    "try": "try_",
    "versions": "versions_report",
    "versions_report": "versions_report",
}

#: Exceptions under the names users of Salt know them by.
_SALT_EXCEPTIONS: Mapping[str, type[StatecoreError]] = {
    "SaltInvocationError": errors.InvocationError,
    "CommandExecutionError": errors.CommandError,
    "SaltException": errors.StatecoreError,
}


def ping(ctx: Context) -> bool:
    """True: the minion is up and answers. No ICMP is involved.

    CLI Example:

        salt '*' test.ping
    """
    return True


def echo(ctx: Context, text: Any) -> Any:
    """What it was given.

    CLI Example:

        salt '*' test.echo 'foo bar baz'
    """
    return text


def version(ctx: Context) -> str:
    """The version of Saltern on the minion."""
    return _installed("saltern-statecore") or ""


def versions_information(ctx: Context) -> dict[str, dict[str, str | None]]:
    """Versions of Saltern, of what it depends on, and of the system, by section."""
    return {
        "Salt Version": {"Salt": ctx.grains.get("saltversion") or version(ctx), "Saltern": version(ctx)},
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
    # Only here: it brings half of the email package along, and test.ping is in this file.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def versions_report(ctx: Context) -> str:
    """The same as a text of aligned lines."""
    lines: list[str] = []
    for section, entries in versions_information(ctx).items():
        lines.append(f"{section}:")
        width = max(len(name) for name in entries)
        lines.extend(f"{name:>{width + 10}}: {found or 'Not Installed'}" for name, found in entries.items())
        lines.append("")
    return "\n".join(lines)


def arg(ctx: Context, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """The arguments as they arrived.

    CLI Example:

        salt '*' test.arg 1 "two" 3.1 txt="hello" wow='{a: 1, b: "hello"}'
    """
    return {"args": args, "kwargs": kwargs}


def arg_repr(ctx: Context, *args: Any, **kwargs: Any) -> dict[str, str]:
    """The arguments as Python writes them."""
    return {"args": repr(args), "kwargs": repr(kwargs)}


def arg_type(ctx: Context, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """The types of the arguments."""
    return {
        "args": [str(type(value)) for value in args],
        "kwargs": {key: str(type(value)) for key, value in kwargs.items()},
    }


def arg_clean(ctx: Context, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """The arguments without what the publication adds (``__pub_*``)."""
    return {"args": args, "kwargs": {key: value for key, value in kwargs.items() if not key.startswith("__")}}


def kwarg(ctx: Context, **kwargs: Any) -> dict[str, Any]:
    """The keyword arguments as they arrived."""
    return kwargs


def fib(ctx: Context, num: int) -> tuple[int, float]:
    """The ``num``-th Fibonacci number and the seconds it took.

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
    """The Collatz sequence from ``start`` down to 1 (left out), and the seconds it took."""
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
    """True after ``length`` seconds."""
    time.sleep(float(length))
    return True


def rand_sleep(ctx: Context, max: int = 60) -> bool:
    """True after a random number of seconds up to ``max``."""
    time.sleep(random.randint(0, int(max)))
    return True


def true_(ctx: Context) -> bool:
    """True."""
    return True


def false_(ctx: Context) -> bool:
    """False."""
    return False


def retcode(ctx: Context, code: int = 42) -> bool:
    """True, with ``code`` as the job's exit code."""
    ctx.scratch["retcode"] = code
    return True


def outputter(ctx: Context, data: Any) -> Any:
    """What it was given, to try an outputter on."""
    return data


def exception(ctx: Context, message: str = "Test Exception") -> None:
    """Raises an Exception with this message."""
    raise Exception(message)


def raise_exception(ctx: Context, name: str, *args: Any, **kwargs: Any) -> bool:
    """Raises the exception of this name: a Python one, or ``salt.exceptions.X``. False when there is none."""
    plain = {key: value for key, value in kwargs.items() if not key.startswith("__")}
    found = _SALT_EXCEPTIONS.get(name.removeprefix("salt.exceptions.")) or getattr(builtins, name, None)
    if isinstance(found, type) and issubclass(found, Exception):
        raise found(*args, **plain)
    return False


def assertion(ctx: Context, assertion: Any) -> None:
    """Raises AssertionError when the argument is not true."""
    if not assertion:
        raise AssertionError(f"{assertion!r} is not true")


def try_(ctx: Context, module: str, return_try_exception: bool = False, **kwargs: Any) -> Any:
    """What the function returns, or None when it raises (its message if ``return_try_exception``)."""
    try:
        return ctx.call(module, **{key: value for key, value in kwargs.items() if not key.startswith("__")})
    except Exception as error:  # noqa: BLE001 - catching everything is what it is asked for
        return str(error) if return_try_exception else None


def cross_test(ctx: Context, func: str, args: list[Any] | None = None) -> Any:
    """Calls another function through the loader."""
    return ctx.call(func, *(args or []))


def attr_call(ctx: Context) -> Any:
    """grains.items, reached from another module."""
    return ctx.call("grains.items")


def get_opts(ctx: Context) -> dict[str, Any]:
    """The options of this minion."""
    return dict(ctx.opts)


def opts_pkg(ctx: Context) -> dict[str, Any]:
    """The options of this minion with its grains."""
    return {**ctx.opts, "grains": dict(ctx.grains)}


def conf_test(ctx: Context) -> Any:
    """The option ``test.foo``, or its default."""
    return ctx.call("config.option", "test.foo")


def provider(ctx: Context, module: str) -> str:
    """The file that serves a module (``pkg`` -> ``pkg_apt``), "" when none does."""
    prefix = f"{module}."
    name = next((each for each in ctx.catalog.names() if each.startswith(prefix)), None)
    return _file_of(ctx, name) if name else ""


def providers(ctx: Context) -> dict[str, str]:
    """File -> the module it serves, for all of them."""
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
    """The old name of ``random_hash``."""
    return random_hash(ctx, size, hash_type)


def random_hash(ctx: Context, size: int = 9999999999, hash_type: str | None = None) -> str:
    """The digest, hex, of a random number between 1 and ``size``."""
    kind = hash_type or str(ctx.opts.get("hash_type", "sha256"))
    if kind not in hashlib.algorithms_available:
        raise InvocationError(f"Unknown hash_type '{kind}'")
    number = random.SystemRandom().randint(1, int(size))
    return hashlib.new(kind, str(number).encode()).hexdigest()


def stack(ctx: Context) -> str:
    """The stack of this call."""
    return "".join(traceback.format_stack())
