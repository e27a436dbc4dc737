"""Says whether a checkout can be released: pure decisions about facts that are read from the checkout and from Git."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from release.images import Release
from statecore.model.salt_version import SALTERN_VERSION

ROOT = Path(__file__).resolve().parents[1]

_VERSION = re.compile(r"\d+\.\d+\.\d+(?:rc\d+)?")


class ReleaseError(Exception):
    """Raised when a step of a release fails. The message says which step, why, and what to do."""


@dataclass(frozen=True)
class State:
    """What a checkout says about the release that is built from it."""

    release: Release
    #: Lines of `git status --porcelain`.
    changed: tuple[str, ...]
    tags: frozenset[str]
    #: Names of the fragments in changes/ that are not in CHANGELOG.md yet.
    fragments: tuple[str, ...]
    changelog: str

    @property
    def tag(self) -> str:
        """The tag of the release."""
        return f"v{self.release.version}"


def git(*words: str) -> str:
    """Return what git prints in the checkout. Raises ReleaseError."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout


def read_state() -> State:
    """Return the state of the checkout. Raises ReleaseError, OSError."""
    revision, epoch = git("log", "-1", "--format=%H %ct").split()
    return State(
        release=Release(SALTERN_VERSION, revision, int(epoch)),
        changed=tuple(git("status", "--porcelain").splitlines()),
        tags=frozenset(git("tag", "--list").split()),
        fragments=tuple(sorted(path.name for path in (ROOT / "changes").glob("+*.md"))),
        changelog=(ROOT / "CHANGELOG.md").read_text("utf-8"),
    )


def notes_of(changelog: str, version: str) -> str:
    """Return the section of a version in CHANGELOG.md without its heading, or "" where there is none."""
    heading = re.compile(rf"^## {re.escape(version)}(?: \([\d-]+\))?$\n", re.MULTILINE)
    found = heading.search(changelog)
    if found is None:
        return ""
    rest = changelog[found.end() :]
    following = re.search(r"^## ", rest, re.MULTILINE)
    return rest[: following.start() if following else len(rest)].strip() + "\n"


def problems(state: State) -> list[str]:
    """Return why the state cannot be released, one sentence each with what to do; [] if it can."""
    version = state.release.version
    found = []
    if not _VERSION.fullmatch(version):
        found.append(
            f"{version} is no version: SALTERN_VERSION in libs/statecore/model/salt_version.py has three numbers."
        )
    if state.tag in state.tags:
        found.append(f"The tag {state.tag} is there already: set SALTERN_VERSION to the next version.")
    if state.changed:
        found.append(f"{_number(state.changed, 'file')} not committed: {_some(state.changed)}. Commit or remove them.")
    if state.fragments:
        fragments = _number(state.fragments, "fragment")
        found.append(f"{fragments} not in CHANGELOG.md: {_some(state.fragments)}. Run `make changelog` and commit.")
    if not notes_of(state.changelog, version):
        found.append(f"CHANGELOG.md has no section {version}. Run `make changelog` and commit.")
    return found


def _number(things: Sequence[str], noun: str) -> str:
    return f"1 {noun} is" if len(things) == 1 else f"{len(things)} {noun}s are"


def _some(things: Sequence[str]) -> str:
    named = [thing.strip() for thing in things[:3]]
    return ", ".join(named + (["..."] if len(things) > 3 else []))
