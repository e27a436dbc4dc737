"""Where SaltGUI's flows run: a lab of processes on loopback, or the containers of compose.yaml. Each has two minions, web1 and
web2, whose keys wait for an operator, and two replicas of the API behind one address.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import yaml

from tests.browser.own_network import OwnNetwork
from tests.container import compose_lab
from tests.faults.proxy import Link, Network
from tests.ports import free_row
from tests.roles.api_lab import ALL, ApiLab, api_options
from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Held, until

MINIONS = ("web1", "web2")

#: The master's options that SaltGUI shows.
SHOWN: Mapping[str, Any] = {
    "state_events": True,
    "timeout": 10,
    # Who is asked which virtual modules there are, each time when the command box opens on a new page.
    "saltgui_test_providers_target": "web1",
    "nodegroups": {"front": "web1", "all": "web*"},
    "saltgui_templates": {
        "say": {"description": "Say a word", "target": "web1", "command": "test.echo hello-from-a-template"},
    },
}

#: What `state.apply` does here: as many states on each minion, which need no package.
STATES = 4
_TOP = {"base": {"*": ["shown"]}}
_SHOWN_STATES = {
    f"line-{number}": {"file.managed": [{"name": f"/var/tmp/shown/{number}"}, {"contents": "x"}, {"makedirs": True}]}
    for number in range(STATES)
}


class HeldRun(ABC):
    """A run of states on both minions that waits for a word of the test."""

    #: Function and arguments that start it.
    words: tuple[str, ...]

    @abstractmethod
    def await_started(self) -> None:
        """Wait until it runs on both minions."""

    @abstractmethod
    def let_go(self) -> None:
        """Let it end by itself."""


class Place(ABC):
    """A master with an API that serves SaltGUI, and its minions."""

    #: A user who may do everything, and one without a row in external_auth; their passwords.
    user: str
    password: str
    unlisted: str
    unlisted_password: str
    #: Minion id -> its system, as its grains say.
    systems: ClassVar[Mapping[str, str]]

    def __init__(self, link: Link, network: OwnNetwork | None = None, page_link: Link | None = None) -> None:
        self._link = link
        #: The network of the browser, which reaches the replicas by ``page_link``; None: the machine's, by ``link``.
        self.network = network
        self._page_link = page_link or link

    @property
    def url(self) -> str:
        """Return the address of the replicas, such as ``http://127.0.0.1:25600``."""
        return f"http://127.0.0.1:{self._link.port}"

    @property
    def page_url(self) -> str:
        """Return the address of the replicas in the browser's network."""
        return f"http://127.0.0.1:{self._page_link.port}"

    @abstractmethod
    def keys(self) -> dict[str, list[str]]:
        """Return the minion keys as salt-key lists them."""

    @abstractmethod
    def settle(self) -> None:
        """Accept all keys, and wait until both minions answer and have synced their modules."""

    @abstractmethod
    def hold(self) -> HeldRun:
        """Return a run of states that waits; it is not started."""

    @abstractmethod
    def kill_api(self, number: int) -> None:
        """Kill a replica of the API, 1 or 2."""

    @abstractmethod
    def start_api(self, number: int) -> None:
        """Start a killed replica of the API, and wait until it is ready."""


def _write_states(tree: Path) -> None:
    for name, content in (("top.sls", _TOP), ("shown.sls", _SHOWN_STATES)):
        (tree / "salt" / name).write_text(yaml.safe_dump(content))


# ------------------------------------------------------------------------------------------------------- a lab of processes


class _LabRun(HeldRun):
    def __init__(self, lab: ApiLab) -> None:
        self._held = Held(lab)
        self.words = self._held.state_words()[1:]

    def await_started(self) -> None:
        self._held.await_started()

    def let_go(self) -> None:
        self._held.let_go()


class LabPlace(Place):
    """A lab of processes on loopback."""

    user, password = "ann", "pw-ann"
    unlisted, unlisted_password = "unlisted", "pw-unlisted"
    systems: ClassVar[Mapping[str, str]] = {"web1": "Debian 12", "web2": "Ubuntu 24.04"}

    def __init__(self, lab: ApiLab, link: Link) -> None:
        super().__init__(link)
        self.lab = lab

    def keys(self) -> dict[str, list[str]]:
        return self.lab.keys()

    def settle(self) -> None:
        lab = self.lab

        def accepted() -> bool:
            lab.run("salt-key", "-y", "-A")
            return len(lab.keys()["minions"]) == len(lab.minions)

        until(accepted, SOON, "all keys are accepted")
        # A minion whose key was rejected has ended, as Salt's does; its service starts it again.
        for minion in lab.dead():
            lab.start(minion)
        lab.await_ready(*lab.minions)
        lab.salt("*", "saltutil.sync_all")

    def hold(self) -> HeldRun:
        return _LabRun(self.lab)

    def kill_api(self, number: int) -> None:
        self.lab.kill(_replica(number))

    def start_api(self, number: int) -> None:
        self.lab.start(_replica(number))
        self.lab.await_ready(_replica(number))


def _replica(number: int) -> str:
    return "api" if number == 1 else f"api{number}"


@contextlib.contextmanager
def lab_place(files: Path, new_lab: NewLab, home: Path) -> Iterator[Place]:
    """Start a lab of processes that serves SaltGUI's ``files``; its file of users is below ``home``."""
    api = {
        "host": "127.0.0.1",
        "disable_ssl": True,
        "app": str(files / "index.html"),
        "static": str(files / "static"),
    }
    options = {**api_options(home, ann=ALL), **SHOWN, "auto_accept": False, "rest_cherrypy": api}
    lab = new_lab(ApiLab, options=options)
    assert isinstance(lab, ApiLab)
    _write_states(lab.tree)
    lab.start_all(*lab.roles)
    for minion in lab.minions:
        lab.start(minion)
    with Network() as network:
        yield LabPlace(lab, network.link(lab.port["http1"], lab.port["http2"]))


# ------------------------------------------------------------------------------------------------- containers of compose.yaml


class _ComposeRun(HeldRun):
    _numbers = itertools.count()

    def __init__(self, lab: compose_lab.Lab) -> None:
        self._lab = lab
        name = f"held{next(self._numbers)}"
        sls = lab.tree / "salt" / f"{name}.sls"
        # The state of the container tests, with files of its own.
        sls.write_text(compose_lab.HELD_RUN.replace("/var/tmp/", f"/var/tmp/{name}-"))
        sls.chmod(0o644)
        self._name = name
        self.words = ("state.apply", name)

    def await_started(self) -> None:
        for minion in MINIONS:
            file = f"/var/tmp/{self._name}-started"
            started = partial(self._lab.on_host, minion, "ls", file, check=False)
            self._lab.until(started, SOON, f"the held job runs on {minion}")

    def let_go(self) -> None:
        for minion in MINIONS:
            self._lab.on_host(minion, "touch", f"/var/tmp/{self._name}-go")


class ComposePlace(Place):
    """The containers of compose.yaml, with two of the service ``api``."""

    user, password = "admin", compose_lab.Lab.password
    unlisted, unlisted_password = compose_lab.Lab.unlisted, compose_lab.Lab.password
    systems: ClassVar[Mapping[str, str]] = dict.fromkeys(MINIONS, "Debian 12")

    def __init__(self, lab: compose_lab.Lab, network: OwnNetwork, link: Link, page_link: Link) -> None:
        super().__init__(link, network, page_link)
        self.lab = lab
        self._replicas = sorted(lab.containers("api"))

    def keys(self) -> dict[str, list[str]]:
        return self.lab.keys()

    def settle(self) -> None:
        lab = self.lab

        def accepted() -> bool:
            lab.cli("salt-key", "-y", "-A", check=False)
            return len(self.keys()["minions"]) == len(MINIONS)

        lab.until(accepted, SOON, "all keys are accepted")
        # The engine starts a minion again that ended because its key was rejected.
        lab.until(lab.both_answer, 120, "both minions answer test.ping")

    def hold(self) -> HeldRun:
        return _ComposeRun(self.lab)

    def kill_api(self, number: int) -> None:
        # The engine takes it for the operator's wish, and leaves the container down.
        self.lab.docker("kill", self._replicas[number - 1])

    def start_api(self, number: int) -> None:
        self.lab.docker("start", self._replicas[number - 1])
        self.lab.until(lambda: not self.lab.unhealthy(("api",)), 120, "the API's replicas are healthy")


@contextlib.contextmanager
def compose_place(files: Path, home: Path) -> Iterator[Place]:
    """Start the containers of compose.yaml, with the profile ``api``, as docs/api.md says for SaltGUI: its ``files`` at /srv/app.
    What a master needs beside is in ``home``.
    """
    tree = compose_lab.copied_tree(home)
    _write_states(tree)
    compose_lab.readable(tree)
    shown = home / "master.conf"
    # The reactor has its rows from compose.yaml; SaltGUI asks the workers for them.
    reactions = [{"site/refresh": ["/srv/reactor/refresh.sls"]}]
    shown.write_text(yaml.safe_dump({**SHOWN, "reactor": reactions}))
    shown.chmod(0o644)
    more = home / "compose.more.yaml"
    services = {"mworker": {"volumes": [f"{shown}:/etc/salt/master:ro"]}}
    more.write_text(yaml.safe_dump({"services": services}))
    first, second = free_row(2)
    environment = {
        "API_PORT": f"{first}-{second}",
        "API_FILES": str(files),
        "API_SETTINGS": json.dumps({"disable_ssl": True, "app": "/srv/app/index.html", "static": "/srv/app/static"}),
    }
    lab = compose_lab.Lab(tree, [more], environment, "saltgui")
    with lab.running("--profile", "api", up=("--scale", "api=2")), Network() as links, OwnNetwork() as network:
        lab.until(lambda: not lab.unhealthy(("api",)), 120, "the API's replicas are healthy")
        page_link = links.link(first, second, listener=network.listener())
        yield ComposePlace(lab, network, links.link(first, second), page_link)
