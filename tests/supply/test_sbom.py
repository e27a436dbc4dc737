"""``make sbom``: the documents of four small wheels, written by the tools' own environment.

Skipped where `.supply` is missing: ``make sbom`` makes it. SALTERN_REQUIRE_SUPPLY=1 makes that a failure.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / ".supply" / "bin" / "python"
LOCK = (
    "pyzmq==27.3.0 \\\n    --hash=sha256:"
    + "a" * 64
    + " \\\n    --hash=sha256:"
    + "b" * 64
    + "\nmsgpack==1.2.4 \\\n    --hash=sha256:"
    + "c" * 64
    + "\n"
)


@pytest.fixture(autouse=True)
def supply() -> None:
    """The environment of the tools."""
    if not PROGRAM.exists():
        if os.environ.get("SALTERN_REQUIRE_SUPPLY"):
            pytest.fail("no .supply: `make .supply/.ready` makes it")
        pytest.skip("no .supply: `make sbom` makes it")


def wheel(directory: Path, name: str, *metadata: str) -> Path:
    path = directory / f"{name.replace('-', '_')}-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        lines = [
            "Metadata-Version: 2.4",
            f"Name: {name}",
            "Version: 0.1.0",
            "License-Expression: Apache-2.0",
            *metadata,
            "",
            "",
        ]
        archive.writestr(f"{name.replace('-', '_')}-0.1.0.dist-info/METADATA", "\n".join(lines))
    return path


def made(directory: Path, lock: str = LOCK, seed: str = "0") -> subprocess.CompletedProcess[str]:
    (directory / "lock").write_text(lock)
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000", "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    command = [PROGRAM, "-m", "tests.supply.sbom", "--environment", sys.prefix, "--lock", directory / "lock", directory]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    wheel(
        tmp_path,
        "saltern-one",
        "Requires-Dist: saltern-two",
        "Provides-Extra: more",
        "Requires-Dist: msgpack; extra == 'more'",
    )
    wheel(tmp_path, "saltern-two", "Requires-Dist: pyzmq>=26", "Requires-Dist: nowhere; python_version < '3'")
    return tmp_path


def read(directory: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / f"{name}-0.1.0-py3-none-any.cdx.json").read_text())
    return found


def test_a_document_names_the_wheel_its_needs_and_what_they_bundle(wheels: Path) -> None:
    done = made(wheels)
    assert done.returncode == 0, done.stderr
    one = read(wheels, "saltern_one")
    subject = one["metadata"]["component"]
    digest = hashlib.sha256((wheels / "saltern_one-0.1.0-py3-none-any.whl").read_bytes()).hexdigest()
    assert subject["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert {each["name"] for each in one["components"]} == {"saltern-two", "pyzmq", "msgpack"}
    (zmq,) = (each for each in one["components"] if each["name"] == "pyzmq")
    assert {each["name"] for each in zmq["components"]} == {"libzmq", "libsodium"}
    assert [each["content"] for each in zmq["externalReferences"][0]["hashes"]] == ["a" * 64, "b" * 64]
    links = {each["ref"]: each.get("dependsOn", []) for each in one["dependencies"]}
    assert links["pkg:pypi/saltern-one@0.1.0"] == ["pkg:pypi/msgpack@1.2.4", "pkg:pypi/saltern-two@0.1.0"]
    assert links["pkg:pypi/saltern-two@0.1.0"] == ["pkg:pypi/pyzmq@27.3.0"]


def test_one_input_gives_the_same_bytes(wheels: Path) -> None:
    made(wheels, seed="1")
    before = {path.name: path.read_bytes() for path in wheels.glob("*.cdx.json")}
    made(wheels, seed="2")
    assert len(before) == 2
    assert {path.name: path.read_bytes() for path in wheels.glob("*.cdx.json")} == before


def test_the_extra_with_a_lock_of_its_own(tmp_path: Path) -> None:
    wheel(tmp_path, "saltern-three", "Provides-Extra: reclass", "Requires-Dist: kapicorp-reclass; extra == 'reclass'")
    done = made(tmp_path, lock=(ROOT / "requirements.lock").read_text())
    assert done.returncode == 0, done.stderr
    assert {each["name"] for each in read(tmp_path, "saltern_three")["components"]} == {
        "kapicorp-reclass",
        "pyparsing",
        "pyyaml",
        "six",
    }


def test_a_package_that_is_not_locked_is_an_error(wheels: Path) -> None:
    done = made(wheels, lock=LOCK.partition("msgpack")[0])
    assert done.returncode == 1
    assert "requirements.lock does not hold msgpack" in done.stderr


def test_no_wheels_is_an_error(tmp_path: Path) -> None:
    done = made(tmp_path)
    assert done.returncode == 1
    assert "run `make wheels` first" in done.stderr
