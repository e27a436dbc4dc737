"""Scenes as data: a tree, and calls of state functions in their order, made by real Salt and by ours.

A scene (``cases/*.yaml``) has these keys:

``files``, ``pillar``, ``dev``
    path -> text, of the state tree, of the pillar and of the environment dev; ``{dir}`` stands for the scene's directory
``opts``
    options of the minion
``running``
    another job that runs meanwhile: ``jid``, ``fun``
``calls``
    function -> arguments, in order: a list is positional, a map is keywords with ``args`` for the positional ones; a function
    that is called more than once is told apart by what follows a space (``apply again``)
``differs``
    call -> why ours answers otherwise, which its own test shows; the call is made but not compared
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.runtime import local_runtime
from tests import case_files

GRAINS: Mapping[str, Any] = {"id": "web1", "os": "Debian", "os_family": "Debian", "roles": ["web"]}

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Scene:
    """One scene, as in the file."""

    id: str
    calls: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    pillar: Mapping[str, str] = field(default_factory=dict)
    dev: Mapping[str, str] = field(default_factory=dict)
    opts: Mapping[str, Any] = field(default_factory=dict)
    running: Mapping[str, str] = field(default_factory=dict)
    differs: Mapping[str, str] = field(default_factory=dict)

    def jobs(self, pid: int) -> list[dict[str, Any]]:
        """What runs meanwhile, in a process of this number."""
        return [{**self.running, "pid": pid}] if self.running else []

    def write(self, directory: Path) -> dict[str, Any]:
        """Makes the scene's directories; gives the options that name them."""
        for name, files in {"base": self.files, "pillar": self.pillar, "dev": self.dev}.items():
            (directory / name).mkdir(parents=True)
            for path, text in files.items():
                file = directory / name / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text.replace("{dir}", str(directory)))
        dev = {"dev": [f"{directory}/dev"]} if self.dev else {}
        own = {
            "file_roots": {"base": [f"{directory}/base"], **dev},
            "pillar_roots": {"base": [f"{directory}/pillar"]},
        }
        return own | _placed(dict(self.opts), directory)

    def asked(self, directory: Path) -> Iterator[dict[str, Any]]:
        """The calls: ``fun``, ``args``, ``kwargs``."""
        for name, arguments in self.calls.items():
            placed = _placed(arguments, directory)
            if isinstance(placed, Mapping):
                keywords = {key: value for key, value in placed.items() if key != "args"}
                yield {"fun": name.split(" ")[0], "args": placed.get("args", []), "kwargs": keywords}
            else:
                yield {"fun": name.split(" ")[0], "args": placed or [], "kwargs": {}}


def _placed(data: Any, directory: Path) -> Any:
    return json.loads(json.dumps(data).replace("{dir}", str(directory)))


def scenes() -> list[Scene]:
    """All scenes, ids "file/scene"."""
    return [
        Scene(id=f"{path.stem}/{name}", **scene)
        for path in sorted(_HERE.glob("cases/*.yaml"))
        for name, scene in case_files.read(path).items()
    ]


class Jobs:
    """The port: what runs on the host."""

    def __init__(self, jobs: list[dict[str, Any]]) -> None:
        self._jobs = jobs

    def running(self) -> list[dict[str, Any]]:
        return self._jobs

    def signal(self, jid: str, number: int) -> str:
        return ""


def ours(scene: Scene, directory: Path, pid: int = 0) -> list[dict[str, Any]]:
    """What our functions return, call by call, each as in a process of its own. ``pid``: who runs the other job."""
    opts = {"grains": dict(GRAINS), **scene.write(directory), "id": "web1"}
    opts |= {"cachedir": f"{directory}/cache", "conf_file": f"{directory}/minion", "grains_file": f"{directory}/grains"}
    jobs = scene.jobs(pid)
    for job in jobs:
        if job["fun"].startswith("state."):
            # As a run leaves it.
            mark = directory / "cache/state_queue" / job["jid"]
            mark.parent.mkdir(parents=True)
            mark.write_text(json.dumps({**job, "waits": False}))
    runtime = local_runtime(opts, jobs=Jobs(jobs))
    told = []
    for call in scene.asked(directory):
        returned = runtime.call(f"state.{call['fun']}", call["args"], call["kwargs"])
        told.append({"value": json.loads(json.dumps(returned.value, default=str)), "retcode": returned.retcode})
    return told


def agreed(own: Any, salts: Any) -> Any:
    """Ours, with Salt's text for each that begins with it: ours may say more behind Salt's words."""
    if isinstance(own, str) and isinstance(salts, str):
        return salts if own.startswith(salts) else own
    if isinstance(own, list) and isinstance(salts, list) and len(own) == len(salts):
        return [agreed(each, theirs) for each, theirs in zip(own, salts, strict=True)]
    if isinstance(own, Mapping) and isinstance(salts, Mapping):
        return {key: agreed(value, salts[key]) if key in salts else value for key, value in own.items()}
    return own


def plainly(told: Any, directory: Path) -> Any:
    """Without times and the scene's directory."""
    if isinstance(told, Mapping):
        return {
            key.replace(str(directory), "DIR"): plainly(value, directory)
            for key, value in told.items()
            if key not in ("duration", "start_time")
        }
    if isinstance(told, list):
        return [plainly(each, directory) for each in told]
    if isinstance(told, str):
        return told.replace(str(directory), "DIR")
    return told


@pytest.fixture(scope="session")
def other_process() -> Iterator[int]:
    """A process that lives, and by whose name Salt takes it for one of its own."""
    with subprocess.Popen(["salt-minion", "600"], executable=shutil.which("sleep")) as process:
        yield process.pid
        process.kill()


@pytest.fixture(scope="session")
def salt_says(oracle: Any, other_process: int, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What real Salt makes of every scene, by id."""
    root = tmp_path_factory.mktemp("salt")
    asked = []
    for number, scene in enumerate(scenes()):
        directory = root / str(number)
        opts = scene.write(directory)
        calls = list(scene.asked(directory))
        told = {"grains": GRAINS, "opts": opts, "calls": calls, "running": scene.jobs(other_process)}
        asked.append({"directory": str(directory), **told})
    told = json.loads(oracle.run("python", str(_HERE / "salt_functions.py"), stdin=json.dumps(asked), timeout=240))
    return {
        scene.id: plainly(each, Path(request["directory"]))
        for scene, request, each in zip(scenes(), asked, told, strict=True)
    }
