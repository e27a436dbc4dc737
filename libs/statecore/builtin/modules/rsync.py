"""Copies of files and directories by rsync: Salt's ``rsync`` execution module.

Arguments that are not given are read from the options ``rsync.src``, ``rsync.dst``, ``rsync.delete``, ``rsync.force``,
``rsync.update``, ``rsync.passwordfile``, ``rsync.exclude``, ``rsync.excludefrom``, ``rsync.dryrun`` and ``rsync.rsh``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from statecore.host.content import managed_file, private_files
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.program_runs import RunResult, run_all

_SCHEME = "salt://"


def available(ctx: Context) -> str | None:
    """Return None if the host has rsync; else return the reason as text."""
    return None if ctx.host.which("rsync") else "the host has no rsync"


def rsync(
    ctx: Context,
    src: str,
    dst: str,
    delete: bool = False,
    force: bool = False,
    update: bool = False,
    passwordfile: str | None = None,
    exclude: str | Sequence[str] | None = None,
    excludefrom: str | None = None,
    dryrun: bool = False,
    rsh: str | None = None,
    additional_opts: Sequence[str] | None = None,
    saltenv: str | None = None,
) -> RunResult:
    """Copy files with ``rsync -avz``. Return a map with pid, retcode, stdout and stderr of rsync.

    src, dst
        source and destination as rsync has them; the source may be a file or directory of the state tree (salt://)
    delete
        True: delete what the source does not have
    force
        True: also delete directories that are not empty
    update
        True: skip files that are newer in the destination
    passwordfile
        file with the password for an rsync daemon
    exclude
        a pattern of files to leave out, or a list
    excludefrom
        file with such patterns; ``exclude`` then has no effect
    dryrun
        True: only show what would be copied
    rsh
        the remote shell, such as ``ssh -p 2222``
    additional_opts
        a list of other options

    CLI Example:

        salt '*' rsync.rsync /path/to/src /path/to/dest delete=True update=True passwordfile=/etc/pass.crt exclude=exclude/dir
        salt '*' rsync.rsync salt://path /path/to/dest additional_opts='["--partial", "--bwlimit=5000"]'
    """
    given = {"src": src, "dst": dst, "delete": delete, "force": force, "update": update, "passwordfile": passwordfile}
    given |= {"exclude": exclude, "excludefrom": excludefrom, "dryrun": dryrun, "rsh": rsh}
    whole = {name: value or ctx.call("config.option", f"rsync.{name}") for name, value in given.items()}
    source, destination = str(whole.pop("src") or ""), str(whole.pop("dst") or "")
    if not source or not destination:
        raise InvocationError("src and dst cannot be empty")
    words = ["rsync", *options(**whole), *(str(each) for each in additional_opts or ())]
    if not source.startswith(_SCHEME):
        return run_all(ctx.host, [*words, source, destination])
    place = f"/tmp/.saltern-rsync-{os.urandom(8).hex()}"
    directory = ctx.host.path(place, follow=False)
    directory.mkdir(mode=private_files.DIRECTORY_MODE)
    try:
        return run_all(ctx.host, [*words, _fetched(ctx, source, place, saltenv), destination])
    finally:
        managed_file.remove(directory)


def version(ctx: Context) -> str:
    """Return the version of rsync as text. Raise CommandError if rsync does not show it.

    CLI Example:

        salt '*' rsync.version
    """
    words = ctx.host.run(["rsync", "--version"]).stdout.split("\n")[0].split()
    if len(words) < 3:
        raise CommandError("Unable to determine rsync version")
    return words[2]


def config(ctx: Context, conf_path: str = "/etc/rsyncd.conf") -> str:
    """Return the text of the rsync daemon's configuration file. Raise CommandError if it does not exist.

    CLI Example:

        salt '*' rsync.config
    """
    path = ctx.host.path(conf_path)
    if path.is_dir():
        raise CommandError(f"Unable to read {conf_path}, path is a directory")
    data = managed_file.read(path, conf_path)
    if data is None:
        raise CommandError(f"{conf_path} does not exist")
    return data.decode("utf-8", "replace")


def options(
    delete: object,
    force: object,
    update: object,
    passwordfile: Any,
    exclude: Any,
    excludefrom: Any,
    dryrun: object,
    rsh: Any,
) -> list[str]:
    """Return rsync's command-line options for the arguments of ``rsync.rsync``, as a list of words."""
    words = ["-avz"]
    words += [word for word, given in (("--delete", delete), ("--force", force), ("--update", update)) if given]
    words += [f"--rsh={rsh}"] if rsh else []
    words += ["--password-file", str(passwordfile)] if passwordfile else []
    words += ["--exclude-from", str(excludefrom)] if excludefrom else []
    if exclude and not excludefrom:
        patterns = exclude if isinstance(exclude, list) else [exclude]
        words += [word for pattern in patterns for word in ("--exclude", str(pattern))]
    return [*words, *(["--dry-run"] if dryrun else [])]


def _fetched(ctx: Context, source: str, place: str, saltenv: str | None) -> str:
    """Copy a file or directory of the state tree into the directory ``place`` of the host. Return the path for
    rsync's argument SRC. Raise CommandError if the tree does not have it.
    """
    environment = saltenv or ctx.saltenv
    inner = source.removeprefix(_SCHEME).rstrip("/")
    if inner in ctx.call("cp.list_master_dirs", saltenv=environment):
        if ctx.call("cp.get_dir", f"{_SCHEME}{inner}/", place, environment):
            return f"{place}/"
    elif ctx.call("cp.get_file", source, f"{place}/{inner.rpartition('/')[2]}", environment):
        return f"{place}/{inner.rpartition('/')[2]}"
    raise CommandError(f"{source} does not exist")
