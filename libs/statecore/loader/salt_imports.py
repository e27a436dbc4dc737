"""``import`` for users' modules: finds ``salt`` (our compatibility package) and the files in the module's directory and
in ``_utils``.

Each user's module has its own ``__builtins__`` with its own ``__import__``, which always finds our package. Libraries
that users' modules import use Python's own import; for these ``model/salt_package.py`` adds an import finder.
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
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING

from statecore.loader import extensions
from statecore.model import salt_package

if TYPE_CHECKING:
    from _typeshed.importlib import LoaderProtocol

#: Prefix of users' modules' names in sys.modules. They are listed there because dataclasses and pickle need it.
LOADED = "saltern_loaded"


class SaltImport:
    """The function ``__import__`` for the files of one user's module.

    The files may import the files of ``directories`` by name, and ``salt``, which is our compatibility package.
    """

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = tuple(directories)

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
        """Return the module in the file called ``name`` in one of the directories; None if there is no such file.

        A file is loaded once for each directory.
        """
        for directory in self._directories:
            path = next(
                (path for path in (directory / f"{name}.py", directory / name / "__init__.py") if path.is_file()), None
            )
            if path is not None:
                digest = hashlib.sha256(str(directory).encode()).hexdigest()[:12]
                full = f"{LOADED}.beside_{digest}.{name}"
                return sys.modules.get(full) or load(full, path, self._directories)
        return None


def load(name: str, path: Path, directories: Sequence[Path], *, packaged: bool = False) -> ModuleType:
    """Run a user's Python file as the module ``name`` of sys.modules and return the module.

    The file may import the files of ``directories`` by name. ``packaged``: the file is one of an installed extension, so
    Python's compiled code of it (.pyc) is used. If the file raises an exception, the module is removed
    from sys.modules and the exception is passed on. A compiled extension uses Python's own import.
    """
    _install_finders()
    form = _InstalledLoader if packaged and path.suffix == ".py" else _FORMS.get(path.suffix, _compiled)
    loader = form(name, path, SaltImport(directories))
    package = loader.inside(name) if isinstance(loader, _ZipLoader) else None
    package = [str(path.parent)] if path.name == "__init__.py" else package
    # A built extension is not at ``path``.
    origin = loader.path if isinstance(loader, importlib.machinery.ExtensionFileLoader) else path
    spec = importlib.util.spec_from_file_location(name, origin, loader=loader, submodule_search_locations=package)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded as a Python module")
    if package:
        # Remove submodules of an earlier version of this package, or of another package with this name.
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
    """Base class of the import loaders that run a user's file with its own ``__import__``."""

    own_import: SaltImport

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self.own_import}
        module.__dict__["__salt_system_encoding__"] = "utf-8"
        code = self.get_code(module.__name__)  # type: ignore[attr-defined]
        if code is None:
            raise ImportError(f"cannot load module {module.__name__!r}: it has no code", name=module.__name__)
        exec(code, module.__dict__)


class _FreshLoader(_OwnImport, importlib.machinery.SourceFileLoader):  # type: ignore[misc]
    """Import loader that compiles a user's source file at each load.

    A module that is synced twice within a second would otherwise run from a stale .pyc file.
    """

    def __init__(self, fullname: str, path: Path, own_import: SaltImport) -> None:
        super().__init__(fullname, str(path))
        self.own_import = own_import

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _InstalledLoader(_OwnImport, importlib.machinery.SourceFileLoader):  # type: ignore[misc]
    """Import loader of a file of an installed extension. Python's compiled code of it is used and written."""

    def __init__(self, fullname: str, path: Path, own_import: SaltImport) -> None:
        super().__init__(fullname, str(path))
        self.own_import = own_import


class _BytecodeLoader(_OwnImport, importlib.machinery.SourcelessFileLoader):
    """Import loader of a user's module in a .pyc file."""

    def __init__(self, fullname: str, path: Path, own_import: SaltImport) -> None:
        super().__init__(fullname, str(path))
        self.own_import = own_import


class _ZipLoader(_OwnImport, zipimport.zipimporter):
    """Import loader of a user's module or package in a zip archive. The module has the archive's name."""

    def __init__(self, fullname: str, path: Path, own_import: SaltImport) -> None:
        super().__init__(str(path))
        # The file may have been replaced by another archive, whose directory zipimport has cached.
        self.invalidate_caches()
        self.own_import = own_import

    def inside(self, name: str) -> list[str] | None:
        """Return the search path for the submodules of a package in the archive, as a list of one path; None if
        ``name`` is a plain module. Raise ZipImportError if the archive has no such module.
        """
        return [f"{self.archive}/{name.rpartition('.')[2]}"] if self.is_package(name) else None


def _compiled(fullname: str, path: Path, own_import: SaltImport) -> importlib.machinery.ExtensionFileLoader:
    return importlib.machinery.ExtensionFileLoader(fullname, str(path))


def _built(fullname: str, path: Path, own_import: SaltImport) -> importlib.machinery.ExtensionFileLoader:
    """Return the import loader of a user's Cython file (.pyx), which loads the compiled extension.

    The file is compiled into ``__pycache__`` of its directory if the compiled file is missing or older.
    """
    pyximport = importlib.import_module("pyximport")
    # pyximport=False only sets options: no import hook is installed, so other imports are not affected.
    pyximport.install(pyximport=False, build_dir=str(path.parent / "__pycache__"))
    made = pyximport.build_module(path.stem, pyxfilename=str(path), pyxbuild_dir=str(path.parent / "__pycache__"))
    return importlib.machinery.ExtensionFileLoader(fullname, str(made))


_FORMS: Mapping[str, Callable[[str, Path, SaltImport], LoaderProtocol]] = {
    ".py": _FreshLoader,
    ".pyc": _BytecodeLoader,
    ".zip": _ZipLoader,
    ".pyx": _built,
}


class _PackageFinder:
    """Import finder for the submodules of users' packages, so that submodules can import ``salt`` as the package itself
    can.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the import spec of a submodule of a user's package; None for all other modules."""
        outer = sys.modules.get(fullname.rpartition(".")[0])
        loader = getattr(getattr(outer, "__spec__", None), "loader", None)
        if not fullname.startswith(f"{LOADED}.") or not isinstance(loader, _OwnImport):
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if found is not None and found.origin and isinstance(found.loader, importlib.machinery.SourceFileLoader):
            found.loader = _FreshLoader(fullname, Path(found.origin), loader.own_import)
        elif found is not None and isinstance(found.loader, zipimport.zipimporter):
            origin = Path(found.loader.archive, found.loader.prefix)
            found.loader = _ZipLoader(fullname, origin, loader.own_import)
        return found


class _ExtensionFinder:
    """Import finder for installed extensions, so that ``salt`` is our compatibility package in all their modules, even if
    a Salt is installed for the same Python.
    """

    def __init__(self) -> None:
        #: Names of the installed extensions' packages, such as ``saltext.docker``.
        self.packages: frozenset[str] = frozenset()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the import spec of a module of an installed extension; None for all other modules."""
        if not any(fullname == package or fullname.startswith(f"{package}.") for package in self.packages):
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if found is not None and found.origin and isinstance(found.loader, importlib.machinery.SourceFileLoader):
            found.loader = _InstalledLoader(fullname, Path(found.origin), SaltImport(()))
        return found


def _install_finders() -> None:
    """Add the import finders for users' code to sys.meta_path unless they are there."""
    salt_package.install()
    finder = next((each for each in sys.meta_path if isinstance(each, _ExtensionFinder)), None)
    if finder is None:
        finder = _ExtensionFinder()
        sys.meta_path[:0] = [_PackageFinder(), finder]
    finder.packages = frozenset(each.package for each in extensions.installed())


def _of_salt(name: str, fromlist: Sequence[str]) -> ModuleType:
    module = salt_package.module(name)
    if not fromlist:
        return salt_package.module("salt")
    for wanted in fromlist:
        if wanted != "*" and wanted not in vars(module) and hasattr(module, "__path__"):
            salt_package.module(f"{name}.{wanted}")
    return module


def _within(top: ModuleType, rest: str, fromlist: Sequence[str]) -> ModuleType:
    """Import ``rest`` below the user's module ``top``. Return the module that Python's import statement needs: ``top``
    for ``import top.rest``, the inner module for ``from top.rest import ...``.
    """
    inner = importlib.import_module(f"{top.__name__}.{rest}") if rest else top
    for wanted in fromlist:
        if wanted != "*" and not hasattr(inner, wanted) and hasattr(inner, "__path__"):
            importlib.import_module(f"{inner.__name__}.{wanted}")
    return inner if fromlist else top
