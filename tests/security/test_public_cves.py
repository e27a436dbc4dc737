"""Replays public vulnerabilities of Salt's master, 2020 to 2025, against Saltern's master. The test names hold the CVE ids.

Vulnerabilities of parts that do not exist here are rows of docs/security.md#public-faults-of-salt; ``ABSENT`` checks that
there is no such part.

The tests use only the public descriptions, no published code.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from saltern.mworker.commands import CONTROL_COMMANDS, MINION_COMMANDS
from saltern.mworker.request_handler import BAD_LOAD
from saltwire.crypticle import Crypticle, SerialGate
from saltwire.envelope import clear_request
from saltwire.errors import PeerFault
from saltwire.handshake import SignIn
from saltwire.keys import PrivateKey, generate_key_string
from saltwire.pack import packb, unpackb
from saltwire.pillar_transfer import open_pillar, seal_pillar
from saltwire.publication import open_job, seal_job
from statecore.model.errors import StatecoreError
from tests.security.conftest import LocalMinion
from tests.services.mworker.conftest import FakeMinion, Worker

pytestmark = pytest.mark.redis

NewWorker = Callable[..., Worker]

ROOT = Path(__file__).resolve().parents[2]
JID = "20260101000000000000"
SECRET = "sesame-open"
JOB = {"fun": "cmd.run", "arg": ["id"], "tgt": "*", "tgt_type": "glob", "ret": "", "tmo": 5, "jid": ""}

#: Paths that lead out of a directory of ``tmp_path`` to ``tmp_path/secret/file``; OUT becomes the absolute path.
PATHS = (
    "../secret/file",
    "../../../../../../../../../../OUT",
    "OUT",
    "/OUT",
    "a/../../secret/file",
    "./../secret/file",
    "..//secret/file",
    "link/file",
    "\0/../secret/file",
    "../secret/file\0.sls",
    "%2e%2e/secret/file",
    "..\\secret\\file",
    "|../secret/file",
    "../secret/file?saltenv=base",
)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Path of a file beside the master's trees that no request may read or change."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/file").write_text(SECRET)
    for tree in ("salt", "pillar"):
        (tmp_path / tree).mkdir(exist_ok=True)
    return tmp_path / "secret/file"


def _path(text: str, secret: Path) -> str:
    return text.replace("OUT", str(secret)).replace("//tmp", "/tmp")


def _names(top: Path) -> set[str]:
    """Return the relative paths of everything below a directory."""
    return {str(path.relative_to(top)) for path in top.rglob("*")}


def _nothing_happened(worker: Worker) -> None:
    assert worker.store.publications.range_since(0) == []
    assert worker.runners == []


# ------------------------------------------------------------------------------------- methods that nobody may call

#: Methods of Salt's master classes that a request could name, and commands that administer.
METHODS = (
    "_prep_auth_info", "_send_pub", "_send_ssh_pub", "_prep_pub", "_prep_jid", "_auth_", "get_token", "mk_token", "publish",
    "runner", "wheel", "__init__", "__getattribute__", "destroy", "run_func", "get_method", "_syndic_return", "_handle_clear",
    "_handle_aes", "verify_minion", "pub", "ssh", "wheel_async", "local", "local_async", "runner_async",
)  # fmt: skip


@pytest.mark.parametrize("cmd", METHODS)
@pytest.mark.parametrize("sealed", [False, True], ids=["without a key", "by an accepted minion"])
def test_cve_2020_11651_no_method_without_a_row(worker: Worker, cmd: str, sealed: bool) -> None:
    """A request named any method of the master's class: the root key was read, and jobs were published."""
    minion = worker.minion()
    load = {**JOB, "cmd": cmd, "id": "web1", "key": "x", "token": "x", "user": "root", "kwargs": {}, "eauth": "auto"}
    load |= {"tgt": "*", "match": "*", "path": "x"}
    if sealed:
        assert minion.ask(cmd, **{name: value for name, value in load.items() if name not in ("cmd", "id")}) == {}
    else:
        assert worker.handler.answer(b"minion", "", clear_request(load, version=3)) == packb({})
    _nothing_happened(worker)
    assert worker.events == []


# --------------------------------------------------------------------------------------------------- paths of operators


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("fun", ["read", "find", "write"])
@pytest.mark.parametrize(
    "tree",
    ["file_roots", "pillar_roots"],
    ids=["CVE-2020-11652 file_roots", "CVE-2020-11652 and CVE-2021-25282 pillar_roots"],
)
def test_a_wheel_function_stays_in_its_tree(worker: Worker, secret: Path, tree: str, fun: str, path: str) -> None:
    for name in ("salt", "pillar"):
        (secret.parents[1] / name / "link").symlink_to("../secret")
    before = _names(secret.parents[1])
    kwarg = {"path": _path(path, secret)} | ({"data": "forged"} if fun == "write" else {})
    answer = worker.control("wheel", fun=f"{tree}.{fun}", arg=[], kwarg=kwarg)
    assert SECRET not in str(answer)
    assert str(secret) not in str(answer) or fun == "write"
    assert secret.read_text() == SECRET
    made = _names(secret.parents[1]) - before
    assert all(name.startswith(("salt/", "pillar/")) for name in made), made


# --------------------------------------------------------------------------------------------------- credentials of an API

#: CVE -> what a client of the API presents instead of a right.
CREDENTIALS: dict[str, dict[str, Any]] = {
    "CVE-2020-25592 any eauth": {"eauth": "x", "username": "root", "password": "x"},
    "CVE-2020-25592 any token": {"token": "x"},
    "CVE-2020-11652 a token that is a path": {"token": "../../../../etc/passwd"},
    "CVE-2021-25281 no credentials": {"kind": "wheel_async"},
    "CVE-2021-25281 eauth of another client": {"kind": "wheel_async", "eauth": "auto", "username": "cli", "password": ""},
    "CVE-2021-3144 a token that has expired": {"token": "a" * 64, "expire": 0},
    "CVE-2022-22967 a locked account": {"eauth": "pam", "username": "nobody", "password": ""},
    "CVE-2024-38825 a certificate as password": {"eauth": "pki", "username": "cli", "password": "-----BEGIN CERTIFICATE-----"},
    "CVE-2020-11651 the master's root key": {"key": "x", "user": "root"},
}  # fmt: skip


@pytest.mark.parametrize("cve", CREDENTIALS)
@pytest.mark.parametrize("client", ["api", "ann", "*"])
@pytest.mark.parametrize("cmd", ["publish", "runner", "wheel", "ssh"])
def test_credentials_in_a_request_give_no_right(worker: Worker, cve: str, client: str, cmd: str) -> None:
    worker.accept("web1")
    fields = {"fun": "key.accept" if cmd == "wheel" else "test.ping", "tgt": "*", "kwarg": {"match": "*"}}
    name, _ = worker.control(cmd, client, **(fields | CREDENTIALS[cve]))
    refused = "TokenAuthenticationError" if "token" in CREDENTIALS[cve] else "AuthorizationError"
    assert name == ("UnknownCommand" if cmd not in CONTROL_COMMANDS else refused)
    _nothing_happened(worker)
    assert worker.events == []


@pytest.mark.parametrize("tgt", ["db9", "db*", "G@os:none", "not *", "", [], ["db9"], "db9,web9", "N@none"])
def test_cve_2022_22941_no_minion_is_not_every_minion(new_worker: NewWorker, tgt: Any) -> None:
    """A target without a minion that the master knows was taken for one that the access list allows."""
    master = new_worker(publisher_acl={"ann": [{"web*": ["test.ping"]}]})
    master.accept("web1", "vault")
    kind = "list" if isinstance(tgt, list) else "compound"
    answer = master.control("publish", "ann", fun="test.ping", tgt=tgt, tgt_type=kind)
    assert isinstance(answer, tuple) or answer["minions"] == []
    for _, job in master.store.publications.range_since(0):
        assert job["tgt_type"] == "list"
        assert job["tgt"] == []


# ------------------------------------------------------------------------------------------------------ templates and logs

ESCAPES = (
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ cycler.__init__.__globals__ }}",
    "{{ self.__init__.__globals__ }}",
    "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "{{ (1).__class__.__base__.__subclasses__() }}",
    "{{ '{0.__class__.__init__.__globals__}'.format(grains) }}",
    "{{ ''|attr('__class__')|attr('__mro__') }}",
)


@pytest.mark.parametrize("template", ESCAPES)
def test_cve_2021_25283_a_template_stays_in_its_sandbox(new_worker: NewWorker, tmp_path: Path, template: str) -> None:
    master = new_worker()
    (tmp_path / "pillar/top.sls").write_text("base: {'*': [a]}\n")
    (tmp_path / "pillar/a.sls").write_text(f"found: |\n  {template}\n")
    pillar = master.minion().pillar()
    found = str(pillar.get("found", ""))
    assert "_errors" in pillar or not any(word in found for word in ("<class", "<module", "uid=", "builtins"))


@pytest.mark.parametrize("template", [*ESCAPES, "{{ 7 * 191 }}", "{% import os %}"])
def test_cve_2021_25283_a_grain_is_no_template(new_worker: NewWorker, tmp_path: Path, template: str) -> None:
    """Grains are a minion's words; a template that shows them does not render them."""
    master = new_worker()
    (tmp_path / "pillar/top.sls").write_text("base: {'*': [a]}\n")
    (tmp_path / "pillar/a.sls").write_text("found: {{ grains['role'] | json }}\n")
    assert master.minion().pillar(grains={"role": template}) == {"found": template}


@pytest.mark.parametrize("fun", ["run", "run_all", "retcode", "run_stdout", "shell"])
def test_cve_2021_25284_the_log_has_no_secret_of_a_command(
    plain: LocalMinion, caplog: pytest.LogCaptureFixture, fun: str
) -> None:
    caplog.set_level(logging.INFO)
    plain.here().call(f"cmd.{fun}", "false", env={"PASSWORD": SECRET}, stdin=SECRET, python_shell=True)
    assert SECRET not in caplog.text


@pytest.mark.parametrize("umask", [0, 0o22, 0o77], ids=oct)
def test_cve_2020_17490_a_private_key_is_for_its_owner(plain: LocalMinion, tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        plain.here().call("x509.create_private_key", path=str(tmp_path / "key.pem"))
    finally:
        os.umask(before)
    assert (tmp_path / "key.pem").stat().st_mode & 0o777 in (0o600, 0o400)


# -------------------------------------------------------------------------------- somebody between a minion and its master


#: What somebody without the master's key answers to a sign-in.
ANSWERS: dict[str, Callable[[FakeMinion], bytes]] = {
    "nothing": lambda minion: b"",
    "an unsigned refusal": lambda minion: packb({"enc": "clear", "load": {"ret": False}}),
    "an unsigned success": lambda minion: packb({"enc": "pub", "aes": "x", "pub_key": minion.key.public.pem}),
    "an unsigned full": lambda minion: packb({"enc": "clear", "load": {"ret": "full"}}),
    "bad load": lambda minion: BAD_LOAD,
    "a signature of another key": lambda minion: _signed_by(minion.key, {"ret": False, "nonce": "0" * 32}),
    "a success that another key signed": lambda minion: _signed_by(
        minion.key,
        {"enc": "pub", "pub_key": minion.key.public.pem, "aes": "x", "nonce": "0" * 32, "publish_port": 4505},
    ),
}


def _signed_by(key: PrivateKey, load: Mapping[str, Any]) -> bytes:
    packed = packb(load)
    return packb(
        {"enc": "clear", "load": packed, "sig": key.sign(packed, "PKCS1v15-SHA1"), "sig_algo": "PKCS1v15-SHA1"}
    )


@pytest.mark.parametrize("answer", ANSWERS)
def test_cve_2022_22935_a_sign_in_believes_nobody_else(worker: Worker, answer: str) -> None:
    minion = worker.minion()
    machine = SignIn("web1", minion.key, minion.master)
    believed = machine.feed(ANSWERS[answer](minion))
    assert believed.credentials is None
    assert believed.outcome.value == "bad"


def _pillar(master: PrivateKey, minion: PrivateKey, nonce: str) -> bytes:
    return seal_pillar(
        {"role": "forged"},
        minion_pub=minion.public,
        master_key=master,
        nonce=nonce,
        enc_algo="OAEP-SHA1",
        sig_algo="PKCS1v15-SHA1",
    )


@pytest.mark.parametrize("attack", ["another signer", "the minion itself", "an earlier answer", "no signature"])
def test_cve_2022_22934_a_pillar_is_signed(
    attack: str, master_key: PrivateKey, minion_key: PrivateKey, other_key: PrivateKey
) -> None:
    nonce = "a" * 32
    reply = {
        "another signer": lambda: _pillar(other_key, minion_key, nonce),
        "the minion itself": lambda: _pillar(minion_key, minion_key, nonce),
        "an earlier answer": lambda: _pillar(master_key, minion_key, "b" * 32),
        "no signature": lambda: _unsigned_pillar(minion_key),
    }[attack]()
    with pytest.raises(PeerFault):
        open_pillar(
            reply,
            private_key=minion_key,
            master_pub=master_key.public,
            nonce=nonce,
            enc_algo="OAEP-SHA1",
            sig_algo="PKCS1v15-SHA1",
        )


def _unsigned_pillar(minion_key: PrivateKey) -> bytes:
    key = generate_key_string()
    sealed = Crypticle(key).dumps({"role": "forged"})
    return packb({"key": minion_key.public.encrypt(key.encode(), "OAEP-SHA1"), "pillar": sealed})


@pytest.mark.parametrize("later", [0, 1, 100])
def test_cve_2022_22936_a_job_is_not_published_again(later: int, master_key: PrivateKey) -> None:
    aes, gate = Crypticle(generate_key_string()), SerialGate()
    job = {**JOB, "jid": JID}
    old = seal_job(job, aes, master_key, "PKCS1v15-SHA1", 10)
    for serial in range(10, 11 + later):
        sealed = seal_job({**job, "jid": str(int(JID) + serial)}, aes, master_key, "PKCS1v15-SHA1", serial)
        assert open_job(sealed, aes, gate=gate, master_pub=master_key.public, verify=True) is not None
    assert open_job(old, aes, gate=gate, master_pub=master_key.public, verify=True) is None


@pytest.mark.parametrize("cmd", ["_serve_file", "_file_hash", "_file_list", "_mine_get", "_master_opts"])
def test_cve_2022_22936_an_answer_of_the_fileserver_is_not_given_again(worker: Worker, cmd: str) -> None:
    minion = worker.minion()
    reply, _ = minion.send({"cmd": cmd, "id": "web1", "path": "top.sls", "saltenv": "base", "loc": 0})
    _, nonce = minion.send({"cmd": cmd, "id": "web1", "path": "top.sls", "saltenv": "base", "loc": 0})
    assert isinstance(reply, bytes)
    with pytest.raises(PeerFault):
        minion.session.open(reply, nonce)


# ------------------------------------------------------------------------------------------------- requests of minions

#: Requests that Salt's master could not read.
BAD_PACKETS: dict[str, bytes] = {
    "nothing": b"",
    "no msgpack": b"\xc1\xff\x00",
    "half a map": b"\x82\xa3enc",
    "a number": packb(7),
    "a list": packb([1, 2]),
    "no load": packb({"enc": "aes"}),
    "a load of another kind": packb({"enc": "aes", "load": 5, "version": 3}),
    "an unknown encryption": packb({"enc": "rot13", "load": {}, "version": 3}),
    "a clear load that is a text": packb({"enc": "clear", "load": "x", "version": 3}),
    "noise in an encrypted load": packb({"enc": "aes", "load": b"\xff" * 100, "version": 3, "id": "web1"}),
    "an id that is a map": packb({"enc": "aes", "load": b"x", "version": 3, "id": {"a": 1}}),
}


@pytest.mark.parametrize("packet", BAD_PACKETS)
def test_cve_2023_20897_bad_packets_leave_a_worker_working(worker: Worker, packet: str) -> None:
    """As many bad packets as there are workers stopped Salt's master until its restart."""
    minion = worker.minion()
    for _ in range(50):
        assert isinstance(worker.handler.answer(b"minion", "", BAD_PACKETS[packet]), bytes)
    minion.ask("_return", jid=JID, fun="test.ping", **{"return": True})
    assert worker.tags() == [f"salt/job/{JID}/ret/web1"]


@pytest.mark.parametrize(
    ("follow", "path"),
    # An operator's own link is followed unless the option forbids it: docs/security.md#what-is-not-promised
    [(follow, path) for follow in (True, False) for path in PATHS if not (follow and path == "link/file")],
)
@pytest.mark.parametrize("cmd", ["_serve_file", "_file_find", "_file_hash", "_file_hash_and_stat"])
def test_cve_2024_22232_no_file_outside_of_the_tree(
    new_worker: NewWorker, secret: Path, cmd: str, path: str, follow: bool
) -> None:
    (secret.parents[1] / "salt/link").symlink_to("../secret")
    master = new_worker(fileserver_followsymlinks=follow)
    answer = master.minion().ask(cmd, path=_path(path, secret), saltenv="base", loc=0, gzip=None)
    assert SECRET not in str(answer)
    assert not any(str(part).isalnum() and len(str(part)) > 30 for part in _leaves(answer)), answer


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in _leaves(one)]
    return [leaf for one in value for leaf in _leaves(one)] if isinstance(value, list) else [value]


ENVIRONMENTS = (
    "../secret",
    "OUT/..",
    "..",
    "../../secret",
    "__env__/../../secret",
    ".",
    "base/../../secret",
    "\0",
    "../secret\0",
)


@pytest.mark.parametrize("saltenv", ENVIRONMENTS)
@pytest.mark.parametrize("cmd", ["_serve_file", "_file_find", "_file_hash", "_file_list", "_dir_list", "_symlink_list"])
def test_cve_2025_22240_no_environment_leads_outside(
    new_worker: NewWorker, secret: Path, cmd: str, saltenv: str
) -> None:
    """The name of the environment became a part of a path: directories were made and files were removed."""
    (secret.parents[1] / "envs").mkdir()
    roots = {"base": [str(secret.parents[1] / "salt")], "__env__": [str(secret.parents[1] / "envs/__env__")]}
    master = new_worker(file_roots=roots, cachedir=str(secret.parents[1] / "cache"))
    before = _names(secret.parents[1])
    answer = master.minion().ask(cmd, path="file", saltenv=_path(saltenv, secret), loc=0, prefix="")
    assert SECRET not in str(answer)
    assert not any(leaf == "file" for leaf in _leaves(answer) if cmd.endswith("_list"))
    assert secret.read_text() == SECRET
    assert _names(secret.parents[1]) - before <= {"cache"}


@pytest.mark.parametrize("field", ["saltenv", "pillarenv"])
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_cve_2025_22240_no_pillar_environment_leads_outside(
    new_worker: NewWorker, secret: Path, field: str, environment: str
) -> None:
    (secret.parents[1] / "pillars").mkdir()
    top = {name: {"*": ["stolen"]} for name in ("base", _path(environment, secret))}
    (secret.parent / "top.sls").write_text(json.dumps(top))
    (secret.parent / "stolen.sls").write_text(f"found: {SECRET}\n")
    roots = {"__env__": [str(secret.parents[1] / "pillars/__env__")]}
    pillar = new_worker(pillar_roots=roots).minion().pillar(**{field: _path(environment, secret)})
    assert SECRET not in str(pillar)


@pytest.mark.parametrize("cmd", sorted({*MINION_COMMANDS, "_pillar"}))
@pytest.mark.parametrize("how", ["a load with another id", "an envelope with another id", "no token", "another token"])
def test_cve_2024_38822_no_minion_speaks_for_another(new_worker: NewWorker, cmd: str, how: str) -> None:
    master = new_worker(peer={".*": [".*"]}, peer_run={".*": [".*"]}, file_recv=True)
    victim, minion = master.minion("db1", key=1), master.minion("web1")
    victim.ask("_mine", data={"f": 1})
    master.events.clear()
    named = "web1" if how == "an envelope with another id" else "db1"
    load = {
        **JOB,
        "data": {"f": 2},
        "tag": "site/x",
        "jid": JID,
        "return": 1,
        "nonce": "0" * 32,
        "ts": int(time.time()),
    }
    load |= {"cmd": cmd, "id": named, "grains": {"role": "forged"}, "path": ["a"], "loc": 0, "size": 1, "events": None}
    if how != "no token":
        load["tok"] = minion.session._token if how != "another token" else b"x" * 256
    sealed = minion.session.key.dumps(load)
    outer = "db1" if how == "an envelope with another id" else "web1"
    assert (
        master.handler.answer(b"minion", "", packb({"enc": "aes", "load": sealed, "version": 3, "id": outer}))
        == BAD_LOAD
    )
    assert master.store.cache.mine_get(["db1"], "f") == {"db1": 1}
    assert master.store.cache.grains_of(["db1"]) == {}
    assert master.store.minion_keys.state_of("db1") == ("accepted", victim.key.public.pem)
    assert master.events == []
    _nothing_happened(master)


@pytest.mark.parametrize("cmd", ["_minion_event", "_mine", "_mine_flush", "revoke_auth", "_return"])
def test_cve_2024_38823_a_recorded_request_is_not_carried_out_again(worker: Worker, cmd: str) -> None:
    minion = worker.minion()
    load = {"cmd": cmd, "id": "web1", "tag": "site/x", "data": {"f": 1}, "jid": JID, "fun": "test.ping", "return": True}
    recorded, _ = minion.session.seal(load, time.time())
    worker.handler.answer(b"minion", "", recorded)
    if cmd == "revoke_auth":
        worker.store.minion_keys.store("web1", minion.key.public.pem, "accepted")
    worker.store.cache.mine_set("web1", {"f": 2})
    worker.events.clear()
    worker.handler.answer(b"minion", "", recorded)
    assert worker.events == []
    assert worker.store.cache.mine_get(["web1"], "f") == {"web1": 2}
    assert worker.store.minion_keys.state_of("web1") == ("accepted", minion.key.public.pem)


@pytest.mark.parametrize(
    "path",
    [
        ["..", "..", "x"],
        ["/", "etc", "x"],
        ["/etc/x"],
        ["a", "..", "..", "..", "x"],
        ["../../x"],
        ["a/../../../x"],
        ["a\0", "x"],
        [""],
        [],
        [["x"]],
        [5],
        ["."],
        "../../x",
        {"a": 1},
        None,
    ],
    ids=str,
)
def test_cve_2024_38824_a_pushed_file_stays_in_its_directory(new_worker: NewWorker, tmp_path: Path, path: Any) -> None:
    master = new_worker(file_recv=True, cachedir=str(tmp_path / "cache"))
    minion = master.minion()
    before = _names(tmp_path)
    assert minion.ask("_file_recv", path=path, loc=0, size=1, data=b"x") is False
    assert {name for name in _names(tmp_path) - before if (tmp_path / name).is_file()} == set()


@pytest.mark.parametrize(
    "cmd", ["minion_pub", "minion_publish", "minion_runner", "minion_wheel", "publish", "_send_pub", "runner", "wheel"]
)
@pytest.mark.parametrize("more", [{}, {"user": "root"}, {"id": "db1"}, {"__pub_user": "root", "key": "x"}], ids=str)
def test_cve_2025_22236_no_minion_runs_jobs_on_others(worker: Worker, cmd: str, more: dict[str, Any]) -> None:
    minion = worker.minion()
    worker.accept("db1")
    payload, nonce = minion.session.seal({**JOB, "cmd": cmd, "id": "web1", **more}, time.time())
    reply = worker.handler.answer(b"minion", "", payload)
    assert isinstance(reply, bytes)
    assert reply == BAD_LOAD or minion.session.open(reply, nonce) == {}
    _nothing_happened(worker)


@pytest.mark.parametrize("listed", [["libvirt", "virtkey"], ["git"]], ids=["as shipped", "git is listed"])
@pytest.mark.parametrize(
    "url",
    [
        "master ext::sh -c touch% MARK",
        "master --upload-pack=touch MARK",
        "master ssh://-oProxyCommand=touch%20MARK/x",
        "master file:///tmp/x;touch MARK",
        "master `touch MARK`",
        "$(touch MARK)",
        "--upload-pack=touch MARK x",
    ],
)
def test_cve_2025_22237_a_minion_names_no_repository(
    new_worker: NewWorker, tmp_path: Path, listed: list[str], url: str
) -> None:
    """The worker fetches nothing: it reads mirrors of the remotes that the options name."""
    master = new_worker(on_demand_ext_pillar=listed, cachedir=str(tmp_path / "cache"))
    mark = tmp_path / "mark"
    pillar = master.minion().pillar(ext={"git": [url.replace("MARK", str(mark))]})
    assert not mark.exists()
    assert set(pillar) <= {"_errors"}


@pytest.mark.parametrize("cve", ["CVE-2025-22238", "CVE-2025-22241"])
@pytest.mark.parametrize(
    "text", ["../../made", "/MADE", "a/../../../made", "..", ".", "a/b", "a\0b", "-made", "made\n", ""]
)
def test_no_id_becomes_a_path(new_worker: NewWorker, tmp_path: Path, cve: str, text: str) -> None:
    """Files of the cache by a minion's id; files of the keys by the words of a request for pillar (virtkey)."""
    master = new_worker(cachedir=str(tmp_path / "cache"))
    text = text.replace("MADE", str(tmp_path / "made"))
    minion = master.minion()
    before = _names(tmp_path)
    if cve == "CVE-2025-22238":
        load = {"cmd": "_auth", "id": text, "nonce": "0" * 32, "pub": minion.key.public.pem}
        master.handler.answer(b"minion", "", clear_request(load, version=3))
        stored = [
            minion
            for state in ("accepted", "pending", "denied", "rejected")
            for minion in master.store.minion_keys.ids(state)
        ]
        assert set(stored) <= {"web1", "-made"}
    else:
        minion.pillar(ext={"virtkey": {"hyper": text, "name": text}, "libvirt": {"id": text}})
        assert master.store.minion_keys.ids("accepted") == ["web1"]
    assert _names(tmp_path) - before <= {"cache"}


@pytest.mark.parametrize("form", ["single", "batch", "pretag"])
@pytest.mark.parametrize(
    "tag",
    [
        f"salt/job/{JID}/new",
        f"salt/job/{JID}/ret/db1",
        f"salt/run/{JID}/new",
        f"salt/wheel/{JID}/new",
        "salt/auth",
        "salt/key",
        "salt/minion/db1/start",
        "salt/cloud/db1/created",
        "salt/netapi/hook/x",
        "salt/beacon/db1/x/",
        "minion/refresh/db1",
        "key",
    ],
)
def test_cve_2025_22239_no_event_of_the_master_by_a_minion(worker: Worker, tag: str, form: str) -> None:
    event = {"tag": tag, "data": {"id": "db1", "fun": "runner.x"}}
    start, _, end = tag.partition("/")
    load = {
        "single": event,
        "batch": {"events": [event]},
        "pretag": {"pretag": start, "events": [{**event, "tag": end or tag}]},
    }[form]
    worker.minion().ask("_minion_event", **load)
    assert tag not in worker.tags()
    assert all(data["id"] == "web1" for _, data in worker.events)


@pytest.mark.parametrize(
    "jid",
    ["/dev/zero", "../../../../../../dev/zero", "../../etc/passwd", "", JID, 5, None, ["x"], {"a": 1}, "x" * 100_000, "\0"],
    ids=lambda jid: str(jid)[:20],
)  # fmt: skip
def test_cve_2025_22242_a_jid_is_no_path(worker: Worker, jid: Any) -> None:
    """A worker opened the file that the JID of a ``pub_ret`` named, and read for ever."""
    began = time.process_time()
    assert worker.minion().ask("pub_ret", jid=jid) == {}
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("version", [..., None, 0, 1, 2, -3, "2", 2.5, True])
@pytest.mark.parametrize("cmd", ["_return", "_mine", "_minion_event", "_pillar", "_serve_file", "minion_pub"])
def test_cve_2025_62349_no_older_form_of_a_request(worker: Worker, cmd: str, version: Any) -> None:
    """The form of message version 2 and before does not prove who sends it."""
    minion = worker.minion()
    payload, _ = minion.session.seal(
        {**JOB, "cmd": cmd, "id": "web1", "data": {"f": 1}, "return": 1, "jid": JID}, time.time()
    )
    outer: Any = unpackb(payload)
    outer.pop("version")
    if version is not ...:
        outer["version"] = version
    for keys in ({}, {"id": None}, {"id": "db1"}):
        assert worker.handler.answer(b"minion", "", packb(outer | keys)) == BAD_LOAD
    assert worker.events == []


@pytest.mark.parametrize(
    "load",
    [{"id": "web1", "syndic_id": "../../made", "load": [{"jid": JID, "return": {}}]}, {"syndic": "../made"}, {"jid": "../made"}],
    ids=["a list of returns", "a return through a syndic", "a path as JID"],
)  # fmt: skip
@pytest.mark.parametrize("cmd", ["_syndic_return", "_return"])
def test_cve_2024_22231_no_directory_of_a_syndic(
    new_worker: NewWorker, tmp_path: Path, cmd: str, load: dict[str, Any]
) -> None:
    master = new_worker(cachedir=str(tmp_path / "cache"))
    minion = master.minion()
    before = _names(tmp_path)
    assert minion.ask(cmd, **({"fun": "test.ping", "return": 1, "jid": JID} | load)) in ({}, False, None)
    assert _names(tmp_path) - before <= {"cache"}


@pytest.mark.parametrize("envs", [("base", "dev"), ("dev", "../base"), ("a_b", "a/b")], ids=str)
def test_cve_2023_20898_no_environment_gets_the_files_of_another(
    new_worker: NewWorker, tmp_path: Path, envs: tuple[str, str]
) -> None:
    """Repositories of two environments shared a directory of the cache."""
    for number, saltenv in enumerate(envs):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "file").write_text(saltenv)
    master = new_worker(file_roots={env: [str(tmp_path / str(number))] for number, env in enumerate(envs)})
    minion = master.minion()
    for saltenv in envs:
        answer: Any = minion.ask("_serve_file", path="file", saltenv=saltenv, loc=0)
        assert answer["data"] in (saltenv, saltenv.encode(), "", b"")


# ---------------------------------------------------------------------------------------------- parts that do not exist here

#: CVE -> (the part of Salt that has the fault, files that would be that part here).
ABSENT: dict[str, tuple[str, tuple[str, ...]]] = {
    "CVE-2020-16846": (
        "the SSH client of the REST API",
        ("services/saltern/api/ssh*", "services/saltern/cli/salt_ssh*"),
    ),
    "CVE-2021-3148": ("salt-ssh's thin archives", ("services/**/thin*", "libs/statecore/builtin/**/thin*")),
    "CVE-2021-3197": (
        "the SSH client of the REST API",
        ("services/saltern/api/ssh*", "services/saltern/cli/salt_ssh*"),
    ),
    "CVE-2023-34049": ("the pre-flight script of salt-ssh", ("services/saltern/cli/salt_ssh*",)),
    "CVE-2020-28972": ("the cloud drivers for vmware", ("libs/**/vmware*", "services/**/vmware*")),
    "CVE-2020-35662": ("modules for splunk, vmware and others", ("libs/**/splunk*", "libs/**/vmware*")),
    "CVE-2021-31607": ("the module snapper", ("libs/statecore/builtin/modules/snapper*",)),
    "CVE-2021-22004": ("the installer for Windows", ("**/*.nsi",)),
    "CVE-2025-62348": ("the module junos", ("libs/statecore/builtin/modules/junos*",)),
}


@pytest.mark.parametrize("cve", ABSENT)
@pytest.mark.ordinary
def test_a_part_that_is_said_to_be_absent_is_absent(cve: str) -> None:
    part, patterns = ABSENT[cve]
    found = [str(path) for pattern in patterns for place in ("libs", "services") for path in _found(place, pattern)]
    assert found == [], f"{cve} is about {part}: play the attack"
    assert f"| {cve} | {part}" in (ROOT / "docs/security.md").read_text("utf-8")


def _found(place: str, pattern: str) -> list[Path]:
    return list((ROOT / place).glob(pattern.removeprefix(f"{place}/"))) if pattern.startswith((place, "**")) else []


@pytest.mark.parametrize("client", ["cli", "api", "ann"])
@pytest.mark.parametrize("cve", ["CVE-2020-16846", "CVE-2021-3148", "CVE-2021-3197", "CVE-2023-34049"])
def test_no_command_reaches_salt_ssh(worker: Worker, cve: str, client: str) -> None:
    fields = {
        "fun": "test.ping",
        "tgt": "x",
        "ssh_options": ["ProxyCommand=id"],
        "ssh_priv": "aaa;id",
        "ssh_pre_flight": "x",
    }
    for cmd in ("ssh", "ssh_async", "_send_ssh_pub"):
        assert worker.control(cmd, client, **fields)[0] == "UnknownCommand"
    _nothing_happened(worker)


@pytest.mark.parametrize(
    "url",
    [
        "http://h/../../secret",
        "http://h/..%2f..%2fsecret",
        "http://h/%2e%2e/%2e%2e/secret",
        "http://h/a/..",
        "http://../x",
        "http://h/\0",
        "ftp://../../x",
    ],
)
@pytest.mark.parametrize("saltenv", ["base", "../../secret", "..", "a/../../x"])
def test_cve_2021_21996_a_download_is_kept_in_the_cache(tmp_path: Path, url: str, saltenv: str) -> None:
    """Whoever chooses a URL chose the place of the file on the minion."""
    from statecore.sources.downloads import cached_at

    try:
        place = cached_at(url, tmp_path, saltenv)
    except (StatecoreError, ValueError):
        return
    assert Path(os.path.normpath(place)).is_relative_to(tmp_path / "extrn_files"), place
