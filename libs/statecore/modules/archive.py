"""Archives on the managed host (Salt's ``archive`` module), read by Python's own tarfile and zipfile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from statecore.context import Context
from statecore.errors import CommandError
from statecore.hostfiles import archives

ALIASES = {"list": "list_"}


def list_(
    ctx: Context,
    name: str,
    archive_format: str | None = None,
    options: str | None = None,
    strip_components: int | None = None,
    clean: bool = False,
    verbose: bool = False,
    saltenv: str = "base",
    source_hash: str | None = None,
    use_etag: bool = False,
) -> Any:
    """Names in an archive (salt:// or a path of the host); ``verbose`` gives dirs, files, links and what is at the top.

    CLI Example:

        salt '*' archive.list salt://app.tar.gz verbose=True
    """
    if options:
        raise CommandError("not supported: options")
    form, path = _archive(ctx, name, archive_format, saltenv)
    found = archives.contents(path, form, int(strip_components or 0))
    if not verbose:
        return sorted((*found.dirs, *found.files, *found.links))
    return {
        "dirs": list(found.dirs),
        "files": list(found.files),
        "links": list(found.links),
        "top_level_dirs": list(found.top_dirs),
        "top_level_files": list(found.top_files),
        "top_level_links": list(found.top_links),
    }


def unzip(
    ctx: Context, zip_file: str, dest: str, password: str | None = None, extract_perms: bool = True, **kwargs: Any
) -> list[str]:
    """Takes everything out of a zip archive into a directory of the host; the names."""
    _, path = _archive(ctx, zip_file, "zip", ctx.saltenv)
    target = ctx.host.path(dest)
    target.mkdir(parents=True, exist_ok=True)
    return archives.extract(path, "zip", target, password=password, modes=extract_perms)


def is_encrypted(ctx: Context, name: str, clean: bool = False, saltenv: str = "base", **kwargs: Any) -> bool:
    """Whether a zip archive takes a password."""
    return archives.encrypted(_archive(ctx, name, "zip", saltenv)[1])


def tar(
    ctx: Context, options: str, tarfile: str, sources: Any = None, dest: str | None = None, **kwargs: Any
) -> list[str]:
    """Runs the host's tar, as in ``tar -czf``; what it said, line by line. Raises CommandError."""
    names = sources.split(",") if isinstance(sources, str) else list(sources or ())
    words = ["tar", *(["-C", dest] if dest else []), *options.split(), tarfile, *names]
    result = ctx.host.run(words, cwd=kwargs.get("cwd"))
    if result.retcode:
        raise CommandError(result.stderr.strip() or f"tar failed with {result.retcode}")
    return result.stdout.splitlines()


def _archive(ctx: Context, name: str, form: str | None, saltenv: str) -> tuple[str, Path]:
    form = form or archives.guess(name)
    if form not in ("tar", "zip"):
        raise CommandError(f"Unable to guess archive format of {name}, or it is not supported: tar and zip are")
    cached = ctx.call("cp.cache_file", name, saltenv)
    if not cached:
        raise CommandError(f"Failed to cache {name}")
    return form, Path(cached)
