"""For tests of what installs Python packages: wheels made here, a virtual environment with pip. Nothing comes from a network."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

#: Wheels: (name, version) -> what it requires.
WHEELS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("one", "1.0"): (),
    ("one", "1.1"): (),
    ("one", "2.0rc1"): (),
    ("Two_Words", "0.3"): ("one",),
    ("three", "3.0"): ("missing-thing",),
}


def write_wheels(directory: Path) -> Path:
    """All wheels, in the directory."""
    directory.mkdir(exist_ok=True)
    for (name, version), requires in WHEELS.items():
        about = f"{name}-{version}.dist-info"
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {each}" for each in requires]
        files = {
            f"{name.lower()}.py": f"version = {version!r}\n",
            f"{about}/METADATA": "\n".join(lines) + "\n",
            f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = "".join(f"{path},,\n" for path in (*files, f"{about}/RECORD"))
        with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
            for path, text in {**files, f"{about}/RECORD": record}.items():
                wheel.writestr(path, text)
    return directory


def write_backend(directory: Path, name: str = "local-thing") -> Path:
    """A project that can be installed where it lies, without setuptools: it builds itself."""
    directory.mkdir(parents=True)
    (directory / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'
    )
    (directory / "own.py").write_text(
        "import pathlib, zipfile\n"
        f"NAME, FILE = {name!r}, {name.replace('-', '_')!r} + '-1.0-py3-none-any.whl'\n"
        "def build_wheel(directory, config=None, metadata=None):\n"
        "    about = FILE.split('-py3')[0] + '.dist-info'\n"
        "    with zipfile.ZipFile(pathlib.Path(directory, FILE), 'w') as wheel:\n"
        "        wheel.writestr(about + '/METADATA', f'Metadata-Version: 2.1\\nName: {NAME}\\nVersion: 1.0\\n')\n"
        "        wheel.writestr(about + '/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n"
        "        wheel.writestr('local_thing.pth', str(pathlib.Path(__file__).parent))\n"
        "        wheel.writestr(about + '/RECORD', '')\n"
        "    return FILE\n"
        "build_editable = build_wheel\n"
    )
    return directory


def make_environment(directory: Path) -> Path:
    """A virtual environment with pip and setuptools, of the Python that runs the tests."""
    subprocess.run([sys.executable, "-m", "venv", directory], check=True, capture_output=True, timeout=120)
    return directory


def copy_environment(made: Path, directory: Path) -> Path:
    """The same environment once more; its programs still name the first one, its python does not."""
    shutil.copytree(made, directory, symlinks=True)
    return directory
