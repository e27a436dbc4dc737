"""Finding 38.21: the time of a failed sign-in must not tell whether the user exists."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import bcrypt
import ldap3
import pytest
from passlib.hash import apr_md5_crypt

from saltern.mworker.eauth import check
from tests.services.mworker.eauth.test_backends import _directory

#: Users of the files. No name of UNKNOWN is among them.
KNOWN = ("ann", "bob", "eve")
UNKNOWN = ("root", "nobody", "ann ", "ANN", "a" * 300, "an:n", "ünï", "ann\n", "\ud800")


@pytest.fixture(scope="module")
def hashes() -> dict[str, str]:
    """Passwords as slow digests: name of the digest -> the password "pw"."""
    return {"bcrypt": bcrypt.hashpw(b"pw", bcrypt.gensalt(10)).decode(), "apr1": apr_md5_crypt.hash("pw")}


def _seconds(settings: dict[str, Any], user: str, password: str) -> float:
    """The least CPU time of three sign-ins, all of which must fail."""
    found = []
    for _ in range(3):
        began = time.process_time()
        assert check(settings, "file", user, password) is None
        found.append(time.process_time() - began)
    return min(found)


@pytest.mark.parametrize("user", UNKNOWN)
@pytest.mark.parametrize("digest", ["bcrypt", "apr1"])
def test_an_unknown_user_costs_the_same_work(tmp_path: Path, hashes: dict[str, str], digest: str, user: str) -> None:
    path = tmp_path / "users"
    path.write_text("".join(f"{name}:{hashes[digest]}\n" for name in KNOWN))
    settings = {"external_auth": {"file": {"^filename": str(path), "^filetype": "htpasswd"}}}
    assert _seconds(settings, user, "wrong") > _seconds(settings, "ann", "wrong") / 2
    # The password of the user whose digest is computed instead lets nobody in.
    assert check(settings, "file", user, "pw") is None


@pytest.mark.parametrize("user", ["root", "nobody", "*", "ann)(uid=*", "an,n", "ünï"])
def test_a_directory_is_asked_about_an_unknown_user_as_often(monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    settings = _directory()
    binds: list[str] = []
    bind = ldap3.Connection.bind

    def counted(self: ldap3.Connection, *args: Any, **kwargs: Any) -> Any:
        binds.append(str(self.user))
        return bind(self, *args, **kwargs)

    monkeypatch.setattr(ldap3.Connection, "bind", counted)
    assert check(settings, "ldap", "ann", "wrong") is None
    of_known = len(binds)
    assert check(settings, "ldap", user, "wrong") is None
    assert len(binds) == 2 * of_known


@pytest.mark.parametrize("user", ["root", "no-such-user"])
def test_pam_answers_at_a_whole_second(user: str) -> None:
    began = time.monotonic()
    assert check({"external_auth": {"pam": {}}}, "pam", user, "certainly-not-this") is None
    taken = time.monotonic() - began
    assert taken > 0.99
    assert taken % 1 < 0.5 or taken % 1 > 0.99
