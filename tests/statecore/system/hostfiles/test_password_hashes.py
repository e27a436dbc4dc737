"""SHA-256 and SHA-512 password hashes, compared with crypt(3) and openssl."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from statecore.system.hostfiles import password_hashes

#: Made by crypt(3): (algorithm, rounds, salt, password, hash).
EXAMPLES = [
    ("sha256", None, "saltstring", "Hello world!", "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"),
    (
        "sha256",
        10000,
        "saltstring",
        "Hello world!",
        "$5$rounds=10000$saltstring$zY4WhW6dya5uGVNotd0y2Lk.E4rItnX94Q0R1OCQl40",
    ),
    (
        "sha512",
        None,
        "saltstring",
        "Hello world!",
        "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1",
    ),
]


@pytest.mark.parametrize(("algorithm", "rounds", "salt", "password", "wanted"), EXAMPLES)
def test_examples(algorithm, rounds, salt, password, wanted):
    assert password_hashes.make(password, algorithm=algorithm, salt=salt, rounds=rounds) == wanted
    assert password_hashes.matches(password, wanted)
    assert not password_hashes.matches(password + "x", wanted)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="this machine has no openssl to compare with")
@pytest.mark.parametrize("password", ["a", "Hello world!", "ü€", "x" * 70])
@pytest.mark.parametrize(("option", "algorithm"), [("-5", "sha256"), ("-6", "sha512")])
@pytest.mark.parametrize("salt", ["a", "saltstring", "1234567890123456"])
def test_as_openssl_makes_them(option, algorithm, salt, password):
    command = ["openssl", "passwd", option, "-salt", salt, "-stdin"]
    made = subprocess.run(command, input=password + "\n", text=True, capture_output=True, check=True).stdout.strip()
    assert password_hashes.make(password, algorithm=algorithm, salt=salt) == made


def test_rounds_are_told_and_bounded():
    few = password_hashes.make("x", salt="a", rounds=1)
    assert few.startswith("$6$rounds=1000$a$")
    assert password_hashes.matches("x", few)
    assert few.rpartition("$")[2] != password_hashes.make("x", salt="a").rpartition("$")[2]


def test_a_new_hash_has_a_salt_of_its_own():
    one, two = password_hashes.make("x"), password_hashes.make("x")
    assert one != two
    assert len(one.split("$")[2]) == 16
    assert password_hashes.matches("x", one)
    assert password_hashes.matches("x", two)


@pytest.mark.parametrize("known", ["", "!", "*", "x", "$1$a$b", "$y$j9T$x$y", "$6$nothing", "$6$a$b:c"])
def test_what_is_no_such_hash(known):
    assert not password_hashes.matches("x", known)


@pytest.mark.parametrize(
    ("given", "why"), [({"algorithm": "md5"}, "'md5' is not supported"), ({"salt": "a$b"}, "a salt must not contain")]
)
def test_nonsense(given, why):
    with pytest.raises(ValueError, match=why):
        password_hashes.make("x", **given)
