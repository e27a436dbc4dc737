"""A lab with two replicas of the API, and its users: for tests of the API, of pages in a browser and of salt-api's answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.roles.lab import Lab

#: Users of the text file that `api_options` writes, with their passwords.
PASSWORDS = {"ann": "pw-ann", "bob": "pw-bob", "unlisted": "pw-unlisted"}

#: Rows of external_auth that allow everything.
ALL = [".*", "@runner", "@wheel", "@jobs"]

#: All clients that Salt's API and ours have.
CLIENTS = ["local", "local_async", "local_batch", "local_subset", "runner", "runner_async", "wheel", "wheel_async"]


def api_options(home: Path, **rows: list[Any]) -> dict[str, Any]:
    """Write the file of the users below ``home``. Return the master's options for it: ``external_auth`` with these rows (user
    -> list of rules), and all clients.
    """
    (home / "users").write_text("".join(f"{name}:{word}\n" for name, word in PASSWORDS.items()))
    users = {"^filename": str(home / "users"), "^filetype": "text"}
    return {"external_auth": {"file": {**users, **rows}}, "netapi_enable_clients": CLIENTS}


class ApiLab(Lab):
    """A lab with two replicas of the API, each with a configuration directory of its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.secrets |= set(PASSWORDS.values())

    def _replicas(self) -> list[str]:
        return [*super()._replicas(), "api", "api2", "http1", "http2"]

    @property
    def roles(self) -> tuple[str, ...]:
        """Names of the master's processes, without the names of further ports."""
        return tuple(name for name in super().roles if not name.startswith("http"))

    def environment_of(self, name: str) -> dict[str, str]:
        """Return the environment of a process; that of a replica of the API has its port."""
        more = {}
        if name.startswith("api"):
            port = self.port["http2" if name == "api2" else "http1"]
            more = {"SALTERN_REST_CHERRYPY": json.dumps({**self.options["rest_cherrypy"], "port": port})}
        return self.environment | more

    def url(self, number: int = 1) -> str:
        """Return the address of a replica, 1 or 2, such as ``http://127.0.0.1:25600``."""
        return f"http://127.0.0.1:{self.port[f'http{number}']}"
