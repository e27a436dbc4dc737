"""The part of tls that is here: self-signed certificates, read back by it and by openssl."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from typing import Any

import pytest

from statecore.model.errors import CommandError, InvocationError
from tests.statecore.conftest import PlainMinion


def test_a_self_signed_certificate(plain: PlainMinion) -> None:
    made = plain.call("tls.create_self_signed_cert", CN="x.test", days=10, bits=2048, emailAddress="a@x.test", OU=None)
    key, cert = "/etc/pki/tls/certs/x.test.key", "/etc/pki/tls/certs/x.test.crt"
    assert made == f'Created Private Key: "{key}" Created Certificate: "{cert}"'
    assert plain.call("tls.create_self_signed_cert", CN="x.test") == 'Certificate "x.test" already exists'
    assert (plain.root / key[1:]).stat().st_mode & 0o777 == 0o600
    info = plain.call("tls.cert_info", cert)
    subject = {
        "C": "US",
        "ST": "Utah",
        "L": "Salt Lake City",
        "O": "SaltStack",
        "CN": "x.test",
        "emailAddress": "a@x.test",
    }
    assert (info["subject"], info["issuer"]) == (subject, subject)
    assert info["not_after"] - info["not_before"] == 10 * 86400
    assert info["signature_algorithm"] == "sha256WithRSAEncryption"
    assert plain.call("tls.get_expiration_date", cert) == time.strftime("%Y-%m-%d", time.gmtime(info["not_after"]))
    text = (plain.root / cert[1:]).read_text()
    assert plain.call("tls.cert_info", text) == info
    if shutil.which("openssl"):
        words = ["openssl", "x509", "-noout", "-fingerprint", "-sha256"]
        said = subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout
        assert said.strip().endswith(f"={info['fingerprint']}")


STATES = [
    ({"days": 5}, True, "Certificate is valid for 9 days, "),
    ({"weeks": 2}, False, "Certificate will expire in 9 days, "),
    ({}, True, "Certificate is valid for 9 days, "),
]


@pytest.mark.parametrize(("arguments", "result", "said"), STATES)
def test_how_long_it_is_valid(plain: PlainMinion, arguments: dict[str, Any], result: bool, said: str) -> None:
    plain.call("tls.create_self_signed_cert", days=10, cacert_path="/srv")
    for test in (True, False):
        entry = plain.state("tls.valid_certificate", test=test, name="/srv/tls/certs/localhost.crt", **arguments)
        assert (entry["result"], entry["changes"]) == (result, {})
        assert re.match(re.escape(said), entry["comment"])


def test_what_is_no_certificate(plain: PlainMinion) -> None:
    (plain.root / "x").write_text("nothing")
    assert plain.state("tls.valid_certificate", name="/none")["comment"] == "/none: No such file or directory"
    with pytest.raises(CommandError, match="/x: no certificate"):
        plain.call("tls.cert_info", "/x")
    for arguments in ({"digest": "md5"}, {"C": "Utah"}):
        with pytest.raises(InvocationError):
            plain.call("tls.create_self_signed_cert", **arguments)
