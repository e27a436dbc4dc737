"""README.md word by word: an ordinary user on a fresh Debian with python3 and make, and nothing else, follows "See it"."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.userland, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]

#: Release -> what README.md says that it needs. Debian 12 has Python 3.11, Debian 13 has 3.13.
SUITES = {"bookworm": "python3,make", "trixie": "python3,make,redis-server"}

#: Seconds for debootstrap, and for everything that the user does.
TIMEOUT = 900

#: Enters the tree $1 as the ordinary user, with the machine's network and nothing of its environment.
_ENTER = """\
set -eu
mount --make-rprivate /
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
exec chroot --userspec=visitor:visitor "$1" env -i HOME=/home/visitor USER=visitor LANG=C.UTF-8 \
    PATH=/usr/local/bin:/usr/bin:/bin $3 bash -euc "cd ~/saltern; $2"
"""

#: The certificates that this machine trusts: behind a proxy the index has one of its own.
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def commands() -> list[list[str]]:
    """The blocks of commands in README.md's section "See it", without those that need Docker."""
    section = (ROOT / "README.md").read_text("utf-8").partition("## See it")[2].partition("\n## ")[0]
    blocks = re.findall(r"(?:^    .+\n)+", section, re.MULTILINE)
    lines = [[line.strip() for line in block.splitlines()] for block in blocks]
    return [block for block in lines if not any("docker" in line for line in block)]


def in_text() -> list[str]:
    """The commands for the lab that the sentences of the section have in backquotes."""
    section = (ROOT / "README.md").read_text("utf-8").partition("## See it")[2].partition("\n## ")[0]
    return [one for one in re.findall(r"`([^`\n]+)`", section) if one.startswith(("make lab", "source "))]


@pytest.fixture(params=SUITES)
def tree(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A fresh Debian with the user ``visitor`` and this checkout in the user's home."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("only root with debootstrap makes a userland")
    root = tmp_path_factory.mktemp("front-door") / request.param
    words = ["debootstrap", "--variant=minbase", f"--include={SUITES[request.param]}", request.param, str(root)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode:
        pytest.skip(f"debootstrap could not make a tree: {done.stdout[-300:]} {done.stderr[-300:]}")
    for file in ("resolv.conf", "hosts"):
        shutil.copy(Path("/etc") / file, root / "etc" / file)
    subprocess.run(["chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", "visitor"], check=True)
    _copy_checkout(root / "home/visitor/saltern")
    if CERTIFICATES.exists():
        shutil.copy(CERTIFICATES, root / "home/certificates.pem")
    subprocess.run(["chroot", root, "chown", "-R", "visitor:visitor", "/home/visitor"], check=True)
    yield root
    shutil.rmtree(root)


def _copy_checkout(target: Path) -> None:
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)


def visit(root: Path, script: str, expect: int = 0, **variables: str) -> str:
    """Output of what the ordinary user types. Everything that it has started ends with it."""
    if (root / "home/certificates.pem").exists():
        variables.setdefault("PIP_CERT", "/home/certificates.pem")
    given = " ".join(f"{name}={value}" for name, value in variables.items())
    done = subprocess.run(
        [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            _ENTER.replace("$3", given),
            "sh",
            root,
            script,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == expect, done.stdout[-6000:]
    return done.stdout


def test_what_the_readme_says_works(tree: Path) -> None:
    start, use = commands()
    assert start == ["make lab"]
    stop, shifted, with_api = (one for one in in_text() if one.startswith("make "))
    completion = next(one for one in in_text() if one.startswith("source "))
    # Without python3-venv there is no ensurepip, and without ca-certificates no server can be checked.
    assert visit(tree, "python3 -c 'import ensurepip' 2>&1 || true").endswith("No module named 'ensurepip'\n")
    said = visit(
        tree,
        "\n".join(
            [
                *(*start, "echo == used", *use, completion, "complete -p salt"),
                *("echo == stop", stop, shifted, stop, with_api, stop),
            ]
        ),
    )
    started, _, rest = said.partition("== used\n")
    assert started.count("Failed:    0") == 2, started[-3000:]
    used, _, stopped = rest.partition("== stop\n")
    assert "web1:\n    True\n" in used
    assert "web2:\n    True\n" in used
    assert "state.apply" in used
    assert "complete " in used
    assert stopped.count("has ended; its data is kept") == 3, stopped[-3000:]


def test_without_an_index_it_says_what_to_install(tree: Path) -> None:
    said = visit(tree, "make lab", expect=2, PIP_INDEX_URL="http://127.0.0.1:1/simple")
    assert "pip cannot be fetched" in said
    assert "apt-get install python3-venv" in said
