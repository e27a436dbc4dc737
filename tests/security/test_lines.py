"""Attack: a name with U+2028, U+0085, a form feed or another character that ``str.splitlines`` takes for a line end becomes a
line of its own in the output of a program, or in a file with one entry in each line (finding 38.16).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from saltwire.keys import clean_pem, fingerprint_of
from statecore.builtin.ext_pillar import stack
from statecore.host.host import Host
from statecore.model.text_lines import lines_of, text_of
from statecore.sources.file_source import chosen_digest
from statecore.sources.gitrepos.mirror import Mirror
from statecore.sources.gitrepos.remotes import gitfs_remotes
from statecore.sources.openpgp_signatures import parse_status
from statecore.system import gpg_program, selinux_output
from statecore.system.hostfiles import (
    accounts,
    apk_repositories,
    apt_sources,
    cron_table,
    fstab,
    ifcfg,
    ini,
    mount_table,
    plain_text,
    ssh_keys,
    yum_repos,
)
from statecore.system.packages.python_versions import requirements_in
from tests.statecore.sources.fileserver.conftest import Repository, git

#: Characters at which str.splitlines splits, but "\n" and "\r".
SEPARATORS: Mapping[str, str] = {
    "a line separator": "\u2028",
    "a paragraph separator": "\u2029",
    "a next line": "\x85",
    "a vertical tab": "\x0b",
    "a form feed": "\x0c",
    "a file separator": "\x1c",
    "a group separator": "\x1d",
    "a record separator": "\x1e",
}

_KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
_FORGED = "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB"
_DIGEST = "f" * 64


def _signers(end: str) -> bool:
    status = (
        f"[GNUPG:] NEWSIG\n[GNUPG:] BADSIG AAAA Me{end}[GNUPG:] GOODSIG BBBB Boss{end}[GNUPG:] VALIDSIG {'B' * 40}\n"
    )
    return any(each.fingerprint for each in parse_status(status))


def _mounts(end: str) -> bool:
    own = f"1 2 8:1 / /home/me/x{end}1 2 8:1 / /forged rw - ext4 /dev/sdb rw rw - ext4 /dev/sda rw\n"
    return "/forged" in mount_table.parse(own)


def _cron(end: str) -> bool:
    text = f"{cron_table.TAG}\n* * * * * echo {end}* * * * * forged\n"
    return len(cron_table.parse(text)["crons"]) > 1


#: What is read -> function of a separator that returns whether the forged entry is seen.
READ: dict[str, Callable[[str], bool]] = {
    "signatures that gpg reports": _signers,
    "keys that gpg lists": lambda end: (
        len(gpg_program.parse_keys(f"pub:u:1:1:A::::::::\nuid:::::::::x{end}pub:u:1:1:B:\n")) > 1
    ),
    "mounts": _mounts,
    "the table of file systems": lambda end: (
        len(fstab.parse(f"/dev/a /a{end}/dev/b /b ext4 defaults 0 0\n")) > 1
        or any(entry.name == "/b" for entry in fstab.parse(f"/dev/a /a ext4 x 0 0 # {end}/dev/b /b ext4 x 0 0\n"))
    ),
    "a table of cron": _cron,
    "keys that may sign in": lambda end: (
        _FORGED in ssh_keys.authorized(f"ssh-ed25519 {_KEY} me{end}ssh-ed25519 {_FORGED} x\n")
    ),
    "known hosts": lambda end: (
        len(list(ssh_keys.known(f"a ssh-ed25519 {_KEY} me{end}b ssh-ed25519 {_FORGED}\n", "b"))) > 0
    ),
    "sources of apt": lambda end: any(
        "forged" in str(each) and not each.disabled
        for each in apt_sources.sources(f"# note{end}deb http://forged.example x main\n", stanzas=False)
    ),
    "repositories of apk": lambda end: (
        len(apk_repositories.parse(f"http://own.example/x{end}http://forged.example/x\n")) > 1
    ),
    "repositories of yum": lambda end: "forged" in yum_repos.sections(f"[a]\nname=x{end}[forged]\nenabled=1\n"),
    "a file of sections": lambda end: "forged" in str(list(ini.parse(f"a=x{end}[forged]\n"))),
    "settings of an interface": lambda end: "FORGED" in ifcfg.parse(f"NAME=x{end}FORGED=1\n"),
    "modules of SELinux": lambda end: "forged" in selinux_output.modules(f"100 a{end}100 forged pp\n"),
    "packages of pip": lambda end: len(requirements_in(f"a # note{end}forged\n") or ()) > 1,
    "digests of files": lambda end: chosen_digest(f"{'a' * 64}  x{end}{_DIGEST}  file\n", None, "/file", "") == _DIGEST,
    "files of the pillar stack": lambda end: len(stack._listed(f"a: x{end}b.yml]")) > 1,
    "a key in PEM": lambda end: "\n" in clean_pem(f"-----BEGIN{end}x"),
    "the digest of a key": lambda end: fingerprint_of(f"a\nb{end}c\nd") == fingerprint_of("a\nb\nc\nd"),
}


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("what", READ)
def test_a_name_is_no_line(what: str, separator: str) -> None:
    assert not READ[what](SEPARATORS[separator])


@pytest.mark.parametrize("separator", [name for name, text in SEPARATORS.items() if ord(text) > 0x7F])
def test_a_branch_stops_no_mirror(separator: str, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    repository.commit({"top.sls": "base: {}"})
    git(repository.directory, "branch", f"a{SEPARATORS[separator]}b")
    (remote,) = gitfs_remotes({"gitfs_remotes": [repository.url]})
    mirror = Mirror(tmp_path / "mirrors", remote)
    assert mirror.update() is True
    assert set(mirror.refs()) == {"refs/remotes/origin/master", f"refs/remotes/origin/a{SEPARATORS[separator]}b"}


@pytest.mark.parametrize("separator", [*SEPARATORS, "a carriage return"])
def test_a_full_name_makes_no_user(separator: str, tmp_path: Path) -> None:
    end = SEPARATORS.get(separator, "\r")
    (tmp_path / "etc").mkdir()
    forged = "forged:x:0:0::/root:/bin/sh"
    (tmp_path / "etc/passwd").write_text(f"me:x:1000:1000:Me{end}{forged}:/home/me:/bin/sh\n", newline="")
    (tmp_path / "etc/group").write_text(f"me:x:1000:me{end}forged:x:0:me\n", newline="")
    host = Host(tmp_path)
    assert host.uid("me") == 1000
    for of in (host.uid, host.gid):
        with pytest.raises(Exception, match="forged"):
            of("forged")
    (tmp_path / "etc/shadow").write_text(f"me:x:1:0:9:7:{end}forged::1:0:9:7:::\n", newline="")
    assert accounts.find(host, "me") is not None
    assert accounts.find(host, "forged") is None


@pytest.mark.parametrize("separator", [*SEPARATORS, "a carriage return"])
def test_a_file_of_lines_is_read_as_it_stands(separator: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    text = f"a{SEPARATORS.get(separator, chr(13))}b\nc\r\n"
    path.write_bytes(text.encode())
    assert text_of(path) == plain_text.text(path) == text
    assert len(lines_of(text_of(path))) == 2


def test_files_of_lines_are_read_as_they_stand() -> None:
    root = Path(__file__).parents[2]
    found = [
        f"{path.relative_to(root)}:{node.lineno}"
        for room in ("libs/statecore/system/hostfiles", "libs/statecore/host")
        for path in (root / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "read_text"
        # Numbers of the kernel.
        and node.args
    ]
    assert found == []


@pytest.mark.parametrize("separator", [*SEPARATORS, "a carriage return"])
@pytest.mark.parametrize("keepends", [True, False])
def test_only_a_newline_ends_a_line(separator: str, keepends: bool) -> None:
    end = SEPARATORS.get(separator, "\r")
    text = f"a{end}b\nc{end}"
    lines = [f"a{end}b\n", f"c{end}"] if keepends else [f"a{end}b", f"c{end}"]
    assert lines_of(text, keepends=keepends) == lines
    assert lines_of(text.encode(), keepends=keepends) == [line.encode() for line in lines]


@pytest.mark.ordinary
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("\n", [""]),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\nb", ["a", "b"]),
        ("a\n\nb\n", ["a", "", "b"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\r\n\r\n", ["a", ""]),
    ],
)
def test_lines_are_those_of_splitlines(text: str, lines: list[str]) -> None:
    assert lines_of(text) == lines == text.splitlines()
    assert lines_of(text, keepends=True) == text.splitlines(keepends=True)
    assert lines_of(text.encode()) == text.encode().splitlines()
    assert lines_of(text.encode(), keepends=True) == text.encode().splitlines(keepends=True)


#: File -> why it may use ``splitlines``.
_TEXTS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *(f"libs/statecore/render/{name}.py" for name in ("pipe", "faults", "tree", "jinja/engine")),
            *(f"libs/statecore/render/renderers/{name}.py" for name in ("pyobjects", "mako_template")),
            "libs/statecore/analysis/inspection/places.py",
        ),
        "lines of an SLS beside the numbers of a parser: YAML counts more line ends than the newline",
    ),
    **dict.fromkeys(
        (
            *(
                f"services/saltern/kit/command/output/{name}.py"
                for name in ("highstate", "plain", "one_line", "nested")
            ),
            *(f"libs/statecore/loader/compat/output/{name}.py" for name in ("__init__", "nested")),
            "libs/statecore/loader/compat/utils/stringutils.py",
        ),
        "shows a text as Salt's outputters and functions of the same name do",
    ),
    "libs/statecore/model/secret_values.py": "hides each part of a secret that some program may show as a line",
}


def test_texts_are_split_at_newlines_alone() -> None:
    root = Path(__file__).parents[2]
    found = {
        str(path.relative_to(root))
        for base in ("libs", "services")
        for path in (root / base).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "splitlines"
    }
    assert found == set(_TEXTS)
