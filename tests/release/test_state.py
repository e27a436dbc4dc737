"""What stands in the way of a release, the notes of one, and the comparison of two builds."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from release.build import Builder
from release.images import Release
from release.main import differing
from release.signing import NAMESPACE, SIGNATURE, SUMS, checksums, sign, verify
from release.state import ROOT, ReleaseError, State, notes_of, problems

CHANGELOG = "# Changelog\n\n<!-- towncrier -->\n\n## 1.2.0 (2026-11-23)\n\n### Added\n\n- New.\n\n## 1.1.0\n\nOld.\n"

READY = State(Release("1.2.0", "c" * 40, 0), (), frozenset({"v1.1.0"}), (), CHANGELOG)

#: What is wrong -> (the state, words of the only problem).
UNREADY: dict[str, tuple[State, str]] = {
    "a version without three numbers": (
        replace(READY, release=Release("1.2", "c", 0), changelog=CHANGELOG.replace("1.2.0", "1.2")),
        "no version",
    ),
    "a tag that is there": (replace(READY, tags=frozenset({"v1.2.0"})), "tag v1.2.0 is there"),
    "changed files": (
        replace(READY, changed=(" M a", "?? b", "?? c", "?? d")),
        "4 files are not committed: M a, [?][?] b",
    ),
    "one changed file": (replace(READY, changed=(" M a",)), "1 file is not committed: M a[.] "),
    "fragments": (replace(READY, fragments=("+a.added.md",)), "1 fragment is not in CHANGELOG"),
    "no notes": (replace(READY, changelog="# Changelog\n"), "no section 1.2.0"),
}


def test_a_checkout_that_is_ready_has_no_problem() -> None:
    assert problems(READY) == []


@pytest.mark.parametrize("what", UNREADY)
def test_each_problem_is_told_alone_with_what_to_do(what: str) -> None:
    state, words = UNREADY[what]
    (problem,) = problems(state)
    assert re.search(words, problem)


@pytest.mark.parametrize(
    ("version", "notes"),
    [("1.2.0", "### Added\n\n- New.\n"), ("1.1.0", "Old.\n"), ("1.0.0", ""), ("1.2", ""), ("1.2.0rc1", "")],
)
def test_notes_are_the_section_of_the_changelog(version: str, notes: str) -> None:
    assert notes_of(CHANGELOG, version) == notes


def test_a_draft_of_the_notes_has_no_day_of_its_build(tmp_path: Path) -> None:
    # After `make changelog` no fragment is left: the draft then says "No significant changes".
    notes = Builder(replace(READY, fragments=("+any.added.md",)), tmp_path, supply=tmp_path).notes()
    assert notes
    assert not re.search(r"^## |\d{4}-\d\d-\d\d\)$", notes, re.MULTILINE)


@pytest.mark.parametrize(
    ("second", "names"),
    [("1  a\n2  b c\n", []), ("1  a\n3  b c\n", ["b c"]), ("1  a\n", ["b c"]), ("1  a\n2  b c\n4  d\n", ["d"])],
)
def test_two_builds_differ_in_these_files(second: str, names: list[str]) -> None:
    assert differing("1  a\n2  b c\n", second) == names


# --- signatures --------------------------------------------------------------------------------------------------


def key(directory: Path, name: str) -> Path:
    path = directory / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path], check=True)
    return path


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A directory with the files of a release."""
    directory = tmp_path / "dist"
    directory.mkdir()
    (directory / "a.whl").write_bytes(b"wheel")
    (directory / SUMS).write_text(checksums(directory))
    return directory


@pytest.fixture
def signers(tmp_path: Path) -> Path:
    """The file of signers, with the key `releaser`."""
    public = key(tmp_path, "releaser").with_suffix(".pub").read_text()
    path = tmp_path / "allowed_signers"
    path.write_text(f'# comment\nyou@example.com namespaces="{NAMESPACE},git" {public}')
    return path


def test_a_signed_release_is_verified_as_the_page_says(release: Path, signers: Path, tmp_path: Path) -> None:
    assert sign(release, tmp_path / "releaser", signers) == "you@example.com"
    page = (ROOT / "docs/release.md").read_text("utf-8")
    (command,) = re.findall(r"^    (ssh-keygen -Y verify .*)$", page, re.MULTILINE)
    command = command.replace("release/allowed_signers", str(signers)).replace("NAME", "you@example.com")
    subprocess.run(f"{command} && sha256sum -c {SUMS}", shell=True, cwd=release, check=True)
    # A signed release has the same checksums.
    assert (release / SUMS).read_text() == checksums(release)


def test_changed_checksums_are_noticed(release: Path, signers: Path, tmp_path: Path) -> None:
    sign(release, tmp_path / "releaser", signers)
    (release / SUMS).write_text("0" * 64 + "  a.whl\n")
    with pytest.raises(ReleaseError, match="ssh-keygen verify"):
        verify(release, signers)


def test_a_key_that_nobody_named_signs_nothing(release: Path, signers: Path, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError):
        sign(release, key(tmp_path, "stranger"), signers)


def test_a_signature_for_something_else_is_none_of_a_release(release: Path, signers: Path, tmp_path: Path) -> None:
    words = ["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", tmp_path / "releaser", release / SUMS]
    subprocess.run(words, check=True)
    assert (release / SIGNATURE).exists()
    with pytest.raises(ReleaseError):
        verify(release, signers)
