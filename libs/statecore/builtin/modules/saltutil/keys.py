"""Functions of ``saltutil`` for the minion's own key: delete it at the master, or replace it."""

from __future__ import annotations

from pathlib import Path

from statecore.model.context import Context
from statecore.model.errors import CommandError

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
        raise CommandError("there is no master that knows a key of this minion")
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
