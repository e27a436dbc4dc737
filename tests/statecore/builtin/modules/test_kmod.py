"""Kernel modules of a mounted host whose programs are played."""

from __future__ import annotations

import os

import pytest

from statecore.host.host import Host
from statecore.model.ports import CommandResult


class Kernel(Host):
    """Has ext4 loaded; ``broken`` cannot be."""

    loaded = ("ext4",)

    def run(self, cmd, **options):
        program, *names = cmd
        if "broken" in names:
            return CommandResult(1, "", "no\n", 1)
        if program == "modprobe":
            self.loaded = (*self.loaded, *names)
        if program == "rmmod":
            self.loaded = tuple(each for each in self.loaded if each not in names)
        lines = [f"{each} 1 0 a,b" for each in self.loaded] if program == "lsmod" else []
        return CommandResult(0, "\n".join(["Module Size Used by", *lines]), "", 1)


@pytest.fixture
def host(plain):
    top = plain.root / "lib/modules" / os.uname().release
    (top / "kernel").mkdir(parents=True)
    for name in ("dummy.ko", "snd-x.ko.xz", "broken.ko"):
        (top / "kernel" / name).touch()
    (top / "modules.builtin").write_text("kernel/fs/proc.ko\n")
    (plain.root / "etc").mkdir()
    (plain.root / "etc/modules").write_text("# mods\n# dummy\n")
    plain.context_of = lambda **changes: plain.context(host=Kernel(plain.root), **changes)
    return plain


def test_calls(host):
    ctx = host.context_of()
    assert ctx.call("kmod.available") == ["broken", "dummy", "proc", "snd_x"]
    assert ctx.call("kmod.lsmod") == [{"module": "ext4", "size": "1", "depcount": "0", "deps": ["a", "b"]}]
    assert ctx.call("kmod.is_loaded", "ext4") is True
    assert ctx.call("kmod.check_available", "none") is False
    assert ctx.call("kmod.load", "broken") == "Error loading module broken: no"
    assert ctx.call("kmod.load", "dummy", True) == ["dummy"]
    assert (host.root / "etc/modules").read_text() == "# mods\ndummy\n"
    assert ctx.call("kmod.mod_list", True) == ["dummy"]
    assert ctx.call("kmod.remove", "dummy", True) == ["dummy"]
    assert (host.root / "etc/modules").read_text() == "# mods\n#dummy\n"


def test_states(host):
    ctx = host.context_of()
    told = ctx.states["kmod.present"](name="x", mods=["dummy", "ext4", "broken"], persist=False)
    assert (told["result"], told["changes"]) == (False, {"dummy": "loaded"})
    assert told["comment"] == (
        "Kernel module ext4 is already present\nLoaded kernel module dummy\n"
        "Failed to load kernel module broken: Error loading module broken: no"
    )
    assert ctx.states["kmod.present"](name="dummy")["comment"] == "Kernel module dummy is already present"
    assert ctx.states["kmod.absent"](name="dummy")["changes"] == {"dummy": "removed"}
