"""``import`` for users' modules: ``salt`` is the compatibility package, files beside the module and in ``_utils`` are found.

Nothing else in the process sees either: the names are served by builtins that these modules alone have.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import importlib.machinery
import importlib.util
import sys
import zipimport
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

_COMPAT = "statecore.loader.compat"

#: What users' modules are called in sys.modules, where dataclasses and pickle look them up.
LOADED = "saltern_loaded"

#: Packages of Salt whose modules are its functions: served by name, as ``__salt__`` would (``salt.modules.cmdmod``).
_FUNCTION_PACKAGES = ("salt.modules.", "salt.states.")


class SaltImport:
    """``__import__`` for the files of one user module. ``places``: directories whose files it may import by name."""

    def __init__(self, places: Sequence[Path]) -> None:
        self._places = tuple(places)

    def __call__(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if not level and (name == "salt" or name.startswith("salt.")):
            return _of_salt(name, fromlist or ())
        try:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        except ModuleNotFoundError as missing:
            top, _, rest = name.partition(".")
            if level or missing.name != top:
                raise
            beside = self._beside(top)
            if beside is None:
                raise
            return _within(beside, rest, fromlist or ())

    def _beside(self, name: str) -> ModuleType | None:
        """The file of that name in one of the places, loaded once for each."""
        for place in self._places:
            path = next((path for path in (place / f"{name}.py", place / name / "__init__.py") if path.is_file()), None)
            if path is not None:
                digest = hashlib.sha256(str(place).encode()).hexdigest()[:12]
                full = f"{LOADED}.beside_{digest}.{name}"
                return sys.modules.get(full) or load(full, path, self._places)
        return None


def load(name: str, path: Path, places: Sequence[Path]) -> ModuleType:
    """Runs a user's file as the module ``name`` of sys.modules. Raises whatever it raises, and is forgotten then.

    What is compiled finds no ``salt``: its imports are the interpreter's own.
    """
    loader = _FORMS.get(path.suffix, _compiled)(name, path, SaltImport(places))
    package = loader.inside(name) if isinstance(loader, _ZipLoader) else None
    package = [str(path.parent)] if path.name == "__init__.py" else package
    # What is built lies elsewhere.
    place = loader.path if isinstance(loader, importlib.machinery.ExtensionFileLoader) else path
    spec = importlib.util.spec_from_file_location(name, place, loader=loader, submodule_search_locations=package)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded as a Python module")
    if package:
        _PackageFinder.install()
        # Inner files of another package of this name, or of an earlier form of it.
        for inner in [each for each in sys.modules if each.startswith(f"{name}.")]:
            del sys.modules[inner]
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class _OwnImport:
    """What runs a file with an ``import`` of its own."""

    own_import: SaltImport

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self.own_import}
        module.__dict__["__salt_system_encoding__"] = "utf-8"
        code = self.get_code(module.__name__)  # type: ignore[attr-defined]
        if code is None:
            raise ImportError(f"cannot load module {module.__name__!r}: it has no code", name=module.__name__)
        exec(code, module.__dict__)


class _FreshLoader(_OwnImport, importlib.machinery.SourceFileLoader):  # type: ignore[misc]
    """Compiles the file at each load: a module synced twice within a second must not come from a stale .pyc."""

    def __init__(self, fullname: str, path: Path, own_import: SaltImport) -> None:
        super().__init__(fullname, str(path))
        self.own_import = own_import

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _BytecodeLoader(_OwnImport, importlib.machinery.SourcelessFileLoader):
    """A file that was compiled to Python's own code."""

    def __init__(self, fullname: str, path: Path, own_import: SaltImport) -> None:
        super().__init__(fullname, str(path))
        self.own_import = own_import


class _ZipLoader(_OwnImport, zipimport.zipimporter):
    """A module, or a package, of the archive's own name in an archive."""

    def __init__(self, fullname: str, path: Path, own_import: SaltImport) -> None:
        super().__init__(str(path))
        # Another archive may have had this name.
        self.invalidate_caches()
        self.own_import = own_import

    def inside(self, name: str) -> list[str] | None:
        """Where the inner files of a package are, None for a plain module. Raises ZipImportError."""
        return [f"{self.archive}/{name.rpartition('.')[2]}"] if self.is_package(name) else None


def _compiled(fullname: str, path: Path, own_import: SaltImport) -> importlib.machinery.ExtensionFileLoader:
    return importlib.machinery.ExtensionFileLoader(fullname, str(path))


def _built(fullname: str, path: Path, own_import: SaltImport) -> importlib.machinery.ExtensionFileLoader:
    """Cython's, built beside the file where that is newer than what was built."""
    pyximport = importlib.import_module("pyximport")
    # Its settings alone: other imports of this process are none of its business.
    pyximport.install(pyximport=False, build_dir=str(path.parent / "__pycache__"))
    made = pyximport.build_module(path.stem, pyxfilename=str(path), pyxbuild_dir=str(path.parent / "__pycache__"))
    return importlib.machinery.ExtensionFileLoader(fullname, str(made))


_FORMS: Mapping[str, Callable[[str, Path, SaltImport], Any]] = {
    ".py": _FreshLoader,
    ".pyc": _BytecodeLoader,
    ".zip": _ZipLoader,
    ".pyx": _built,
}


class _PackageFinder:
    """The inner files of users' packages, which import ``salt`` as their ``__init__.py`` does."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        outer = sys.modules.get(fullname.rpartition(".")[0])
        loader = getattr(getattr(outer, "__spec__", None), "loader", None)
        if not fullname.startswith(f"{LOADED}.") or not isinstance(loader, _OwnImport):
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if found is not None and found.origin and isinstance(found.loader, importlib.machinery.SourceFileLoader):
            found.loader = _FreshLoader(fullname, Path(found.origin), loader.own_import)
        elif found is not None and isinstance(found.loader, zipimport.zipimporter):
            place = Path(found.loader.archive, found.loader.prefix)
            found.loader = _ZipLoader(fullname, place, loader.own_import)
        return found

    @classmethod
    def install(cls) -> None:
        """Once for the process."""
        if not any(isinstance(finder, cls) for finder in sys.meta_path):
            sys.meta_path.insert(0, cls())


def _of_salt(name: str, fromlist: Sequence[str]) -> ModuleType:
    module = _compat_module(name)
    if not fromlist:
        return importlib.import_module(_COMPAT)
    for wanted in fromlist:
        if wanted != "*" and wanted not in vars(module) and hasattr(module, "__path__"):
            _compat_module(f"{name}.{wanted}")
    return module


def _compat_module(name: str) -> ModuleType:
    """The module that stands for Salt's ``name``. Raises ModuleNotFoundError with the reason where none does."""
    for package in _FUNCTION_PACKAGES:
        if name.startswith(package):
            served: ModuleType = importlib.import_module(f"{_COMPAT}.function_modules").module(name)
            setattr(_compat_module(package[:-1]), name.removeprefix(package), served)
            return served
    ours = _COMPAT + name.removeprefix("salt")
    if importlib.util.find_spec(ours.rpartition(".")[0]) is None or importlib.util.find_spec(ours) is None:
        refused = importlib.import_module(f"{_COMPAT}.refused").REFUSED
        reason = next((why for start, why in refused.items() if name == start or name.startswith(f"{start}.")), "")
        text = f"'{name}' is not part of the compatibility package for Salt modules"
        raise ModuleNotFoundError(text + (f": {reason}" if reason else ""), name=name)
    module = importlib.import_module(ours)
    # Attributes that are not there are named as the user's module names them.
    vars(module).setdefault("__getattr__", partial(_no_attribute, name))
    return module


def _no_attribute(module: str, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"'{module}.{name}' is not part of the compatibility package for Salt modules")


def _within(top: ModuleType, rest: str, fromlist: Sequence[str]) -> ModuleType:
    """What ``import top.rest`` and ``from top.rest import ...`` give."""
    inner = importlib.import_module(f"{top.__name__}.{rest}") if rest else top
    for wanted in fromlist:
        if wanted != "*" and not hasattr(inner, wanted) and hasattr(inner, "__path__"):
            importlib.import_module(f"{inner.__name__}.{wanted}")
    return inner if fromlist else top
