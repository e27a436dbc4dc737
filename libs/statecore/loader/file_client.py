"""Salt's file client for users' modules (``__file_client__``, ``salt.fileclient``): lists, fetches and hashes
``salt://`` files.
"""

from __future__ import annotations

from types import TracebackType

from statecore.model import tree_url
from statecore.model.context import Context


class FileClient:
    """The methods of Salt's file client that users' modules call: list, fetch and hash the files of the state tree
    (``salt://``).
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.opts = ctx.opts

    def value(self) -> FileClient:
        """Return the file client itself, because modules written for Salt call ``__file_client__.value()``."""
        return self

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> FileClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.destroy()

    def destroy(self) -> None:
        """Do nothing: the file client holds no resources. Modules written for Salt call this method."""

    def envs(self) -> list[str]:
        """Return the names of the saltenvs of the state tree."""
        return list(self._ctx.files.envs())

    def file_list(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Return the relative paths of the files of one saltenv whose path starts with ``prefix``."""
        return list(self._ctx.files.paths(saltenv, prefix))

    def cache_file(
        self, path: str, saltenv: str = "base", cachedir: str | None = None, source_hash: object = None
    ) -> str:
        """Fetch one file of the state tree (``salt://a/b`` or ``a/b``) and return the path of the local copy; "" if
        there is no such file.

        ``cachedir`` and ``source_hash`` are accepted and ignored.
        """
        found = self._ctx.files.fetch(tree_url.split(path).path, saltenv)
        return "" if found is None else str(found)

    def get_file(
        self, path: str, dest: str = "", makedirs: bool = False, saltenv: str = "base", gzip: object = None, **_: object
    ) -> object:
        """Copy one file of the state tree to the path ``dest`` and return the path; "" if there is no such file, as
        ``cp.get_file``.

        Without ``dest``, fetch the file as ``cache_file`` does.
        """
        if not dest:
            return self.cache_file(path, saltenv)
        return self._ctx.call("cp.get_file", path, dest, makedirs=makedirs, saltenv=saltenv)

    def get_url(self, url: str, dest: str, makedirs: bool = False, saltenv: str = "base", **given: object) -> object:
        """Copy the file at a URL (salt, http, https, ftp, file) to the path ``dest`` and return the path; False if the
        file does not exist, as ``cp.get_url``.
        """
        return self._ctx.call("cp.get_url", url, dest, makedirs=makedirs, saltenv=saltenv, **given)

    def hash_file(self, path: str, saltenv: str = "base") -> object:
        """Return the hash of one file of the state tree as {"hash_type": algorithm, "hsum": hexadecimal digest}; {} if
        the file does not exist.
        """
        return self._ctx.call("cp.hash_file", path, saltenv)
