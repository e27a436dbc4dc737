"""Runner ``sdb``: values of stores that profiles of the master's configuration name, by URIs ``sdb://PROFILE/KEY``.

A value that is read is the runner's result, so it is in the job cache and in an event, as in Salt.
"""

from __future__ import annotations

from saltern.mworker.runners.runner import RunnerTools
from saltern.mworker.runners.salt import cmd
from statecore.system.sdb import HASH_CHARACTERS


def get(tools: RunnerTools, uri: str) -> object:
    """Return the value at an ``sdb://`` URI. A text that is no such URI, or whose profile is unknown, is returned
    unchanged.

    CLI Example:

        salt-run sdb.get sdb://secrets/db/password
    """
    return cmd(tools, "sdb.get", uri)


def set_(tools: RunnerTools, uri: str, value: object) -> object:
    """Store a value at an ``sdb://`` URI. Return the result of the profile's driver, False if the URI names no profile.

    CLI Example:

        salt-run sdb.set sdb://secrets/token abc
    """
    return cmd(tools, "sdb.set", uri, value)


def delete(tools: RunnerTools, uri: str) -> object:
    """Delete the value at an ``sdb://`` URI. Return the result of the profile's driver, False if the URI names no profile.

    CLI Example:

        salt-run sdb.delete sdb://secrets/token
    """
    return cmd(tools, "sdb.delete", uri)


def get_or_set_hash(tools: RunnerTools, uri: str, length: int = 8, chars: str = HASH_CHARACTERS) -> object:
    """Return the value at an ``sdb://`` URI. If there is none, store a random text there and return it.

    length
        number of characters of the random text
    chars
        characters to choose from

    CLI Example:

        salt-run sdb.get_or_set_hash sdb://secrets/token 50
    """
    return cmd(tools, "sdb.get_or_set_hash", uri, length, chars)
