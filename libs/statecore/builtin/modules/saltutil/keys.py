"""The minion's own key: taken back at the master, or made anew."""

from __future__ import annotations

from pathlib import Path

from statecore.model.context import Context
from statecore.model.errors import CommandError

#: The pair, and the master's key that it was trusted with.
_FILES = ("minion.pem", "minion.pub", "minion_master.pub")


def revoke_auth(ctx: Context, preserve_minion_cache: bool = False) -> bool:
    """Asks the master to delete this minion's key. True once that is done: the minion is a stranger then, its answer may be lost.
    ``preserve_minion_cache``: what the master keeps of the minion (grains, mine) stays.

    Raises CommandError where the master does not do it (``allow_minion_key_revoke``), or cannot be asked.

    CLI Example:

        salt '*' saltutil.revoke_auth
    """
    if ctx.opts.get("file_client") == "local":
        raise CommandError("there is no master that knows a key of this minion")
    answer = ctx.minion.ask_master("revoke_auth", {"preserve_minion_cache": preserve_minion_cache})
    # What it does not do, a master sends back.
    if answer is not True:
        raise CommandError("the master does not let minions delete their keys (allow_minion_key_revoke)")
    return True


def regen_keys(ctx: Context) -> bool:
    """Forgets the minion's keys and the master's. The minion makes new ones when it signs in again, and has to be accepted anew.

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
