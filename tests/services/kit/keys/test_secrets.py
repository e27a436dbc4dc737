"""Key directories as Secrets: printed, and made in a cluster whose API is played here over real HTTP."""

from __future__ import annotations

import base64
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from masterstore.access import ROLES, digest
from saltern.kit.keys import secrets
from saltern.kit.keys.keygen import main, make_keys
from saltern.kit.keys.kubernetes import Cluster, ClusterError
from saltern.kit.keys.master_keys import MasterKeys
from saltern.kit.links.sockets import NAMES, LinkKeys

PREFIX = "/api/v1/namespaces/saltern/secrets"
#: The smallest that is allowed: tests make many.
MAKE = partial(make_keys, keysize=1024)


class Api(ThreadingHTTPServer):
    """Secrets by name; refuses who has another token."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.secrets: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.refuse: int | None = None


class Handler(BaseHTTPRequestHandler):
    server: Api

    def do_GET(self) -> None:
        self.act()

    do_POST = do_PUT = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""

    def act(self) -> None:
        api = self.server
        length = int(self.headers.get("Content-Length") or 0)
        value = json.loads(self.rfile.read(length)) if length else {}
        api.asked.append(f"{self.command} {self.path}")
        name = self.path.removeprefix(PREFIX).strip("/") or value["metadata"]["name"]
        if api.refuse or self.headers["Authorization"] != "Bearer the-token":
            self.answer(api.refuse or 401, {"kind": "Status", "message": "no right"})
        elif self.command == "GET":
            self.answer(200, api.secrets[name]) if name in api.secrets else self.answer(404, {"message": "none"})
        elif self.command == "POST" and name in api.secrets:
            self.answer(409, {"message": "there"})
        else:
            api.secrets[name] = value
            self.answer(200, value)

    def answer(self, status: int, value: Mapping[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def cluster(api: Api) -> Cluster:
    return Cluster("127.0.0.1", api.server_port, "the-token", "saltern", None)


def mounted(api: Api, directory: Path) -> Path:
    """The Secrets as the kubelet mounts them: flat."""
    for role in NAMES:
        (directory / role).mkdir(parents=True)
        for key, value in api.secrets[f"saltern-keys-{role}"]["data"].items():
            (directory / role / key).write_bytes(base64.b64decode(value))
    return directory


def test_roles_read_their_mounted_secrets(api: Api, cluster: Cluster, tmp_path: Path) -> None:
    done = secrets.into_cluster(cluster, MAKE, "saltern-redis")
    assert sorted(done) == sorted(f"made secret {name}" for name in api.secrets)
    assert set(api.secrets) == {f"saltern-keys-{role}" for role in NAMES} | {"saltern-redis"}
    directory = mounted(api, tmp_path)
    loaded = {name: LinkKeys.load(directory / name) for name in NAMES}
    for keys in loaded.values():
        assert keys.known == {name: (other.public,) for name, other in loaded.items()}
    assert MasterKeys.load(directory / "mworker").secret == MasterKeys.load(directory / "publisher").secret
    assert not (directory / "reactor" / "master.pem").exists()


def test_what_is_there_is_kept(api: Api, cluster: Cluster) -> None:
    secrets.into_cluster(cluster, MAKE, "saltern-redis")
    before = json.dumps(api.secrets)
    assert secrets.into_cluster(cluster, MAKE, "saltern-redis") == []
    assert json.dumps(api.secrets) == before


def test_a_lost_secret_is_made_anew_and_the_others_learn_its_key(api: Api, cluster: Cluster, tmp_path: Path) -> None:
    secrets.into_cluster(cluster, MAKE)
    api.secrets["saltern-keys-reactor"]["metadata"]["resourceVersion"] = "7"
    master = api.secrets["saltern-keys-mworker"]["data"]["master.pem"]
    lost = api.secrets.pop("saltern-keys-cli")
    done = secrets.into_cluster(cluster, MAKE)
    assert sorted(done)[-1] == "made secret saltern-keys-cli"
    assert len(done) == len(NAMES)
    assert api.secrets["saltern-keys-cli"]["data"]["curve.secret"] != lost["data"]["curve.secret"]
    assert api.secrets["saltern-keys-mworker"]["data"]["master.pem"] == master
    # Replaced as it was read, so that the API notices who changed it meanwhile.
    assert api.secrets["saltern-keys-reactor"]["metadata"]["resourceVersion"] == "7"
    directory = mounted(api, tmp_path)
    public = LinkKeys.load(directory / "cli").public
    assert {LinkKeys.load(directory / name).known["cli"] for name in NAMES} == {(public,)}


def held(api: Api, name: str) -> dict[str, str]:
    """The files of a Secret."""
    return {
        key: base64.b64decode(value).decode()
        for key, value in api.secrets[name]["data"].items()
        if key != "master.secret"
    }


def test_redis_gets_hashes_and_each_role_its_password(api: Api, cluster: Cluster) -> None:
    secrets.into_cluster(cluster, MAKE, "saltern-redis")
    data = held(api, "saltern-redis")
    assert set(data) == {"users.acl", "operator.url"}
    for role in ROLES:
        url = base64.b64decode(api.secrets[f"saltern-keys-{role}"]["data"]["redis.url"]).decode().strip()
        password = url.removeprefix(f"redis://{role}:").partition("@")[0]
        assert url == f"redis://{role}:{password}@saltern-redis:6379/0"
        assert len(password) == 64
        assert password not in data["users.acl"]
        assert f"user {role} on {digest(password)} " in data["users.acl"]
    assert "user probe on nopass resetkeys resetchannels -@all +ping" in data["users.acl"]
    assert "user default off " in data["users.acl"]


def test_a_secret_with_one_password_for_all_roles_stays(api: Api, cluster: Cluster) -> None:
    secrets.into_cluster(cluster, MAKE)
    url = "redis://:old@saltern-redis:6379/0"
    cluster.create(
        f"/api/v1/namespaces/{cluster.namespace}/secrets",
        secrets.manifest(secrets.REDIS, {"url": url.encode()}, cluster.namespace),
    )
    secrets.into_cluster(cluster, MAKE, "saltern-redis")
    assert set(held(api, "saltern-redis")) == {"url", "users.acl"}
    assert f"user default on {digest('old')} ~* &* +@all" in held(api, "saltern-redis")["users.acl"]
    for role in ROLES:
        assert base64.b64decode(api.secrets[f"saltern-keys-{role}"]["data"]["redis.url"]).decode().strip() == url


@pytest.mark.parametrize(("status", "says"), [(403, "no right; a Role must allow it"), (500, "answered 500: no right")])
def test_a_refusal_says_what_was_asked(api: Api, cluster: Cluster, status: int, says: str) -> None:
    api.refuse = status
    with pytest.raises(ClusterError, match=says) as raised:
        secrets.into_cluster(cluster, MAKE)
    assert f"GET {PREFIX}/saltern-keys-publisher" in str(raised.value)
    assert api.secrets == {}


def test_an_api_that_does_not_answer_is_named(cluster: Cluster, api: Api) -> None:
    gone = Cluster("127.0.0.1", 1, "the-token", "saltern", None)
    with pytest.raises(ClusterError, match=r"no answer from the API at 127\.0\.0\.1:1"):
        gone.get("/api/v1/nodes/one")


def test_outside_a_cluster_it_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert main(["--in-cluster"]) == 1
    assert "this is not a pod of a cluster" in capsys.readouterr().err


def test_a_pod_finds_the_api_by_its_mounted_files(api: Api, tmp_path: Path) -> None:
    """Over TLS, with the cluster's own authority, and the token that is mounted."""
    certificate, key = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    api.socket = context.wrap_socket(api.socket, server_side=True)
    for name, text in (("token", "the-token\n"), ("namespace", "saltern"), ("ca.crt", certificate.read_text())):
        (tmp_path / name).write_text(text)
    env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT_HTTPS": str(api.server_port)}
    cluster = Cluster.of_this_pod(env, tmp_path)
    assert cluster.get(f"{PREFIX}/nothing") is None
    assert len(secrets.into_cluster(cluster, MAKE)) == len(NAMES)
    # Another authority's cluster is not spoken to.
    (tmp_path / "other").mkdir()
    other, _ = self_signed(tmp_path / "other")
    (tmp_path / "ca.crt").write_text(other.read_text())
    with pytest.raises(ClusterError, match="CERTIFICATE_VERIFY_FAILED"):
        Cluster.of_this_pod(env, tmp_path).get(f"{PREFIX}/nothing")


def self_signed(directory: Path) -> tuple[Path, Path]:
    """Files of a certificate for this machine, and of its key."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "cluster")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(
            name, name, private.public_key(), x509.random_serial_number(), now, now + timedelta(days=1)
        )
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    pem, key = directory / "server.pem", directory / "server.key"
    pem.write_bytes(made.public_bytes(Encoding.PEM))
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return pem, key


def test_a_pod_without_a_token_is_told(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="token: No such file or directory; the pod needs the token"):
        Cluster.of_this_pod({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)


def test_printed_secrets_are_what_the_directory_holds(
    role_keys: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["--out", str(role_keys), "--secrets", "--namespace", "other", "--redis-host", "r"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert {item["metadata"]["namespace"] for item in items} == {"other"}
    by_name = {item["metadata"]["name"]: item["data"] for item in items}
    secret = base64.b64decode(by_name["saltern-keys-cli"]["curve.secret"])
    assert secret == (role_keys / "cli" / "curve.secret").read_bytes()
    assert set(by_name["saltern-redis"]) == {"users.acl", "operator.url"}
    for role in ("publisher", "mworker", "reactor", "maintenance"):
        url = base64.b64decode(by_name[f"saltern-keys-{role}"]["redis.url"])
        assert url.startswith(f"redis://{role}:".encode())
        assert url.endswith(b"@r:6379/0\n")
    assert not any(
        "redis.url" in by_name[f"saltern-keys-{role}"] for role in ("cli", "api", "reqserver", "eventpublisher")
    )
