"""What a deployment gets wrong: the role says it in one line of its log and at /readyz, and does not die again and again.

Each case is a real role process; the words are those that an operator sees in `kubectl describe pod`.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from saltern.kit.process.process import EX_CONFIG
from tests.conftest import await_port, redis_program
from tests.roles.conftest import NewLab
from tests.roles.lab import ROLES, SOON, Lab, until

pytestmark = pytest.mark.roles

#: Longer than any test: a role that cannot start is asked meanwhile.
PAUSE = {"config_error_pause": 120}

REMEMBER = ("mworker", "publisher", "maintenance", "reactor")


@dataclass(frozen=True)
class Bad:
    """One mistake: options, or what else is spoilt; which roles notice, and what they say."""

    name: str
    says: str
    roles: tuple[str, ...]
    options: tuple[tuple[str, object], ...] = ()
    spoil: Callable[[Lab], object] | None = None


def no_keys(lab: Lab) -> None:
    shutil.rmtree(lab.etc / "keys")


def broken_keys(lab: Lab) -> None:
    for role in ROLES:
        (lab.etc / "keys" / role / "curve.secret").write_text("not a key\n")


def other_master(lab: Lab) -> None:
    (lab.etc / "keys" / "publisher" / "master.secret").write_bytes(b"short")


def broken_yaml(lab: Lab) -> None:
    _add(lab, "60-mine.conf", "file_roots: {base: [/srv/salt\n")


def wrong_option(lab: Lab) -> None:
    _add(lab, "60-mine.conf", "timeout: long\n")


def unreadable(lab: Lab) -> None:
    (lab.etc / "master.d" / "60-mine.conf").mkdir(parents=True)


def _add(lab: Lab, name: str, text: str) -> None:
    (lab.etc / "master.d").mkdir(exist_ok=True)
    (lab.etc / "master.d" / name).write_text(text)


def url(text: str) -> tuple[tuple[str, object], ...]:
    return (("redis_url", text),)


def roots(kind: str, env: str, directory: str) -> tuple[tuple[str, object], ...]:
    return ((f"{kind}_roots", {env: [directory]}),)


BAD = (
    Bad("no keys", "keys/{role}/", ROLES, spoil=no_keys),
    Bad("broken keys", "not a CurveZMQ key", tuple(role for role in ROLES if role != "publisher"), spoil=broken_keys),
    Bad("half a secret", "master.secret: must hold 32 bytes, holds 5", ("publisher",), spoil=other_master),
    Bad("no URL", "redis_url http://r:6379: ", REMEMBER, url("http://r:6379")),
    Bad(
        "unknown host",
        "redis at redis://nowhere.invalid:6379/0 does not answer",
        REMEMBER,
        (("redis_url", "redis://nowhere.invalid:6379/0"),),
    ),
    Bad(
        "nobody there",
        "redis at redis://127.0.0.1:1/0 does not answer",
        ("mworker",),
        (("redis_url", "redis://127.0.0.1:1/0"),),
    ),
    Bad(
        "no directory",
        "file_roots: base: /etc/passwd: Not a directory",
        ("mworker",),
        (("file_roots", {"base": ["/etc/passwd"]}),),
    ),
    Bad(
        "no tree",
        "pillar_roots: dev: /nowhere: No such file or directory",
        ("mworker",),
        (("pillar_roots", {"dev": ["/nowhere"]}),),
    ),
    Bad("no YAML", "60-mine.conf: not valid YAML: line 2, column 1: ", ("mworker",), spoil=broken_yaml),
    Bad(
        "an option of another type",
        "option 'timeout' must be a whole number, not 'long'",
        ("reqserver",),
        spoil=wrong_option,
    ),
    Bad("no file", "60-mine.conf: cannot be read: Is a directory", ("publisher",), spoil=unreadable),
)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_it_is_said_in_the_log_and_at_readyz(bad: Bad, module_labs: NewLab) -> None:
    lab = module_labs(minions=(), options={**PAUSE, **dict(bad.options)})
    if bad.spoil is not None:
        bad.spoil(lab)
    if "redis_url" not in dict(bad.options):
        lab.start_redis()
    for role in bad.roles:
        lab.start(role)
    for role in bad.roles:
        words = bad.says.format(role=role)
        said = until(lambda role=role: unready(lab, role), SOON, f"{role} says why")  # type: ignore[misc]
        assert words in said, f"{role}: {said}"
        assert lab.probe(role, "/livez")[0] == 200, f"{role} is alive: who says what is wrong needs no restart"
        log = (lab.root / "log" / role).read_text()
        assert len([line for line in log.splitlines() if "[ERROR" in line and words in line]) == 1, log
        assert "Traceback" not in log
    assert lab.dead() == {}


def unready(lab: Lab, role: str) -> str:
    """What /readyz says, once the role has got as far as to know."""
    status, body = lab.probe(role)
    return body if status == 503 and not body.startswith("start:") else ""


def test_a_minion_says_so_too(module_labs: NewLab) -> None:
    lab = module_labs(minions=("web1",))
    with (lab.root / "minions" / "web1" / "minion").open("a") as options:
        options.write("config_error_pause: 120\nhost_root: [/host]\n")
    lab.start("web1")
    said = until(lambda: unready(lab, "web1"), SOON, "the minion says why")
    assert said.startswith("configuration: ")
    assert "option 'host_root' must be text" in said
    assert lab.kill("web1", 15) == EX_CONFIG


def test_it_ends_at_a_signal_all_the_same(module_labs: NewLab) -> None:
    lab = module_labs(minions=(), options=PAUSE)
    no_keys(lab)
    lab.start("reqserver")
    until(lambda: unready(lab, "reqserver"), SOON, "the reqserver says why")
    assert lab.kill("reqserver", 15) == EX_CONFIG


def test_a_wrong_password_is_no_lost_connection(module_labs: NewLab) -> None:
    lab = module_labs(minions=(), options=PAUSE)
    own = lab.etc / "keys" / "mworker" / "redis.url"
    own.write_text(f"redis://mworker:wrong@127.0.0.1:{lab.port['redis']}/0")
    lab.start_redis()
    lab.start("mworker")
    said = until(lambda: unready(lab, "mworker"), SOON, "the worker says why")
    assert "WRONGPASS" in said or "invalid username-password" in said
    assert ":wrong@" not in said
    with redis.Redis(port=lab.port["redis"]) as server:
        # A refused sign-in is no right that is lacking.
        server.acl_log_reset()


def test_a_full_volume_is_named(module_labs: NewLab, tmp_path: Path) -> None:
    """Redis that can write no more: a limit of file size stands for the volume, the error comes from the kernel either way."""
    lab = module_labs(minions=(), options=PAUSE)
    words = [
        redis_program(),
        "--port",
        str(lab.port["redis"]),
        "--bind",
        "127.0.0.1",
        "--dir",
        str(tmp_path),
        "--save",
        "",
        "--aclfile",
        str(lab.root / "users.acl"),
    ]
    words += ["--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"]
    # 64 KiB a file; without the signal, writing fails as on a full volume.
    full = ["bash", "-c", 'trap "" XFSZ; ulimit -f 64; exec "$@"', "bash", *words]
    with (tmp_path / "log").open("wb") as log:
        lab.processes["redis"] = subprocess.Popen(
            full, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    await_port(lab.port["redis"], lab.processes["redis"])
    roles = (*REMEMBER, "reqserver")
    for role in roles:
        lab.start(role)
    lab.await_ready(*roles)
    with redis.Redis(port=lab.port["redis"]) as server:

        def filled() -> bool:
            try:
                server.append("filling", b"x" * 4096)
            except redis.ResponseError as error:
                return "MISCONF" in str(error)
            return False

        until(filled, SOON, "the volume is full")
    for role in REMEMBER:
        said = until(lambda role=role: unready(lab, role), SOON, f"{role} says why")  # type: ignore[misc]
        assert "MISCONF" in said, said
    # An idle worker has nothing to refuse. The runner itself waits with its result until Redis takes it: this is not waited for.
    asked = lab.started("salt-run", "jobs.list_jobs")
    # Nor has a publisher without jobs anything to write.
    for role in ("mworker", "maintenance"):
        log_of = lab.root / "log" / role
        until(lambda log_of=log_of: "MISCONF" in log_of.read_text(), SOON, f"{role} logs why")  # type: ignore[misc]
    assert lab.dead() == {}
    asked.kill()
    asked.communicate()
