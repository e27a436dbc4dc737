"""``__file_client__`` and ``salt.fileclient``: access to the state tree for users' modules, through a context's files."""

from __future__ import annotations

from types import TracebackType

from statecore.model.context import Context


class FileClient:
    """The part of Salt's file client that modules use: list, fetch and hash ``salt://`` files."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.opts = ctx.opts

    def value(self) -> FileClient:
        """Return the client itself: modules written for Salt call ``__file_client__.value()``."""
        return self

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> FileClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.destroy()

    def destroy(self) -> None:
        """Do nothing: the client holds no resources."""

    def envs(self) -> list[str]:
        """Return the saltenvs of the state tree."""
        return list(self._ctx.files.envs())

    def file_list(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Return the paths of all files of the saltenv that start with ``prefix``."""
        return list(self._ctx.files.paths(saltenv, prefix))

    def cache_file(
        self, path: str, saltenv: str = "base", cachedir: str | None = None, source_hash: object = None
    ) -> str:
        """Fetch a file of the state tree and return the local path of the copy; "" if the tree has no such file."""
        found = self._ctx.files.fetch(_relative(path), saltenv)
        return "" if found is None else str(found)

    def get_file(
        self, path: str, dest: str = "", makedirs: bool = False, saltenv: str = "base", gzip: object = None, **_: object
    ) -> object:
        """Copy a file of the state tree to ``dest`` as ``cp.get_file`` does. Without ``dest``, do as ``cache_file``."""
        if not dest:
            return self.cache_file(path, saltenv)
        return self._ctx.call("cp.get_file", path, dest, makedirs=makedirs, saltenv=saltenv)

    def get_url(self, url: str, dest: str, makedirs: bool = False, saltenv: str = "base", **given: object) -> object:
        """Copy the file at any URL to ``dest``, as ``cp.get_url`` does."""
        return self._ctx.call("cp.get_url", url, dest, makedirs=makedirs, saltenv=saltenv, **given)

    def hash_file(self, path: str, saltenv: str = "base") -> object:
        """Return the hash of a file of the state tree, as ``cp.hash_file`` does."""
        return self._ctx.call("cp.hash_file", path, saltenv)


def _relative(path: str) -> str:
    return path.removeprefix("salt://").partition("?")[0].lstrip("/")
