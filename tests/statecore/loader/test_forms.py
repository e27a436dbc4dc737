"""Users' modules that are no source: zipped, compiled to Python's own code, and to the machine's."""

from __future__ import annotations

import importlib.machinery
import py_compile
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from statecore.runtime.runtime import Runtime, local_runtime

#: One that calls others, and imports of ``salt`` and of itself.
TEXT = """
import salt.utils.stringutils
from salt.exceptions import CommandExecutionError

__virtualname__ = "virtual"


def __virtual__():
    return __virtualname__


def twice(text):
    return salt.utils.stringutils.to_str(text) + __salt__["test.echo"](text)


def fail():
    raise CommandExecutionError(__opts__["id"])
"""

#: A function in the machine's code, which is told nothing of Salt.
C = """
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *args) { return PyLong_FromLong(42); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, "The answer."}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "native", NULL, -1, methods};
PyMODINIT_FUNC PyInit_native(void) { return PyModule_Create(&module); }
"""


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    directory = tmp_path / "ext/modules"
    directory.mkdir(parents=True)
    return directory


def minion(modules: Path, **opts: Any) -> Runtime:
    return local_runtime({"extension_modules": str(modules.parent), "id": "web1", "enable_zip_modules": True, **opts})


def called(modules: Path, name: str, *args: Any, **opts: Any) -> Any:
    return minion(modules, **opts).call(name, list(args)).value


def test_a_zipped_module(modules: Path) -> None:
    with zipfile.ZipFile(modules / "zipped.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zipped.py", TEXT)
    assert called(modules, "virtual.twice", "a") == "aa"
    assert "web1" in called(modules, "virtual.fail")
    with zipfile.ZipFile(modules / "zipped.zip", "w") as archive:
        archive.writestr("zipped.py", TEXT.replace("twice", "newer"))
    assert called(modules, "virtual.newer", "b") == "bb"


def test_a_zipped_package(modules: Path) -> None:
    with zipfile.ZipFile(modules / "pack.zip", "w") as archive:
        archive.writestr("pack/__init__.py", "from .inner import twice\n")
        archive.writestr("pack/inner.py", "import salt.utils.stringutils\n\ndef twice(text):\n    return 2 * text\n")
    assert called(modules, "pack.twice", "a") == "aa"


@pytest.mark.parametrize(
    ("names", "opts", "says"),
    [
        (("one.py",), {"enable_zip_modules": False}, "one.zip is loaded where the option enable_zip_modules is set"),
        (("other.py",), {}, "one.zip failed to import: ZipImportError: can't find module"),
        ((), {}, "one.zip failed to import: ZipImportError"),
    ],
)
def test_an_archive_that_is_not_loaded(modules: Path, names: Any, opts: Any, says: str) -> None:
    if names:
        with zipfile.ZipFile(modules / "one.zip", "w") as archive:
            archive.writestr(names[0], "def f(): pass\n")
    else:
        (modules / "one.zip").write_text("no archive")
    assert says in called(modules, "one.f", **opts)
    assert called(modules, "test.ping", **opts) is True


def test_a_module_without_its_source(modules: Path) -> None:
    (modules / "two.py").write_text(TEXT)
    py_compile.compile(str(modules / "two.py"), str(modules / "two.pyc"))
    (modules / "two.py").unlink()
    assert called(modules, "virtual.twice", "a") == "aa"
    # Source goes before it.
    (modules / "two.py").write_text(TEXT.replace("twice", "source"))
    assert called(modules, "virtual.source", "b") == "bb"


def test_a_module_in_the_machines_code(modules: Path) -> None:
    headers = Path(sysconfig.get_paths()["include"])
    if shutil.which("cc") is None or not (headers / "Python.h").is_file():
        pytest.skip("there is no C compiler, or Python's headers are not there")
    (modules / "native.c").write_text(C)
    built = modules / f"native{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{headers}", "-o", built, modules / "native.c"], check=True)
    shutil.copyfile(built, modules / "native.cpython-27-arm.so")
    assert called(modules, "native.answer") == 42
    assert called(modules, "sys.doc", "native.answer") == {"native.answer": "The answer."}


def test_what_is_no_module_of_this_machine(modules: Path) -> None:
    (modules / "broken.so").write_text("no library")
    assert "broken.so failed to import: ImportError" in called(modules, "broken.f")


def test_cython(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cython is played, where it is not there: what it would build is built of C."""
    headers = Path(sysconfig.get_paths()["include"])
    if shutil.which("cc") is None or not (headers / "Python.h").is_file():
        pytest.skip("there is no C compiler, or Python's headers are not there")
    played = ModuleType("pyximport")

    def build_module(name: str, pyxfilename: str, pyxbuild_dir: str) -> str:
        built = Path(pyxbuild_dir, f"{name}.so")
        built.parent.mkdir(exist_ok=True)
        subprocess.run(["cc", "-x", "c", "-shared", "-fPIC", f"-I{headers}", "-o", built, pyxfilename], check=True)
        return str(built)

    vars(played).update(build_module=build_module, install=lambda **_: None)
    (modules / "native.pyx").write_text(C)
    assert "native.pyx is loaded where the option cython_enable is set" in called(modules, "native.answer")
    monkeypatch.setitem(sys.modules, "pyximport", None)
    assert "native.pyx failed to import: ModuleNotFoundError" in called(modules, "native.answer", cython_enable=True)
    monkeypatch.setitem(sys.modules, "pyximport", played)
    assert called(modules, "native.answer", cython_enable=True) == 42


def test_other_files_are_no_modules(modules: Path) -> None:
    for name in ("README.md", "data.json", "some-thing.so"):
        (modules / name).write_text("")
    assert [source.stem for source in minion(modules).loader.sources("modules") if not source.native] == []
    assert called(modules, "README.f") == "'README.f' is not available."
