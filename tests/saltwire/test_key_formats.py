"""What a process has of cryptography's ``serialization``, each time in one of its own: what is imported cannot be imported less."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

_SECONDS = 120

_PACKAGE = "cryptography.hazmat.primitives.serialization"


def told(program: str) -> str:
    """What a program of Python prints."""
    words = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_pem_is_read_and_written_without_ssh() -> None:
    program = f"""
    import sys
    from saltwire.keys import PrivateKey
    key = PrivateKey.generate(2048)
    assert PrivateKey.from_pem(key.to_pem()).to_pem() == key.to_pem()
    from cryptography.hazmat.primitives import serialization
    print(serialization.load_der_public_key.__name__, {_PACKAGE + ".ssh"!r} in sys.modules)
    """
    assert told(program) == "load_der_public_key False"


@pytest.mark.parametrize(
    "wanted",
    [
        "from cryptography.hazmat.primitives.serialization import load_ssh_public_key",
        "from cryptography.hazmat.primitives.serialization import *",
        "from cryptography.hazmat.primitives.serialization import pkcs7, pkcs12",
        "from cryptography.hazmat.primitives.serialization.ssh import load_ssh_public_key",
        "from cryptography.hazmat.primitives import serialization; serialization.SSHCertificate",
        "from cryptography import x509; from cryptography.hazmat.primitives.serialization import load_ssh_public_identity",
    ],
)
def test_who_wants_more_has_it_whole(wanted: str) -> None:
    """The same classes: a key that one half wrote, the other reads."""
    program = f"""
    from saltwire import key_formats
    {wanted}
    import importlib
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519
    assert serialization is importlib.import_module({_PACKAGE!r}), "two of them"
    assert serialization.Encoding is key_formats.Encoding
    line = ed25519.Ed25519PrivateKey.generate().public_key().public_bytes(
        key_formats.Encoding.OpenSSH, key_formats.PublicFormat.OpenSSH
    )
    print(type(serialization.load_ssh_public_key(line)).__name__, hasattr(serialization, "no_such_name"))
    """
    assert told(program) == "Ed25519PublicKey False"


def test_what_was_imported_before_stays_as_it_is() -> None:
    program = """
    from cryptography.hazmat.primitives import serialization
    before = type(serialization)
    from saltwire import key_formats
    print(type(serialization) is before, serialization.Encoding is key_formats.Encoding)
    """
    assert told(program) == "True True"


def test_names_that_a_version_keeps_elsewhere_are_found() -> None:
    program = """
    import saltwire.key_formats, sys
    module = sys.modules["saltwire.key_formats"]
    package = sys.modules[module._PACKAGE]
    module._HOMES = {"load_der_public_key": "cryptography.no_such_module"}
    print(package.load_der_public_key.__name__)
    """
    assert told(program) == "load_der_public_key"
