"""Cookies that are stored between HTTP requests: in a file of the managed host, or by default in the minion's cache."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from statecore.host.content import atomic_file, private_files
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError

if TYPE_CHECKING:
    from http.cookiejar import CookieJar, FileCookieJar

_FORMATS = ("lwp", "mozilla")


@dataclass(frozen=True, slots=True)
class CookieFile:
    """Cookie jar of one HTTP request, and the files that store it: (path, format, True if session cookies are stored
    too).
    """

    jar: CookieJar
    files: tuple[tuple[Path, str, bool], ...]

    def save(self) -> None:
        """Write the cookies of the jar to each of its files, with mode 0600. Raise CommandError if a file cannot be
        written.
        """
        for path, form, session in self.files:
            kept = _jar(form)
            for cookie in self.jar:
                kept.set_cookie(cookie)
            try:
                private_files.directory(path.parent)
                with atomic_file.replacement(path) as new:
                    private_files.new_file(new).close()
                    # The jar's save() follows symbolic links, so it writes to a private temporary file first.
                    with tempfile.NamedTemporaryFile() as own:
                        kept.save(own.name, ignore_discard=session)
                        new.write_bytes(Path(own.name).read_bytes())
            except OSError as error:
                raise CommandError(f"{path} cannot be written: {error.strerror}") from error


def cookie_file(ctx: Context, kept: tuple[str | None, str] | None, session: str | None) -> CookieFile | None:
    """Load the stored cookies for an HTTP request. Return a CookieFile: the cookie jar, and the files to save it to.
    None if both ``kept`` and ``session`` are None: the request stores no cookies.

    ``kept`` is (path, format: lwp or mozilla) of the file for lasting cookies; ``session`` is the path of the file for
    session cookies too. An empty path means a default file in the minion's cache. A cookie of the file ``session``
    replaces the same cookie of the file ``kept``. Raise InvocationError for another format, CommandError for a file
    that cannot be read.
    """
    if kept is None and session is None:
        return None
    import http.cookiejar

    files: list[tuple[Path, str, bool]] = []
    if kept is not None:
        if kept[1] not in _FORMATS:
            raise InvocationError(f"cookie_format is lwp or mozilla, not {kept[1]!r}")
        files.append((_cookie_path(ctx, kept[0], "cookies.txt"), kept[1], False))
    if session is not None:
        files.append((_cookie_path(ctx, session, "cookies.session.txt"), "lwp", True))
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
            raise CommandError(f"{path} is not a cookie file in the format {form}: {error}") from error
        for cookie in old:
            jar.set_cookie(cookie)
    return CookieFile(jar, tuple(files))


def _jar(form: str) -> FileCookieJar:
    import http.cookiejar

    made: dict[str, type[FileCookieJar]] = {
        "lwp": http.cookiejar.LWPCookieJar,
        "mozilla": http.cookiejar.MozillaCookieJar,
    }
    return made[form]()


def _cookie_path(ctx: Context, name: str | None, usual: str) -> Path:
    return ctx.host.path(name) if name else Path(ctx.opts["cachedir"], usual)
