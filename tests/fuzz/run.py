"""Runs fuzz targets under atheris (libFuzzer), each for its part of the time: ``python -m tests.fuzz.run SECONDS [TARGET ...]``.

Each target starts from its folder in ``corpus/`` and keeps what it finds in a folder outside of the checkout (``--kept``). The exit
code is 1 if a target has a finding. The file of a finding goes into ``corpus/`` together with its mend.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).with_name("corpus")

#: Limits of one input: seconds, and megabytes of the process.
_SECONDS, _MEGABYTES = 10, 1024

#: Largest input in bytes. Bounds on larger ones have their own tests.
_BYTES = 16 * 1024

#: Fuzzes one target in a process of its own: the packages are instrumented before they are imported.
_ONE = """
import sys
import atheris
with atheris.instrument_imports(include=["saltwire", "masterstore", "saltern", "statecore"]):
    from tests.fuzz.targets import TARGETS
atheris.Setup(sys.argv[1:], TARGETS[sys.argv[1]])
atheris.Fuzz()
"""


def fuzz(name: str, seconds: int, kept: Path) -> bool:
    """Fuzz one target; print the number of inputs, and the report of a finding. Return whether there is no finding."""
    own = kept / name
    own.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={seconds}", f"-timeout={_SECONDS}", f"-rss_limit_mb={_MEGABYTES}", f"-max_len={_BYTES}"]
    words = [*limits, f"-artifact_prefix={own}-finding-", "-print_final_stats=1", str(own), str(CORPUS / name)]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", _ONE, name, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    counts = [line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line]
    print(
        f"{name}: {counts or 'no'} inputs in {time.monotonic() - began:.0f} s, exit code {done.returncode}", flush=True
    )
    if done.returncode:
        print(done.stdout[-2000:] + done.stderr[-6000:], flush=True)
    return done.returncode == 0


def main(argv: Sequence[str] | None = None) -> int:
    """Fuzz the targets one after another. Return 1 if one has a finding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=int, help="seconds for all targets together")
    parser.add_argument("targets", nargs="*", help="names of targets; all of them by default")
    where = Path(tempfile.gettempdir()) / "saltern-fuzz"
    parser.add_argument(
        "--kept", type=Path, default=where, help=f"folder for the inputs that are found (default {where})"
    )
    given = parser.parse_args(argv)
    names = given.targets or list(TARGETS)
    if unknown := [name for name in names if name not in TARGETS]:
        parser.error(f"there is no target {unknown[0]}; there are {', '.join(TARGETS)}")
    findings = [name for name in names if not fuzz(name, max(1, given.seconds // len(names)), given.kept)]
    print(f"{len(names) - len(findings)} of {len(names)} targets have no finding", *findings)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
