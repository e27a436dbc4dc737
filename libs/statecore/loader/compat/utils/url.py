"""``salt.utils.url``."""

from __future__ import annotations

import re
from collections.abc import Container
from urllib.parse import quote, urlparse, urlunsplit


def parse(url: str) -> tuple[str, str | None]:
    """Path and environment of ``salt://path?saltenv=env``; (the URL, None) for other URLs."""
    if not url.startswith("salt://"):
        return url, None
    path, found, saltenv = url.removeprefix("salt://").partition("?saltenv=")
    if not found:
        path = path.partition("?env=")[0]
    return path.lstrip("/"), saltenv if found else None


def create(path: str, saltenv: str | None = None) -> str:
    """``salt://path``, with its environment."""
    rest = urlunsplit(("", "", path.replace("\\", "/"), f"saltenv={saltenv}" if saltenv else "", ""))
    return f"salt://{rest}"


def is_escaped(url: str) -> bool:
    """Whether a path begins with ``|``."""
    scheme = urlparse(url).scheme
    if scheme == "salt":
        return parse(url)[0].startswith("|")
    return not scheme and url.startswith("|")


def escape(url: str) -> str:
    """Return the path with ``|`` in front: its ``?saltenv=`` is then not read as an environment."""
    scheme = urlparse(url).scheme
    if scheme == "salt":
        path, saltenv = parse(url)
        return create(path if path.startswith("|") else f"|{path}", saltenv)
    return url if scheme or url.startswith("|") else f"|{url}"


def unescape(url: str) -> str:
    """A path without ``|`` before it."""
    scheme = urlparse(url).scheme
    if scheme == "salt":
        path, saltenv = parse(url)
        return create(path.lstrip("|"), saltenv)
    return url if scheme else url.lstrip("|")


def add_env(url: str, saltenv: str | None) -> str:
    """A salt:// URL with this environment; others as they are."""
    return create(parse(url)[0], saltenv) if url.startswith("salt://") else url


def split_env(url: str) -> tuple[str, str | None]:
    """A salt:// URL without its environment, and that."""
    if not url.startswith("salt://"):
        return url, None
    path, saltenv = parse(url)
    return create(path), saltenv


def validate(url: str, protos: Container[str]) -> bool:
    """Whether a URL has one of these schemes."""
    return urlparse(url).scheme in protos


def strip_proto(url: str) -> str:
    """A URL without its scheme."""
    return re.sub("^[^:/]+://", "", url)


def add_http_basic_auth(
    url: str, user: str | None = None, password: str | None = None, https_only: bool = False
) -> str:
    """A URL with name and password in it. Raises ValueError where only https may have them."""
    if user is None and password is None:
        return url
    parts = urlparse(url)
    if https_only and parts.scheme != "https":
        raise ValueError("Basic Auth only supported for HTTPS")
    secret = "" if password is None else f":{quote(password, safe='')}"
    return parts._replace(netloc=f"{quote(user or '', safe='')}{secret}@{parts.netloc}").geturl()


def redact_http_basic_auth(output: str) -> str:
    """Return the text without user names and passwords in URLs."""
    return re.sub("(https?)://.*@", r"\1://<redacted>@", output, flags=re.IGNORECASE)
