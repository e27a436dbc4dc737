"""Keys, passwords and certificates are replaced while jobs run: each by one command, none lost, none run twice."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from masterstore.access import USERS
from saltern.kit.keys.keygen import make_keys
from saltern.kit.keys.redis_logins import ONE_URL, url_file, with_login
from saltern.kit.links.control import ControlClient, ControlError, ControlTimeout
from saltern.kit.links.sockets import LinkKeys
from saltwire.keys import PrivateKey
from tests.conftest import Oracle, redis_program
from tests.interop.stock import StockMinion, need_namespace
from tests.roles.conftest import NewLab
from tests.roles.lab import ROLES, SOON, STARTUP, Lab, until

pytestmark = pytest.mark.roles

#: Roles whose keys are replaced one after the other; ``api`` has no process.
NAMES = (*(role for role in ROLES), "cli")


class RotationLab(Lab):
    """A lab whose Redis has no user but those of ``saltern keygen``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        make_keys(self.keys_dir, operators=["ann"])

    @property
    def keys_dir(self) -> Path:
        """What ``saltern keygen`` wrote."""
        return self.etc / "keys"

    def launch_redis(self) -> None:
        """With the users of ``saltern keygen``."""
        words = [redis_program(), "--port", str(self.port["redis"]), "--bind", "127.0.0.1"]
        words += ["--dir", str(self.root / "redis"), "--save", "", "--appendonly", "yes"]
        self._launch("redis", [*words, "--aclfile", str(self.keys_dir / "redis" / "users.acl")])

    def rotate(self, *words: str) -> str:
        """What ``saltern rotate`` said."""
        return self.ok("saltern", "rotate", *words, "-c", str(self.etc)).out


class Load:
    """Jobs one after the other, in a thread: each is published for one minion and waited for."""

    def __init__(self, lab: Lab) -> None:
        self.answered: list[float] = []
        self.failed: list[str] = []
        self._lab = lab
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        import zmq

        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        client = ControlClient(context, self._lab.master_options, LinkKeys.load(self._lab.etc / "keys" / "cli"))
        number = 0
        while not self._ended.is_set():
            number += 1
            minion = self._lab.minions[number % len(self._lab.minions)]
            try:
                job = client.call(
                    "publish", tgt=minion, tgt_type="glob", fun="test.echo", arg=[f"n{number}"], timeout=20
                )
                deadline = time.monotonic() + 20
                found: object = None
                while found is None and time.monotonic() < deadline:
                    found = client.call("job_returns", jid=job["jid"], timeout=20).get(minion)
                    self._ended.wait(0.02)
                if isinstance(found, dict) and found.get("return") == f"n{number}":
                    self.answered.append(time.monotonic())
                elif not self._ended.is_set():
                    self.failed.append(f"n{number}: {found}")
            except (ControlError, ControlTimeout) as error:
                self.failed.append(f"n{number}: {error}")
        client.close()
        context.term()

    def longest_pause(self, since: float) -> float:
        """Seconds without an answer, at most, from a time on."""
        times = [since, *(one for one in self.answered if one > since), time.monotonic()]
        return max(later - earlier for earlier, later in itertools.pairwise(times))

    def close(self) -> None:
        """End the jobs."""
        self._ended.set()
        self._thread.join(30)


@pytest.fixture(scope="module")
def lab(module_labs: NewLab) -> Iterator[RotationLab]:
    made = module_labs(RotationLab, workers=2, options={"publisher_acl": {"ann": ["test.*"]}})
    assert isinstance(made, RotationLab)
    made.start_all()
    made.pings()
    yield made
    assert made.tracebacks() == []
    assert made.dead() == {}


@pytest.fixture
def load(lab: RotationLab) -> Iterator[Load]:
    made = Load(lab)
    until(lambda: len(made.answered) > 2, SOON, "jobs are answered")
    yield made
    made.close()


def while_jobs_run(load: Load, rotate: Callable[[], str], most: float) -> str:
    """Rotate, and check that jobs went on: none failed, and no pause was longer than ``most`` seconds."""
    since = time.monotonic()
    said = rotate()
    count = len(load.answered)
    until(lambda: len(load.answered) > count + 3, SOON, "jobs are answered afterwards")
    assert load.failed == [], said
    assert load.longest_pause(since) < most, said
    return said


@pytest.mark.parametrize("name", NAMES)
def test_the_key_of_a_role(lab: RotationLab, load: Load, name: str) -> None:
    old = (lab.keys_dir / name / "curve.secret").read_bytes()
    said = while_jobs_run(load, lambda: lab.rotate("role", name), 5)
    assert "the old one opens nothing any more" in said
    assert (lab.keys_dir / name / "curve.secret").read_bytes() != old
    lab.pings()
    assert {len(path.read_bytes().split()) for path in lab.keys_dir.glob("*/known/*.pub")} == {1}


def test_the_old_key_of_an_operator_is_refused(lab: RotationLab, load: Load, tmp_path: Path) -> None:
    import zmq

    old = LinkKeys.load(lab.keys_dir / "ann")
    while_jobs_run(load, lambda: lab.rotate("operator", "ann"), 5)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    new = LinkKeys.load(lab.keys_dir / "ann")
    assert new.secret != old.secret
    client = ControlClient(context, lab.master_options, new)
    assert client.call("publish", tgt="*", tgt_type="glob", fun="test.ping", arg=[])["jid"]
    client.close()
    thief = ControlClient(context, lab.master_options, LinkKeys(old.secret, old.public, new.known))
    with pytest.raises(ControlTimeout):
        thief.call("publish", tgt="*", tgt_type="glob", fun="test.ping", arg=[], timeout=2)
    thief.close()
    context.term()


def urls_of(lab: RotationLab) -> dict[str, str]:
    """The URLs of all users of Redis."""
    return {user: (lab.keys_dir / url_file(user)).read_text().strip() for user in USERS}


def all_are_refused(urls: Iterable[str]) -> bool:
    import redis

    for url in urls:
        with pytest.raises(redis.AuthenticationError):
            redis.Redis.from_url(url).ping()
    return True


def test_the_passwords_of_redis(lab: RotationLab, load: Load) -> None:
    old = urls_of(lab)
    said = while_jobs_run(load, lambda: lab.rotate("redis-password"), 5)
    assert "redis: the old passwords are not valid any more" in said
    new = urls_of(lab)
    assert all(map(_pings, new.values()))
    assert all_are_refused(old.values())
    # It is in the file of users, too.
    lab.restart("redis")
    until(lambda: _pings(new["operator"]), SOON, "redis is back")
    assert all_are_refused(old.values())


def test_one_password_for_all_roles_becomes_a_user_for_each(lab: RotationLab, load: Load) -> None:
    """As an earlier version made it: roles have copies of the URL with the only password."""
    import redis

    one = with_login(urls_of(lab)["operator"], "default", "old")
    with redis.Redis.from_url(urls_of(lab)["operator"]) as operator:
        operator.execute_command("ACL SETUSER", "default", "on", ">old", "~*", "&*", "+@all")
        (lab.keys_dir / ONE_URL).write_text(f"{one}\n")
        for user in USERS:
            (lab.keys_dir / url_file(user)).write_text(f"{one}\n")
        (lab.keys_dir / url_file("operator")).unlink()
        operator.execute_command("CLIENT KILL", "TYPE", "normal", "SKIPME", "yes")
        until(lambda: {row["user"] for row in operator.client_list()} == {"operator", "default"}, SOON, "one user")
    said = while_jobs_run(load, lambda: lab.rotate("redis-users"), 5)
    assert "redis: the old passwords are not valid any more" in said
    assert not (lab.keys_dir / ONE_URL).exists()
    assert all_are_refused([one])
    assert all(map(_pings, urls_of(lab).values()))
    with redis.Redis.from_url(urls_of(lab)["operator"]) as operator:
        until(lambda: {row["user"] for row in operator.client_list()} >= {"mworker", "publisher"}, SOON, "their users")
        assert [row for row in operator.client_list() if row["user"] == "default"] == []


def _pings(url: str) -> bool:
    import redis

    try:
        return bool(redis.Redis.from_url(url).ping())
    except redis.RedisError:
        return False


def test_the_key_of_the_master(lab: RotationLab, load: Load) -> None:
    pinned = [lab.root / "minions" / minion / "pki" / "minion_master.pub" for minion in lab.minions]
    old = (lab.keys_dir / "publisher" / "master.pub").read_text()
    assert {path.read_text() for path in pinned} == {old}
    said = while_jobs_run(load, lambda: lab.rotate("master"), 5)
    assert "the old one is not the master's any more" in said
    new = (lab.keys_dir / "publisher" / "master.pub").read_text()
    assert new != old
    lab.pings()
    until(lambda: {path.read_text() for path in pinned} == {new}, SOON, "minions know the new key alone")
    assert lab.ok("salt-key", "-f", "master.pub").out
    assert list(lab.keys_dir.glob("*/master.previous.pem")) == []


def test_a_minion_that_was_away_learns_the_masters_new_key(lab: RotationLab) -> None:
    away, there = lab.minions[0], lab.minions[1]
    lab.kill(away)
    said = lab.rotate("master", "--patience", "10")
    # On a busy machine others may not know it yet, either.
    assert f"do not know the new key yet: {away}" in said
    assert lab.salt(there, "test.ping") == {there: True}
    lab.start(away)
    lab.await_ready(away)
    assert lab.salt("*", "test.ping") == dict.fromkeys(lab.minions, True)
    assert "the old one is not the master's any more" in lab.rotate("master")
    lab.pings()


# ------------------------------------------------------------------------------------------------------ stock minions


#: Stock minion -> its options beside those of a lab.
STOCK: dict[str, dict[str, object]] = {"plain": {}, "checking": {"sign_pub_messages": True}}


@pytest.mark.oracle
def test_stock_minions_get_the_masters_new_key(new_lab: NewLab, oracle: Oracle) -> None:
    """They keep running, and answer jobs all the while; the second one checks the signature of each job."""
    need_namespace()
    lab = new_lab(RotationLab, minions=("web1",))
    assert isinstance(lab, RotationLab)
    stock = [StockMinion(name, oracle.venv, lab, options) for name, options in STOCK.items()]
    everybody = ["web1", *STOCK]
    try:
        lab.start_all()
        for one in stock:
            one.start()
        until(
            lambda: lab.run("salt", "-t", "5", "-L", ",".join(everybody), "test.ping").code == 0,
            6 * STARTUP,
            "all answer",
        )
        old = (lab.keys_dir / "publisher" / "master.pub").read_text().strip()
        pinned = [next(one.directory.rglob("minion_master.pub")) for one in stock]
        assert {path.read_text().strip() for path in pinned} == {old}
        running = [one.processes()[0] for one in stock]
        said = lab.rotate("master")
        assert "2 stock minions got the new key as a file" in said
        assert "the old one is not the master's any more" in said
        new = (lab.keys_dir / "publisher" / "master.pub").read_text().strip()
        assert new != old
        assert {path.read_text().strip() for path in pinned} == {new}
        assert lab.salt("-t", "30", "-L", ",".join(everybody), "test.ping") == dict.fromkeys(everybody, True)
        assert lab.salt("-t", "60", "checking", "pillar.items")["checking"]
        assert [one.processes()[0] for one in stock] == running
    finally:
        for one in stock:
            one.end()


@pytest.mark.oracle
def test_a_stock_minion_that_checks_the_master_by_a_signing_key_needs_nothing(new_lab: NewLab, oracle: Oracle) -> None:
    need_namespace()
    lab = new_lab(RotationLab, minions=(), options={"master_sign_pubkey": True})
    assert isinstance(lab, RotationLab)
    signer = PrivateKey.generate(2048)
    (lab.keys_dir / "mworker" / "master_sign.pem").write_bytes(signer.to_pem())
    # Salt puts root_dir in front of a directory that is not below it.
    pki = lab.root / "signed" / "root" / "pki"
    pki.mkdir(parents=True)
    (pki / "master_sign.pub").write_text(signer.public.pem + "\n")
    minion = StockMinion("signed", oracle.venv, lab, {"verify_master_pubkey_sign": True, "pki_dir": str(pki)})
    try:
        lab.start_all(*lab.roles)
        minion.start()
        until(lambda: lab.run("salt", "-t", "5", "signed", "test.ping").code == 0, 6 * STARTUP, "the minion answers")
        said = lab.rotate("master")
        assert "got the new key as a file" not in said
        assert "the old one is not the master's any more" in said
        new = (lab.keys_dir / "publisher" / "master.pub").read_text().strip()
        assert (pki / "minion_master.pub").read_text().strip() == new
        assert lab.salt("-t", "30", "signed", "test.ping") == {"signed": True}
    finally:
        minion.end()
