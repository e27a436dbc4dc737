"""docker/locked.py: what images install is exactly what our packages need."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
#: The interpreter of the images: Debian bookworm's.
IMAGE_PYTHON = {"python_full_version": "3.11.2", "python_version": "3.11", "extra": ""}


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("locked", ROOT / "docker" / "locked.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LOCKED = _load()


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _declared(*projects: str, without: frozenset[str] = frozenset()) -> list[str]:
    """Requirements of packages and their extras, but for some extras."""
    found: list[str] = []
    for project in projects:
        data = tomllib.loads((ROOT / project / "pyproject.toml").read_text())
        found += data["project"]["dependencies"]
        for extra, needs in data["project"].get("optional-dependencies", {}).items():
            found += needs if extra not in without else []
    return [text for text in found if not text.startswith("saltern-")]


def _closure(requirements: Iterable[str]) -> set[str]:
    """Names that the requirements need on the images' Python, by the metadata of what is installed here."""
    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        name = _plain(requirement.name)
        if name in found or (requirement.marker and not requirement.marker.evaluate(IMAGE_PYTHON)):
            continue
        found.add(name)
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            # Not for this interpreter (a marker): the lock says that it needs nothing, or this test's machine would have it.
            needs = []
        waiting += [Requirement(text) for text in needs]
    return found


#: Extras of statecore's returners and external pillars: whoever uses one adds it to an image. The language server and the client
#: library run where people work.
SERVICES = frozenset({"client", "ldap", "lsp", "mysql", "nacl", "postgres", "reclass"})


@pytest.mark.parametrize(
    ("name", "projects", "without"),
    [
        ("minion", ("libs/statecore", "libs/saltwire", "services"), frozenset({"api", "eauth", "master", "redis"})),
        ("master", ("libs/statecore", "libs/saltwire", "libs/masterstore", "services"), frozenset({"api"})),
        ("api", ("libs/statecore", "libs/saltwire", "services"), frozenset({"eauth", "master", "redis"})),
    ],
)
def test_a_set_is_the_closure_of_its_packages(name: str, projects: tuple[str, ...], without: frozenset[str]) -> None:
    assert set(LOCKED.SETS[name]) == _closure(_declared(*projects, without=without | SERVICES))


def test_the_build_set_is_the_closure_of_the_build_requirements() -> None:
    data = tomllib.loads((ROOT / "services" / "pyproject.toml").read_text())
    assert set(LOCKED.SETS["build"]) == _closure(data["build-system"]["requires"])


@pytest.mark.parametrize("name", ["minion", "master", "api", "build"])
def test_the_lock_holds_every_name_with_hashes(name: str) -> None:
    with (ROOT / "requirements.lock").open() as lock:
        text = LOCKED.select(lock, LOCKED.SETS[name])
    entries = dict(LOCKED.entries(text.splitlines(keepends=True)))
    assert set(entries) == set(LOCKED.SETS[name])
    assert all("--hash=sha256:" in entry for entry in entries.values())


def test_a_name_that_the_lock_lacks_is_named() -> None:
    with pytest.raises(KeyError, match="nosuch"):
        LOCKED.select(["one==1 \\\n", "    --hash=sha256:00\n"], ["one", "nosuch"])


def test_comments_are_left_out() -> None:
    lock = ["# made by hand\n", "one==1 \\\n", "    --hash=sha256:00\n", "    # via two\n", "two==2 --hash=sha256:11\n"]
    assert LOCKED.select(lock, ["one"]) == "one==1 \\\n    --hash=sha256:00\n"
