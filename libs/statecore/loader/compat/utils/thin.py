"""``salt.utils.thin`` for users' modules: its function raises CommandError, because there is no archive of Salt here."""

from __future__ import annotations

from typing import NoReturn

from statecore.model.errors import CommandError


def gen_thin(*args: object, **kwargs: object) -> NoReturn:
    """Raise CommandError: Saltern has no archive of itself to copy to other machines."""
    refuse("salt.utils.thin.gen_thin")


def refuse(name: str) -> NoReturn:
    """Raise CommandError with the sentence that the function ``name`` of salt-ssh does not exist here."""
    raise CommandError(
        f"{name} does not exist: Saltern cannot copy itself into a container or to another machine. Run commands there, "
        "or install a minion"
    )
