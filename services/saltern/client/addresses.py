"""Where a client finds its master, and as whom it acts: port 4507 with an operator's key, or the API with a user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Login:
    """A user of ``external_auth``: name, password and backend, or a token. Empty: nobody signs in."""

    username: str = ""
    password: str = field(default="", repr=False)
    eauth: str = ""
    token: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.token or self.eauth)


@dataclass(frozen=True, slots=True)
class Control:
    """The master's port 4507, which the options of the file ``master`` name, with the key of the operators' commands.

    ``config_dir``: directory of the file ``master`` (default: SALT_CONFIG_DIR, else /etc/salt). ``host``, ``port`` and
    ``key_dir`` replace ``reqserver_host``, ``control_port`` and ``key_dir``. With ``login`` the rights are the user's.
    ``user``: name that is recorded with jobs. ``patience``: seconds to wait for an answer of the master.
    """

    config_dir: str = ""
    host: str = ""
    port: int = 0
    key_dir: str = ""
    user: str = ""
    login: Login = field(default_factory=Login)
    patience: float = 10.0


@dataclass(frozen=True, slots=True)
class Api:
    """Salt's REST API (the role ``api``, or a stock salt-api) at ``url``, with a user of ``external_auth``.

    ``verify``: check the server's certificate; ``ca_file``: file with the certificates that sign it (default: the
    system's). ``patience``: seconds to wait for an answer.
    """

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    eauth: str = ""
    token: str = field(default="", repr=False)
    verify: bool = True
    ca_file: str = ""
    patience: float = 10.0

    @property
    def login(self) -> Login:
        """Return the user who signs in."""
        return Login(self.username, self.password, self.eauth, self.token)


Address: TypeAlias = Control | Api


def address_of(given: str | Mapping[str, object] | None, address: Address | None) -> Address:
    """Return the address of a client from its arguments: ``address``, or what Salt's clients get.

    ``given``: path of the master's configuration file or of its directory, or the options that
    ``saltern.config.master_config`` returned.
    """
    if address is not None:
        return address
    if isinstance(given, Mapping):
        given = str(given.get("conf_file") or "")
    if not given:
        return Control()
    path = Path(given)
    return Control(config_dir=str(path if path.is_dir() else path.parent))


#: Keys of a low chunk, and keyword arguments of ``LocalClient``, that say for whom a call acts.
_CREDENTIALS = ("username", "password", "eauth", "token")


def login_of(low: dict[str, object]) -> Login:
    """Remove the credentials from a low chunk, or from the keyword arguments of a method, and return them."""
    found = {name: str(value) for name in _CREDENTIALS if (value := low.pop(name, None)) not in (None, "")}
    return Login(**found)
