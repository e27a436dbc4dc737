"""``__file_client__`` and ``salt.fileclient``: the state tree as users' modules ask for it, over a context's files."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from statecore.model.context import Context


class FileClient:
    """Salt's file client, as far as a module may use it: lists, copies, digests of ``salt://``."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.opts = ctx.opts

    def value(self) -> FileClient:
        """Itself: a module asks ``__file_client__.value()``."""
        return self

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> FileClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.destroy()

    def destroy(self) -> None:
        """Nothing is held open."""

    def envs(self) -> list[str]:
        """The environments of the tree."""
        return list(self._ctx.files.envs())

    def file_list(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Paths of the environment's files that begin with ``prefix``."""
        return list(self._ctx.files.paths(saltenv, prefix))

    def cache_file(self, path: str, saltenv: str = "base", cachedir: str | None = None, source_hash: Any = None) -> str:
        """Where a copy of a file of the tree is, "" when the tree has none."""
        found = self._ctx.files.fetch(_relative(path), saltenv)
        return "" if found is None else str(found)

    def get_file(
        self, path: str, dest: str = "", makedirs: bool = False, saltenv: str = "base", gzip: Any = None, **_: Any
    ) -> Any:
        """As ``cp.get_file``: a file of the tree, copied to ``dest`` on the managed host; where it was fetched to without one."""
        if not dest:
            return self.cache_file(path, saltenv)
        return self._ctx.call("cp.get_file", path, dest, makedirs=makedirs, saltenv=saltenv)

    def get_url(self, url: str, dest: str, makedirs: bool = False, saltenv: str = "base", **given: Any) -> Any:
        """As ``cp.get_url``: any URL, copied to ``dest`` or kept."""
        return self._ctx.call("cp.get_url", url, dest, makedirs=makedirs, saltenv=saltenv, **given)

    def hash_file(self, path: str, saltenv: str = "base") -> Any:
        """As ``cp.hash_file``."""
        return self._ctx.call("cp.hash_file", path, saltenv)


def _relative(path: str) -> str:
    return path.removeprefix("salt://").partition("?")[0].lstrip("/")
