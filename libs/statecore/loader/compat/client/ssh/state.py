"""``salt.client.ssh.state`` for users' modules: its functions raise CommandError, because salt-ssh is not part of
Saltern.
"""

from __future__ import annotations

from typing import NoReturn

from statecore.loader.compat.utils.thin import refuse


def lowstate_file_refs(chunks: object, extras: str = "") -> NoReturn:
    """Raise CommandError: salt-ssh is not part of Saltern."""
    refuse("salt.client.ssh.state.lowstate_file_refs")


def prep_trans_tar(*args: object, **kwargs: object) -> NoReturn:
    """Raise CommandError: salt-ssh is not part of Saltern."""
    refuse("salt.client.ssh.state.prep_trans_tar")
