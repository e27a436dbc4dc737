"""A worker without sockets: a desk over a real Redis, its door, and minions that speak the protocol to it."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgpack
import pytest

from masterstore.record_mac import Records
from masterstore.store import Store
from saltern.kit.config.master import MasterOptions
from saltern.kit.keys.master_keys import MasterKeys, record_mac
from saltern.kit.links.event_bus import Prepared
from saltern.kit.process.metrics import new_metrics
from saltern.kit.trees.served_files import file_server
from saltern.mworker.deferred_reply import SealedDeferredReply
from saltern.mworker.request_handler import RequestHandler
from saltern.mworker.worker_context import WorkerContext
from saltwire.crypticle import Crypticle
from saltwire.envelope import ClientSession
from saltwire.handshake import Answer, Credentials, SignIn
from saltwire.keys import PrivateKey, PublicKey
from saltwire.pillar_transfer import open_pillar


@pytest.fixture(scope="session")
def minion_keys() -> tuple[PrivateKey, PrivateKey]:
    """Two key pairs; making one takes a while."""
    return PrivateKey.generate(2048), PrivateKey.generate(2048)


@dataclass
class FakeMinion:
    """A minion's end of the protocol, through a door instead of a socket."""

    id: str
    key: PrivateKey
    handler: RequestHandler
    #: The master's key, once it is known.
    master: PublicKey | None = None
    credentials: Credentials | None = None

    def sign_in(self) -> Answer:
        machine = SignIn(self.id, self.key, self.master)
        answer = machine.feed(self.handler.answer(b"minion", "", machine.request()))
        if answer.credentials is not None:
            self.credentials = answer.credentials
            self.master = PublicKey.from_pem(answer.credentials.master_pub)
        return answer

    @property
    def session(self) -> ClientSession:
        assert self.credentials is not None, "not signed in"
        assert self.credentials.session is not None
        return ClientSession(self.id, Crypticle(self.credentials.session), self.key)

    def send(self, load: Mapping[str, Any]) -> tuple[bytes, str]:
        """The raw answer, and the nonce that it must carry."""
        payload, nonce = self.session.seal(load, time.time())
        return self.handler.answer(b"minion", "", payload), nonce

    def ask(self, cmd: str, **fields: Any) -> Any:
        """The opened answer. Raises AuthenticationError for what is no encrypted answer."""
        reply, nonce = self.send({"cmd": cmd, "id": self.id, **fields})
        return self.session.open(reply, nonce)

    def pillar(self, **fields: Any) -> dict[str, Any]:
        assert self.master is not None
        load = {"cmd": "_pillar", "id": self.id, "grains": {}, "saltenv": None, "pillarenv": None, **fields}
        reply, nonce = self.send(load)
        session = self.session
        pillar: dict[str, Any] = open_pillar(
            reply,
            private_key=self.key,
            master_pub=self.master,
            nonce=nonce,
            enc_algo=session.enc_algo,
            sig_algo=session.sig_algo,
        )
        return pillar


@dataclass
class Worker:
    """A desk, its door, what was fired, and which runners were started."""

    context: WorkerContext
    handler: RequestHandler
    keys: tuple[PrivateKey, PrivateKey]
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    runners: list[Callable[[], None]] = field(default_factory=list)

    @property
    def store(self) -> Store:
        return self.context.store

    def minion(self, name: str = "web1", *, accepted: bool = True, key: int = 0) -> FakeMinion:
        """A minion; an accepted one is signed in."""
        made = FakeMinion(name, self.keys[key], self.handler)
        if accepted:
            self.store.minion_keys.store(name, made.key.public.pem, "accepted")
            assert made.sign_in().credentials is not None
            self.events.clear()
        return made

    def accept(self, *names: str) -> None:
        """Gives minions accepted keys without a sign-in."""
        for name in names:
            self.store.minion_keys.store(name, self.keys[1].public.pem, "accepted")

    def control(self, cmd: str, client: str = "cli", **fields: Any) -> Any:
        """The value, or ``(name, message)`` of the refusal."""
        answer = self.handler.answer(b"control", client, msgpack.packb({"cmd": cmd, **fields}))
        if isinstance(answer, SealedDeferredReply):
            assert answer.work is not None
            answer = answer.work()
        reply = msgpack.unpackb(answer, strict_map_key=False)
        if "error" in reply:
            return reply["error"]["name"], reply["error"]["message"]
        return reply["ok"]

    def tags(self) -> list[str]:
        return [tag for tag, _ in self.events]

    def count(self, name: str, **labels: str) -> float:
        return self.context.metrics.registry.value(name, labels) or 0.0


@pytest.fixture
def new_worker(
    redis_url: str,
    role_keys: Path,
    master_keys: MasterKeys,
    tmp_path: Path,
    minion_keys: tuple[PrivateKey, PrivateKey],
) -> Callable[..., Worker]:
    """A worker with options of its own; all share one Redis."""
    counter = itertools.count()

    def make(*, url: str = "", **options: Any) -> Worker:
        roots: dict[str, Any] = {
            "file_roots": {"base": [str(tmp_path / "salt")]},
            "pillar_roots": {"base": [str(tmp_path / "pillar")]},
            "extension_modules": str(tmp_path / "extmods"),
        }
        for name in ("salt", "pillar"):
            (tmp_path / name).mkdir(exist_ok=True)
        chosen = MasterOptions(redis_url=url or redis_url, **(roots | options))
        events: list[tuple[str, dict[str, Any]]] = []
        runners: list[Callable[[], None]] = []

        def fire(tag: str, data: Mapping[str, Any]) -> bool:
            events.append((tag, dict(data)))
            return True

        context = WorkerContext(
            options=chosen,
            keys=master_keys,
            key_dir=role_keys / "mworker",
            store=Store.open(
                chosen.redis_url,
                client_name=f"test{next(counter)}",
                records=Records(record_mac(master_keys.secret), accept_unsigned=chosen.accept_unsigned_records),
            ),
            fire=fire,
            fire_all=lambda *events: all(fire(*event) for event in events),
            prepare=lambda tag, data: Prepared(bytes, partial(fire, tag, data)),
            files=file_server(chosen),
            metrics=new_metrics("mworker"),
            log=logging.getLogger("saltern.mworker"),
            start_runner=lambda work, lost: runners.append(work),
        )
        return Worker(context, RequestHandler(context), minion_keys, events, runners)

    return make


@pytest.fixture
def worker(new_worker: Callable[..., Worker]) -> Worker:
    return new_worker()
