"""compose.yaml on a real engine: its containers, the commands of an operator in it, and what a test may look at and break."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import bcrypt
import pytest

ROOT = Path(__file__).resolve().parents[2]
ROLES = ("publisher", "reqserver", "mworker", "eventpublisher", "reactor", "maintenance")
MINIONS = ("web1", "web2")
#: What has to run; keygen and the two hosts end when they are done.
SERVICES = (*ROLES, "redis", "master", *MINIONS)
#: One run holds its jobs until the test lets them go, so that a role can be killed in the middle.
HELD_RUN = """\
held:
  cmd.run:
    - name: |
        touch /var/tmp/started
        tries=0
        while [ ! -e /var/tmp/go ] && [ $tries -lt 900 ]; do tries=$((tries + 1)); sleep 0.1; done
        test -e /var/tmp/go
"""
RUN = dict[str, dict[str, Any]]


class Lab:
    """A compose project of this run: compose.yaml, and files that change it (``files``), with variables of ``environment``."""

    #: The password of the API's user `admin`.
    password = "pw-of-admin"

    #: A user with the same password to whom no row of external_auth gives a right.
    unlisted = "nobody-in-particular"

    def __init__(
        self, tree: Path, files: Sequence[Path] = (), environment: Mapping[str, str] | None = None, name: str = "test"
    ) -> None:
        self.tree = tree
        self.files = (ROOT / "compose.yaml", *files)
        users = tree.parent / "users"
        digest = bcrypt.hashpw(self.password.encode(), bcrypt.gensalt(4)).decode()
        users.write_text("".join(f"{user}:{digest}\n" for user in ("admin", self.unlisted)))
        users.chmod(0o644)
        self.project = f"saltern-{name}-{os.getpid()}"
        # Ports are the engine's choice: a developer's own lab may be up beside this one.
        self.environment = os.environ | {
            "STATE_TREE": str(tree),
            "PUBLISH_PORT": "",
            "RET_PORT": "",
            "API_PORT": "",
            "API_USERS": str(users),
            "WEB1_PORT": "",
            "WEB2_PORT": "",
            "COMPOSE_ANSI": "never",
            **(environment or {}),
        }

    @contextlib.contextmanager
    def running(self, *words: str, up: Sequence[str] = ()) -> Iterator[Lab]:
        """Start the project, wait until every service is healthy, and remove all of it when the ``with`` block ends.

        ``words``: of ``docker compose``, before ``up``; ``up``: words after it. SALTERN_KEEP_LAB=1 keeps the project.
        """
        try:
            self.compose(*words, "up", "--detach", "--no-build", *up, seconds=300)
            self.all_healthy()
            yield self
        finally:
            if not os.environ.get("SALTERN_KEEP_LAB"):
                profiles = ("--profile", "cli", "--profile", "api")
                self.compose(*profiles, "down", "--volumes", "--remove-orphans", "--timeout", "5", check=False)

    # --- waiting ---

    @staticmethod
    def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
        """The first true value of ``condition``, asked five times a second. Fails the test at the deadline, naming ``what``."""
        deadline = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                pytest.fail(f"{what}: not within {seconds:g} seconds")
            time.sleep(0.2)

    # --- running things ---

    def command(self, *arguments: str) -> list[str]:
        """A docker compose command line."""
        return ["docker", "compose", *(f"--file={file}" for file in self.files), "-p", self.project, *arguments]

    def compose(self, *arguments: str, seconds: float = 120, check: bool = True) -> str:
        """stdout of a docker compose command."""
        return self._run(self.command(*arguments), seconds, check)

    def docker(self, *arguments: str, seconds: float = 60, check: bool = True) -> str:
        """stdout of a docker command."""
        return self._run(["docker", *arguments], seconds, check)

    def _run(self, command: list[str], seconds: float, check: bool) -> str:
        done = subprocess.run(
            command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if check and done.returncode:
            pytest.fail(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def cli(self, *arguments: str, seconds: float = 180, check: bool = True) -> str:
        """What an operator types: docker compose run --rm cli ..."""
        return self.compose("run", "--rm", "-T", "cli", *arguments, seconds=seconds, check=check)

    def cli_started(self, *arguments: str) -> subprocess.Popen[str]:
        """The same, in the background."""
        return subprocess.Popen(
            self.command("run", "--rm", "-T", "cli", *arguments),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def salt(self, target: str, *arguments: str, seconds: float = 180) -> dict[str, Any]:
        """Returns by minion of a `salt` command."""
        returns: dict[str, Any] = json.loads(
            self.cli("salt", "--out", "json", "--static", target, *arguments, seconds=seconds)
        )
        return returns

    def apply(self, target: str = "*", *arguments: str, seconds: float = 420) -> dict[str, RUN]:
        """state.apply: minion -> state's id -> its result. Fails the test where a state is no longer a state (an error)."""
        returns = self.salt(target, "state.apply", *arguments, seconds=seconds)
        return {minion: by_id(minion, run) for minion, run in returns.items()}

    def on_host(self, minion: str, *command: str, check: bool = True) -> str:
        """stdout of a command inside a managed host."""
        return self.inside(minion, "chroot", "/host", *command, check=check)

    def inside(self, service: str, *command: str, check: bool = True) -> str:
        """stdout of a command in a service's (first) container."""
        return self.docker("exec", self.containers(service)[0], *command, check=check)

    def redis_url(self) -> str:
        """Redis's URL with the password, as a worker reads it."""
        return self.inside("mworker", "cat", "/keys/mworker/redis.url").strip()

    # --- looking at things ---

    def keys(self) -> dict[str, list[str]]:
        """Minion keys as salt-key lists them."""
        found: dict[str, list[str]] = json.loads(self.cli("salt-key", "-L", "--out", "json"))
        return found

    def both_answer(self) -> bool:
        """Whether both minions answer test.ping."""
        answer = self.cli("salt", "--out", "json", "--static", "*", "test.ping", check=False)
        try:
            return bool(json.loads(answer) == dict.fromkeys(MINIONS, True))
        except ValueError:
            return False

    def containers(self, service: str) -> list[str]:
        """Ids of a service's containers."""
        # By the labels that compose gives them: asking the engine is several times as fast as asking compose.
        labels = {"project": self.project, "service": service, "oneoff": "False"}
        filters = [f"--filter=label=com.docker.compose.{name}={value}" for name, value in labels.items()]
        return self.docker("ps", "--all", "--quiet", "--no-trunc", *filters).split()

    def inspect(self, container: str) -> dict[str, Any]:
        """All that the engine knows of a container."""
        found: dict[str, Any] = json.loads(self.docker("inspect", container))[0]
        return found

    def unhealthy(self, services: tuple[str, ...] = SERVICES) -> list[str]:
        """Names of containers that do not run healthily, and of services that have none."""
        faults = []
        for service in services:
            states = [self.inspect(container)["State"] for container in self.containers(service)]
            if not states or any(state.get("Health", {}).get("Status") != "healthy" for state in states):
                faults.append(service)
        return faults

    def all_healthy(self, seconds: float = 300) -> None:
        """Waits until every service is healthy; names those that are not at the deadline."""
        faults: list[str] = []

        def healthy() -> bool:
            faults[:] = self.unhealthy()
            return not faults

        try:
            self.until(healthy, seconds, "every service healthy")
        except pytest.fail.Exception:
            pytest.fail(f"not healthy within {seconds:g} seconds: {', '.join(faults)}")

    def page(self, minion: str) -> tuple[str, Mapping[str, str]]:
        """(body, headers) of http://MINION/ as the other minion sees it."""
        (other,) = (name for name in MINIONS if name != minion)
        program = (
            "import json, urllib.request\n"
            f"with urllib.request.urlopen('http://{minion}/', timeout=5) as answer:\n"
            "    print(json.dumps([answer.read().decode(), dict(answer.headers)]))\n"
        )
        body, headers = json.loads(self.inside(other, "python3", "-c", program))
        return body, headers

    def logs(self) -> str:
        """The last words of every service."""
        return self.compose("logs", "--no-color", "--timestamps", "--tail", "60", check=False)

    # --- breaking things ---

    def crash(self, service: str) -> None:
        """Kills the first process of each of a service's containers, from outside: the restart policy sees a crash.

        `docker kill` would not do: the engine takes it for the operator's wish and leaves the container down.
        """
        before = [self.inspect(container) for container in self.containers(service)]
        pids = [str(state["State"]["Pid"]) for state in before if state["State"]["Running"]]
        assert pids, f"{service} does not run"
        killer = ("run", "--rm", "--pid", "host", "--user", "0", "--cap-drop", "ALL", "--cap-add", "KILL")
        image = f"saltern/userland:{os.environ.get('TAG', 'dev')}"
        self.docker(*killer, "--entrypoint", "sh", image, "-c", f"kill -9 {' '.join(pids)}")

        def came_back() -> bool:
            now = [self.inspect(state["Id"]) for state in before]
            return all(state["State"]["Running"] and str(state["State"]["Pid"]) not in pids for state in now)

        self.until(came_back, 30, f"{service} started again by its restart policy")


def by_id(minion: str, run: Any) -> RUN:
    """A run's results by the states' ids; ids that stand for two functions are told apart as ``id.module``."""
    assert isinstance(run, dict), f"{minion}: {run}"
    modules: dict[str, list[str]] = {}
    for tag, result in run.items():
        modules.setdefault(result["__id__"], []).append(tag.partition("_|-")[0])
    return {
        result["__id__"]
        if len(modules[result["__id__"]]) == 1
        else f"{result['__id__']}.{tag.partition('_|-')[0]}": result
        for tag, result in run.items()
    }


def require_engine() -> None:
    """Build the images. Skip the test if no Docker engine answers; fail it if SALTERN_REQUIRE_ENGINE is set."""
    if not _engine_answers():
        if os.environ.get("SALTERN_REQUIRE_ENGINE"):
            pytest.fail("no Docker engine with the compose plugin answers")
        pytest.skip("no Docker engine with the compose plugin answers: .ci/docker-engine start starts one")
    subprocess.run([ROOT / "docker" / "images"], timeout=900, check=True, stdin=subprocess.DEVNULL)


def copied_tree(directory: Path) -> Path:
    """Copy examples/srv into ``directory``, with the state ``held``, and return the copy: a tree that a test may change."""
    tree = directory / "srv"
    shutil.copytree(ROOT / "examples" / "srv", tree)
    (tree / "salt" / "held.sls").write_text(HELD_RUN)
    readable(tree)
    return tree


def readable(directory: Path) -> None:
    """Let everybody read a directory with all that is in it: roles read it as a user of their own."""
    for path in (directory, *directory.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _engine_answers() -> bool:
    try:
        subprocess.run(["docker", "compose", "version"], capture_output=True, timeout=20, check=True)
        subprocess.run(["docker", "info"], capture_output=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return True
