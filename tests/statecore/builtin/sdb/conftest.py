"""An etcd for tests: the program that SALTERN_ETCD names, else the small server of ``etcd_server``."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.conftest import await_port
from tests.ports import free_port
from tests.statecore.builtin.sdb.etcd_server import serve


@pytest.fixture
def etcd_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of an empty etcd on loopback."""
    program = os.environ.get("SALTERN_ETCD")
    if program is None:
        server = serve()
        yield server.server_port
        server.shutdown()
        return
    port, peer = free_port(), free_port()
    url, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    command = [program, "--enable-v2", "--data-dir", str(tmp_path_factory.mktemp("etcd")), "--log-level", "error"]
    command += ["--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", peers]
    with subprocess.Popen(
        [*command, "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"]
    ) as own:
        try:
            await_port(port, own)
            yield port
        finally:
            own.terminate()
