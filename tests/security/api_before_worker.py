"""The API before a real worker, without sockets: each request of the API to the master is handed to the worker."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import httpx

from saltern.api.application import application
from saltern.api.event_feed import EventFeed
from saltern.api.server import Api
from saltern.api.settings import ApiSettings
from saltern.kit.config.master import MasterOptions
from saltern.kit.links.control import ControlError
from saltern.kit.process.metrics import new_metrics
from tests.services.mworker.conftest import Worker

#: All clients of the API.
CLIENTS = ["local", "local_async", "local_batch", "local_subset", "runner", "runner_async", "wheel", "wheel_async"]


class WorkerLink:
    """The API's connection to the master: a worker in this process. Jobs and runners are published and not waited for."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def call(self, cmd: str, *, timeout: float = 0, once: bool = False, **fields: Any) -> Any:
        answer = self._worker.control(cmd, "api", **fields)
        if isinstance(answer, tuple):
            raise ControlError(*answer)
        return answer


class ApiBeforeWorker:
    """An API whose master is ``worker``."""

    def __init__(self, worker: Worker, **settings: Any) -> None:
        self.worker = worker
        self.feed = EventFeed(100, lambda: None)
        api = Api(
            MasterOptions(netapi_enable_clients=CLIENTS),
            ApiSettings(disable_ssl=True, **settings),
            WorkerLink(worker),  # type: ignore[arg-type]
            self.feed,
            new_metrics("api"),
            logging.getLogger("saltern.api"),
        )
        self.api = api
        self.app = application(api)

    def ask(self, method: str, path: str, *, address: str = "127.0.0.1", **more: Any) -> httpx.Response:
        """Return the API's answer to a request from an address."""

        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, client=(address, 40000))
            async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
                return await client.request(method, path, **more)

        return asyncio.run(asked())

    def login(self, user: str, *, address: str = "127.0.0.1", **more: Any) -> str:
        """Return the token of a user who signs in from an address."""
        answer = self.ask("POST", "/login", address=address, json=credentials(user) | more)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["return"][0]["token"])

    def get(self, path: str, token: str, **more: Any) -> httpx.Response:
        """Return the API's answer to ``GET path`` with a user's token."""
        return self.ask("GET", path, headers={"X-Auth-Token": token}, **more)


def credentials(user: str) -> dict[str, Any]:
    """Return the fields by which a user of ``users_file`` signs in."""
    return {"username": user, "password": f"pw-{user}", "eauth": "file"}


def external_auth(directory: Path, rows: dict[str, Any]) -> dict[str, Any]:
    """Return the option external_auth for users of a text file with these rows: user -> list of rules."""
    path = directory / "users"
    path.write_text("".join(f"{name}:pw-{name}\n" for name in rows))
    return {"file": {"^filename": str(path), **rows}}
