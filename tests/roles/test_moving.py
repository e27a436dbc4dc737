"""A stock salt-master is taken over: its minion, which nobody touches, goes on with the key that it has. And back again.

What is typed is what docs/moving.md says, with this test's directories in place of the page's.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from saltwire.keys import PrivateKey
from tests.conftest import Oracle
from tests.roles.conftest import NewLab
from tests.roles.lab import ROOT, Lab, until

# Salt's daemons start three times.
pytestmark = [pytest.mark.roles, pytest.mark.oracle, pytest.mark.timeout(600)]

MINION = "stock1"

#: Seconds for a stock master or minion to start, on a busy machine.
_STOCK = 150.0


class Stock:
    """A stock master and its minion, on the addresses of a lab that has not been started."""

    def __init__(self, root: Path, lab: Lab, oracle: Oracle) -> None:
        self.root, self.lab, self.oracle = root, lab, oracle
        self.etc = root / "salt"
        self.etc.mkdir()
        (root / "minion").mkdir()
        master = {
            "interface": "127.0.0.1",
            "publish_port": lab.port["publish_port"],
            "ret_port": lab.port["ret_port"],
            "root_dir": str(root),
            "pki_dir": "/salt/pki/master",
            "sock_dir": str(root / "s" / "master"),
            "user": "root",
            "worker_threads": 1,
            # The minion takes no master's key that is not signed: the signature has to move, too.
            "master_sign_pubkey": True,
            "file_roots": {"base": [str(lab.tree / "salt")]},
            "pillar_roots": {"base": [str(lab.tree / "pillar")]},
        }
        self.config = master
        (self.etc / "master").write_text(yaml.safe_dump(master))
        minion = {
            "id": MINION,
            "master": "127.0.0.1",
            "master_port": lab.port["ret_port"],
            "publish_port": lab.port["publish_port"],
            "root_dir": str(root),
            "pki_dir": str(root / "r" / "pki"),
            "sock_dir": str(root / "s" / "minion"),
            "cachedir": str(root / "r" / "cache"),
            "verify_master_pubkey_sign": True,
            "acceptance_wait_time": 1,
            "auth_timeout": 2,
            "recon_default": 100,
            "recon_max": 400,
            "user": "root",
        }
        (root / "minion" / "minion").write_text(yaml.safe_dump(minion))
        sign = PrivateKey.generate()
        for path, content in (
            (self.etc / "pki" / "master" / "master_sign.pem", sign.to_pem()),
            (self.etc / "pki" / "master" / "master_sign.pub", sign.public.pem.encode()),
            (root / "r" / "pki" / "master_sign.pub", sign.public.pem.encode()),
        ):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o400)

    @contextmanager
    def running(self, program: str, config: Path) -> Iterator[None]:
        """One of Salt's daemons, with all its children, until the block ends."""
        with (self.lab.root / "log" / program).open("ab") as log:
            process = subprocess.Popen(
                [self.oracle.program(program), "-c", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.lab.environment,
                start_new_session=True,
            )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)

    def master(self, config: Path) -> Any:
        """The stock master, with this configuration."""
        return self.running("salt-master", config)

    def pings(self, config: Path) -> bool:
        """Whether the minion answers the stock master."""
        words = [self.oracle.program("salt"), "-c", str(config), "-t", "10", "--out=txt", MINION, "test.ping"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=_STOCK, check=False)
        return done.stdout == f"{MINION}: True\n"


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory with a short name: Salt's sockets are in it, whose names may have a hundred letters."""
    with tempfile.TemporaryDirectory(prefix="mv") as made:
        yield Path(made)


def commands(page: str, heading: str) -> list[list[str]]:
    """What a part of the page has one type."""
    part = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [line.removeprefix("$ ").split() for line in re.findall(r"^\$ .*$", part, re.MULTILINE)]


def test_a_stock_master_is_taken_over(module_labs: NewLab, oracle: Oracle, root: Path) -> None:
    lab = module_labs(minions=(), options={"auto_accept": False})
    stock = Stock(root, lab, oracle)
    page = (ROOT / "docs" / "moving.md").read_text()
    ours, back = root / "ours", root / "back"
    places: dict[str, object] = {
        "/var/cache/salt/master": root / "var" / "cache" / "salt" / "master",
        "/etc/salt": stock.etc,
        "/srv/saltern": ours,
        "/srv/back": back,
        "'*'": "*",
    }

    def typed(words: list[str], codes: tuple[int, ...] = (0,)) -> str:
        for place, here in places.items():
            words = [word.replace(place, str(here)) for word in words]
        answer = lab.run(*words)
        assert answer.code in codes, str(answer)
        return answer.out

    with stock.running("salt-minion", root / "minion"):
        with stock.master(stock.etc):
            waiting = stock.etc / "pki" / "master" / "minions_pre" / MINION
            until(waiting.exists, _STOCK, "the minion's key waits at the stock master")
            # As its salt-key does it: the key's file changes its directory.
            accepted = waiting.parent.parent / "minions" / MINION
            waiting.rename(accepted)
            until(lambda: stock.pings(stock.etc), _STOCK, "the minion answers the stock master")
        minion_keys = {path: path.read_bytes() for path in (root / "r" / "pki").rglob("*.p*")}
        assert {path.name for path in minion_keys} >= {"minion.pem", "minion_master.pub"}

        check, bring, keys, data, ping, _ = commands(page, "There")
        said = typed(check)
        assert said == (typed(bring)[: len(said)])
        assert f"{stock.etc}/master:" in said
        assert "worker_threads: roles are processes of their own" in said
        # The rest of the lab's configuration is what only Saltern knows.
        theirs = yaml.safe_load((ours / "etc" / "master").read_text())
        assert (theirs["publish_port"], theirs["file_roots"]) == (
            lab.port["publish_port"],
            {"base": [str(lab.tree / "salt")]},
        )
        own = yaml.safe_load((lab.etc / "master").read_text())
        (ours / "etc" / "master.d").mkdir()
        (ours / "etc" / "master.d" / "saltern.conf").write_text(
            yaml.safe_dump({name: value for name, value in own.items() if name not in theirs})
        )
        lab.etc = ours / "etc"
        lab.start_all(*lab.roles)
        typed(keys)
        assert "Stored of 1 minions:" in typed(data)
        until(lambda: lab.run(*ping[:1], "-t", "5", MINION, "test.ping").code == 0, _STOCK, "the minion is back")
        assert lab.salt("*", "test.ping") == {MINION: True}
        assert lab.salt("*", "pillar.get", "owner", "unmask=True") == {MINION: "the platform team"}
        assert lab.keys() == {"minions": [MINION], "minions_pre": [], "minions_rejected": [], "minions_denied": []}

        for words in commands(page, "Back"):
            typed(words)
        assert (back / "cache" / "minions" / MINION / "data.p").is_file()
        lab.close()
        # Where Salt keeps its sockets and caches was of no use here, and is not what this machine has.
        (back / "master.d").mkdir()
        places_of_salt = {name: stock.config[name] for name in ("root_dir", "sock_dir", "user", "worker_threads")}
        (back / "master.d" / "places.conf").write_text(
            yaml.safe_dump(places_of_salt | {"pki_dir": str(back / "pki" / "master")})
        )
        with stock.master(back):
            until(lambda: stock.pings(back), _STOCK, "the minion is back at the stock master")
        assert {path: path.read_bytes() for path in minion_keys} == minion_keys
