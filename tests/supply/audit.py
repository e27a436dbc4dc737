"""``make audit-dependencies``: looks for known faults of the locked Python packages, by pip-audit.

    .supply/bin/python -m tests.supply.audit [--database FILE] [--lock FILE] [-- OPTIONS of pip-audit]

``--database`` names an export of OSV (``PyPI/all.zip``): no network is needed then. Without it pip-audit asks the package
index, which must have the JSON API of pypi.org. A package that could not be looked up fails the run: it is not the same as a
package without a fault.
The exit code is pip-audit's: 1 for a fault, or for a package that could not be looked up.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.supply.osv_database import DatabaseError, OsvDatabase, serve

ROOT = Path(__file__).resolve().parents[2]


def _pip_audit(lock: Path, *options: str) -> int:
    # A cache would answer for another database.
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "pip_audit", "--strict", "--disable-pip", "--progress-spinner", "off"]
        command += ["--cache-dir", cache, "-r", str(lock), *options]
        # A proxy of the machine does not reach the loopback of this one.
        own = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"} if "--osv-url" in options else {}
        return subprocess.run(command, env=os.environ | own, check=False).returncode


def main(argv: Sequence[str] | None = None) -> int:
    """Run pip-audit and return its exit code; 1 for a database that cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--database", type=Path, help="OSV's export PyPI/all.zip; nothing is asked over the network then"
    )
    parser.add_argument("--lock", type=Path, default=ROOT / "requirements.lock")
    parser.add_argument("options", nargs="*", help="options of pip-audit, behind --")
    arguments = parser.parse_args(argv)
    if arguments.database is None:
        return _pip_audit(arguments.lock, *arguments.options)
    try:
        database = OsvDatabase.read(arguments.database)
    except DatabaseError as error:
        sys.stderr.write(f"audit: {error}\n")
        return 1
    sys.stdout.write(f"{arguments.database}: newest change {database.newest()}\n")
    sys.stdout.flush()
    with serve(database) as url:
        return _pip_audit(arguments.lock, "--vulnerability-service", "osv", "--osv-url", url, *arguments.options)


if __name__ == "__main__":
    sys.exit(main())
