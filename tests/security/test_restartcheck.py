"""CVE-2020-28243: names of processes, which any user of the host chooses, reached a shell through ``restartcheck``."""

from __future__ import annotations

from pathlib import Path

import pytest

from statecore.runtime.runtime import local_runtime

#: Modules that write down what they are called with.
_SERVICE = """
def get_running():
    return []
def show(name):
    return {}
def available(name):
    with open(%r, "a") as file:
        file.write(name + "\\n")
    return False
"""
_PKG = "def owner(*paths):\n    return 'app'\ndef file_list(*packages):\n    return {'files': [], 'errors': []}\n"

NAMES = {
    "a command behind a semicolon": ";touch /tmp/x",
    "a command in a substitution": "$(touch /tmp/x)",
    "a command in backticks": "`touch /tmp/x`",
    "another host for systemctl": "-H evil",
    "another root for systemctl": "--root=/tmp/x",
    "a path out of init.d": "../../tmp/x",
    "a line of its own": "a\nb",
    "no name": "",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_the_name_of_a_process_reaches_no_program(name: str, tmp_path: Path) -> None:
    host, called = tmp_path / "host", tmp_path / "called"
    process = host / "proc/7"
    (process / "fd").mkdir(parents=True)
    (host / "proc/stat").write_text("btime 1000\n")
    fields = " ".join(["S", "1", *["0"] * 48])
    (process / "stat").write_text(f"7 ({name}) {fields}\n")
    (process / "status").write_text("Name:\tx\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nVmRSS:\t1 kB\nVmSize:\t1 kB\n")
    (process / "statm").write_text("10 5 2 1 0 3 0")
    (process / "cmdline").write_text("x\0")
    (process / "maps").write_text("7f00-7f01 r-xp 00000000 08:01 12 /usr/lib/libssl.so.3 (deleted)\n")
    (process / "exe").symlink_to("/usr/bin/app")
    (tmp_path / "ext/modules").mkdir(parents=True)
    (tmp_path / "ext/modules/service.py").write_text(_SERVICE % str(called))
    (tmp_path / "ext/modules/pkg.py").write_text(_PKG)
    runtime = local_runtime(
        {
            "id": "web1",
            "host_root": str(host),
            "extension_modules": str(tmp_path / "ext"),
            "cachedir": str(tmp_path / "cache"),
        },
        grains={"os_family": "Debian"},
    )
    returned = runtime.call("restartcheck.restartcheck")
    assert "app" in str(returned.value), returned
    assert not called.exists()
