"""kubectl at one API server, as a person would use it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.places import ROOT, ClusterError, run


class Kubectl:
    """An API server, by a program that is kubectl with a configuration."""

    def __init__(self, program: Path) -> None:
        self.program = program

    def answers(self) -> bool:
        """Whether the API server is there."""
        if not self.program.exists():
            return False
        try:
            return run([self.program, "get", "--raw", "/readyz"], seconds=20) == "ok"
        except (ClusterError, subprocess.TimeoutExpired):
            return False

    def kubectl(self, *words: str, stdin: str | None = None, seconds: float = 300, check: bool = True) -> str:
        """stdout of kubectl, in this checkout's directory. Raises ClusterError with what it said."""
        return run([self.program, *words], stdin=stdin, seconds=seconds, check=check, cwd=ROOT)

    def tried(self, *words: str, stdin: str | None = None, seconds: float = 300) -> tuple[int, str]:
        """Exit code, and what kubectl wrote to both streams."""
        done = subprocess.run(
            [str(self.program), *words],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
            cwd=ROOT,
        )
        return done.returncode, done.stdout

    def get(self, *words: str, namespace: str = "") -> Any:
        """Objects, as the API gives them."""
        space = ["-n", namespace] if namespace else []
        return json.loads(self.kubectl(*space, "get", *words, "-o", "json"))

    def apply(self, *objects: Mapping[str, Any]) -> str:
        """Apply objects that a test makes."""
        return self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
