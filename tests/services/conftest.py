"""What tests of roles stand on: keys, options with ports of their own, a ZeroMQ context, and a role's loop in a thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import zmq

from saltern.kit.config.master import MasterOptions
from saltern.kit.keys.keygen import make_keys
from saltern.kit.keys.master_keys import MasterKeys
from saltern.kit.process.health import Health
from saltern.kit.process.metrics import new_metrics
from saltern.kit.process.process import Stop
from saltern.kit.process.service import Role, RoleProgram
from saltern.kit.process.tracing import Tracing
from tests.ports import free_ports

#: Seconds after which the wait for a role has failed.
PATIENCE = 40.0

_PORTS = (
    "publish_port",
    "ret_port",
    "control_port",
    "event_pull_port",
    "event_pub_port",
    "workers_port",
)

NewOptions: TypeAlias = Callable[..., MasterOptions]
NewRole: TypeAlias = Callable[[str, MasterOptions], Role]
Running: TypeAlias = Callable[[Role, RoleProgram], AbstractContextManager[None]]


@pytest.fixture(scope="session")
def role_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys of all roles, as keygen makes them."""
    directory = tmp_path_factory.mktemp("keys")
    make_keys(directory)
    return directory


@pytest.fixture(scope="session")
def master_keys(role_keys: Path) -> MasterKeys:
    """The master's keys, read once, as a role does: OpenSSL checks a key that it reads, which takes as long as ten sign-ins."""
    return MasterKeys.load(role_keys / "mworker")


@pytest.fixture
def new_options(role_keys: Path) -> NewOptions:
    """Options of a master on loopback, each of its ports free a moment ago."""

    def make(**more: Any) -> MasterOptions:
        with_ports: dict[str, Any] = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True))
        return MasterOptions(interface="127.0.0.1", internal_interface="127.0.0.1", **(with_ports | more))

    return make


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    """A context whose sockets end with the test, whatever they still hold."""
    made: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    made.linger = 0
    yield made
    made.destroy(linger=0)


@pytest.fixture
def new_role(role_keys: Path) -> NewRole:
    """A role as ``run_role`` makes it, without signals and without a probe port."""

    def make(name: str, options: MasterOptions) -> Role:
        metrics = new_metrics(name)
        health = Health(name, metrics.registry)
        return Role(
            name,
            options,
            role_keys / name,
            health,
            metrics,
            logging.getLogger(f"saltern.{name}"),
            Stop(),
            Tracing({}, name),
        )

    return make


@pytest.fixture
def running() -> Running:
    """Runs a role's loop in a thread while the block runs; what it raises is raised at the end of the block."""

    @contextmanager
    def run(role: Role, program: RoleProgram) -> Iterator[None]:
        failures: list[BaseException] = []

        def work() -> None:
            try:
                program.prepare(role)()
            except BaseException as failure:  # noqa: BLE001 - raised below, in the test's own thread
                failures.append(failure)

        thread = threading.Thread(target=work, name=role.name, daemon=True)
        thread.start()
        try:
            yield
        finally:
            role.stop.requested = True
            thread.join(PATIENCE)
        assert not thread.is_alive(), f"{role.name} does not end"
        if failures:
            raise failures[0]

    return run
