"""Nothing on a mounted host leads a state out of it, not even a link that takes a directory's place while the state runs.

An adversary swaps /srv/d, a directory of the host, for links that lead out (and in circles): once in a thread of its own, as
fast as it can, and once at the very moment that hurts most, between finding a place and using it. What lies outside must be as
it was, and nothing of it may be read: not into the host, nor into what states tell.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecore.builtin.modules import archive, cron, ini, ssh
from statecore.builtin.states import file as file_states
from statecore.host import beneath
from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.errors import StatecoreError
from tests.statecore.conftest import PlainMinion

SECRET = "the secret of the world outside"

#: What the directory holds, on both sides: a path through it means one or the other.
HELD = {"f": "a = 1\nb\n#c\n", "old/x": "x\n", "old/2025": "z\n", "old/2026": "y\n", "b64": "b"}

#: State -> arguments, each through the directory. ``{n}`` is another number each round, so that there is something to do.
CALLS: Mapping[str, Mapping[str, Any]] = {
    "managed": {"name": "/srv/d/f", "contents": "{n}", "backup": "minion", "mode": "0640"},
    "directory": {"name": "/srv/d/dir{n}", "mode": "0750", "makedirs": True},
    "recurse": {"name": "/srv/d/tree", "source": "salt://tree", "clean": True},
    "symlink": {"name": "/srv/d/link", "target": "/nowhere{n}", "force": True},
    "absent": {"name": "/srv/d/f"},
    "exists": {"name": "/srv/d/f"},
    "missing": {"name": "/srv/d/gone"},
    "touch": {"name": "/srv/d/t{n}", "makedirs": True},
    "append": {"name": "/srv/d/f", "text": "{n}"},
    "prepend": {"name": "/srv/d/f", "text": "{n}"},
    "replace": {"name": "/srv/d/f", "pattern": "^a.*", "repl": "a {n}"},
    "line": {"name": "/srv/d/f", "content": "{n}", "mode": "ensure", "after": "b"},
    "comment": {"name": "/srv/d/f", "regex": "^b"},
    "uncomment": {"name": "/srv/d/f", "regex": "^c"},
    "blockreplace": {"name": "/srv/d/f", "content": "{n}", "append_if_not_found": True},
    "keyvalue": {"name": "/srv/d/f", "key": "k", "value": "v{n}", "append_if_not_found": True},
    "serialize": {"name": "/srv/d/s", "dataset": {"a": "{n}"}, "serializer": "json"},
    "decode": {"name": "/srv/d/decoded", "encoded_data": "aGVsbG8="},
    "copy_": {"name": "/srv/d/copy{n}", "source": "/srv/d/f"},
    "rename": {"name": "/srv/d/renamed", "source": "/srv/d/f", "force": True},
    "hardlink": {"name": "/srv/d/hard", "target": "/srv/d/f", "force": True},
    "mknod": {"name": "/srv/d/pipe{n}", "ntype": "p"},
    "tidied": {"name": "/srv/d/old", "rmdirs": True},
    "retention_schedule": {"name": "/srv/d/old", "retain": {"most_recent": 1}, "strptime_format": "%Y"},
    "accumulated": {"name": "one", "filename": "/srv/d/f", "text": "{n}"},
    "pruned": {"name": "/srv/d/hollow", "recurse": True},
    "shortcut": {"name": "/srv/d/s", "target": "/srv/d/f"},
    "cached": {"name": "/srv/d/f"},
    "not_cached": {"name": "/srv/d/f"},
}
_RENAMED = {"copy_": "copy"}

#: What touches files by the host's own program alone, which runs inside the host's root; this host has no programs.
_BY_PROGRAM = {"patch"}


class World:
    """A host with the directory, and what lies outside."""

    def __init__(self, minion: PlainMinion) -> None:
        self.minion = minion
        self.outside = minion.directory / "outside"
        self.place = minion.root / "srv/d"
        self.aside = minion.root / "srv/.aside"
        self.outside.mkdir()
        for name, text in HELD.items():
            (self.outside / name).parent.mkdir(exist_ok=True)
            (self.outside / name).write_text(text + SECRET)
        # What a link says is meant inside the root: it has no such place.
        self.targets = (str(self.outside), "../../outside", "../../../../../../../.." + str(self.outside), "d")
        self.swaps = 0
        minion.write("tree/one", "1\n")
        self.fill()

    def fill(self) -> None:
        """The directory is there again, with all that it held."""
        for name, text in HELD.items():
            (self.place / name).parent.mkdir(parents=True, exist_ok=True)
            (self.place / name).unlink(missing_ok=True)
            (self.place / name).write_text(text)
        (self.place / "hollow/deep").mkdir(parents=True, exist_ok=True)

    def swap(self) -> None:
        """A link takes the directory's place."""
        with contextlib.suppress(OSError):
            self.place.rename(self.aside)
            self.place.symlink_to(self.targets[self.swaps % len(self.targets)])
        self.swaps += 1

    def restore(self) -> None:
        with contextlib.suppress(OSError):
            if self.place.is_symlink():
                self.place.unlink()
            if self.aside.exists():
                if self.place.exists():
                    shutil.rmtree(self.place)
                self.aside.rename(self.place)

    def seen(self) -> dict[str, Any]:
        """All that lies outside, and how."""
        found = {}
        for path in sorted((self.outside, *self.outside.rglob("*"))):
            info = path.lstat()
            text = path.read_text() if path.is_file() else ""
            found[str(path)] = (info.st_mode, info.st_uid, info.st_nlink, info.st_mtime_ns, text)
        return found

    def told_secrets(self) -> list[str]:
        """Files of the host, and copies that the minion keeps, that hold what only lies outside."""
        tops = [self.minion.root, self.minion.directory / "cache"]
        files = [path for top in tops for path in top.rglob("*") if path.is_file() and not path.is_symlink()]
        return [str(path) for path in files if SECRET in path.read_text(errors="replace")]

    def state(self, name: str, number: int) -> dict[str, Any]:
        own = {
            key: value.replace("{n}", str(number)) if isinstance(value, str) else value
            for key, value in CALLS[name].items()
        }
        try:
            entry: dict[str, Any] = self.minion.context().states[f"file.{_RENAMED.get(name, name)}"](**own)
        except (OSError, StatecoreError) as error:
            # What a run makes a failed state of.
            return {"comment": str(error)}
        return entry


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(PlainMinion(tmp_path))


@contextlib.contextmanager
def adversary(world: World) -> Iterator[None]:
    """Swaps in a thread for as long as the context lasts."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            world.swap()
            world.restore()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        world.restore()


def test_every_state_is_in_the_table() -> None:
    own = {
        name
        for part in file_states.PARTS
        for name, value in vars(part).items()
        if not name.startswith("_")
        and getattr(value, "__module__", "") == part.__name__
        and "ctx" in getattr(value, "__annotations__", {})
        and value.__annotations__.get("return") == "Plan"
    }
    assert own - {"mod_run_check_cmd"} - _BY_PROGRAM == {_RENAMED.get(name, name) for name in CALLS}


@pytest.mark.parametrize("name", CALLS)
def test_a_thread_that_swaps_leads_no_state_out(world: World, name: str) -> None:
    before = world.seen()
    told = []
    with adversary(world):
        number = 0
        while number < 25 or world.swaps < 50:
            # Few names again and again: where one processor runs both threads, the states would make new directories
            # faster than the other thread removes them, and it would never come to its next swap.
            told.append(world.state(name, number % 25))
            number += 1
    assert world.seen() == before
    assert world.told_secrets() == []
    assert SECRET not in repr(told)


@given(moments=st.lists(st.booleans(), max_size=40), name=st.sampled_from(sorted(CALLS)))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_swap_between_finding_and_using_leads_no_state_out(tmp_path: Path, moments: list[bool], name: str) -> None:
    shutil.rmtree(tmp_path / "w", ignore_errors=True)
    (tmp_path / "w").mkdir()
    world = World(PlainMinion(tmp_path / "w"))
    before = world.seen()
    waiting = iter(moments)
    found = beneath.walked

    def walked(ways: list[int], parts: Sequence[str], *, follow: bool, links: beneath.Links) -> str:
        answer = found(ways, parts, follow=follow, links=links)
        if next(waiting, False):
            (world.restore if world.place.is_symlink() else world.swap)()
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beneath, "walked", walked)
        told = world.state(name, 1)
    world.restore()
    assert world.seen() == before
    assert world.told_secrets() == []
    assert SECRET not in repr(told)


def test_a_swap_leads_a_plain_path_out(world: World) -> None:
    """The adversary is one: a path that is not rooted, found before a swap and used after it, reads what is outside."""
    told = []
    for _ in world.targets:
        place = Path(str(world.minion.context().host.path("/srv/d/f")))
        world.swap()
        with contextlib.suppress(OSError):
            told.append(managed_file.read(place, "f"))
        world.restore()
    assert SECRET in repr(told)


#: What modules do with files that they are told of, or that belong to users.
MODULES = {
    "ini": lambda ctx, n: ini.set_option(ctx, "/srv/d/f", {"s": {"k": str(n)}}),
    "cron": lambda ctx, n: cron.raw_cron(ctx, "root"),
    "ssh": lambda ctx, n: ssh.set_auth_key(ctx, "web", "AAAAB3NzaC1yc2EAAAADAQABAAAAQQ==", "ssh-rsa", comment=str(n)),
    "archive": lambda ctx, n: archive.list_(ctx, "/srv/d/x.tar"),
    "file.copy": lambda ctx, n: ctx.call("file.copy", "/srv/d/old", f"/srv/d/new{n}", recurse=True),
    "file.find": lambda ctx, n: ctx.call("file.find", "/srv/d"),
    "file.stats": lambda ctx, n: ctx.call("file.stats", "/srv/d/f", hash_type="sha256"),
    "file.find deletes": lambda ctx, n: ctx.call("file.find", "/srv/d", name="f", delete="f"),
    "file.seek_write": lambda ctx, n: ctx.call("file.seek_write", "/srv/d/f", "x", 0),
    "file.link": lambda ctx, n: ctx.call("file.link", "/srv/d/f", f"/srv/d/hard{n}"),
    "file.mknod": lambda ctx, n: ctx.call("file.mknod", f"/srv/d/pipe{n}", "p"),
    "file.diskusage": lambda ctx, n: ctx.call("file.diskusage", "/srv/d"),
    "file.remove": lambda ctx, n: ctx.call("file.remove", "/srv/d/old"),
    "cp.get_file": lambda ctx, n: ctx.call("cp.get_file", "salt://tree/one", f"/srv/d/cp{n}"),
    "hashutil": lambda ctx, n: ctx.call("hashutil.base64_decodefile", "aGVsbG8=", f"/srv/d/h{n}"),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_thread_that_swaps_leads_no_module_out(world: World, name: str) -> None:
    (world.minion.root / "etc").mkdir()
    (world.minion.root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nweb:x:0:0::/srv/d:/bin/sh\n")
    before = world.seen()
    told = []
    with adversary(world):
        for number in range(25):
            with contextlib.suppress(StatecoreError, OSError):
                told.append(MODULES[name](world.minion.context(), number))
    assert world.seen() == before
    assert world.told_secrets() == []
    assert SECRET not in repr(told)


def test_a_path_of_a_mounted_host_is_no_path_to_functions_that_know_nothing_of_it(world: World) -> None:
    place = world.minion.context().host.path("/srv/d/f")
    with pytest.raises(TypeError, match="path of a mounted host"):
        os.stat(place)  # noqa: PTH116 - that it fails is the point
    with pytest.raises(PermissionError, match="outside the host"):
        (place.parents[3] / "outside").stat()


def test_a_link_of_full_length_names_leaves_room_for_the_file_that_replaces_it(world: World) -> None:
    host = world.minion.context().host
    place = host.path(f"/srv/d/{'n' * 255}")
    managed_file.replace(host, place, b"1", Attributes())
    assert place.read_bytes() == b"1"
