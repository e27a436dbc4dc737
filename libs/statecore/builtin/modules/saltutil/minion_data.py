"""Functions of ``saltutil`` that refresh or delete data of this minion: pillar, grains, modules, caches and keys."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from statecore.model.context import Context
from statecore.model.errors import CommandError

log = logging.getLogger(__name__)

#: Directories below ``cachedir``: files that the minion can fetch again from the master, and digests of extracted archives.
_CACHES = ("files", "localfiles", "extrn_files", "accumulator", "archive_hash")


def refresh_pillar(ctx: Context, wait: bool = False, timeout: int = 30, clean_cache: bool = True) -> bool:
    """Compile the minion's pillar again; the next job gets the new pillar. Return whether this succeeded.

    CLI Example:

        salt '*' saltutil.refresh_pillar
    """
    return ctx.minion.refresh_pillar()


def refresh_grains(ctx: Context, refresh_pillar: bool = True, clean_pillar_cache: bool = False) -> bool:
    """Gather the minion's grains again, and by default compile the pillar from them; the next job gets the new grains.
    Return whether this succeeded.
    """
    done = ctx.minion.refresh_grains()
    if refresh_pillar:
        ctx.minion.refresh_pillar()
    return done


def refresh_modules(ctx: Context, **kwargs: object) -> bool:
    """Load the minion's modules again from disk; the next job gets the new modules. Return whether this succeeded."""
    return ctx.minion.refresh_modules()


def refresh_matchers(ctx: Context) -> bool:
    """Load the minion's matcher modules again from disk; the next job gets the new ones. Return whether this
    succeeded.
    """
    return ctx.minion.refresh_modules()


def refresh_beacons(ctx: Context, **kwargs: object) -> bool:
    """Restart the minion's beacons, with the beacon modules that are on disk now. Return whether this succeeded."""
    return ctx.minion.refresh_modules()


def clear_cache(ctx: Context) -> bool:
    """Delete the minion's cached files that can be fetched again from the master. Return True; False if one cannot be
    deleted; the log has the reason.
    """
    cache = str(ctx.opts.get("cachedir") or "")
    left: list[str] = []

    def kept(_: object, path: str, error: tuple[object, BaseException, object]) -> None:
        if not isinstance(error[1], FileNotFoundError):
            left.append(path)
            log.error("%s cannot be removed: %s", path, error[1])

    for name in _CACHES if cache else ():
        shutil.rmtree(Path(cache) / name, onerror=kept)
    return not left


#: The minion's key pair, and the master's public key.
_FILES = ("minion.pem", "minion.pub", "minion_master.pub")


def revoke_auth(ctx: Context, preserve_minion_cache: bool = False) -> bool:
    """Delete this minion's key at the master. Return whether the master deleted it.

    The master then no longer accepts the minion, so that this return may be lost. With ``preserve_minion_cache`` the
    master keeps the minion's grains and mine. Raise CommandError if the master refuses (``allow_minion_key_revoke``) or
    cannot be reached.

    CLI Example:

        salt '*' saltutil.revoke_auth
    """
    if ctx.opts.get("file_client") == "local":
        raise CommandError("this minion has no master (file_client: local)")
    answer = ctx.minion.ask_master("revoke_auth", {"preserve_minion_cache": preserve_minion_cache})
    # A master that refuses returns the request itself.
    if answer is not True:
        raise CommandError("the master does not let minions delete their keys (allow_minion_key_revoke)")
    return True


def regen_keys(ctx: Context) -> bool:
    """Delete the minion's key pair and its copy of the master's key. Return True.

    The minion generates a new pair at its next sign-in, and the master must accept it again.

    CLI Example:

        salt '*' saltutil.regen_keys
    """
    directory = Path(str(ctx.opts["pki_dir"]))
    for name in _FILES:
        try:
            (directory / name).unlink(missing_ok=True)
        except OSError as error:
            raise CommandError(f"{directory / name} cannot be removed: {error.strerror}") from error
    return True
