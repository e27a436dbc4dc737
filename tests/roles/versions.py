"""A lab whose processes run two versions of the code: this one and the last release's, as a rolling upgrade has them.

The last release's code is unpacked from the repository, beside the installed packages: both versions run on the dependencies
of this one. ``last-release`` names it.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from tests.roles.lab import ROOT, SOON, STARTUP, Lab, until


def last_release(path: Path) -> str:
    """The tag or commit that the file names. ValueError where it is not one line beside its comments."""
    lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    names = [line for line in lines if line and not line.startswith("#")]
    if len(names) != 1:
        raise ValueError(f"{path} names {len(names)} releases instead of one tag or commit")
    return names[0]


def is_present(commit: str) -> bool:
    """False in a shallow clone, or without git."""
    try:
        asked = subprocess.run(
            ["git", "cat-file", "-e", f"{commit}^{{commit}}"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        return False
    return asked.returncode == 0


def unpack(commit: str, directory: Path) -> Path:
    """The packages of a commit, in a directory. CalledProcessError carries what git said."""
    archive = subprocess.run(
        ["git", "archive", commit, "libs", "services"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packages:
        # What Git packs is what it was asked for; Python before 3.11.4 has no filter, later ones ask for one.
        packages.extractall(directory, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    _write_commands(directory)
    return directory


def _write_commands(code: Path) -> None:
    """The commands of a checkout in its ``bin``, as pip writes them: each version says for itself where they begin."""
    scripts = tomllib.loads((code / "services" / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    (code / "bin").mkdir()
    for name, place in scripts.items():
        module, _, function = place.partition(":")
        command = code / "bin" / name
        command.write_text(f"#!{sys.executable}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n")
        command.chmod(0o755)


def path_of(code: Path) -> str:
    """PYTHONPATH for the packages of a checkout."""
    # A snapshot before 0.1.0 imported ``services`` from the root of the checkout.
    return f"{code / 'libs'}:{code / 'services'}:{code}"


#: Processes that check who recorded a job.
SIGNERS = frozenset({"publisher", "mworker", "mworker2"})

#: Where the last release is named.
LAST_RELEASE = Path(__file__).with_name("last-release")


@dataclass
class MixedLab(Lab):
    """A lab that says for each process, and for the operator's commands (``cli``), which version it runs."""

    #: Where the last release's packages are.
    old: Path = field(kw_only=True)
    #: Who runs the last release; all others run this version.
    behind: set[str] = field(default_factory=set)

    def environment_of(self, name: str) -> dict[str, str]:
        """What makes a process one of its version."""
        code = self.old if name in self.behind else ROOT
        environment = super().environment_of(name) | {"PYTHONPATH": path_of(code)}
        if name in SIGNERS and name not in self.behind:
            # As docs/operations/kubernetes.md says for an upgrade from a release whose workers sign no records.
            environment["SALTERN_ACCEPT_UNSIGNED_RECORDS"] = "true"
        return environment

    def bin_of(self, name: str) -> Path:
        """Commands begin elsewhere in another version."""
        return self.old / "bin" if name in self.behind else super().bin_of(name)

    def arrange(self, behind: set[str]) -> None:
        """These processes run the last release, all others this version. Who has to change is stopped as a pod is, and started."""
        moved = (behind ^ self.behind) & set(self.processes)
        self.behind = behind
        ending = {name: self.processes.pop(name) for name in moved}
        for process in ending.values():
            process.send_signal(signal.SIGTERM)
        for name, process in ending.items():
            process.wait(STARTUP)
            self.start(name)
        self.await_ready(*moved)
        # The row is about what a publisher sends, not about who was there when it did.
        until(lambda: self.metric("publisher", "salt_subscribers") >= len(self.minions), SOON, "the minions listen")

    def code_of(self, name: str) -> Path:
        """The checkout that a running process has its code from, as the kernel knows it."""
        words = (Path("/proc") / str(self.processes[name].pid) / "environ").read_bytes().split(b"\0")
        (path,) = [word.decode() for word in words if word.startswith(b"PYTHONPATH=")]
        asked = subprocess.run(
            [sys.executable, "-P", "-c", "import statecore; print(statecore.__file__)"],
            env=os.environ | {"PYTHONPATH": path.partition("=")[2]},
            text=True,
            capture_output=True,
            check=True,
        )
        return Path(asked.stdout.strip()).parents[2]
