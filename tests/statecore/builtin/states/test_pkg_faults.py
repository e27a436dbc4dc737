"""Package managers that are killed, locked, or without room: a failed state that says what and what to do; the next run heals."""

from __future__ import annotations

from typing import Any

import pytest

from statecore.model.ports import CommandResult
from statecore.system.packages import package_requests
from tests.statecore.conftest import Debian, PlainMinion

_INTERRUPTED = "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem. \n"
_LOCKED = (
    "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4711 (unattended-upgr)\n"
    "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?\n"
)
_FULL = "dpkg: error processing archive x.deb (--unpack):\n cannot copy extracted data: No space left on device\n"


def _killed(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """apt-get is killed in the midst of its work."""
    usual = Debian._apt_get

    def play(self: Debian, words: list[str], stdin: str) -> Any:
        if "install" in words and not self.half:
            self.half = True
            return code, "Reading package lists...\nUnpacking git (1:2.39.2-1) ...\n", ""
        return (100, "", _INTERRUPTED) if self.half else usual(self, words, stdin)

    monkeypatch.setattr(Debian, "half", False, raising=False)
    monkeypatch.setattr(Debian, "_apt_get", play)
    rows = Debian._dpkg_query

    def query(self: Debian, words: list[str], stdin: str) -> str:
        return rows(self, words, stdin) + ("install ok half-configured git 1:2.39.2-1 amd64\n" if self.half else "")

    monkeypatch.setattr(Debian, "_dpkg_query", query)


@pytest.mark.parametrize("code", [-9, 137])
def test_a_package_manager_that_is_killed(
    code: int, plain: PlainMinion, debian: Debian, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        _killed(patched, code)
        told = plain.state("pkg.installed", name="git")
        assert told["result"] is False
        assert "apt-get was killed (signal 9) before it was done" in told["comment"]
        assert "Run 'dpkg --configure -a' on the host" in told["comment"]
        assert "Unpacking git (1:2.39.2-1) ..." in told["comment"]
        # What is half there does not count as there, and APT does nothing before somebody has looked.
        told = plain.state("pkg.installed", name="git")
        assert told["result"] is False
        assert "dpkg was interrupted" in told["comment"]
        assert "Run 'dpkg --configure -a' on the host" in told["comment"]
    healed = plain.state("pkg.installed", name="git")
    assert (healed["result"], healed["changes"]) == (True, {"git": {"old": "", "new": "1:2.39.2-1"}})


@pytest.mark.parametrize("said", [_LOCKED, _FULL])
def test_a_package_manager_that_cannot(said: str, plain: PlainMinion, debian: Debian) -> None:
    debian.broken["apt-get"] = said
    told = plain.state("pkg.installed", name="git", refresh=False)
    assert told["result"] is False
    for line in said.splitlines():
        assert line.strip() in told["comment"]
    debian.broken.clear()
    assert plain.state("pkg.installed", name="git", refresh=False)["result"] is True


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (CommandResult(0, "x", "y", 1), []),
        (CommandResult(1, "x", "y", 1), ["y"]),
        (CommandResult(1, "x", "", 1), ["x"]),
        (CommandResult(3, "", "", 1), ["dnf failed with return code 3"]),
        (CommandResult(200, "", "", 1), ["dnf failed with return code 200"]),
        (
            CommandResult(-15, "\n".join("abcdefg"), "", 1),
            [
                "dnf was killed (signal 15) before it was done, and may have left packages half installed. Look.\n"
                "c\nd\ne\nf\ng"
            ],
        ),
    ],
)
def test_what_is_told(result: CommandResult, told: list[str]) -> None:
    assert package_requests.refusal("dnf", result, "Look.") == told
