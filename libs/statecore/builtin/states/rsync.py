"""Salt's ``rsync`` state: copies of directories by rsync. Salt had it up to 3007.

/opt/user-backups:
  rsync.synchronized:
    - source: /home
    - force: True
"""

from __future__ import annotations

from collections.abc import Sequence

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step


def available(ctx: Context) -> str | None:
    """Return None if the host has rsync; else return the reason as text."""
    return None if ctx.host.which("rsync") else "the host has no rsync"


def synchronized(
    ctx: Context,
    name: str,
    source: str,
    delete: bool = False,
    force: bool = False,
    update: bool = False,
    passwordfile: str | None = None,
    exclude: str | Sequence[str] | None = None,
    excludefrom: str | None = None,
    prepare: bool = False,
    dryrun: bool = False,
    additional_opts: Sequence[str] | None = None,
) -> Plan:
    """Copy a directory to ``name`` with rsync. The state fails if rsync fails, or if ``name`` does not exist and
    neither ``prepare`` nor ``force`` is set.

    source
        source as rsync has it, or a directory of the state tree (salt://)
    prepare
        True: make the directory ``name`` if it does not exist
    delete, force, update, passwordfile, exclude, excludefrom, dryrun, additional_opts
        as in ``rsync.rsync``. With ``force``, ``name`` need not exist.
    """
    path = ctx.host.path(name) if name.startswith("/") else None
    missing = path is not None and not path.exists()
    if missing and not force and not prepare:
        return Plan.failed(f"Destination directory {name} was not found.")

    def run(*, dry: bool) -> dict[str, object]:
        result: dict[str, object] = ctx.call(
            "rsync.rsync",
            source,
            name,
            delete=delete,
            force=force,
            update=update,
            passwordfile=passwordfile,
            exclude=exclude,
            excludefrom=excludefrom,
            dryrun=dry,
            additional_opts=additional_opts,
        )
        return result

    would = ""
    changes: dict[str, str] = {}
    if not missing or dryrun:
        # rsync itself says what a run would do.
        tried = run(dry=True)
        if tried["retcode"]:
            return Plan.failed(str(tried["stderr"]))
        would, changes = _summary(str(tried["stdout"])), _copied(str(tried["stdout"]))
        if dryrun or not changes:
            return Plan.unchanged(would)

    def work() -> Outcome:
        if missing and prepare and path is not None:
            managed_file.make_directories(ctx.host, path, Attributes(), ctx.host.root)
        done = run(dry=False)
        if done["retcode"]:
            return Outcome(str(done["stderr"]), ok=False)
        return Outcome(_summary(str(done["stdout"])), _copied(str(done["stdout"])))

    would = would or f"{source} would be copied to {name}, which does not exist"
    return Plan.change(would, [Step(f"copy {source} to {name}", work)], changes)


def _summary(text: str) -> str:
    """Return the summary at the end of rsync's output (numbers of bytes) as text: lines that begin with "- "."""
    lines = text.rstrip("\n").split("\n\n")[-1].replace("  ", "\n").split("\n")
    return "- " + "\n- ".join(line for line in lines if line)


def _copied(text: str) -> dict[str, str]:
    """Return {"copied": paths, "deleted": paths} from rsync's output; {} if it copied and deleted nothing. The paths
    are one text, one path a line, "N/A" without any.

    A path that ends with a slash is a directory whose attributes were set.
    """
    lines = [line for line in text.split("\n\n")[0].split("\n")[1:] if line]
    gone = sorted(line.removeprefix("deleting ") for line in lines if line.startswith("deleting "))
    new = sorted(line for line in lines if not line.startswith("deleting "))
    return {"copied": "\n".join(new) or "N/A", "deleted": "\n".join(gone) or "N/A"} if gone or new else {}
