"""Files of the state tree, copied to the host: Salt's ``cp`` execution module.

Paths are ``salt://...``, optionally with ``?saltenv=NAME``. Destinations are paths of the managed host. A fetched file
is in the minion's cache, or in the tree itself if the tree is local: callers may read the returned path, but must not
write to it.
"""

from __future__ import annotations

import base64
import fnmatch
import posixpath
import re
import stat
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from statecore.host.content import digests, managed_file, private_files
from statecore.host.content.managed_file import Attributes
from statecore.model import tree_url
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError
from statecore.model.inflate import inflated
from statecore.sources import downloads, file_source, pushed_files
from statecore.sources.file_source import FileVerification

#: Directory of the cache with copies of the host's own files.
_LOCAL = "localfiles"

#: Largest chunk of a file that the command ``salt-cp`` sends, bytes after decompression.
_MOST_CHUNK = 128 << 20

_FOREIGN = ("ftp://", "s3://", "swift://")


def get_file(
    ctx: Context,
    path: str,
    dest: str,
    saltenv: str | None = None,
    makedirs: bool = False,
    template: str | None = None,
    gzip: object = None,
    **kwargs: object,
) -> str:
    """Copy a file of the state tree to the host. Return the path written, "" if the tree does not have the file.

    makedirs
        True: create missing directories
    template
        renderer for the two path arguments
    gzip
        accepted, without effect

    CLI Example:

        salt '*' cp.get_file salt://vimrc /root/.vimrc makedirs=True
    """
    path, dest = _rendered_names(ctx, path, dest, saltenv, template)
    _need_scheme(path)
    found = _fetched(ctx, path, saltenv)
    return _put(ctx, found, path, dest, makedirs) if found else ""


def get_template(
    ctx: Context,
    path: str,
    dest: str,
    template: str = "jinja",
    saltenv: str | None = None,
    makedirs: bool = False,
    **kwargs: object,
) -> str:
    """Render a template of the state tree and write the result to the host. Return the path written, "" if the tree
    does not have the file.

    The keyword arguments are variables of the template.
    """
    found = _fetched(ctx, path, saltenv)
    if found is None:
        return ""
    text = ctx.templates.render(
        found.read_text("utf-8"), template, kwargs, saltenv=_environment(ctx, path, saltenv)[1], source=path
    )
    return _put(ctx, text.encode(), path, dest, makedirs)


def get_dir(
    ctx: Context,
    path: str,
    dest: str,
    saltenv: str | None = None,
    template: str | None = None,
    gzip: object = None,
    **kwargs: object,
) -> list[str]:
    """Copy a directory of the state tree to the host. Return the list of paths written.

    With a slash at the end of ``path``, only the directory's content is copied into ``dest``; otherwise the directory
    itself.
    """
    path, dest = _rendered_names(ctx, path, dest, saltenv, template)
    _need_scheme(path)
    relative, saltenv = _environment(ctx, path, saltenv)
    top = relative.rstrip("/")
    inside = f"{top}/" if top else ""
    drop = inside if relative.endswith("/") or not top else top.rpartition("/")[0] + "/" * ("/" in top)
    done = []
    for each in ctx.files.paths(saltenv, inside):
        found = ctx.files.fetch(each, saltenv)
        if found is not None:
            done.append(_put(ctx, found, each, f"{dest.rstrip('/')}/{each.removeprefix(drop)}", True))
    return done


def get_url(
    ctx: Context,
    path: str,
    dest: str | None = "",
    saltenv: str | None = None,
    makedirs: bool = False,
    source_hash: str | None = None,
) -> object:
    """Copy a file of the state tree, of the host or of an http(s) server to ``dest``. Return the path written.

    dest
        "": only fetch the file and return the path of the copy; None: return the file's text
    source_hash
        digest that the file of a server is verified against

    Return False if the tree or the host does not have the file. Raise CommandError with a server's error.
    """
    found = _fetched(ctx, path, saltenv, FileVerification(source_hash or "", skip_verify=not source_hash))
    if found is None:
        return False
    if dest is None:
        return found.read_text("utf-8", "replace")
    return _put(ctx, found, path, dest, makedirs) if dest else str(found)


def get_file_str(ctx: Context, path: str, saltenv: str | None = None) -> object:
    """Return the text of a file of the state tree, False if the tree does not have the file.

    CLI Example:

        salt '*' cp.get_file_str salt://motd
    """
    found = _fetched(ctx, path, saltenv)
    return found.read_text("utf-8", "replace") if found else False


def cache_file(
    ctx: Context,
    path: str,
    saltenv: str | None = None,
    source_hash: str | None = None,
    verify_ssl: bool = True,
    use_etag: bool = False,
) -> str | bool:
    """Copy a file of the state tree or of an http(s) server into the minion's cache. Return the path of the copy, False
    if the tree does not have the file.

    source_hash
        digest of a server's file: a copy with this digest is not fetched again
    use_etag
        True: ask the server whether the copy is still current before it is fetched again
    verify_ssl
        False: do not verify the server's certificate
    """
    wanted = FileVerification(source_hash or "", skip_verify=not source_hash, verify_ssl=verify_ssl, use_etag=use_etag)
    found = _fetched(ctx, path, saltenv, wanted)
    return str(found) if found else False


def cache_files(ctx: Context, paths: str | Sequence[str], saltenv: str | None = None) -> list[str | bool]:
    """Copy several files (a list, or text with commas) into the minion's cache. Return a list with the result of
    ``cp.cache_file`` for each.
    """
    names = paths.split(",") if isinstance(paths, str) else paths
    return [cache_file(ctx, each.strip(), saltenv) for each in names]


def cache_dir(
    ctx: Context,
    path: str,
    saltenv: str | None = None,
    include_empty: bool = False,
    include_pat: str | None = None,
    exclude_pat: str | None = None,
) -> list[str]:
    """Copy all files below a directory of the state tree into the minion's cache. Return the paths of the copies.

    include_pat, exclude_pat
        patterns for paths to include or exclude: a regular expression after ``E@``, else a glob
    """
    _need_scheme(path)
    relative, saltenv = _environment(ctx, path, saltenv)
    inside = relative.rstrip("/") + "/" if relative.rstrip("/") else ""
    names = [each for each in ctx.files.paths(saltenv, inside) if _wanted(each, include_pat, exclude_pat)]
    return [str(found) for found in (ctx.files.fetch(each, saltenv) for each in names) if found]


def cache_master(ctx: Context, saltenv: str | None = None) -> list[str]:
    """Copy all files of a saltenv into the minion's cache. Return the paths of the copies."""
    return cache_dir(ctx, tree_url.SCHEME, saltenv)


def is_cached(ctx: Context, path: str, saltenv: str | None = None) -> str:
    """Return the path of a file's copy in the minion's cache, "" if there is none.

    A file of the state tree is fetched if it is not in the cache. A file of an http(s) server is not.
    """
    if path.startswith(downloads.SCHEMES):
        real_path = downloads.cached_at(path, file_source.cache_of(ctx), saltenv or ctx.saltenv)
        return str(real_path) if real_path.is_file() else ""
    found = _fetched(ctx, path, saltenv)
    return str(found) if found else ""


def cache_dest(ctx: Context, url: str, saltenv: str | None = None) -> str:
    """Return the path at which the minion's cache keeps, or would keep, the file of a URL. A path of the host is returned
    unchanged.

    CLI Example:

        salt '*' cp.cache_dest salt://motd
    """
    if url.startswith(downloads.SCHEMES):
        return str(downloads.cached_at(url, file_source.cache_of(ctx), saltenv or ctx.saltenv))
    if not url.startswith(tree_url.SCHEME):
        return url
    relative, environment = _environment(ctx, url, saltenv)
    return str(file_source.cache_of(ctx) / "files" / environment / relative.lstrip("|/"))


def cache_local_file(ctx: Context, path: str) -> str:
    """Copy a file of the host into the minion's cache. Return the path of the copy, "" if there is no such file.

    CLI Example:

        salt '*' cp.cache_local_file /etc/hosts
    """
    real_path = ctx.host.path(path)
    if not real_path.is_file():
        return ""
    copy = file_source.cache_of(ctx) / _LOCAL / str(path).lstrip("/")
    if ".." in copy.parts:
        raise CommandError(f"{path}: a path with .. has no place in the cache")
    private_files.write(copy, real_path.read_bytes())
    return str(copy)


def list_minion(ctx: Context, saltenv: str | None = None) -> list[str]:
    """Return the relative paths of the files of the state tree and of the host that the minion's cache has.

    CLI Example:

        salt '*' cp.list_minion
    """
    cache = file_source.cache_of(ctx)
    tops = (cache / "files" / (saltenv or ctx.saltenv), cache / _LOCAL)
    return sorted({str(each.relative_to(top)) for top in tops for each in top.rglob("*") if each.is_file()})


def hash_file(ctx: Context, path: str, saltenv: str | None = None) -> dict[str, str]:
    """Return a map with ``hsum`` (hexadecimal digest) and ``hash_type`` of a file of the state tree or the host. Return
    {} if the file does not exist.
    """
    relative, environment = _environment(ctx, path, saltenv)
    if path.startswith(tree_url.SCHEME):
        known = ctx.files.hash(relative, environment)
        return {"hsum": known.hsum, "hash_type": known.hash_type} if known else {}
    found = _fetched(ctx, path, saltenv)
    kind = str(ctx.opts.get("hash_type") or "sha256")
    return {"hsum": digests.digest_of(found, kind), "hash_type": kind} if found else {}


def stat_file(ctx: Context, path: str, saltenv: str | None = None, octal: bool = True) -> object:
    """Return the mode of a file of the state tree as octal text, or with ``octal=False`` st_mode as a number. Return
    None if the file does not exist.
    """
    found = _fetched(ctx, path, saltenv)
    if found is None:
        return None
    mode = found.stat().st_mode
    return f"{stat.S_IMODE(mode):04o}" if octal else mode


def list_master(ctx: Context, saltenv: str | None = None, prefix: str = "") -> list[str]:
    """Return the paths of all files of a saltenv of the state tree that start with ``prefix``."""
    return ctx.files.paths(saltenv or ctx.saltenv, prefix)


def list_master_dirs(ctx: Context, saltenv: str | None = None, prefix: str = "") -> list[str]:
    """Return the paths of all directories of a saltenv of the state tree that start with ``prefix``."""
    return ctx.files.dirs(saltenv or ctx.saltenv, prefix)


def list_master_symlinks(ctx: Context, saltenv: str | None = None, prefix: str = "") -> dict[str, str]:
    """Return a map of path to target of all symbolic links of a saltenv of the state tree."""
    return ctx.files.symlinks(saltenv or ctx.saltenv, prefix)


def list_states(ctx: Context, saltenv: str | None = None) -> list[str]:
    """Return the names of all SLS files of a saltenv, such as ``web.nginx``."""
    names = [each.removesuffix(".sls") for each in ctx.files.paths(saltenv or ctx.saltenv) if each.endswith(".sls")]
    return sorted(each.removesuffix("/init").replace("/", ".") for each in names)


def envs(ctx: Context) -> list[str]:
    """Return the names of all saltenvs of the state tree."""
    return ctx.files.envs()


def push(
    ctx: Context, path: str, keep_symlinks: bool = False, upload_path: str | None = None, remove_source: bool = False
) -> bool:
    """Send a file of the host to the master. Return True; False if the master refuses the file or if it does not exist.

    The master's option ``file_recv`` has to be set. The master stores the file below ``minions/<id>/files`` of its
    ``cachedir``.

    keep_symlinks
        False: use the path with all links resolved
    upload_path
        path of the file on the master
    remove_source
        True: delete the file on the host after it was sent

    CLI Example:

        salt '*' cp.push /etc/fstab
        salt '*' cp.push /etc/fstab upload_path='/new/path/fstab' remove_source=True
    """
    return pushed_files.send(ctx, path, upload_path, keep_symlinks=keep_symlinks, remove=remove_source)


def push_dir(ctx: Context, path: str, glob: str | None = None, upload_path: str | None = None) -> bool:
    """Send all files below a directory of the host to the master, as ``cp.push`` does. Return True; False if one of
    them could not be sent.

    glob
        only files whose names match

    CLI Example:

        salt '*' cp.push_dir /etc/modprobe.d/ glob='*.conf'
    """
    return pushed_files.send_directory(ctx, path, glob, upload_path)


def _environment(ctx: Context, path: str, saltenv: str | None) -> tuple[str, str]:
    """Return a pair for a ``salt://`` path: (path in the state tree, saltenv). The saltenv comes from ``?saltenv=``,
    else from the argument.
    """
    name, named = tree_url.split(path)
    return name, named or saltenv or ctx.saltenv


def _fetched(ctx: Context, path: str, saltenv: str | None, wanted: FileVerification | None = None) -> Path | None:
    if path.startswith(_FOREIGN):
        raise CommandError(f"not supported: the source {path}; use salt://, http(s)://, file:// or a path of the host")
    if path.startswith(downloads.SCHEMES):
        unverified = FileVerification(skip_verify=True)
        return file_source.fetch_url(ctx, path, path, saltenv or ctx.saltenv, wanted or unverified)
    if path.startswith(tree_url.SCHEME):
        relative, environment = _environment(ctx, path, saltenv)
        return ctx.files.fetch(relative, environment)
    name = path.removeprefix("file://")
    if not name.startswith("/"):
        return None
    found = ctx.host.path(name)
    return found if found.is_file() else None


def recv(ctx: Context, files: Mapping[str, str | bytes], dest: str) -> dict[str, bool] | str:
    """Write the small files that the master's command ``salt-cp`` sends. Return a map of path to whether the file was
    written, or the text "Destination unavailable".
    """
    taken: dict[str, bool] = {}
    for path, data in files.items():
        name = posixpath.basename(path)
        real_path = ctx.host.path(dest)
        if real_path.is_dir():
            final = posixpath.join(dest, name)
        elif posixpath.basename(dest) == name or ctx.host.path(posixpath.dirname(dest) or "/").is_dir():
            final = dest
        else:
            return "Destination unavailable"
        try:
            managed_file.replace(
                ctx.host, ctx.host.path(final), data.encode() if isinstance(data, str) else data, Attributes()
            )
            taken[final] = True
        except OSError:
            taken[final] = False
    return taken


def recv_chunked(
    ctx: Context,
    dest: str,
    chunk: str | bytes | None,
    append: bool = False,
    compressed: bool = True,
    mode: int | None = None,
) -> bool | str:
    """Write one chunk of a file that the master's command ``salt-cp`` sends. Return True, or the error as text.

    Missing directories are created.

    chunk
        base64 of the bytes; None creates an empty directory
    append
        True: append to the file; False: this is the first chunk
    compressed
        True: the bytes are gzip data
    mode
        mode of the file; set with the first chunk
    """
    try:
        real_path = ctx.host.path(dest)
        if chunk is None:
            return _empty_directory(ctx, real_path)
        data = base64.b64decode(chunk, validate=True)
        data = inflated(data, _MOST_CHUNK) if compressed else data
        managed_file.make_directories(ctx.host, real_path.parent, Attributes(), ctx.host.root)
        with real_path.open("ab" if append else "wb") as file:
            file.write(data)
        if mode is not None and not append:
            real_path.chmod(mode)
    except (OSError, ValueError, EOFError, zlib.error, HostError) as error:
        ctx.scratch["retcode"] = 1
        return str(error)
    return True


def _empty_directory(ctx: Context, real_path: Path) -> bool | str:
    if real_path.is_file():
        return "Path exists and is a file"
    managed_file.make_directories(ctx.host, real_path, Attributes(), ctx.host.root)
    return True


def _put(ctx: Context, data: bytes | Path, path: str, dest: str, makedirs: bool) -> str:
    """Write data to the path ``dest`` of the host. If ``dest`` is a directory, write a file of the name of ``path``
    into it. Return the path written, "" if its directory is missing.
    """
    if dest.endswith("/") or ctx.host.path(dest).is_dir():
        dest = f"{dest.rstrip('/')}/{path.partition('?')[0].rpartition('/')[2]}"
    real_path = ctx.host.path(dest)
    if not real_path.parent.is_dir():
        if not makedirs:
            return ""
        managed_file.make_directories(ctx.host, real_path.parent, Attributes(), ctx.host.root)
    managed_file.replace(ctx.host, real_path, data, Attributes())
    return dest


def _need_scheme(path: str) -> None:
    if not path.startswith(tree_url.SCHEME):
        raise CommandError(f"Unsupported path: {path}")


def _rendered_names(ctx: Context, path: str, dest: str, saltenv: str | None, template: str | None) -> tuple[str, str]:
    if not template:
        return path, dest
    render = ctx.templates.render
    environment = saltenv or ctx.saltenv
    return render(path, template, {}, saltenv=environment), render(dest, template, {}, saltenv=environment)


def _wanted(name: str, include: str | None, exclude: str | None) -> bool:
    return (not include or _fits(name, include)) and not (exclude and _fits(name, exclude))


def _fits(name: str, pattern: str) -> bool:
    if pattern.startswith("E@"):
        return re.search(pattern[2:], name) is not None
    return fnmatch.fnmatch(name, pattern)
