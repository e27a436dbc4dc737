"""Jinja filters that read the managed host: files, programs, users, DNS names.

Paths are the host's own. If the option ``host_root`` is set, they are read below that directory. The limits are those of
the environment (``Limits``): the template's variables, such as ``opts``, change none of them.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import jinja2

from statecore.host import rooted_path
from statecore.model.text_lines import lines_of
from statecore.render.jinja.closed import ClosedEnvironment

#: Bytes read from the start of a file to tell text from binary data.
_SNIFF = 2048
_SNIFF_TEXT = 512

#: Byte values that occur in text.
_TEXT = bytes({*range(32, 127), *b"\n\r\t\f\b"})

#: Directories searched in addition to PATH.
_SEARCHED = ("/sbin", "/bin", "/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin")

#: Seconds to wait for a connection when an address is tested.
_CONNECT = 2.0


def _host_path(environment: ClosedEnvironment, path: object) -> Path:
    return host_path(environment.limits.host_root, path)


def host_path(root: str, path: object) -> Path:
    """Return the path in this process's file system for a path of the managed host, whose root directory is ``root``."""
    return rooted_path.below(Path(root))(root, str(path).lstrip("/")) if root != "/" else Path(str(path))


def _is_binary(data: bytes) -> bool:
    """Return whether bytes look binary: they contain NUL, or are not UTF-8 and more than 30 % of them are not bytes of
    text.
    """
    if not data:
        return False
    if b"\0" in data:
        return True
    try:
        data.decode()
        return False
    except UnicodeDecodeError:
        return len(data.translate(None, _TEXT)) / len(data) > 0.30


def _first_bytes(path: Path, size: int) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError:
        return None


@jinja2.pass_environment
def is_empty(environment: ClosedEnvironment, path: str) -> bool:
    """Jinja filter: return whether a file of the managed host exists and is empty."""
    try:
        return _host_path(environment, path).stat().st_size == 0
    except OSError:
        return False


@jinja2.pass_environment
def is_text_file(environment: ClosedEnvironment, fp_: str, blocksize: int = _SNIFF_TEXT) -> bool:
    """Jinja filter: return whether a file of the managed host exists and its first ``blocksize`` bytes look like text."""
    data = _first_bytes(_host_path(environment, fp_), blocksize)
    return data is not None and not _is_binary(data)


@jinja2.pass_environment
def is_bin_file(environment: ClosedEnvironment, path: str) -> bool:
    """Jinja filter: return whether a file of the managed host exists and its beginning does not look like text."""
    file = _host_path(environment, path)
    data = _first_bytes(file, _SNIFF) if file.is_file() else None
    return data is not None and _is_binary(data)


@jinja2.pass_environment
def list_files(environment: ClosedEnvironment, directory: str) -> list[str]:
    """Jinja filter: return the sorted paths of a directory of the managed host and of everything below it."""
    root = _host_path(environment, directory)
    found = {str(directory)}
    for folder, directories, files in rooted_path.walk(root):
        below = folder.relative_to(root)
        found.update(str(Path(str(directory)) / below / name) for name in (*directories, *files))
    return sorted(found)


@jinja2.pass_environment
def file_hashsum(environment: ClosedEnvironment, path: str, form: str = "sha256", chunk_size: int = 65536) -> str:
    """Jinja filter: return the hexadecimal digest of a file of the managed host.

    Raise ValueError for an unknown algorithm, OSError if the file cannot be read.
    """
    try:
        made = hashlib.new(form)
    except ValueError as error:
        raise ValueError(f"Invalid hash type: {form}") from error
    with _host_path(environment, path).open("rb") as file:
        while data := file.read(chunk_size):
            made.update(data)
    return made.hexdigest()


@jinja2.pass_environment
def which(environment: ClosedEnvironment, program: str | None = None) -> str | None:
    """Jinja filter: return the path of a program on the managed host; None if it is not installed."""
    if not program:
        return None
    if "/" in program:
        return program if _is_executable(_host_path(environment, program)) else None
    searched = dict.fromkeys((*os.environ.get("PATH", "").split(os.pathsep), *_SEARCHED))
    paths = (f"{directory}/{program}" for directory in searched if directory)
    return next((path for path in paths if _is_executable(_host_path(environment, path))), None)


def _is_executable(path: Path) -> bool:
    return path.is_file() and rooted_path.access(path, os.X_OK)


@jinja2.pass_environment
def get_uid(environment: ClosedEnvironment, user: str | None = None) -> int | None:
    """Jinja filter: return the uid of a user of the managed host; None if there is no such user. Without a name, this
    process's uid.
    """
    if user is None:
        return os.geteuid()
    return next((int(uid) for name, uid in _users(_host_path(environment, "/etc/passwd")) if name == user), None)


def _users(passwd: Path) -> Iterator[tuple[str, str]]:
    for line in lines_of((_first_bytes(passwd, -1) or b"").decode("utf-8", "replace")):
        parts = line.split(":")
        if len(parts) > 3:
            yield parts[0], parts[2]


@jinja2.pass_environment
def dns_check_filter(
    environment: ClosedEnvironment, addr: str, port: int, safe: bool = False, ipv6: bool | None = None
) -> str:
    """Jinja filter ``dns_check``: return the result of ``dns_check``. Raise TemplateRuntimeError if the option
    ``jinja_dns_check`` is false.
    """
    if not environment.limits.dns_check:
        raise jinja2.TemplateRuntimeError(f"dns_check: '{addr}' is not looked up, because jinja_dns_check is false")
    return dns_check(addr, port, safe, ipv6)


def dns_check(addr: str, port: int, safe: bool = False, ipv6: bool | None = None) -> str:
    """Return an IP address of a host name: the first that accepts a connection on the port, else the first.

    An IPv6 address is in square brackets. Raise TemplateRuntimeError if the name has no address.
    """
    only = {None: (socket.AF_UNSPEC,), True: (socket.AF_INET6, socket.AF_INET), False: (socket.AF_INET,)}
    families = only[ipv6]
    for family in families:
        try:
            infos = socket.getaddrinfo(addr, port, family, socket.SOCK_STREAM)
        except OSError:
            continue
        found = dict.fromkeys((info[0], str(info[4][0])) for info in infos)
        kind, address = next((each for each in found if _accepts(*each, port)), next(iter(found)))
        return f"[{address}]" if kind == socket.AF_INET6 else address
    raise jinja2.TemplateRuntimeError(f"DNS lookup or connection check of '{addr}' failed.")


def _accepts(family: int, address: str, port: int) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.settimeout(_CONNECT)
            probe.connect((address, port))
        return True
    except OSError:
        return False


def gen_mac(prefix: str = "AC:DE:48") -> str:
    """Jinja filter: return a random MAC address that begins with ``prefix``."""
    # Imported here: few templates use random values, and every process would load the module.
    import secrets

    return ":".join((prefix, *(f"{byte:02X}" for byte in secrets.token_bytes(3))))


@jinja2.pass_environment
def http_query(environment: ClosedEnvironment, url: str, method: str = "GET", **kwargs: object) -> object:
    """Jinja filter: return the result of the execution function ``http.query`` for a URL, with the same arguments.

    Raise TemplateRuntimeError unless the option ``jinja_http_query`` is true: a template that waits for a server delays
    every job that renders it.
    """
    if not environment.limits.http_query:
        raise jinja2.TemplateRuntimeError(
            f"http_query: templates do not fetch {url}: set the option 'jinja_http_query: true', fetch it in a module of"
            " your own (_modules), or give it as pillar"
        )
    return environment.functions["http.query"](url, method=method, **kwargs)
