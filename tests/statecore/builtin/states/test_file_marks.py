"""What file.managed does besides contents, owners and modes: attributes, SELinux, signatures, changes that start nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from statecore.compile import compile_chunks
from statecore.engine import EngineOptions, run
from statecore.host import file_attributes
from statecore.host.content.diffs import Ignored
from statecore.host.host import Host
from statecore.model.ports import CommandResult
from statecore.sources import openpgp_signatures
from statecore.sources.local_tree import LocalFiles
from tests.statecore.builtin.states.conftest import _SALT, write_tree
from tests.statecore.conftest import PlainMinion
from tests.statecore.loopback_server import serve

# ------------------------------------------------------------------------------------------------------------- attributes


@pytest.fixture
def flagged(tmp_path: Path) -> Iterator[PlainMinion]:
    """A minion that is this machine, where the file system has attributes."""
    probe = tmp_path / "probe"
    probe.touch()
    if (
        os.geteuid() != 0
        or shutil.which("lsattr") is None
        or subprocess.run(["lsattr", probe], capture_output=True).returncode
    ):
        pytest.skip("no attributes here, or none that may be set")
    minion = PlainMinion(tmp_path)
    yield minion
    subprocess.run(["chattr", "-R", "-i", "-a", tmp_path], capture_output=True, check=False)


def _state(minion: PlainMinion, *, test: bool = False, **arguments: Any) -> dict[str, Any]:
    ctx = minion.context(host=Host("/"), test=test)
    entry: dict[str, Any] = ctx.states["file.managed"](**arguments)
    return entry


def _letters(path: Path) -> str:
    return file_attributes.read(Host("/"), str(path))


def test_attributes_of_a_file(flagged: PlainMinion) -> None:
    place = flagged.directory / "f"
    args = {"name": str(place), "contents": "one", "attrs": "d"}
    assert _state(flagged, **args, test=True)["changes"] == {"newfile": str(place)}
    usual = _letters(flagged.directory / "probe")
    told = _state(flagged, **args)
    assert told["result"] is True, told["comment"]
    assert told["changes"] == {"diff": "New file", "attrs": {"old": usual, "new": "d"}}
    assert set(_letters(place)) == set(usual) | {"d"}
    assert _state(flagged, **args)["changes"] == {}
    # A new content takes no attribute away, and tells none.
    told = _state(flagged, **args | {"contents": "two"})
    assert told["changes"].keys() == {"diff"}
    assert set(_letters(place)) == set(usual) | {"d"}
    other = args | {"contents": "two", "attrs": "A"}
    foreseen = _state(flagged, **other, test=True)
    assert foreseen["result"] is None
    assert "d" in _letters(place)
    told = _state(flagged, **other)
    assert told["changes"] == foreseen["changes"] == {"attrs": {"old": _joined(usual, "d"), "new": "A"}}
    assert set(_letters(place)) == set(usual) | {"A"}
    # Without content they are kept to, too, and none at all may be wanted.
    told = _state(flagged, name=str(place), attrs="", replace=False)
    assert told["changes"]["attrs"]["new"] == ""
    assert set(_letters(place)) == set(usual)
    assert _state(flagged, name=str(place), attrs="", replace=False)["changes"] == {}


def _joined(*letters: str) -> str:
    """In lsattr's order, in which extents come last."""
    return "".join(sorted("".join(letters), key="suSDiajITdAmcEtTVCxFeNPr".index))


def test_an_immutable_file_is_changed_where_its_attributes_are_managed(flagged: PlainMinion) -> None:
    place = flagged.directory / "f"
    args = {"name": str(place), "attrs": "i", "mode": "0600"}
    _state(flagged, contents="one", **args)
    assert "i" in _letters(place)
    assert "+two" in _state(flagged, contents="two", **args)["changes"]["diff"]
    assert "i" in _letters(place)
    assert _state(flagged, contents="two", **args | {"mode": "0640"})["changes"] == {"mode": "0640"}
    assert "i" in _letters(place)
    # Where they are not, the file is left, and it is said why.
    told = _state(flagged, name=str(place), contents="three")
    assert told["result"] is False
    assert f"{place} cannot be written: Operation not permitted" in told["comment"]
    assert place.read_text() == "two\n"


def test_where_there_are_no_attributes(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not Path("/proc/self").exists() or shutil.which("lsattr") is None:
        pytest.skip("there is no file system without attributes")
    told = _state(PlainMinion(tmp_path), name="/proc/f", contents="x", attrs="i", test=True)
    assert told["result"] is False
    assert "the attributes of /proc cannot be read" in told["comment"]


# ------------------------------------------------------------------------------------------------------------ SELinux


@dataclass
class _SelinuxHost(Host):
    """A tree whose programs are told here: contexts of files, and what the policy keeps."""

    contexts: dict[str, str] = field(default_factory=dict)
    policy: dict[str, list[str]] = field(default_factory=dict)
    ran: list[Sequence[str]] = field(default_factory=list)

    def __init__(self, root: Path, programs: Sequence[str] = ("stat", "semanage", "chcon")) -> None:
        super().__init__(root)
        self.contexts, self.policy, self.ran = {}, {}, []
        for program in programs:
            place = root / "usr/bin" / program
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch(0o755)

    def run(self, cmd: str | Sequence[str], **options: Any) -> CommandResult:
        self.ran.append(cmd)
        program, *rest = list(cmd)
        if program == "stat":
            found = (
                self.contexts.get(rest[-1], "system_u:object_r:etc_t:s0:c1,c2") if self.contexts is not None else "?"
            )
            return CommandResult(0, f"{found}\n", "", 1, False)
        if rest[:2] == ["fcontext", "--list"]:
            return CommandResult(0, "".join(f"{name}   all files   x\n" for name in self.policy), "", 1, False)
        if program == "semanage":
            self.policy[rest[-1]] = rest[1:-1]
            return CommandResult(0, "", "", 1, False)
        assert program == "chcon"
        now = self.contexts.get(rest[-1], "system_u:object_r:etc_t:s0:c1,c2").split(":", 3)
        for option, value in zip(rest[:-1:2], rest[1:-1:2], strict=True):
            now["urtl".index(option[1])] = value
        self.contexts[rest[-1]] = ":".join(now)
        return CommandResult(0, "", "", 1, False)


def test_a_security_context(plain: PlainMinion) -> None:
    host = _SelinuxHost(plain.root)
    (plain.root / "a.b").write_text("x\n")
    args = {"name": "/a.b", "contents": "x", "selinux": {"setype": "web_t", "serange": "s0"}}
    changes = {"selinux": {"Old": "Type: etc_t Range: s0:c1,c2", "New": "Type: web_t Range: s0"}}
    foreseen = plain.state("file.managed", ctx=plain.context(host=host, test=True), **args)
    assert (foreseen["result"], foreseen["changes"]) == (None, changes)
    assert host.contexts == host.policy == {}
    told = plain.state("file.managed", ctx=plain.context(host=host), **args)
    assert (told["result"], told["changes"]) == (True, changes)
    assert host.contexts == {"/a.b": "system_u:object_r:web_t:s0"}
    assert host.policy == {r"/a\.b": ["--add", "--type", "web_t", "--range", "s0"]}
    assert plain.state("file.managed", ctx=plain.context(host=host), **args)["changes"] == {}
    # One part takes the type with it; what the policy has is altered.
    told = plain.state("file.managed", ctx=plain.context(host=host), name="/a.b", selinux=[{"seuser": "me_u"}])
    assert told["changes"] == {"selinux": {"Old": "User: system_u", "New": "User: me_u"}}
    assert host.policy == {r"/a\.b": ["--modify", "--seuser", "me_u", "--type", "web_t"]}
    assert host.contexts == {"/a.b": "me_u:object_r:web_t:s0"}


@pytest.mark.parametrize(
    ("programs", "context", "says"),
    [
        (("stat", "semanage", "chcon"), "?", "Failed to get selinux attributes of /f: the host has no SELinux"),
        (("stat", "chcon"), "u:r:t:s0", "the host has no program semanage"),
        (("stat", "semanage"), "u:r:t:s0", "the host has no program chcon"),
    ],
)
def test_a_host_without_selinux(programs: Sequence[str], context: str, says: str, plain: PlainMinion) -> None:
    host = _SelinuxHost(plain.root, programs)
    (plain.root / "f").write_text("x\n")
    host.contexts["/f"] = context
    told = plain.state("file.managed", ctx=plain.context(host=host), name="/f", contents="x", selinux={"setype": "w"})
    assert told["result"] is False
    assert says in told["comment"]
    assert host.policy == {}


# ---------------------------------------------------------------------------------------------- changes that start nothing

#: old, new, what is ignored, whether what is left starts nothing.
_IGNORED: dict[str, tuple[str, str, Mapping[str, Any], bool]] = {
    "order": ("a\nb\n", "b\na\n", {"ignore_ordering": True}, True),
    "another line": ("a\nb\n", "b\nc\n", {"ignore_ordering": True}, False),
    "space is not order": ("a\nb\n", " b\na\n", {"ignore_ordering": True}, False),
    "space": ("a\nb\n", " b \n\na\n", {"ignore_whitespace": True}, True),
    "comments": ("a # one\n", "a # two\n", {"ignore_comment_characters": "#"}, True),
    "comments of two kinds": ("a # one\nb\n", "a ; two\nb\n", {"ignore_comment_characters": ["#", ";"]}, True),
    "what is no comment": ("a # one\n", "b # one\n", {"ignore_comment_characters": "#"}, False),
    "a line that is all comment": ("a\n", "#x\na\n", {"ignore_comment_characters": "#"}, True),
    "nothing is ignored": ("a\nb\n", "b\na\n", {}, False),
}


@pytest.mark.parametrize("name", _IGNORED)
def test_changes_that_start_nothing(name: str, plain: PlainMinion) -> None:
    old, new, args, quiet = _IGNORED[name]
    (plain.root / "f").write_text(old)
    for test in (True, False):
        told = plain.state("file.managed", test=test, name="/f", contents=new.rstrip("\n"), **args)
        assert told["changes"]["diff"]
        assert told.get("skip_req", False) is quiet
    assert (plain.root / "f").read_text() == new


def test_a_new_file_and_a_new_mode_start_something(plain: PlainMinion) -> None:
    args = {"name": "/f", "contents": "a\nb", "ignore_ordering": True}
    assert "skip_req" not in plain.state("file.managed", **args)
    told = plain.state("file.managed", **args | {"contents": "b\na", "mode": "0600"})
    assert told["changes"].keys() == {"diff", "mode"}
    assert "skip_req" not in told


def test_a_watching_state_is_not_started(plain: PlainMinion) -> None:
    (plain.root / "f").write_text("a\nb\n")
    low = {"state": "file", "fun": "managed", "__id__": "f", "name": "/f", "contents": "b\na", "ignore_ordering": True}
    ran = {
        "state": "file",
        "fun": "managed",
        "__id__": "g",
        "name": "/g",
        "contents": "x",
        "onchanges": [{"file": "f"}],
    }
    chunks = [{"__sls__": "s", "__env__": "base", "order": number, **each} for number, each in enumerate((low, ran))]
    running = run(compile_chunks(chunks).graph, plain.context(), plain.loader, EngineOptions())
    assert [entry["comment"] for entry in running.values()][-1].startswith(
        "State was not run because requisites were skipped"
    )
    assert not (plain.root / "g").exists()


# -------------------------------------------------------------------------------------------------------------- signatures


@dataclass(frozen=True)
class _Keys:
    """Two people who sign, and somebody who has their public keys."""

    home: Path
    public: Path
    fingerprints: Mapping[str, str]

    def sign(self, who: str, file: Path, *how: str) -> Path:
        to = file.with_name(f"{file.name}.{who}{''.join(how)}")
        _gpg(self.home, "--local-user", self.fingerprints[who], "--output", str(to), *how, str(file))
        return to


def _gpg(home: Path, *arguments: str) -> str:
    command = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--no-tty", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def keys() -> Iterator[_Keys]:
    if shutil.which("gpg") is None:
        pytest.skip("there is no gpg")
    # The name of an agent's socket may not be long.
    with tempfile.TemporaryDirectory(prefix="gpg-") as directory:
        home, public = Path(directory, "own"), Path(directory, "public")
        for place in (home, public):
            place.mkdir(mode=0o700)
        try:
            for who in ("ann", "bob"):
                _gpg(
                    home,
                    "--passphrase",
                    "",
                    "--quick-gen-key",
                    f"{who} <{who}@example.org>",
                    "ed25519",
                    "sign",
                    "never",
                )
            listed = _gpg(home, "--with-colons", "--list-keys")
            prints = [line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr")]
            exported = Path(directory, "exported")
            _gpg(home, "--output", str(exported), "--export")
            _gpg(public, "--import", str(exported))
            yield _Keys(home, public, dict(zip(("ann", "bob"), prints, strict=True)))
        finally:
            for place in (home, public):
                subprocess.run(["gpgconf", "--homedir", place, "--kill", "all"], capture_output=True, check=False)


@pytest.fixture
def signed(keys: _Keys, plain: PlainMinion) -> PlainMinion:
    """A tree with a file, its signatures, and a file of digests with its own; the host has the public keys."""
    data = plain.write("app", "the app\n")
    plain.write("other", "another\n")
    keys.sign("ann", data, "--detach-sign")
    keys.sign("bob", data, "--detach-sign")
    keys.sign("ann", data, "--clear-sign")
    digest = hashlib.sha256(data.read_bytes()).hexdigest()
    sums = plain.write("SUMS", f"{digest}  app\n")
    keys.sign("ann", sums, "--clear-sign")
    both = (plain.tree / "app.ann--detach-sign").read_bytes() + (plain.tree / "app.bob--detach-sign").read_bytes()
    (plain.tree / "app.both").write_bytes(both)
    shutil.copytree(keys.public, plain.root / "keys", ignore=shutil.ignore_patterns("S.*", ".#*", "*.lock"))
    (plain.root / "none").mkdir(mode=0o700)
    return plain


#: Arguments (ANN and BOB stand for fingerprints), what is told where it fails.
_SIGNED: dict[str, tuple[Mapping[str, Any], str]] = {
    "anybody": ({"source": "salt://app", "signature": "salt://app.ann--detach-sign"}, ""),
    "in itself": ({"source": "salt://app.ann--clear-sign", "signature": True}, ""),
    "one of two": (
        {"source": "salt://app", "signature": "salt://app.bob--detach-sign", "signed_by_any": ["ANN", "BOB"]},
        "",
    ),
    "both": ({"source": "salt://app", "signature": "salt://app.both", "signed_by_all": ["ANN", "BOB"]}, ""),
    "a key as people write it": (
        {"source": "salt://app", "signature": "salt://app.ann--detach-sign", "signed_by_any": "0xANN"},
        "",
    ),
    "the other": (
        {"source": "salt://app", "signature": "salt://app.bob--detach-sign", "signed_by_any": "ANN"},
        "None of the public keys listed in signed_by_any provided a valid signature (signature good by BOB)",
    ),
    "not both": (
        {"source": "salt://app", "signature": "salt://app.ann--detach-sign", "signed_by_all": ["ANN", "BOB"]},
        "Public key BOB has not provided a valid signature, but was listed in signed_by_all",
    ),
    "another file": (
        {"source": "salt://other", "signature": "salt://app.ann--detach-sign"},
        "The signature could not be verified. (signature bad by ",
    ),
    "nobody signed": (
        {"source": "salt://app", "signature": True},
        "The signature could not be verified. (there is none)",
    ),
    "no such key": (
        {"source": "salt://app", "signature": "salt://app.ann--detach-sign", "gnupghome": "/none"},
        "The signature could not be verified. (signature error by ",
    ),
    "no keys": (
        {"source": "salt://app", "signature": "salt://app.ann--detach-sign", "gnupghome": "/nowhere"},
        "/nowhere is no directory",
    ),
    "no such signature": (
        {"source": "salt://app", "signature": "salt://app.sig"},
        "Detached signature file salt://app.sig not found: Source file salt://app.sig not found in saltenv 'base'",
    ),
    "what is written out is not what is signed": (
        {"contents": "mine", "signature": "salt://app.ann--detach-sign"},
        "The signature could not be verified. (signature bad by ",
    ),
    "digests": (
        {
            "source": "salt://app",
            "source_hash": "salt://SUMS.ann--clear-sign",
            "source_hash_sig": True,
            "signed_by_any": "ANN",
        },
        "",
    ),
    "digests of another": (
        {
            "source": "salt://app",
            "source_hash": "salt://SUMS.ann--clear-sign",
            "source_hash_sig": True,
            "signed_by_any": "BOB",
        },
        "Unable to manage file: salt://SUMS.ann--clear-sign: The file's signature could not be verified",
    ),
    "digests that nobody signed": (
        {"source": "salt://app", "source_hash": "salt://SUMS", "source_hash_sig": True},
        "The signature could not be verified",
    ),
    "a digest is no file": (
        {"source": "salt://app", "source_hash": "1" * 64, "source_hash_sig": True},
        "is no file that could be signed",
    ),
    "another module": (
        {"source": "salt://app", "signature": "salt://app.sig", "sig_backend": "asymmetric"},
        "salt://app.sig not found",
    ),
}


@pytest.mark.parametrize("name", _SIGNED)
def test_signatures(name: str, keys: _Keys, signed: PlainMinion) -> None:
    def named(value: Any) -> Any:
        if isinstance(value, list):
            return [named(each) for each in value]
        return (
            value.replace("ANN", keys.fingerprints["ann"]).replace("BOB", keys.fingerprints["bob"])
            if isinstance(value, str)
            else value
        )

    args, says = _SIGNED[name]
    given = {"name": "/f", "gnupghome": "/keys"} | {key: named(value) for key, value in args.items()}
    told = signed.state("file.managed", **given)
    assert told["result"] is (not says), told["comment"]
    if says:
        assert named(says) in told["comment"]
        assert not (signed.root / "f").exists()
        return
    assert (signed.root / "f").is_file()
    # What is there already, and right, needs nobody's signature, as in Salt.
    again = signed.state("file.managed", **given | ({"signature": "salt://gone"} if "signature" in given else {}))
    assert (again["result"], again["changes"]) == (True, {})


def test_a_module_of_the_user_verifies(signed: PlainMinion) -> None:
    code = "def verify(**given):\n    return {'res': given['signed_by_any'] == ['me'], 'message': 'no'}\n"
    signed.write("_modules/notary.py", code)
    (signed.extension_dir / "modules").mkdir(parents=True)
    shutil.copy(signed.tree / "_modules/notary.py", signed.extension_dir / "modules")
    args = {"name": "/f", "source": "salt://app", "signature": True, "sig_backend": "notary"}
    told = signed.state("file.managed", **args, signed_by_any="you")
    assert told["comment"].endswith("The file's signature could not be verified: no")
    assert signed.state("file.managed", **args, signed_by_any="me")["result"] is True
    told = signed.state("file.managed", **args | {"name": "/g", "sig_backend": "nobody"})
    assert told["result"] is False
    assert "nobody.verify" in told["comment"]


def test_what_gpg_tells() -> None:
    told = openpgp_signatures.parse_status(
        "[GNUPG:] NEWSIG\n[GNUPG:] EXPKEYSIG 0A old one\n[GNUPG:] VALIDSIG 1A 2020-01-01 0 0 4 0 1 10 00 FA\n"
        "[GNUPG:] NEWSIG me\n[GNUPG:] GOODSIG 0B me <a@b>\n[GNUPG:] VALIDSIG 1B 2020-01-01 0 0 4 0 1 10 00 FB\n"
        "[GNUPG:] TRUST_UNDEFINED 0 pgp\ngpg: something else\n"
        "[GNUPG:] NEWSIG\n[GNUPG:] ERRSIG 0C 22 10 00 1 9 1C\n[GNUPG:] NO_PUBKEY 0C\n"
    )
    assert [(each.fingerprint, each.good, each.trust_level) for each in told] == [
        ("FA", False, None),
        ("FB", True, "Undefined"),
        ("", False, None),
    ]
    assert told[1].username == "me <a@b>"
    assert openpgp_signatures.verdict_of(told, any_of=["FA"]).good is False
    assert openpgp_signatures.verdict_of(told, any_of=["FA", "fb"]).good is True
    assert openpgp_signatures.verdict_of(told, any_of=["FB"], all_of=["FA"]).good is False
    assert openpgp_signatures.verdict_of(told).good is True
    bad = openpgp_signatures.parse_status("[GNUPG:] NEWSIG\n[GNUPG:] BADSIG 0C him\n")
    assert openpgp_signatures.verdict_of([*told, *bad]).good is False


# ------------------------------------------------------------------------------------------------------------- real Salt


@pytest.mark.oracle
def test_salt_says_the_same(oracle: Any, keys: _Keys, tmp_path: Path) -> None:
    """What starts nothing, what is signed, which attributes are told: three things in one run of real Salt."""
    write_tree(tmp_path / "tree")
    high: dict[str, Any] = {}
    for name, (old, new, args, _) in _IGNORED.items():
        place = tmp_path / name.replace(" ", "_")
        place.write_text(old)
        rows = [{"name": str(place)}, {"contents": new.rstrip("\n")}, *({key: value} for key, value in args.items())]
        high[name] = {"__sls__": "s", "__env__": "base", "file": [*rows, "managed"]}
    flagged = shutil.which("lsattr") and not subprocess.run(["lsattr", tmp_path], capture_output=True).returncode
    if flagged:
        (tmp_path / "flagged").write_text("x\n")
        rows = [{"name": str(tmp_path / "flagged")}, {"contents": "x"}, {"attrs": "d"}]
        high["flagged"] = {"__sls__": "s", "__env__": "base", "file": [*rows, "managed"]}
    app = tmp_path / "tree/app"
    app.write_text("the app\n")
    signature = keys.sign("ann", app, "--detach-sign")
    signers = {"signed by ann": "ann", "signed by bob": "bob"}
    for name, who in signers.items():
        args = {"source": "salt://app", "signature": f"salt://{signature.name}", "gnupghome": str(keys.public)}
        rows = [{"name": str(tmp_path / who)}, *({key: value} for key, value in args.items())]
        rows.append({"signed_by_any": [keys.fingerprints[who]]})
        high[name] = {"__sls__": "s", "__env__": "base", "file": [*rows, "managed"]}
    asked = {"directory": str(tmp_path / "salt"), "tree": str(tmp_path / "tree"), "pillar": {}, "grains": {}}
    (tmp_path / "salt").mkdir()
    asked["phases"] = [[False, high]]
    told = json.loads(oracle.run("python", str(_SALT), stdin=json.dumps(asked), timeout=240.0))[0]
    by_id = {entry["__id__"]: entry for entry in told.values()}
    for name, (*_, quiet) in _IGNORED.items():
        assert by_id[name].get("skip_req", False) is quiet, name
    assert [by_id[name]["result"] for name in signers] == [True, False]
    assert "None of the public keys listed in signed_by_any" in by_id["signed by bob"]["comment"]
    if flagged:
        usual = _letters(tmp_path / "tree")
        assert by_id["flagged"]["changes"] == {"attrs": {"old": usual, "new": "d"}}


def test_what_is_large_or_no_text_counts(tmp_path: Path) -> None:
    ignored = Ignored(ordering=True)
    place = tmp_path / "f"
    place.write_bytes(b"b\na\n")
    assert ignored.all_of(b"a\nb\n", b"b\na\n")
    assert not ignored.all_of(b"a\nb\n", place)
    assert not ignored.all_of(b"a\n\0\n", b"\0\na\n")
    assert not Ignored().all_of(b"a\n", b"a\n")


class _CachedTree(LocalFiles):
    """The tree as a minion of a master has it: each file that it fetches is a copy in the cache."""

    def __init__(self, plain: PlainMinion) -> None:
        super().__init__({"base": [plain.tree]})
        self._cache = Path(plain.opts["cachedir"]) / "files"

    def fetch(self, path: str, saltenv: str = "base") -> Path | None:
        found = super().fetch(path, saltenv)
        if found is None:
            return None
        copy = self._cache / saltenv / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(found, copy)
        return copy


#: State and arguments. URL is the server, HOST a directory of the host.
_REFUSED = {
    "a tree's file": ("file.managed", {"source": "salt://app", "signature": True}),
    "a tree's file and signature": ("file.managed", {"source": "salt://app", "signature": "salt://app.sig"}),
    "a server's file": ("file.managed", {"source": "URL/plain", "skip_verify": True, "signature": True}),
    "a server's signature": ("file.managed", {"source": "salt://app", "signature": "URL/plain"}),
    "a template": ("file.managed", {"source": "salt://app", "template": "jinja", "signature": True}),
    "digests": ("file.managed", {"source": "salt://app", "source_hash": "salt://SUMS", "source_hash_sig": True}),
    "a server's digests": (
        "file.managed",
        {"source": "URL/bytes", "source_hash": "URL/plain", "source_hash_sig": True},
    ),
    "a tree's archive": ("archive.extracted", {"source": "salt://app", "archive_format": "tar", "signature": True}),
    "a server's archive": (
        "archive.extracted",
        {"source": "URL/plain", "skip_verify": True, "archive_format": "tar", "signature": "salt://app.sig"},
    ),
    "a file in the cache": ("file.cached", {"name": "URL/bytes", "source_hash": "URL/plain", "source_hash_sig": True}),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_a_refused_signature_leaves_nothing_in_the_cache(name: str, plain: PlainMinion) -> None:
    for file in ("app", "app.sig", "SUMS"):
        plain.write(file, "text\n")
    plain.write("_modules/notary.py", "def verify(**given):\n    return {'res': False, 'message': 'no'}\n")
    shutil.copytree(plain.tree / "_modules", plain.extension_dir / "modules")
    state, args = _REFUSED[name]
    with serve() as web:
        given = {key: value.replace("URL", web.url) if isinstance(value, str) else value for key, value in args.items()}
        given = {"name": "/f", **given, "sig_backend": "notary", "signed_by_any": "me"}
        for files in (_CachedTree(plain), LocalFiles({"base": [plain.tree]})):
            told = plain.state(state, ctx=plain.context(files=files), **given)
            assert told["result"] is False
            assert "signature could not be verified: no" in told["comment"]
            cached = [path for path in Path(plain.opts["cachedir"]).rglob("*") if path.is_file()]
            fetched = (
                {path.name for path in cached} - {"app"} if "SUMS" in str(args) else {path.name for path in cached}
            )
            assert fetched == set()
    assert (plain.tree / "app").is_file(), "the tree itself stays"
