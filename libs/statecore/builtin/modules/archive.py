"""Archives on the managed host: Salt's ``archive`` execution module.

``list``, ``unzip``, ``zip`` and ``is_encrypted`` work inside the minion. The other functions run the host's programs.
"""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Iterable
from pathlib import Path

from statecore.host import globs
from statecore.model.context import Context
from statecore.model.errors import CallFailed, CommandError, HostError
from statecore.model.text_lines import lines_of
from statecore.sources import downloads
from statecore.sources.file_source import FileVerification, find
from statecore.system.hostfiles import archives

ALIASES = {"list": "list_", "zip": "zip_"}

#: Number of names that ``trim_output=True`` returns.
_TRIMMED = 100


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
) -> object:
    """Return the sorted names of the files in a tar or zip archive. ``name`` is a path of the host, ``salt://`` or an
    http(s) URL.

    archive_format
        tar or zip; default: derived from the name
    strip_components
        number of leading directories to remove from each name
    clean
        True: delete the downloaded copy of the archive
    verbose
        True: return a map with dirs, files, links, top_level_dirs, top_level_files and top_level_links
    source_hash, use_etag
        verification of a download, as of ``cp.cache_file``

    CLI Example:

        salt '*' archive.list salt://app.tar.gz verbose=True
    """
    if options:
        raise CommandError("not supported: options")
    form, path = _archive(ctx, name, archive_format, saltenv, source_hash, use_etag=use_etag)
    found = archives.contents(path, form, int(strip_components or 0))
    _cleaned(name, path, clean=clean)
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
    ctx: Context,
    zip_file: str,
    dest: str,
    excludes: str | Iterable[object] | None = None,
    options: str | None = None,
    template: str | None = None,
    runas: str | None = None,
    trim_output: int | str | None = False,
    password: str | None = None,
    extract_perms: bool = True,
) -> list[str]:
    """Extract a zip archive into a directory of the host. Return the list of extracted names.

    excludes
        globs of names that are not extracted
    template
        renderer for the arguments ``zip_file`` and ``dest``
    trim_output
        number of names to return; True: 100
    extract_perms
        False: do not set the modes that are stored in the archive
    """
    if options or runas:
        raise CommandError(
            f"not supported: {'options' if options else 'runas'} of archive.unzip; archive.cmd_unzip takes them"
        )
    zip_file, dest = _rendered(ctx, template, [zip_file, dest])
    _, path = _archive(ctx, zip_file, "zip", ctx.saltenv)
    target = ctx.host.path(dest)
    target.mkdir(parents=True, exist_ok=True)
    left_out = _listed(excludes)

    def wanted(name: str) -> bool:
        return not any(fnmatch.fnmatchcase(name, pattern) for pattern in left_out)

    return _trimmed(
        archives.extract(path, "zip", target, password=password, modes=extract_perms, wanted=wanted), trim_output
    )


def is_encrypted(
    ctx: Context,
    name: str,
    clean: bool = False,
    saltenv: str = "base",
    source_hash: str | None = None,
    use_etag: bool = False,
) -> bool:
    """Return whether a zip archive needs a password. The other arguments are those of ``archive.list``."""
    path = _archive(ctx, name, "zip", saltenv, source_hash, use_etag=use_etag)[1]
    answer = archives.encrypted(path)
    _cleaned(name, path, clean=clean)
    return answer


def tar(
    ctx: Context,
    options: str,
    tarfile: str,
    sources: str | Iterable[object] | None = None,
    dest: str | None = None,
    cwd: str | None = None,
    template: str | None = None,
    runas: str | None = None,
) -> list[str]:
    """Run the host's ``tar`` with ``options`` such as ``-czf``. Return the lines of its output. Raise CommandError if
    tar fails.

    sources
        files to pack: a list, or text with commas; globs are expanded
    dest
        directory for tar's option ``-C``
    template
        renderer for the arguments ``tarfile`` and ``sources``
    """
    tarfile, *names = _rendered(ctx, template, [tarfile, *_listed(sources)])
    words = ["tar", *(["-C", dest] if dest else []), *shlex.split(options), tarfile]
    return _run(ctx, [*words, *_expanded(ctx, names, cwd)], cwd, runas)


def gzip(
    ctx: Context, sourcefile: str, template: str | None = None, runas: str | None = None, options: str | None = None
) -> list[str]:
    """Compress a file with the host's ``gzip``. Return the lines of its output. Raise CommandError if gzip fails."""
    return _run(ctx, ["gzip", *shlex.split(options or ""), *_rendered(ctx, template, [sourcefile])], None, runas)


def gunzip(
    ctx: Context, gzipfile: str, template: str | None = None, runas: str | None = None, options: str | None = None
) -> list[str]:
    """Decompress a file with the host's ``gunzip``. Return the lines of its output. Raise CommandError if gunzip
    fails.
    """
    return _run(ctx, ["gunzip", *shlex.split(options or ""), *_rendered(ctx, template, [gzipfile])], None, runas)


def cmd_zip(
    ctx: Context,
    zip_file: str,
    sources: str | Iterable[object] | None,
    template: str | None = None,
    cwd: str | None = None,
    runas: str | None = None,
) -> list[str]:
    """Pack files and directories with the host's ``zip``. Return the lines of its output. Raise CommandError if zip
    fails.
    """
    zip_file, *names = _rendered(ctx, template, [zip_file, *_listed(sources)])
    return _run(ctx, ["zip", "-r", zip_file, *_expanded(ctx, names, cwd)], cwd, runas)


def cmd_unzip(
    ctx: Context,
    zip_file: str,
    dest: str,
    excludes: str | Iterable[object] | None = None,
    options: str | None = None,
    template: str | None = None,
    runas: str | None = None,
    trim_output: int | str | None = False,
    password: str | None = None,
) -> list[str]:
    """Extract a zip archive with the host's ``unzip``. Return the lines of its output. Raise CommandError if unzip
    fails.

    excludes
        names that are not extracted
    trim_output
        number of lines to return; True: 100
    """
    zip_file, dest = _rendered(ctx, template, [zip_file, dest])
    words = ["unzip", *(["-P", password] if password else []), *shlex.split(options or ""), zip_file, "-d", dest]
    left_out = _listed(excludes)
    words += ["-x", *left_out] if left_out else []
    return _trimmed(_run(ctx, words, None, runas), trim_output)


def zip_(
    ctx: Context,
    zip_file: str,
    sources: str | Iterable[object] | None,
    template: str | None = None,
    cwd: str | None = None,
    runas: str | None = None,
    zip64: bool = False,
) -> list[str]:
    """Pack files and directories of the host into a new zip archive. Return the list of their names. Raise CommandError
    if a source is missing or the archive cannot be written.

    cwd
        directory that relative ``sources`` are below
    zip64
        True: allow an archive larger than 2 GiB
    """
    if runas:
        raise CommandError("not supported: runas of archive.zip; archive.cmd_zip takes it")
    zip_file, *names = _rendered(ctx, template, [zip_file, *_listed(sources)])
    if cwd is None and (relative := [name for name in names if not name.startswith("/")]):
        raise CommandError(f"Relative paths require the 'cwd' parameter: {', '.join(relative)}")
    whole = [name if name.startswith("/") else f"{str(cwd).rstrip('/')}/{name}" for name in _expanded(ctx, names, cwd)]
    if missing := [name for name in whole if not ctx.host.path(name).exists()]:
        raise CallFailed(f"{', '.join(missing)} does not exist", [])
    below = "/" if cwd is None else f"{cwd.rstrip('/')}/"
    members = {name.removeprefix(below).lstrip("/"): ctx.host.path(name) for name in whole}
    return archives.pack(ctx.host.path(zip_file), members, large=zip64)


def _archive(
    ctx: Context, name: str, form: str | None, saltenv: str, source_hash: str | None = None, *, use_etag: bool = False
) -> tuple[str, Path]:
    form = form or archives.guess(name)
    if form not in ("tar", "zip"):
        raise CommandError(
            f"Unable to guess the archive format of {name}, or the format is not supported; supported are tar and zip"
        )
    wanted = FileVerification(str(source_hash or ""), skip_verify=not source_hash, use_etag=use_etag)
    try:
        return form, find(ctx, name, saltenv, name, wanted).path
    except (CommandError, HostError) as error:
        raise CommandError(f"Failed to cache {downloads.shown(name)}: {error}") from error


def _cleaned(name: str, path: Path, *, clean: bool) -> None:
    if clean and name.startswith(downloads.SCHEMES):
        downloads.remove(path)


def _run(ctx: Context, words: list[str], cwd: str | None, runas: str | None) -> list[str]:
    result = ctx.host.run(words, cwd=cwd, runas=runas)
    if result.retcode:
        reason = result.stderr.strip() or result.stdout.strip() or f"{words[0]} failed with {result.retcode}"
        raise CallFailed(reason, [*lines_of(result.stdout), *lines_of(result.stderr)])
    return lines_of(result.stdout)


def _expanded(ctx: Context, names: list[str], cwd: str | None) -> list[str]:
    """Return the file names of an archive call with each glob replaced by the host's files that match it. A name
    without a match stays unchanged.
    """
    found: list[str] = []
    above = f"{str(cwd or '/').rstrip('/')}/"
    for name in names:
        whole = name if name.startswith("/") else above + name
        paths = globs.matching_paths(ctx.host, whole) if globs.has_wildcard(name) else []
        found += [path if name.startswith("/") else path.removeprefix(above) for path in paths] or [name]
    return found


def _rendered(ctx: Context, template: str | None, names: list[str]) -> list[str]:
    """Return the file names of an archive call, each rendered with the renderer ``template``. Without a renderer return
    them unchanged.
    """
    if not template:
        return names
    return [ctx.templates.render(name, template, {}, saltenv=ctx.saltenv, source=name) for name in names]


def _trimmed(names: list[str], trim_output: int | str | None) -> list[str]:
    return names[: _TRIMMED if trim_output is True else int(trim_output)] if trim_output else names


def _listed(given: str | Iterable[object] | None) -> list[str]:
    parts = given.split(",") if isinstance(given, str) else given or ()
    return [str(each).strip() for each in parts]
