"""Builds all files of a release into one directory. Each step is a command that can be typed; a failed one ends the build."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from release.images import image_names
from release.signing import SUMS, checksums
from release.state import ROOT, ReleaseError, State, notes_of

#: Our packages: directories of their pyproject.toml.
PACKAGES = ("libs/statecore", "libs/saltwire", "libs/masterstore", "services")

#: Debian's names of the architectures that packages are built for.
ARCHITECTURES = ("amd64", "arm64")


class Builder:
    """The steps that build a release into a directory, which it empties first."""

    def __init__(self, state: State, directory: Path, *, supply: Path, work: str = "release") -> None:
        self._state = state
        self.directory = directory
        self._supply = supply
        #: Tag of the images while they are built.
        self._tag = work
        epoch = str(state.release.epoch)
        self._environment = os.environ | {"SOURCE_DATE_EPOCH": epoch, "PYTHONHASHSEED": "0"}

    def build(self, *, images: bool) -> None:
        """Run all steps. ``images``: false leaves the images out, where there is no Docker engine. Raises ReleaseError, OSError."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self.wheels()
        self.debian_packages()
        self._run("the lists of the wheels", *self._sbom(), str(self.directory))
        if images:
            self.images()
        (self.directory / "RELEASE-NOTES.md").write_text(self.notes(), "utf-8")
        (self.directory / SUMS).write_text(checksums(self.directory), "utf-8")

    def wheels(self) -> None:
        """Build the wheels. Hatchling takes all times from SOURCE_DATE_EPOCH."""
        words = ["-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
        self._run(
            "the wheels",
            sys.executable,
            *words,
            "--wheel-dir",
            str(self.directory),
            *(f"./{each}" for each in PACKAGES),
        )

    def debian_packages(self) -> None:
        """Build the Debian packages from the wheels."""
        wheels = [str(path) for path in sorted(self.directory.glob("*.whl"))]
        for architecture in ARCHITECTURES:
            words = ["--out", str(self.directory), "--architecture", architecture, *wheels]
            self._run(f"the Debian packages for {architecture}", sys.executable, "hosts/build_deb.py", *words)

    def images(self) -> None:
        """Build the images without the engine's cache, write them into one archive, load that, and list what is in them."""
        version, revision = self._state.release.version, self._state.release.revision
        base = f"saltern/base:{self._tag}"
        self._run("the base image", "docker/base-image", "--locked", base)
        self._run(
            "the images",
            *("docker", "compose", "--profile", "cli", "--profile", "api", "build", "--no-cache", "--quiet"),
            settings={"BASE_IMAGE": base, "TAG": self._tag, "CA_BUNDLE": certificates()},
        )
        words = ["--version", version, "--revision", revision, "--built-as", self._tag, "--to", str(self.directory)]
        self._run("the archive of images", sys.executable, "-m", "release.images", *words, *image_names())
        (archive,) = self.directory.glob("saltern-images-*.tar")
        self._run("loading the images", "docker", "image", "load", "--quiet", "--input", str(archive))
        self._run("the lists of the images", *self._sbom(), "--images", version, str(self.directory))

    def notes(self) -> str:
        """Return the release's section of CHANGELOG.md; where fragments are left, a draft of the section. Neither has a heading:
        that of a draft has the day of the build, and two builds of one commit give the same bytes.
        """
        release = self._state.release
        if not self._state.fragments:
            return notes_of(self._state.changelog, release.version)
        words = ["-m", "towncrier", "build", "--draft", "--version", release.version]
        return notes_of(self._run("the draft of the notes", sys.executable, *words), release.version)

    def _sbom(self) -> list[str]:
        return [str(self._supply), "-m", "tests.supply.sbom", "--environment", sys.prefix]

    def _run(self, what: str, *words: str, settings: Mapping[str, str] | None = None) -> str:
        sys.stderr.write(f"release: {what}\n")
        done = subprocess.run(
            words, cwd=ROOT, env={**self._environment, **(settings or {})}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ReleaseError(
                f"{what}: {' '.join(words[:4])} ... ended with {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout


def certificates() -> str:
    """Return the certificates that the package index is checked against: CA_BUNDLE, else what this machine trusts."""
    return os.environ.get("CA_BUNDLE") or "/etc/ssl/certs/ca-certificates.crt"
