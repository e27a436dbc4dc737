"""Loads users' modules in Salt's style, and sets their dunder names around each call.

Before each call, the dunder names (``__salt__``, ``__opts__`` ...) of one Context are written into the module's
globals. After the call, the previous values are restored. So a real run and a prereq's test run never use each other's
Context. ``salt_imports`` handles the module's own imports.
"""

from __future__ import annotations

import functools
import inspect
import logging
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from statecore.loader.current_context import current
from statecore.loader.dunders import dunders
from statecore.loader.find import ModuleFile
from statecore.loader.loaded_module import LoadedModule, Unusable
from statecore.loader.salt_imports import LOADED, load
from statecore.model.context import Context
from statecore.model.lazy import lazy_module
from statecore.model.ports import Function

if TYPE_CHECKING:
    import subprocess
else:
    subprocess = lazy_module("subprocess")

log = logging.getLogger(__name__)

#: Name of a module's list in which ``salt.utils.decorators.depends`` records (function name, needs, options).
DEPENDS = "__saltern_depends__"


class UserModule:
    """One user's module (a file in Salt's style), loaded into this process."""

    def __init__(self, source: ModuleFile, directories: Sequence[Path] = ()) -> None:
        """Import a user's module file. The file may import the files of its own directory and of ``directories`` by
        name.

        Raise Unusable if the import fails.
        """
        self.source = source
        name = f"{LOADED}.{source.kind}.{source.stem}"
        here = source.path.parent.parent if source.path.name == "__init__.py" else source.path.parent
        try:
            self.module = load(name, source.path, (here, *directories), packaged=source.packaged)
        except (Exception, SystemExit) as error:
            raise Unusable(f"{source.path} failed to import: {_short_message(error, source)}") from error
        self._entered: tuple[Context, dict[str, object]] | None = None

    def bind(self, function: Function, ctx: Context, /) -> Function:
        """Return the module's function wrapped so that the module's globals hold the Context's dunder names during each
        call.
        """

        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            namespace = self.module.__dict__
            names = self._names(ctx)
            before = {name: namespace[name] for name in names if name in namespace}
            namespace.update(names)
            token = current.set(ctx)
            try:
                return function(*args, **kwargs)
            finally:
                current.reset(token)
                namespace.update(before)

        return call

    def _names(self, ctx: Context) -> dict[str, object]:
        """Map of dunder name to value for this module in the Context. The map of the last Context is cached."""
        if self._entered is None or self._entered[0] is not ctx:
            self._entered = (ctx, dunders(self.source.kind, ctx))
        return self._entered[1]

    def usable(self, ctx: Context) -> LoadedModule:
        """Call the module's ``__init__`` and ``__virtual__`` as Salt does, and return the usable module as LoadedModule.

        Raise Unusable if one of the two fails, or if ``__virtual__`` returns False.
        """
        namespace = self.module.__dict__
        init = namespace.get("__init__")
        if inspect.isfunction(init):
            self._initialise(init, ctx)
        name = self.source.stem
        virtual = namespace.get("__virtual__")
        if inspect.isfunction(virtual):
            name = self._virtual_name(self._call_virtual(virtual, ctx), name)
        functions = self._functions()
        self._enforce_needs(functions)
        return LoadedModule(
            name=name,
            aliases=tuple(str(alias) for alias in namespace.get("__virtual_aliases__", ())),
            source=self.source,
            functions=functions,
            binder=self.bind,
            outputters=self._outputters(),
            raw_doc=self.module.__doc__,
        )

    def _initialise(self, init: Function, ctx: Context) -> None:
        try:
            self.bind(init, ctx)(self._names(ctx)["__opts__"])
        except TypeError as error:
            # As in Salt, a TypeError does not disable the module: this __init__ may not be written for the loader.
            log.error("%s: __init__ failed: %s", self.source.path, _short_message(error, self.source))
        except Exception as error:
            raise Unusable(f"__init__ failed: {_short_message(error, self.source)}") from error

    def _call_virtual(self, function: Function, ctx: Context) -> object:
        try:
            return self.bind(function, ctx)()
        except Exception as error:
            raise Unusable(f"{function.__name__} failed: {_short_message(error, self.source)}") from error

    def _virtual_name(self, answer: object, name: str) -> str:
        """Return the module's name, from the return of ``__virtual__``: True, a name, or (False, reason).

        ``name`` is the file's name. The module's ``__virtualname__`` overrides a returned name. Raise Unusable for
        False.
        """
        reason = ""
        if isinstance(answer, tuple):
            first, *rest = answer
            answer, reason = first, str(rest[0]) if rest else ""
        if not answer or not (answer is True or isinstance(answer, str)):
            raise Unusable(f"'{name}' __virtual__ returned False" + (f": {reason}" if reason else ""))
        declared = self.module.__dict__.get("__virtualname__")
        own = name if answer is True else answer
        return str(declared) if declared and (answer is True or own != name) else own

    def _functions(self) -> dict[str, Function]:
        namespace = self.module.__dict__
        listed = next((namespace[each] for each in ("__load__", "__all__") if each in namespace), list(namespace))
        aliases: Mapping[str, str] = namespace.get("__func_alias__", {})
        return {
            aliases.get(attribute, attribute): _described(namespace[attribute])
            for attribute in listed
            if not attribute.startswith("_") and self._is_function(namespace.get(attribute))
        }

    def _is_function(self, value: object) -> bool:
        if inspect.isfunction(value) or isinstance(value, functools.partial):
            return True
        # Functions of a compiled module have their own type. Imported functions, from another module, are left out.
        compiled = self.source.path.suffix in (".so", ".pyx") and callable(value) and not inspect.isclass(value)
        return compiled and getattr(value, "__module__", None) in (self.module.__name__, self.source.stem)

    def _enforce_needs(self, functions: dict[str, Function]) -> None:
        """Remove the functions whose ``@depends`` is not met, or replace them by their ``fallback_function``."""
        namespace = self.module.__dict__
        aliases: Mapping[str, str] = namespace.get("__func_alias__", {})
        for function, needs, options in namespace.get(DEPENDS, ()):
            name = aliases.get(function, function)
            lacking = [need for need in needs if not _met(need, namespace, options)]
            if name not in functions or not lacking:
                continue
            log.debug("%s: %s is left out: it needs %s", self.source.path, name, lacking[0])
            if options.get("fallback_function") is not None:
                functions[name] = options["fallback_function"]
            else:
                del functions[name]

    def _outputters(self) -> dict[str, str]:
        aliases: Mapping[str, str] = self.module.__dict__.get("__func_alias__", {})
        declared: Mapping[str, str] = self.module.__dict__.get("__outputter__", {})
        return {aliases.get(function, function): outputter for function, outputter in declared.items()}


def _described(function: Function) -> Function:
    """Return a function of a user's module. If it is compiled and has no signature, wrap it to accept any arguments."""
    try:
        inspect.signature(function)
    except ValueError:

        def call(*args: object, **kwargs: object) -> object:
            return function(*args, **kwargs)

        call.__name__, call.__doc__ = str(getattr(function, "__name__", "call")), function.__doc__
        return call
    return function


def _met(need: object, namespace: Mapping[str, object], options: Mapping[str, object]) -> bool:
    """Return whether a requirement of the decorator ``@depends`` is met on this host.

    ``need`` is True, a name in the module's globals (with a minimum ``version`` in the options), or a command (with an
    expected exit code).
    """
    if "retcode" in options or "nonzero_retcode" in options:
        code = _exit_code(str(need))
        if "retcode" in options:
            return bool(options["retcode"] == code)
        return (code != 0) if options["nonzero_retcode"] else code == 0
    if need is True:
        return True
    found = namespace.get(need) if isinstance(need, str) else None
    if not found or "version" not in options:
        return bool(found)
    return _numbers(str(getattr(found, "__version__", ""))) >= _numbers(str(options["version"]))


def _exit_code(command: str) -> int:
    """Run a command without a shell on this machine and return its exit code; -1 if the command cannot be started."""
    try:
        return subprocess.run(shlex.split(command), capture_output=True, check=False).returncode
    except OSError:
        return -1


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdecimal()]


def _short_message(error: BaseException, source: ModuleFile) -> str:
    """Return the type and message of an exception in one line, with the line number in the user's module file if it is
    known.
    """
    position = ""
    if isinstance(error, SyntaxError) and error.lineno:
        position = f" ({source.path.name}:{error.lineno})"
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == str(source.path):
            position = f" ({source.path.name}:{traceback.tb_lineno})"
        traceback = traceback.tb_next
    return f"{type(error).__name__}: {error}{position}"
