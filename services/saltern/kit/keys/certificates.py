"""Certificates for TLS between the roles and Redis: an authority, one certificate of Redis and one of the roles.

``DIR/redis/tls/`` holds ``authority.key`` (stays where keys are made), ``authority.pem`` (which both sides trust),
``server.pem`` for Redis and ``client.pem`` for the roles. The last two hold the key and the certificate in one file, so that
both always belong together: Redis takes one file for ``tls-cert-file`` and ``tls-key-file``, the URL of the roles needs
``ssl_certfile`` only.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from saltern.kit.config.master import ConfigError

#: Names of the files below ``DIR/redis/tls``.
AUTHORITY_KEY, AUTHORITY, SERVER, CLIENT = "authority.key", "authority.pem", "server.pem", "client.pem"

#: Days for which an authority and a certificate are valid.
AUTHORITY_DAYS, CERTIFICATE_DAYS = 3650, 397

#: A certificate is valid from an hour before it is made: clocks differ.
_EARLIER = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class Authority:
    """A certificate authority that issues the certificates of Redis and of the roles: its private key and its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, days: float = AUTHORITY_DAYS) -> Authority:
        """Return an authority with a new private key and a new self-signed certificate, valid for ``days`` days."""
        key = ec.generate_private_key(ec.SECP256R1())
        # Two authorities of one name would be told apart by nothing but their keys.
        name = _name(f"Saltern Redis authority {_now():%Y-%m-%d %H:%M:%S.%f}")
        built = (
            _builder(name, name, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(key_cert_sign=True, crl_sign=True), critical=True)
        )
        return cls(key, built.sign(key, hashes.SHA256()))

    @classmethod
    def read(cls, key: bytes, certificates: bytes) -> Authority:
        """Return the authority with this private key (PEM), whose certificate is one of ``certificates`` (PEM).

        Raises ConfigError if a PEM is malformed or no certificate belongs to the key.
        """
        try:
            private = load_pem_private_key(key, None)
            found = x509.load_pem_x509_certificates(certificates)
        except ValueError as error:
            raise ConfigError(f"{AUTHORITY_KEY} or {AUTHORITY}: {error}") from error
        for certificate in found:
            if certificate.public_key() == private.public_key() and isinstance(private, ec.EllipticCurvePrivateKey):
                return cls(private, certificate)
        raise ConfigError(f"{AUTHORITY_KEY} is the key of no certificate in {AUTHORITY}")

    @property
    def key_pem(self) -> bytes:
        """Return the authority's private key as PEM."""
        return _key_pem(self.key)

    @property
    def pem(self) -> bytes:
        """Return the authority's certificate as PEM."""
        return self.certificate.public_bytes(Encoding.PEM)

    def server(self, hosts: Sequence[str], days: float = CERTIFICATE_DAYS) -> bytes:
        """Issue a certificate for a Redis server with these host names and addresses; return its new key and certificate as PEM."""
        return self._issue(hosts[0], hosts, ExtendedKeyUsageOID.SERVER_AUTH, days)

    def client(self, days: float = CERTIFICATE_DAYS) -> bytes:
        """Issue a certificate with which the roles connect to Redis; return its new key and certificate as PEM."""
        return self._issue("saltern", (), ExtendedKeyUsageOID.CLIENT_AUTH, days)

    def _issue(self, name: str, hosts: Sequence[str], usage: x509.ObjectIdentifier, days: float) -> bytes:
        key = ec.generate_private_key(ec.SECP256R1())
        built = (
            _builder(_name(name), self.certificate.subject, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        )
        if hosts:
            built = built.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        return _key_pem(key) + built.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM)


def hosts_of(pem: bytes) -> list[str]:
    """Return the list of host names and addresses in a server's certificate (PEM, perhaps with its key).

    Raises ConfigError if the PEM is malformed or the certificate names no host.
    """
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound) as error:
        raise ConfigError(f"{SERVER}: {error}") from error
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    return [*names.get_values_for_type(x509.DNSName), *addresses]


def certificate_of(pem: bytes) -> bytes:
    """Return the first certificate of a PEM text as DER bytes, for comparison with the one that a TLS server presents."""
    return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: float
) -> x509.CertificateBuilder:
    now = _now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, now + datetime.timedelta(days=days)) - _EARLIER)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
