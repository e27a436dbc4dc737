"""Certificates and kubeconfigs of a cluster, made anew for each."""

from __future__ import annotations

import datetime
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.cluster.places import ADDRESSES, API, NODES, SERVICES

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Who:
    """A subject: its name, its group, and the names of it as a server."""

    name: str
    group: str = ""
    hosts: Sequence[str] = ()


#: Files of the certificates, and whose they are.
SUBJECTS = {
    "apiserver": Who(
        "kube-apiserver",
        hosts=(
            API,
            "127.0.0.1",
            str(ipaddress.ip_network(SERVICES)[1]),
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ),
    ),
    "apiserver-kubelet": Who("kube-apiserver-kubelet-client", "system:masters"),
    "admin": Who("kubernetes-admin", "system:masters"),
    "controller-manager": Who("system:kube-controller-manager"),
    "scheduler": Who("system:kube-scheduler"),
    "proxy": Who("system:kube-proxy", "system:node-proxier"),
    "policies": Who("saltern-cluster-policies", "system:masters"),
    "front-proxy": Who("front-proxy"),
    **{
        f"node-{node}": Who(f"system:node:{node}", "system:nodes", (node, ADDRESSES[node], "127.0.0.1"))
        for node in NODES
    },
}


def make(directory: Path) -> None:
    """Write ca.crt, ca.key, service.key, service.pub; and for each subject its .crt, .key and .kubeconfig."""
    directory.mkdir(parents=True, exist_ok=True)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate(Who("saltern-cluster"), authority_key, None, authority_key)
    _write(directory, "ca", authority, authority_key)
    service = ec.generate_private_key(ec.SECP256R1())
    (directory / "service.key").write_bytes(_pem(service))
    public = service.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (directory / "service.pub").write_bytes(public)
    for file, who in SUBJECTS.items():
        key = ec.generate_private_key(ec.SECP256R1())
        _write(directory, file, _certificate(who, key, authority, authority_key), key)
        (directory / f"{file}.kubeconfig").write_text(_kubeconfig(directory, file), "utf-8")


def issue(directory: Path, name: str, who: Who) -> None:
    """Write NAME.crt and NAME.key beside the authority that `make` wrote, which signs them."""
    authority = x509.load_pem_x509_certificate((directory / "ca.crt").read_bytes())
    signer = serialization.load_pem_private_key((directory / "ca.key").read_bytes(), None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{directory}/ca.key is no key of elliptic curves")
    key = ec.generate_private_key(ec.SECP256R1())
    _write(directory, name, _certificate(who, key, authority, signer), key)


def _certificate(
    who: Who, key: ec.EllipticCurvePrivateKey, issuer: x509.Certificate | None, signer: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    names = [x509.NameAttribute(NameOID.COMMON_NAME, who.name)]
    if who.group:
        names.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, who.group))
    subject = x509.Name(names)
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + 30 * _DAY)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer is not None:
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if who.hosts else [])]
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    if who.hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(host) for host in who.hosts]), False)
    return builder.sign(signer, hashes.SHA256())


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(directory: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    (directory / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    path = directory / f"{name}.key"
    path.touch(0o600)
    path.write_bytes(_pem(key))


def _kubeconfig(directory: Path, user: str) -> str:
    """A kubeconfig, in JSON, that names the files beside it: it is good wherever the directory is seen by this path."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "cluster",
            "clusters": [
                {
                    "name": "cluster",
                    "cluster": {"server": f"https://{API}:6443", "certificate-authority": str(directory / "ca.crt")},
                }
            ],
            "users": [
                {
                    "name": user,
                    "user": {
                        "client-certificate": str(directory / f"{user}.crt"),
                        "client-key": str(directory / f"{user}.key"),
                    },
                }
            ],
            "contexts": [{"name": "cluster", "context": {"cluster": "cluster", "user": user}}],
        },
        indent=1,
    )
