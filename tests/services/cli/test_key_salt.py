"""``salt-key`` beside real Salt's, on the same keys: what is printed, the exit code, and the keys that are left.

Ours works on a Redis into which the directory was imported, and from which it is exported again.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from masterstore.store import Store
from saltern.cli import key
from saltern.cli.key_files import LISTS, read_keys, write_keys
from saltern.kit.config.master import MasterOptions
from saltern.kit.keys.master_keys import MasterKeys
from saltern.kit.links.control import ControlError
from saltern.kit.links.event_bus import Prepared
from saltern.kit.process.metrics import new_metrics
from saltern.mworker.commands import wheel
from saltern.mworker.senders import sender_by_key
from saltern.mworker.worker_context import WorkerContext
from saltwire.keys import PrivateKey
from statecore.sources.local_tree import LocalFiles
from tests.conftest import Oracle

pytestmark = [pytest.mark.redis]

#: old1 has come back with another key; New2 and new1 tell how names are sorted.
HELD = {
    "minions": {"web1": 0, "web2": 1, "old1": 2},
    "minions_pre": {"new1": 3, "New2": 4},
    "minions_rejected": {"bad": 0},
    "minions_denied": {"old1": 1},
}


@pytest.fixture(scope="session")
def pems() -> list[str]:
    return [PrivateKey.generate(2048).public.pem for _ in range(5)]


@dataclass
class Master:
    """Ours: a desk, and salt-key before it."""

    context: WorkerContext
    fake: Any

    def run(self, *words: str, answer: str | None = None) -> int:
        def ask(question: str) -> str:
            sys.stdout.write(question)
            if answer is None:
                raise EOFError
            return answer

        return key.run(words, self.fake.context(), ask)


@pytest.fixture
def ours(
    redis_url: str, role_keys: Path, master_keys: MasterKeys, tmp_path: Path, master: Callable[..., Any]
) -> Master:
    options = MasterOptions(redis_url=redis_url, extension_modules=str(tmp_path))
    context = WorkerContext(
        options=options,
        keys=master_keys,
        key_dir=role_keys / "mworker",
        store=Store.open(redis_url, client_name="salt-key"),
        fire=lambda tag, data: True,
        fire_all=lambda *events: True,
        prepare=lambda tag, data: Prepared(bytes, lambda: True),
        files=LocalFiles(options.file_roots, options.hash_type),
        metrics=new_metrics("mworker"),
        log=logging.getLogger("saltern.mworker"),
        start_runner=lambda call: None,
    )
    return Master(
        context, master({"wheel": lambda fields: wheel.wheel(context, sender_by_key(context.rows, "cli"), fields)})
    )


@pytest.fixture
def pki(tmp_path: Path, pems: list[str]) -> Path:
    """The directory of a stock master."""
    directory = tmp_path / "pki"
    write_keys(directory, {name: {minion: pems[n] for minion, n in held.items()} for name, held in HELD.items()})
    return directory


@pytest.fixture(scope="module")
def salt(oracle: Oracle) -> Iterator[Callable[..., dict[str, Any]]]:
    script = Path(__file__).with_name("salt_key.py")
    words = [oracle.program("python"), str(script)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None

    def ask(directory: Path, *words: str, stdin: str = "") -> dict[str, Any]:
        (directory / "cache").mkdir()
        config = {"root_dir": str(directory), "user": "root", "keys.cache_driver": "localfs_key"}
        config |= {"pki_dir": str(directory / "pki"), "cachedir": str(directory / "cache")}
        (directory / "master").write_text(json.dumps(config))
        process.stdin.write(json.dumps({"config": str(directory), "words": words, "stdin": stdin}) + "\n")
        process.stdin.flush()
        found: dict[str, Any] = json.loads(process.stdout.readline())
        return found

    yield ask
    process.communicate(timeout=20)


CASES: tuple[tuple[tuple[str, ...], str | None], ...] = (
    ((), None),
    (("-l", "acc"), None),
    (("-L", "--out=json"), None),
    (("--list=all", "--out=yaml"), None),
    (("-f", "web*,bad,old1"), None),
    (("-p", "old1", "--no-color"), None),
    (("-P", "--out=json", "--out-indent=2"), None),
    (("-a", "new1"), ""),
    (("-y", "-A", "--include-all"), None),
    (("-y", "-a", "old1", "--include-denied"), None),
    (("-r", "nobody", "--include-denied", "--include-accepted"), None),
    (("-y", "-R", "--include-accepted"), None),
    (("-d", "web1,new*"), "y"),
    (("-y", "-D"), None),
)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("words", "answer"), CASES, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_as_salt(
    words: tuple[str, ...],
    answer: str | None,
    ours: Master,
    salt: Callable[..., dict[str, Any]],
    pki: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ours.run("-q", "-y", "--import", str(pki)) == 0
    capsys.readouterr()
    code = ours.run(*words, answer=answer)
    out = capsys.readouterr().out
    expected = salt(tmp_path, *words, stdin="" if answer is None else f"{answer}\n")

    assert (_shape(out), code) == (_shape(_once(expected["out"])), expected["code"]), expected["err"]
    assert ours.run("-q", "--export", str(tmp_path / "exported")) == 0
    assert read_keys(tmp_path / "exported").keys == read_keys(pki).keys


def _shape(text: str) -> str:
    """Salt 3008 takes the fingerprint of the whole file, with the lines around the key; minions and ours do not."""
    return re.sub(r"[0-9a-f]{2}(:[0-9a-f]{2}){31}", "FINGERPRINT", text)


def _once(text: str) -> str:
    """Salt's lines; who it tells twice to be accepted or rejected, because a denied key of his name stays, is told once."""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        if line not in lines or not line.endswith(("accepted.\n", "rejected.\n")):
            lines.append(line)
    return "".join(lines)


def test_gen_keys(ours: Master, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--gen-keys", "web9", "--gen-keys-dir", str(tmp_path))
    assert ours.run(*words) == 0
    said = capsys.readouterr().out
    secret, public = tmp_path / "web9.pem", tmp_path / "web9.pub"
    made = PrivateKey.from_pem(secret.read_bytes())
    assert said == f"return:\n    {made.public.fingerprint()}\n"
    assert public.read_text() == made.public.pem + "\n"
    assert [path.stat().st_mode & 0o777 for path in (secret, public)] == [0o400, 0o400]
    public.unlink()
    # Again: what is there is kept, what is lost comes back.
    assert ours.run(*words) == 0
    assert capsys.readouterr().out == said
    assert public.read_text() == made.public.pem + "\n"
    secret.unlink()
    assert ours.run(*words) == 1
    assert "does not belong to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--gen-keys", "../x"), 64, "is no name for a key"),
        (("--gen-keys", "x", "--gen-keys-dir", "/nonexistent/there"), 1, "/nonexistent/there/x.pem: No such file"),
        (("--gen-keys", "x", "-u", "nobody-of-that-name"), 64, "there is no user 'nobody-of-that-name'"),
        (("--gen-signature", "--priv", "/nonexistent/key"), 1, "Private-key /nonexistent/key does not exist"),
        (("--gen-signature", "--pub", "/nonexistent/key"), 1, "Public-key /nonexistent/key does not exist"),
        (("--gen-signature", "--signature-path", "/nonexistent"), 1, "No usable private-key found"),
        (("--preseed", "a*"), 64, "is no name for a key"),
        (("--preseed", "a", "--pub", "/etc/hostname"), 1, "--pub /etc/hostname: not a public key in PEM"),
        (("--import", "/etc"), 1, "is no pki_dir of a master"),
        (("--export", "/proc/1/x"), 1, "/proc/1/x"),
    ],
)
def test_what_cannot_be(
    ours: Master, words: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ours.run(*words) == code
    assert said in capsys.readouterr().err
    assert ours.context.store.minion_keys.all() == {
        state: [] for state in ("accepted", "pending", "rejected", "denied")
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--keysize", "1024"), "must be 2048 to 16384 bits, not 1024"),
        (("--keysize", "many"), "'many' is not a number of bits"),
        (("--rotate-aes-key", "perhaps"), "'perhaps' is neither True nor False"),
        (("--eauth", "pam"), "not supported: --eauth; who may do what is said by keys: control_acl"),
        (("--saltfile", "x"), "not supported: --saltfile; give the options on the command line"),
    ],
)
def test_wrong_command_line(
    ours: Master, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        ours.run(*words)
    assert ended.value.code == 64
    assert said in capsys.readouterr().err


def test_preseed(ours: Master, tmp_path: Path, pems: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The minion's key is accepted before it comes, with the key that it will have."""
    assert ours.run("--preseed", "web3", "--gen-keys-dir", str(tmp_path)) == 0
    made = PrivateKey.from_pem((tmp_path / "web3.pem").read_bytes())
    assert ours.context.store.minion_keys.state_of("web3") == ("accepted", made.public.pem)
    assert capsys.readouterr().out == (
        f"Key for minion web3 accepted.\nmade {tmp_path}/web3.pem\nmade {tmp_path}/web3.pub\n"
    )
    (tmp_path / "other.pub").write_text(pems[0])
    assert ours.run("--preseed", "web3", "--pub", str(tmp_path / "other.pub")) == 1
    assert "the key of web3 was not accepted: another key is accepted here; --replace" in capsys.readouterr().err
    assert ours.run("--preseed", "web3", "--pub", str(tmp_path / "other.pub"), "--replace") == 0
    assert ours.context.store.minion_keys.state_of("web3") == ("accepted", pems[0])


def test_a_preseed_that_is_refused_leaves_nothing(ours: Master, tmp_path: Path, pems: list[str]) -> None:
    ours.context.store.minion_keys.store("web3", pems[0], "rejected")
    assert ours.run("--preseed", "web3", "--gen-keys-dir", str(tmp_path)) == 1
    assert list(tmp_path.glob("web3*")) == []
    ours.fake.answers["wheel"] = ControlError("AuthorizationError", "cli may not @wheel")
    assert ours.run("--preseed", "web4", "--gen-keys-dir", str(tmp_path)) == 1
    assert list(tmp_path.glob("web4*")) == []


@pytest.mark.oracle
def test_gen_signature(
    ours: Master, salt: Callable[..., dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours of a stock master's keys is the one that Salt makes."""
    pki = tmp_path / "pki"
    pki.mkdir()
    own = ours.context.keys.private
    (pki / "master.pem").write_bytes(own.to_pem())
    (pki / "master.pub").write_text(own.public.pem)
    expected = salt(tmp_path, "--gen-signature", "--auto-create", "--signature-path", str(pki))
    (theirs,) = pki.glob("*_pubkey_signature")
    place = tmp_path / "ours"
    place.mkdir()
    shutil.copy(pki / "master_sign.pem", place)
    assert ours.run("--gen-signature", "--signature-path", str(place)) == 0
    assert capsys.readouterr().out == expected["out"] == "return:\n    True\n"
    assert (place / "master_pubkey_signature").read_bytes().strip() == theirs.read_bytes().strip()
    assert ours.run("--gen-signature", "--signature-path", str(place)) == 1
    assert "exists already" in capsys.readouterr().err
    other = tmp_path / "other"
    other.mkdir()
    assert ours.run("--gen-signature", "--signature-path", str(other), "--auto-create") == 0
    assert sorted(path.name for path in other.iterdir()) == [
        "master_pubkey_signature",
        "master_sign.pem",
        "master_sign.pub",
    ]


def test_import_says_what_it_leaves(
    ours: Master, pki: Path, pems: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    store = ours.context.store.minion_keys
    store.store("web1", pems[0], "pending")  # came before the import: the same key
    store.store("web2", pems[4], "pending")  # somebody else under its name
    (pki / "minions" / "a,b").write_text(pems[0])
    (pki / "minions" / "empty").write_text("")
    (pki / "minions" / ".key_cache").write_text("index")
    (pki / "minions_autosign").mkdir()
    (pki / "minions_autosign" / "soon").write_text("")
    assert ours.run("-y", "--import", str(pki)) == 1
    said = capsys.readouterr()
    assert said.out.endswith("6 keys imported, 0 were here already, 1 were not imported.\n")
    assert sorted(line.removeprefix(str(pki)) for line in said.err.splitlines()) == [
        "/minions/a,b: the name is no minion id here: it must not mean several",
        "/minions/empty: not a public key in PEM: "
        + said.err.partition("empty: not a public key in PEM: ")[2].splitlines()[0],
        "/minions_autosign/soon: is no key; put the id into the file of autosign_file",
        "Key for minion web2 not imported: another key is pending here.",
    ]
    assert store.state_of("web1") == ("accepted", pems[0])
    assert store.state_of("web2") == ("pending", pems[4])
    ours.run("-q", "-y", "--import", str(pki), "--replace")
    assert store.state_of("web2") == ("accepted", pems[1])
    assert ours.run("-y", "--import", str(pki)) == 1
    assert "0 keys imported, 7 were here already, 0 were not imported." in capsys.readouterr().out


def test_import_asks(ours: Master, pki: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ours.run("--import", str(pki), answer="n") == 0
    assert capsys.readouterr().out.endswith("Rejected Keys:\nbad\nProceed? [n/Y] ")
    assert ours.context.store.minion_keys.ids("accepted") == []
    assert ours.run("--import", str(pki), answer="") == 0
    assert ours.context.store.minion_keys.ids("accepted") == ["old1", "web1", "web2"]


def test_export_overwrites_nothing(ours: Master, pki: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ours.run("-q", "-y", "--import", str(pki)) == 0
    assert ours.run("--export", str(pki)) == 0
    assert capsys.readouterr().out == f"0 keys written to {pki}, 7 were there already.\n"
    assert ours.run("-q", "-y", "-r", "web1", "--include-accepted") == 0
    assert ours.run("--export", str(pki)) == 1
    assert capsys.readouterr().err == (
        f"ERROR: {pki}/minions/web1: is not what would be written; export to an empty directory\n"
    )
    assert not (pki / "minions_rejected" / "web1").exists()


IDS = st.text("abcXYZ019.-_ é@+=:~#%", min_size=1, max_size=12).filter(lambda name: not name.startswith("."))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    states=st.dictionaries(IDS, st.tuples(st.sampled_from(LISTS[:3]), st.integers(0, 4), st.booleans()), max_size=12)
)
def test_round_trip(
    ours: Master,
    pems: list[str],
    tmp_path_factory: pytest.TempPathFactory,
    states: dict[str, tuple[str, int, bool]],
) -> None:
    """Any keys: directory, Redis, directory. Importing into what is there changes nothing."""
    ours.context.store.minion_keys._client.redis.flushall()
    root = tmp_path_factory.mktemp("trip")
    keys: dict[str, dict[str, str]] = {}
    for minion, (name, number, denied) in states.items():
        keys.setdefault(name, {})[minion] = pems[number]
        if denied:
            keys.setdefault("minions_denied", {})[minion] = pems[(number + 1) % 5]
    write_keys(root / "one", keys)
    assert ours.run("-q", "-y", "--import", str(root / "one")) == 0
    assert ours.run("-q", "--export", str(root / "two")) == 0
    assert ours.run("-q", "-y", "--import", str(root / "two")) == 0
    assert read_keys(root / "two").keys == read_keys(root / "one").keys == keys
