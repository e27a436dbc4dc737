"""Cookies between requests: a file of the managed host, or of the minion's cache where none is named."""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecore.host.rooted_path import located
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError

if TYPE_CHECKING:
    from http.cookiejar import CookieJar, FileCookieJar

_FORMATS = ("lwp", "mozilla")


@dataclass(frozen=True, slots=True)
class CookieFile:
    """One jar, and the files that it is kept in: that of a session keeps what ends with the session, too."""

    jar: CookieJar
    files: tuple[tuple[Path, str, bool], ...]

    def save(self) -> None:
        """Replaces the files, for nobody else to read. Raises CommandError."""
        for path, form, session in self.files:
            aside = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
            kept = _jar(form)
            for cookie in self.jar:
                kept.set_cookie(cookie)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with located(aside) as (name, way):
                    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=way))
                # A jar writes where a name leads, so it writes where only we are.
                with tempfile.NamedTemporaryFile() as own:
                    kept.save(own.name, ignore_discard=session)
                    aside.write_bytes(Path(own.name).read_bytes())
                aside.replace(path)
            except OSError as error:
                raise CommandError(f"{path} cannot be written: {error.strerror}") from error
            finally:
                aside.unlink(missing_ok=True)


def cookie_file(ctx: Context, kept: tuple[str | None, str] | None, session: str | None) -> CookieFile | None:
    """The jar of a request, None when it keeps none. ``kept`` is (file, format), ``session`` a file; no name: the cache's."""
    if kept is None and session is None:
        return None
    import http.cookiejar

    files: list[tuple[Path, str, bool]] = []
    if kept is not None:
        if kept[1] not in _FORMATS:
            raise InvocationError(f"cookie_format is lwp or mozilla, not {kept[1]!r}")
        files.append((_place(ctx, kept[0], "cookies.txt"), kept[1], False))
    if session is not None:
        files.append((_place(ctx, session, "cookies.session.txt"), "lwp", True))
    jar = http.cookiejar.CookieJar()
    for path, form, is_session in files:
        old = _jar(form)
        try:
            with contextlib.suppress(FileNotFoundError):
                data = path.read_bytes()
                with tempfile.NamedTemporaryFile() as own:
                    Path(own.name).write_bytes(data)
                    old.load(own.name, ignore_discard=is_session)
        except (OSError, http.cookiejar.LoadError) as error:
            raise CommandError(f"{path} is no cookie file ({form}): {error}") from error
        for cookie in old:
            jar.set_cookie(cookie)
    return CookieFile(jar, tuple(files))


def _jar(form: str) -> FileCookieJar:
    import http.cookiejar

    made: dict[str, Any] = {"lwp": http.cookiejar.LWPCookieJar, "mozilla": http.cookiejar.MozillaCookieJar}
    jar: FileCookieJar = made[form]()
    return jar


def _place(ctx: Context, name: str | None, usual: str) -> Path:
    return ctx.host.path(name) if name else Path(ctx.opts["cachedir"], usual)
