"""Finds the id of a minion whose configuration names none, in the way of Salt."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from saltern.kit.config.config_files import ConfigError
from statecore.model.lazy import lazy_module
from statecore.model.text_lines import lines_of

if TYPE_CHECKING:
    import platform
    import socket

    from statecore.runtime import runtime
else:
    # Needed only for a minion without an id.
    platform, socket = lazy_module("platform"), lazy_module("socket")
    runtime = lazy_module("statecore.runtime.runtime")

#: Name of the file in the configuration directory that keeps an id that was found.
FILE = "minion_id"

#: Names that every machine has, and that therefore name none.
_LOCAL = re.compile(r"localhost.*|ip6-.*|127[.]\d|0\.0\.0\.0|::1.*|ipv6-.*|fe00::.*|fe02::.*|1.0.0.*.ip6.arpa")

#: Files with names of the machine. A line counts if it is for a loopback address, or holds one word.
_NAME_FILES = ("/etc/hostname", "/etc/nodename", "/etc/hosts")


def kept_id(directory: Path) -> str:
    """Return the id in the file ``minion_id`` of a configuration directory; "" if there is none."""
    try:
        return id_in((directory / FILE).read_bytes())
    except OSError:
        return ""


def id_in(content: bytes) -> str:
    """Return the id that the content of a file ``minion_id`` names; "" if it names none."""
    lines = lines_of(content.decode("utf-8-sig", "replace"))
    name = lines[0].strip() if lines else ""
    return "" if name == "localhost" else name


def keep_id(directory: Path, minion_id: str) -> None:
    """Write an id to the file ``minion_id``, so that the minion keeps it when the host's name changes.

    A configuration directory that cannot be written is left alone.
    """
    with contextlib.suppress(OSError):
        (directory / FILE).write_text(minion_id, "utf-8")


def found_id(
    function: str | Mapping[str, object], opts: Mapping[str, object], *, lowercase: bool, remove_domain: bool | str
) -> str:
    """Return the id from the execution function of the option ``id_function``, else the first name of this machine.

    ``remove_domain``: True removes every domain from the name, a text only this domain. Raise ConfigError if the function
    does not return a text.
    """
    name = _called(function, opts) if function else first_name(_names())
    if lowercase:
        name = name.lower()
    if remove_domain is True:
        return name.partition(".")[0]
    if remove_domain and name.upper().endswith(f".{remove_domain}".upper()):
        return name[: -len(f".{remove_domain}")]
    return name


def with_domain(minion_id: str, domain: str) -> str:
    """Return an id with the domain of the option ``append_domain``; an id that ends with the domain or a dot is unchanged."""
    return minion_id if not domain or minion_id.endswith((domain, ".")) else f"{minion_id}.{domain}"


def first_name(names: Iterable[str]) -> str:
    """Return the first of a machine's host names that is not a local one such as ``localhost``; "localhost" if there is none."""
    return next((name for name in names if name and not _LOCAL.match(name)), "localhost")


def _names() -> Iterator[str]:
    hostname = socket.gethostname()
    yield socket.getfqdn(hostname)
    yield platform.node()
    yield hostname
    for file in _NAME_FILES:
        with contextlib.suppress(OSError):
            for line in lines_of(Path(file).read_text("utf-8", "replace")):
                words = line.partition("#")[0].split()
                if words and (words[0].startswith(("127.", "::1")) or len(words) == 1):
                    yield from words
    with contextlib.suppress(OSError):
        yield from (str(each[4][0]) for each in socket.getaddrinfo(hostname, None))


def _called(function: str | Mapping[str, object], opts: Mapping[str, object]) -> str:
    name, arguments = (function, None) if isinstance(function, str) else next(iter(function.items()))
    given = arguments if isinstance(arguments, Mapping) else {}
    run: Callable[..., object] = runtime.local_runtime({**opts, "id": "", "file_client": "local"}).context.call
    try:
        found = run(name, **given)
    except Exception as error:
        raise ConfigError(f"id_function: {name}: {error}") from error
    if not isinstance(found, str) or not found:
        raise ConfigError(f"id_function: {name} returned {found!r} instead of a minion id")
    return found
