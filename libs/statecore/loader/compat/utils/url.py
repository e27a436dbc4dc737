"""``salt.utils.url`` for users' modules: ``salt://`` URLs."""

from __future__ import annotations

import re
from collections.abc import Container
from urllib.parse import quote, urlparse, urlunsplit


def parse(url: str) -> tuple[str, str | None]:
    """Return (path, saltenv) of a URL ``salt://path?saltenv=env``. The saltenv is None if the URL has none.

    For other URLs return (the URL, None).
    """
    if not url.startswith("salt://"):
        return url, None
    path, found, saltenv = url.removeprefix("salt://").partition("?saltenv=")
    if not found:
        path = path.partition("?env=")[0]
    return path.lstrip("/"), saltenv if found else None


def create(path: str, saltenv: str | None = None) -> str:
    """Return the URL ``salt://path``, followed by ``?saltenv=...`` if a saltenv is given."""
    rest = urlunsplit(("", "", path.replace("\\", "/"), f"saltenv={saltenv}" if saltenv else "", ""))
    return f"salt://{rest}"


def is_escaped(url: str) -> bool:
    """Return whether the path of a ``salt://`` URL, or a plain path, begins with the escape character ``|``."""
    scheme = urlparse(url).scheme
    if scheme == "salt":
        return parse(url)[0].startswith("|")
    return not scheme and url.startswith("|")


def escape(url: str) -> str:
    """Return a ``salt://`` URL or plain path with the escape character ``|`` before its path.

    A text ``?saltenv=`` in an escaped path is part of the path.
    """
    scheme = urlparse(url).scheme
    if scheme == "salt":
        path, saltenv = parse(url)
        return create(path if path.startswith("|") else f"|{path}", saltenv)
    return url if scheme or url.startswith("|") else f"|{url}"


def unescape(url: str) -> str:
    """Return a ``salt://`` URL or plain path without the escape character ``|`` before its path."""
    scheme = urlparse(url).scheme
    if scheme == "salt":
        path, saltenv = parse(url)
        return create(path.lstrip("|"), saltenv)
    return url if scheme else url.lstrip("|")


def add_env(url: str, saltenv: str | None) -> str:
    """Return a ``salt://`` URL with this saltenv. Other URLs are returned unchanged."""
    return create(parse(url)[0], saltenv) if url.startswith("salt://") else url


def split_env(url: str) -> tuple[str, str | None]:
    """Return (URL without the saltenv, saltenv or None) for a ``salt://`` URL; (the URL, None) for other URLs."""
    if not url.startswith("salt://"):
        return url, None
    path, saltenv = parse(url)
    return create(path), saltenv


def validate(url: str, protos: Container[str]) -> bool:
    """Return whether the scheme of a URL (``https``) is in ``protos``."""
    return urlparse(url).scheme in protos


def strip_proto(url: str) -> str:
    """Return a URL without its scheme (``https://``)."""
    return re.sub("^[^:/]+://", "", url)


def add_http_basic_auth(
    url: str, user: str | None = None, password: str | None = None, https_only: bool = False
) -> str:
    """Return a URL with a user name and a password in it. Raise ValueError if ``https_only`` is true and the scheme is
    not https.
    """
    if user is None and password is None:
        return url
    parts = urlparse(url)
    if https_only and parts.scheme != "https":
        raise ValueError("Basic Auth only supported for HTTPS")
    secret = "" if password is None else f":{quote(password, safe='')}"
    return parts._replace(netloc=f"{quote(user or '', safe='')}{secret}@{parts.netloc}").geturl()


def redact_http_basic_auth(output: str) -> str:
    """Return a text in which the user names and passwords of http and https URLs are replaced by ``<redacted>``."""
    return re.sub("(https?)://.*@", r"\1://<redacted>@", output, flags=re.IGNORECASE)
