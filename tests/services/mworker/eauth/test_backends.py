"""The backends of external authentication: who is let in, who is not, and what is said when nobody can be."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import bcrypt
import jwt
import ldap3
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from saltern.mworker.eauth import check, system_users
from saltern.mworker.eauth.identity import EauthFault, Identity


def _settings(backend: str, rows: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"external_auth": {backend: rows or {}}, **more}


def _digest(kind: str, text: str) -> str:
    return hashlib.new(kind, text.encode()).hexdigest()


_SHA = "{SHA}" + base64.b64encode(hashlib.sha1(b"pw").digest()).decode()
_BCRYPT = bcrypt.hashpw(b"pw", bcrypt.gensalt(4)).decode()
_APR1 = subprocess.run(["openssl", "passwd", "-apr1", "-salt", "abcdefgh", "pw"], capture_output=True, text=True).stdout

#: name -> (text of the file, settings)
FILES: dict[str, tuple[str, dict[str, object]]] = {
    "plain text": ("bob:other\nann:pw\n", {}),
    "digest": (f"ann:{_digest('sha256', 'pw')}\n", {"^hashtype": "sha256"}),
    "legacy columns": (
        f"46|ann|{_digest('md5', 'pw')}\n",
        {"^hashtype": "md5", "^field_separator": "|", "^username_field": 2, "^password_field": 3},
    ),
    "a line that is too short": ("nonsense\nann:pw\n", {}),
    "htpasswd sha": (f"ann:{_SHA}\n", {"^filetype": "htpasswd"}),
    "htpasswd bcrypt": (f"ann:{_BCRYPT}\n", {"^filetype": "htpasswd"}),
    "htpasswd apr1": (f"ann:{_APR1}", {"^filetype": "htpasswd"}),
    "htdigest": (f"ann:site:{_digest('md5', 'ann:site:pw')}\n", {"^filetype": "htdigest", "^realm": "site"}),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_knows_its_users(tmp_path: Path, name: str) -> None:
    text, more = FILES[name]
    path = tmp_path / "users"
    path.write_text(text)
    settings = _settings("file", {"^filename": str(path), **more})
    assert check(settings, "file", "ann", "pw") == Identity("ann")
    assert check(settings, "file", "ann", "wrong") is None
    assert check(settings, "file", "ann", "") is None
    assert check(settings, "file", "eve", "pw") is None


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({}, "names no file"),
        ({"^filename": "/does/not/exist"}, "No such file"),
        ({"^filename": "/etc/hostname", "^filetype": "csv"}, "not 'csv'"),
        ({"^filename": "/etc/hostname", "^hashtype": "rot13"}, "'rot13' is no digest"),
        ({"^filename": "/etc/hostname", "^username_field": 0}, "count from 1"),
        ({"^filename": "/etc/hostname", "^password_field": "x"}, "are numbers"),
        ({"^filename": "/etc/hostname", "^filetype": "htdigest"}, "needs ^realm"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(rows: dict[str, Any], said: str) -> None:
    with pytest.raises(EauthFault) as caught:
        check(_settings("file", rows), "file", "ann", "pw")
    assert said in str(caught.value)


def test_the_shared_secret_lets_everybody_in_who_knows_it() -> None:
    settings = _settings("sharedsecret", sharedsecret="s3")
    assert check(settings, "sharedsecret", "anybody", "s3") == Identity("anybody")
    assert check(settings, "sharedsecret", "anybody", "s4") is None
    with pytest.raises(EauthFault):
        check(_settings("sharedsecret"), "sharedsecret", "anybody", "x")


@pytest.mark.parametrize("backend", ["pam", "ldap", "mysql", "", "__class__"])
def test_a_backend_that_the_options_do_not_name_lets_nobody_in(backend: str) -> None:
    with pytest.raises(EauthFault):
        check(_settings("file"), backend, "ann", "pw")


def test_a_backend_that_does_not_exist_is_named() -> None:
    with pytest.raises(EauthFault, match="'mysql' is not here; there are file, ldap, oidc, pam, sharedsecret"):
        check(_settings("mysql"), "mysql", "ann", "pw")


def test_groups_of_a_system_user() -> None:
    assert "root" in system_users.groups_of("root")
    assert system_users.groups_of("nobody-of-this-name") == ()


def test_pam_refuses_a_wrong_password() -> None:
    assert check(_settings("pam"), "pam", "root", "certainly-not-this") is None


# ------------------------------------------------------------------------------------------------------------ directory

BASE = "dc=example,dc=com"
ANN = f"uid=ann,ou=People,{BASE}"


def _directory(**more: Any) -> dict[str, Any]:
    """Settings whose directory is in the memory of ldap3."""
    server = ldap3.Server("fake", get_info=ldap3.NONE)
    filler = ldap3.Connection(server, client_strategy=ldap3.MOCK_SYNC)
    add = filler.strategy.add_entry
    add(f"cn=search,{BASE}", {"userPassword": "searchpw", "cn": "search"})
    add(ANN, {"userPassword": "pw", "uid": "ann", "objectClass": "person"})
    add(f"cn=ops,ou=Groups,{BASE}", {"cn": "ops", "memberUid": ["ann", "bob"], "objectClass": "posixGroup"})
    add(f"cn=web,ou=Groups,{BASE}", {"cn": "web", "memberUid": ["bob"], "objectClass": "posixGroup"})
    add(f"cn=admins,ou=AD,{BASE}", {"cn": "admins", "member": [ANN], "objectClass": "group"})
    own = {
        "auth.ldap._server": server,
        "auth.ldap._strategy": ldap3.MOCK_SYNC,
        "auth.ldap.basedn": BASE,
        "auth.ldap.binddn": f"cn=search,{BASE}",
        "auth.ldap.bindpw": "searchpw",
        "auth.ldap.filter": "(uid={{ username }})",
    }
    return _settings("ldap") | own | {f"auth.ldap.{name}": value for name, value in more.items()}


def test_a_user_is_searched_in_the_directory() -> None:
    assert check(_directory(), "ldap", "ann", "pw") == Identity("ann", ("ops",))


def test_groups_of_active_directory() -> None:
    settings = _directory(activedirectory=True, groupclass="group")
    assert check(settings, "ldap", "ann", "pw") == Identity("ann", ("admins",))


def test_a_user_signs_in_by_a_template_of_the_name() -> None:
    settings = _directory(binddn=f"uid={{{{ username }}}},ou=People,{BASE}", bindpw="", filter="")
    assert check(settings, "ldap", "ann", "pw") == Identity("ann", ("ops",))
    assert check(settings, "ldap", "ann", "wrong") is None


@pytest.mark.parametrize(
    ("user", "password"),
    [("ann", "wrong"), ("ann", ""), ("eve", "pw"), ("*", "pw"), ("ann)(uid=*", "pw"), ("", "pw"), ("ann\0", "pw")],
)
def test_the_directory_lets_nobody_else_in(user: str, password: str) -> None:
    assert check(_directory(), "ldap", user, password) is None


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"bindpw": "old"}, "does not accept the password"),
        ({"binddn": "", "filter": ""}, "needs auth.ldap.binddn"),
    ],
)
def test_a_directory_that_cannot_be_asked_is_a_fault(more: dict[str, str], said: str) -> None:
    with pytest.raises(EauthFault, match=said):
        check(_directory(**more), "ldap", "ann", "pw")


def test_a_directory_that_is_away_is_a_fault() -> None:
    settings = _settings("ldap") | {"auth.ldap.uri": "ldap://127.0.0.1:1", "auth.ldap.binddn": "uid={{ username }}"}
    with pytest.raises(EauthFault, match="does not answer"):
        check(settings, "ldap", "ann", "pw")


# -------------------------------------------------------------------------------------------------------- bearer tokens

ISSUER, AUDIENCE = "https://id.example.com", "saltern"
_KEY, _OTHER = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))


def _bearer(key: Any = _KEY, algorithm: str = "RS256", kid: str = "k1", **claims: Any) -> str:
    now = int(time.time())
    said = {"iss": ISSUER, "aud": AUDIENCE, "exp": now + 60, "preferred_username": "ann", "groups": ["ops"]} | claims
    said = {name: value for name, value in said.items() if value is not None}
    return jwt.encode(said, key, algorithm=algorithm, headers={"kid": kid})


@pytest.fixture
def provider(tmp_path: Path) -> dict[str, Any]:
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(_KEY.public_key())) | {"kid": "k1", "use": "sig"}
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": [public]}))
    own = {"auth.oidc.issuer": ISSUER, "auth.oidc.audience": AUDIENCE, "auth.oidc.jwks_file": str(path)}
    return _settings("oidc") | own


def test_a_bearer_token_names_its_user(provider: dict[str, Any]) -> None:
    assert check(provider, "oidc", "", _bearer()) == Identity("ann", ("ops",))
    assert check(provider, "oidc", "ann", _bearer()) == Identity("ann", ("ops",))
    provider |= {"auth.oidc.user_claim": "sub", "auth.oidc.groups_claim": "roles"}
    assert check(provider, "oidc", "", _bearer(sub="u7", roles=["a", "b"])) == Identity("u7", ("a", "b"))


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another"},
        {"iss": "https://evil.example.com"},
        {"exp": int(time.time()) - 3600},
        {"exp": None},
        {"preferred_username": None},
        {"preferred_username": ["ann"]},
        {"key": _OTHER},
        {"kid": "k2"},
        {"key": "x" * 64, "algorithm": "HS256"},
        {"key": None, "algorithm": "none"},
    ],
    ids=lambda claims: " ".join(f"{name}" for name in claims),
)
def test_a_wrong_bearer_token_is_refused(provider: dict[str, Any], claims: dict[str, Any]) -> None:
    assert check(provider, "oidc", "", _bearer(**claims)) is None


def test_a_bearer_token_serves_no_other_user(provider: dict[str, Any]) -> None:
    assert check(provider, "oidc", "root", _bearer()) is None
    assert check(provider, "oidc", "", "no.token.at-all") is None


def test_a_provider_that_is_away_is_a_fault() -> None:
    settings = _settings("oidc") | {"auth.oidc.issuer": "http://127.0.0.1:1", "auth.oidc.audience": AUDIENCE}
    with pytest.raises(EauthFault, match="cannot be read"):
        check(settings, "oidc", "", _bearer())
    with pytest.raises(EauthFault, match="needs the options"):
        check(_settings("oidc"), "oidc", "", _bearer())
