"""No state of a whole host is led out of it by a link that takes the place of /etc (or another directory) while the state runs.

The cases of ``cases`` are played once more, with an adversary: each time a state has found a place, before it uses it, the
directory may be another: a link that leads out of the host, where files of the same names hold a secret, or the directory again.
What lies outside must be as it was, and nothing of it may be read: not into the host, nor into what states tell.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from statecore.host import beneath
from statecore.model.errors import StatecoreError

from .conftest import Case, PlayedHost, context, lay_out, load, write_tree

SECRET = "the secret of the world outside"

#: State module -> the directories of the host that are swapped, and programs that a host does without: those of these tests are no
#: programs of a host in its root, and would follow the link as no real one can.
SWAPPED: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "host": (("etc",), ()),
    "sysctl": (("etc", "proc"), ("sysctl",)),
    "kmod": (("etc",), ("modprobe", "rmmod")),
    "mount": (("etc",), ("mount", "umount", "swapon")),
    "network": (("etc",), ("netplan", "ifup", "ifdown", "hostnamectl")),
    "cron": (("var",), ("crontab",)),
    "pkgrepo_apt": (("etc",), ("apt-get", "apt-key")),
    "pkgrepo_rpm": (("etc",), ("dnf",)),
    "timezone": (("etc", "usr"), ("timedatectl",)),
    "locale": (("etc",), ("update-locale", "locale-gen")),
    "ssh_auth": (("home", "root"), ()),
    "ssh_known_hosts": (("etc", "home"), ("ssh-keygen",)),
    "ini": (("etc", "tmp"), ()),
    "x509": (("etc", "tmp"), ()),
    "archive": (("srv", "opt", "tmp"), ()),
}

#: How many plays of a case, each with other moments.
ROUNDS = 3
#: So many cases of each file: those that change the most.
CASES = 3


def chosen() -> list[Case]:
    """Of each file the cases that leave something behind."""
    found: dict[str, list[Case]] = {}
    for case in load():
        if case.id.partition("/")[0] in SWAPPED and case.left:
            found.setdefault(case.id.partition("/")[0], []).append(case)
    return [case for cases in found.values() for case in sorted(cases, key=lambda each: -len(each.left))[:CASES]]


class World:
    """A case's host, and what lies outside: the same files, with the secret in each."""

    def __init__(self, case: Case, directory: Path, swapped: tuple[str, ...]) -> None:
        self.host = directory / "host"
        self.outside = directory / "outside"
        lay_out(case, self.host)
        for name in swapped:
            (self.host / name).mkdir(exist_ok=True)
            shutil.copytree(self.host / name, self.outside / name, symlinks=True)
            for path in (self.outside / name).rglob("*"):
                if path.is_file() and not path.is_symlink():
                    path.write_text(f"{path.read_text(errors='replace')}\n# {SECRET}\n")
        self.swapped = swapped
        self.swaps = 0

    def swap(self) -> None:
        """Links take the directories' places, or the directories those of the links."""
        for name in self.swapped:
            place, aside = self.host / name, self.host / f".{name}"
            with contextlib.suppress(OSError):
                if place.is_symlink():
                    place.unlink()
                    aside.rename(place)
                else:
                    place.rename(aside)
                    place.symlink_to(f"../outside/{name}" if self.swaps % 4 else self.outside / name)
        self.swaps += 1

    def seen(self) -> dict[str, Any]:
        """All that lies outside, and how."""
        found = {}
        for path in sorted(self.outside.rglob("*")):
            info = path.lstat()
            text = path.read_bytes() if path.is_file() else b""
            found[str(path)] = (info.st_mode, info.st_uid, info.st_nlink, info.st_mtime_ns, text)
        return found

    def told_secrets(self) -> list[str]:
        """Files of the host that hold what only lies outside."""
        files = [path for path in self.host.rglob("*") if path.is_file() and not path.is_symlink()]
        return [str(path) for path in files if SECRET in path.read_text(errors="replace")]


@contextlib.contextmanager
def adversary(world: World, moments: random.Random, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Swaps between finding and using."""
    found = beneath.walked

    def walked(ways: list[int], parts: Sequence[str], *, follow: bool, links: beneath.Links) -> str:
        answer = found(ways, parts, follow=follow, links=links)
        if moments.random() < 0.2:
            world.swap()
        return answer

    with patch.context() as patched:
        patched.setattr(beneath, "walked", walked)
        yield


def applied(case: Case, host: PlayedHost, tree: Path) -> Any:
    """What the state tells, or what a run makes a failed state of."""
    try:
        return context(case, host, tree, test=False).states[case.state](**case.args)
    except (OSError, StatecoreError) as error:
        return str(error)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' files")
@pytest.mark.parametrize("one", chosen(), ids=lambda case: case.id)
def test_a_swap_leads_no_state_out(one: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directories, without = SWAPPED[one.id.partition("/")[0]]
    write_tree(tmp_path / "tree")
    for number in range(ROUNDS):
        directory = tmp_path / str(number)
        directory.mkdir()
        world = World(one, directory, directories)
        before = world.seen()
        with adversary(world, random.Random(f"{one.id} {number}"), monkeypatch):
            told = applied(one, PlayedHost(world.host, (*one.without, *without)), tmp_path / "tree")
        assert world.seen() == before
        assert world.told_secrets() == []
        assert SECRET not in repr(told)


class Unguarded(PlayedHost):
    """A host whose paths are plain ones."""

    def path(self, path: str, *, follow: bool = True) -> Path:
        return Path(f"{self.root}{path}")


def test_the_adversary_gets_through_paths_that_are_plain(tmp_path: Path) -> None:
    """The adversary is one: where /etc is its link, a plain path reads what is outside, or writes there."""
    case = next(each for each in chosen() if each.id == "host/new")
    world = World(case, tmp_path, ("etc",))
    before = world.seen()
    world.swap()
    told = applied(case, Unguarded(world.host), tmp_path)
    assert world.seen() != before or SECRET in repr(told)


def test_every_file_of_cases_that_writes_to_the_host_is_swapped() -> None:
    """Others are about programs alone: links, packages, packet filters."""
    programs = {"alternatives", "iptables", "nftables", "pkg_apt", "pkg_rpm", "pkg_zypper", "pkgrepo_zypper"}
    assert {case.id.partition("/")[0] for case in load() if case.left} - programs == SWAPPED.keys()
