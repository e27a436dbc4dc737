"""External pillar ``file_tree``: pillar of a minion from a directory tree. Each file name becomes a key, the file's
content its value. The files are below the minion's own directory, or below those of its nodegroups.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from statecore.model.context import Context
from statecore.model.errors import CommandError, SlsError, TargetError
from statecore.model.values import update
from statecore.targeting.match import Subject, matches

log = logging.getLogger(__name__)


def ext_pillar(
    ctx: Context,
    minion_id: str,
    pillar: dict[str, object],
    root_dir: str | None = None,
    follow_dir_links: bool = False,
    debug: bool = False,
    keep_newline: bool | list[str] = False,
    render_default: str | None = None,
    renderer_blacklist: list[str] | None = None,
    renderer_whitelist: list[str] | None = None,
    template: bool = False,
) -> dict[str, object]:
    """Return the pillar data ``{file name: content}`` of ``<root_dir>/nodegroups/<group>``, overridden by that of
    ``<root_dir>/hosts/<id>``. A directory becomes a map of its files.

    The last newline of a file is removed.

    root_dir
        absolute path, or a path relative to each pillar root of the pillarenv
    follow_dir_links
        True: follow symbolic links to directories
    keep_newline
        True, or a list of globs for paths: keep the last newline
    template
        True: render each file with the renderers in its first line, else with ``render_default``
    renderer_blacklist, renderer_whitelist
        renderers that files must not use; the only ones that they may use
    debug
        True: log directories that do not exist

    Raises CommandError for an invalid argument, a missing ``root_dir``, and a file that cannot be read or rendered.
    """
    if not isinstance(keep_newline, bool | list):
        raise CommandError(f"keep_newline must be true, false or a list of globs, not {keep_newline!r}")
    render = (
        _Render(ctx, render_default, renderer_blacklist or (), renderer_whitelist or ()) if template is True else None
    )
    reader = _Reader(bool(follow_dir_links), keep_newline, render)
    found: dict[str, object] = {}
    for root in _roots(ctx, root_dir):
        if not root.is_dir():
            raise CommandError(f"root_dir {root} does not exist or is not a directory")
        for directory in _directories(ctx, minion_id, root):
            if directory.is_dir():
                update(found, reader.read(directory))
            elif directory.exists():
                raise CommandError(f"{directory} is not a directory")
            elif debug:
                log.debug("file_tree: there is no %s", directory)
    return found


def _roots(ctx: Context, root_dir: str | None) -> list[Path]:
    if not root_dir:
        raise CommandError("set root_dir, the directory that contains hosts/ and nodegroups/")
    if Path(root_dir).is_absolute():
        return [Path(root_dir)]
    env = ctx.opts.get("pillarenv")
    roots = (ctx.opts.get("pillar_roots") or {}).get(env) if env else None
    if roots is None:
        raise CommandError(
            f"root_dir '{root_dir}' is relative to the roots of the pillarenv, but the pillarenv {env or 'None'} has no roots"
        )
    return list(dict.fromkeys(Path(os.path.normpath(Path(root) / root_dir)) for root in roots))


def _directories(ctx: Context, minion_id: str, root: Path) -> Iterator[Path]:
    """Yield the directories of ``file_tree`` that hold the minion's files: those of its nodegroups, then its own one. A
    later directory overrides an earlier one.
    """
    nodegroups = ctx.opts.get("nodegroups") or {}
    subject = Subject(minion_id, ctx.grains, ctx.pillar)
    groups = sorted((root / "nodegroups").iterdir()) if nodegroups and (root / "nodegroups").is_dir() else []
    for group in groups:
        try:
            if group.name in nodegroups and matches(group.name, "nodegroup", subject, nodegroups=nodegroups):
                yield group
        except TargetError as error:
            raise CommandError(f"nodegroup '{group.name}': {error}") from error
    if minion_id in ("", ".", "..") or "/" in minion_id:
        raise CommandError(f"the minion's id '{minion_id}' is not a valid name of a directory")
    yield root / "hosts" / minion_id


@dataclass(frozen=True, slots=True)
class _Render:
    """Renders the text of a pillar file to data, with the renderers that the arguments of ``file_tree`` allow."""

    ctx: Context
    default: str | None
    forbidden: Sequence[str]
    allowed: Sequence[str]

    def __call__(self, text: str, path: Path) -> object:
        first, _, rest = text.partition("\n")
        named = first.startswith("#!") and not first.startswith("#!/")
        pipe = first.removeprefix("#!") if named else self.default or ""
        renderers = [step.strip() for step in pipe.split("|") if self._may(step.split()[0] if step.strip() else "")]
        if not renderers or not text.strip():
            return {}
        body, names = ("\n" + rest if named else text), {"sls": path.name}
        try:
            data = self.ctx.templates.data(body, "|".join(renderers), names, saltenv=self.ctx.saltenv, source=str(path))
        except SlsError as error:
            # The error may quote secrets of the file, so that only the log shows it.
            log.error("file_tree: %s", error)
            position = error.faults[0].mark or path
            raise CommandError(f"{position} cannot be rendered; the reason is in the master's log") from error
        # As in Salt, rendered text keeps its first line with the renderers.
        return first + data if named and isinstance(data, str) else data

    def _may(self, name: str) -> bool:
        return bool(name) and name not in self.forbidden and (not self.allowed or name in self.allowed)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads a directory of the external pillar ``file_tree`` into a map of file name to content."""

    follow: bool
    keep: bool | list[str]
    render: _Render | None

    def read(self, directory: Path) -> dict[str, object]:
        """Return ``{file name: content}`` of all files below a directory; a subdirectory becomes a nested map."""
        return self._read(directory, Path(), frozenset())

    def _read(self, directory: Path, below: Path, inside: frozenset[str]) -> dict[str, object]:
        found: dict[str, object] = {}
        real = os.path.realpath(directory)
        if real in inside:
            raise CommandError(
                f"{directory} leads back to {real}: a symbolic link that leads to a directory above itself"
            )
        try:
            entries = sorted(directory.iterdir())
        except OSError as error:
            raise CommandError(f"{directory}: {error.strerror}") from error
        for path in entries:
            if path.is_dir():
                walked = self.follow or not path.is_symlink()
                found[path.name] = self._read(path, below / path.name, inside | {real}) if walked else {}
            elif path.is_file():
                found[path.name] = self._content(path, below)
            else:
                log.error("file_tree: %s: not a regular file", path)
        return found

    def _content(self, path: Path, below: Path) -> object:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}") from error
        if data.endswith(b"\n") and not self._keeps(below, path.name):
            data = data[:-1]
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            if self.render is None:
                return data
            raise CommandError(f"{path} is not UTF-8 text: byte {error.start}") from error
        return self.render(text, path) if self.render is not None else text

    def _keeps(self, below: Path, name: str) -> bool:
        if isinstance(self.keep, bool):
            return self.keep
        # Salt's path of a file in the minion's directory itself is ./name.
        paths = (os.path.join(str(below), name), str(below / name))
        return any(fnmatch(path, str(pattern)) for pattern in self.keep for path in paths)
