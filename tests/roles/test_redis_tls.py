"""Redis over TLS with certificates on both sides: who is let in, who is refused, and what happens when certificates change.

The server is a real redis-server with TLS (``tests/tls_redis.py``); the test makes the certificates.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from masterstore.access import USERS
from masterstore.errors import StoreUnavailable
from masterstore.store import Store
from saltern.kit.keys.certificates import AUTHORITY, CLIENT, SERVER, Authority
from saltern.kit.keys.keygen import make_keys, make_redis_login, make_redis_tls
from saltern.kit.keys.redis_logins import url_file
from tests.conftest import await_port
from tests.ports import free_port
from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Lab, until
from tests.roles.test_rotation import Load, while_jobs_run
from tests.tls_redis import need_tls_redis

pytestmark = [pytest.mark.roles, pytest.mark.redis]


def server_words(program: str, port: int, tls: Path, data: Path) -> list[str]:
    """What starts a Redis that speaks TLS only, and lets nobody in without a certificate."""
    words = [program, "--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1", "--dir", str(data)]
    words += ["--tls-cert-file", str(tls / SERVER), "--tls-key-file", str(tls / SERVER)]
    words += ["--tls-ca-cert-file", str(tls / AUTHORITY), "--tls-auth-clients", "yes"]
    return [*words, "--tls-protocols", "TLSv1.2 TLSv1.3", "--save", "", "--appendonly", "yes"]


@dataclass
class TlsRedis:
    """A Redis with TLS, its authority, and stores that connect to it."""

    port: int
    place: Path
    authority: Authority

    def store(
        self, *, host: str = "127.0.0.1", ca: bytes | None = None, client: bytes | None = b"", more: str = ""
    ) -> Store:
        """A store with these files; ``client`` None: no certificate; empty: the good one."""
        name = f"{time.monotonic_ns()}"
        (self.place / f"{name}-ca.pem").write_bytes(self.authority.pem if ca is None else ca)
        query = f"ssl_ca_certs={self.place}/{name}-ca.pem"
        if client is not None:
            (self.place / f"{name}.pem").write_bytes(client or self.authority.client())
            query += f"&ssl_certfile={self.place}/{name}.pem"
        return Store.open(f"rediss://{host}:{self.port}/0?{query}{more}", timeout=5, client_name="test")


@pytest.fixture(scope="module")
def tls_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsRedis]:
    program, place, port = need_tls_redis(), tmp_path_factory.mktemp("tls-redis"), free_port()
    authority = Authority.make()
    (place / AUTHORITY).write_bytes(authority.pem)
    (place / SERVER).write_bytes(authority.server(["127.0.0.1"]))
    with (
        (place / "log").open("wb") as log,
        subprocess.Popen(server_words(program, port, place, place), stdout=log) as server,
    ):
        await_port(port, server)
        yield TlsRedis(port, place, authority)
        server.terminate()


def test_both_sides_with_certificates_of_the_authority(tls_redis: TlsRedis) -> None:
    tls_redis.store().ping()


OTHER = Authority.make()

#: What is wrong -> how the store connects, what it says.
REFUSED: dict[str, tuple[Callable[[TlsRedis], Store], str]] = {
    "no certificate": (lambda one: one.store(client=None), "."),
    "a certificate of another authority": (lambda one: one.store(client=OTHER.client()), "."),
    "a certificate that has expired": (lambda one: one.store(client=one.authority.client(days=-1)), "."),
    "a certificate of a server": (lambda one: one.store(client=one.authority.server(["x"])), "."),
    "a server of an authority that is not believed": (lambda one: one.store(ca=OTHER.pem), "certificate verify failed"),
    "a server by a name that its certificate lacks": (
        lambda one: one.store(host="localhost"),
        "certificate is not valid for 'localhost'|doesn't match|Hostname mismatch",
    ),
    "no TLS": (lambda one: Store.open(f"redis://127.0.0.1:{one.port}/0", timeout=5, client_name="test"), "."),
}


@pytest.mark.parametrize("attack", REFUSED)
def test_what_is_refused(tls_redis: TlsRedis, attack: str) -> None:
    make, said = REFUSED[attack]
    with pytest.raises(StoreUnavailable, match=said):
        make(tls_redis).ping()


def test_a_server_whose_certificate_has_expired_is_refused(tmp_path: Path) -> None:
    program, port, authority = need_tls_redis(), free_port(), Authority.make()
    (tmp_path / AUTHORITY).write_bytes(authority.pem)
    (tmp_path / SERVER).write_bytes(authority.server(["127.0.0.1"], days=-1))
    words = server_words(program, port, tmp_path, tmp_path)
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as server:
        await_port(port, server)
        with pytest.raises(StoreUnavailable, match="certificate has expired"):
            TlsRedis(port, tmp_path, authority).store().ping()
        server.terminate()


# ------------------------------------------------------------------------------------------------- a master on such a Redis


class TlsLab(Lab):
    """A lab whose roles reach Redis over TLS, with certificates, password and URL as ``saltern keygen`` makes them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        make_keys(self.keys_dir)
        make_redis_tls(self.keys_dir, ["127.0.0.1"])
        for user in USERS:
            (self.keys_dir / url_file(user)).unlink()
        make_redis_login(self.keys_dir, f"127.0.0.1:{self.port['redis']}")
        assert (self.keys_dir / url_file("mworker")).read_text().startswith("rediss://mworker:")

    @property
    def keys_dir(self) -> Path:
        """What ``saltern keygen`` wrote."""
        return self.etc / "keys"

    @property
    def tls(self) -> Path:
        """Certificates of Redis."""
        return self.keys_dir / "redis" / "tls"

    @property
    def environment(self) -> dict[str, str]:
        """There is no URL but that of each role."""
        return super().environment | {"SALTERN_REDIS_URL_FILE": str(self.keys_dir / "redis" / "url")}

    def launch_redis(self) -> None:
        """With TLS only."""
        words = server_words(need_tls_redis(), self.port["redis"], self.tls, self.root / "redis")
        self._launch("redis", [*words, "--aclfile", str(self.keys_dir / "redis" / "users.acl")])

    def rotate(self, *words: str) -> str:
        """What ``saltern rotate`` said."""
        return self.ok("saltern", "rotate", *words, "-c", str(self.etc)).out

    def can_connect(self, client: bytes, place: Path) -> bool:
        """Whether Redis lets somebody in who has this certificate, and the password."""
        place.write_bytes(client)
        url = (self.keys_dir / url_file("operator")).read_text().strip().replace(str(self.tls / CLIENT), str(place))
        try:
            Store.open(url, timeout=5, client_name="test").ping()
        except StoreUnavailable:
            return False
        return True


@pytest.fixture(scope="module")
def lab(module_labs: NewLab) -> Iterator[TlsLab]:
    need_tls_redis()
    made = module_labs(TlsLab, workers=2)
    assert isinstance(made, TlsLab)
    made.start_all()
    made.pings()
    yield made
    assert made.tracebacks() == []
    assert made.dead() == {}


@pytest.fixture
def load(lab: TlsLab) -> Iterator[Load]:
    made = Load(lab)
    until(lambda: len(made.answered) > 2, SOON, "jobs are answered")
    yield made
    made.close()


def test_certificates_are_replaced_while_roles_are_connected(lab: TlsLab, load: Load) -> None:
    before = (lab.tls / SERVER).read_bytes(), (lab.tls / CLIENT).read_bytes()
    said = while_jobs_run(load, lambda: lab.rotate("redis-tls"), 5)
    assert "serves the certificate that was written" in said
    assert before[0] != (lab.tls / SERVER).read_bytes()
    assert before[1] != (lab.tls / CLIENT).read_bytes()
    lab.pings()


def test_whoever_has_a_certificate_of_the_old_authority_is_out(lab: TlsLab, load: Load, tmp_path: Path) -> None:
    stolen = (lab.tls / CLIENT).read_bytes()
    assert lab.can_connect(stolen, tmp_path / "stolen.pem")
    said = while_jobs_run(load, lambda: lab.rotate("redis-tls", "--authority"), 5)
    assert "the old authority is not believed any more" in said
    assert not lab.can_connect(stolen, tmp_path / "stolen.pem")
    assert lab.can_connect((lab.tls / CLIENT).read_bytes(), tmp_path / "new.pem")
    lab.pings()


def test_the_password_is_replaced_over_tls(lab: TlsLab, load: Load) -> None:
    assert "the old passwords are not valid any more" in while_jobs_run(load, lambda: lab.rotate("redis-password"), 5)
    lab.pings()


def test_a_certificate_that_expires_stops_new_connections_only_and_is_replaced(lab: TlsLab) -> None:
    """The roles' certificate expires while they are connected: they go on; after a restart of Redis they wait, and name it."""
    authority = Authority.read((lab.tls / "authority.key").read_bytes(), (lab.tls / AUTHORITY).read_bytes())
    good = (lab.tls / CLIENT).read_bytes()
    (lab.tls / CLIENT).write_bytes(authority.client(days=-1))
    lab.pings()
    lab.restart("redis")
    until(lambda: lab.probe("mworker")[0] == 503, SOON, "the worker is not ready")
    assert "redis" in lab.probe("mworker")[1]
    (lab.tls / CLIENT).write_bytes(good)
    lab.await_ready("mworker", "publisher")
    lab.pings()
