"""The border to users' modules in Salt's style, and the only place where ambient names exist.

A file from ``_modules``, ``_states`` or ``_grains`` is run with builtins of its own whose ``__import__`` answers
``import salt...`` from the small package ``loader/compat``. Nothing else in the process sees that package, and a real
Salt that happens to be installed is not touched. The dunders (``__salt__``, ``__opts__``, ...) are put into the
module's globals around each call, so two contexts (a real run and a prereq's test run) never see each other's.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.machinery
import importlib.util
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, ModuleType
from typing import Any

from statecore.context import Context
from statecore.errors import NotAvailable
from statecore.loader.find import Source
from statecore.loader.served import Served, Unusable
from statecore.ports import Function

_COMPAT = "statecore.loader.compat"


class MissingFunction(NotAvailable, KeyError):
    """What ``__salt__["no.such"]`` raises: users' modules expect a KeyError."""

    def __str__(self) -> str:
        # KeyError would show the repr of the sentence.
        return str(self.args[0])


class SaltTable(Mapping[str, Function]):
    """``__salt__`` and ``__states__``: the lazy table, with a dict's manners (KeyError for what is missing)."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions

    def __getitem__(self, name: str) -> Function:
        try:
            return self._functions[name]
        except NotAvailable as missing:
            raise MissingFunction(missing.name, missing.reason) from None

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)


def dunders(ctx: Context) -> dict[str, Any]:
    """The names a user's module finds in its globals, for one context."""
    opts = dict(ctx.opts)
    opts.update(test=ctx.test, grains=ctx.grains, pillar=ctx.pillar, saltenv=ctx.saltenv)
    return {
        "__salt__": SaltTable(ctx.functions),
        "__states__": SaltTable(ctx.states),
        "__opts__": opts,
        "__grains__": ctx.grains,
        "__pillar__": ctx.pillar,
        "__context__": ctx.scratch,
        "__low__": ctx.low,
        "__running__": ctx.running,
        "__lowstate__": ctx.lowstate,
        "__env__": ctx.saltenv,
        "__sls__": ctx.low.get("__sls__"),
        "__instance_id__": str(ctx.opts.get("jid", "")),
        "__user__": ctx.opts.get("user", "root"),
        "__proxy__": {},
        "__utils__": {},
    }


class CompatImport:
    """``__import__`` for users' modules: ``salt`` and below come from the compatibility package, all else is usual."""

    def __call__(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if level or not (name == "salt" or name.startswith("salt.")):
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = _compat_module(name)
        if not fromlist:
            return importlib.import_module(_COMPAT)
        for wanted in fromlist:
            if wanted != "*" and not hasattr(module, wanted):
                _compat_module(f"{name}.{wanted}")
        return module


def _compat_module(name: str) -> ModuleType:
    ours = _COMPAT + name.removeprefix("salt")
    if importlib.util.find_spec(ours.rpartition(".")[0]) is None or importlib.util.find_spec(ours) is None:
        raise ModuleNotFoundError(f"'{name}' is not part of the compatibility package for Salt modules", name=name)
    return importlib.import_module(ours)


class _FreshLoader(importlib.machinery.SourceFileLoader):
    """Compiles the file at each load: a module synced twice within a second must not come from a stale .pyc."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class UserModule:
    """A user's module in memory: its globals and how a call enters and leaves them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        name = f"saltern_loaded.{source.kind}.{source.stem}"
        package = [str(source.path.parent)] if source.path.name == "__init__.py" else None
        loader = _FreshLoader(name, str(source.path))
        spec = importlib.util.spec_from_file_location(
            name, source.path, loader=loader, submodule_search_locations=package
        )
        if spec is None:
            raise Unusable(f"{source.path} cannot be loaded as a Python module")
        self.module = importlib.util.module_from_spec(spec)
        self.module.__dict__["__builtins__"] = {**vars(builtins), "__import__": CompatImport()}
        self.module.__dict__["__salt_system_encoding__"] = "utf-8"
        # dataclasses and pickle look their class's module up by name.
        sys.modules[name] = self.module
        try:
            loader.exec_module(self.module)
        except Exception as error:
            del sys.modules[name]
            raise Unusable(f"{source.path} failed to import: {_brief(error, source)}") from error
        self._entered: tuple[Context, dict[str, Any]] | None = None

    def bind(self, function: Function, ctx: Context, /) -> Function:
        """The function, run with the context's dunders in the module's globals."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            namespace = self.module.__dict__
            names = self._names(ctx)
            before = {name: namespace[name] for name in names if name in namespace}
            namespace.update(names)
            try:
                return function(*args, **kwargs)
            finally:
                namespace.update(before)

        return call

    def _names(self, ctx: Context) -> dict[str, Any]:
        """The dunders of the context; a loop over one context builds them once."""
        if self._entered is None or self._entered[0] is not ctx:
            self._entered = (ctx, dunders(ctx))
        return self._entered[1]

    def serve(self, ctx: Context) -> Served:
        """Asks ``__init__`` and ``__virtual__`` as Salt does. Raises Unusable with the reason given."""
        namespace = self.module.__dict__
        init = namespace.get("__init__")
        if inspect.isfunction(init):
            self._ask(init, ctx, self._names(ctx)["__opts__"])
        name = namespace.get("__virtualname__") or self.source.stem
        virtual = namespace.get("__virtual__")
        if inspect.isfunction(virtual):
            name = self._virtual_name(self._ask(virtual, ctx), name)
        return Served(
            name=name,
            source=self.source,
            functions=self._functions(),
            binder=self.bind,
            outputters=self._outputters(),
        )

    def _ask(self, function: Function, ctx: Context, *args: Any) -> Any:
        try:
            return self.bind(function, ctx)(*args)
        except Exception as error:
            raise Unusable(f"{function.__name__} failed: {_brief(error, self.source)}") from error

    @staticmethod
    def _virtual_name(answer: Any, name: str) -> str:
        reason = ""
        if isinstance(answer, tuple):
            answer, reason = answer[0], str(answer[1]) if len(answer) > 1 else ""
        if isinstance(answer, str):
            return answer
        if answer is True:
            return name
        raise Unusable(f"'{name}' __virtual__ returned False" + (f": {reason}" if reason else ""))

    def _functions(self) -> dict[str, Function]:
        namespace = self.module.__dict__
        listed = namespace.get("__load__") or namespace.get("__all__") or list(namespace)
        aliases: Mapping[str, str] = namespace.get("__func_alias__", {})
        return {
            aliases.get(attribute, attribute): namespace[attribute]
            for attribute in listed
            if not attribute.startswith("_")
            and (
                inspect.isfunction(namespace.get(attribute)) or isinstance(namespace.get(attribute), functools.partial)
            )
        }

    def _outputters(self) -> dict[str, str]:
        aliases: Mapping[str, str] = self.module.__dict__.get("__func_alias__", {})
        declared: Mapping[str, str] = self.module.__dict__.get("__outputter__", {})
        return {aliases.get(function, function): outputter for function, outputter in declared.items()}


def _brief(error: BaseException, source: Source) -> str:
    """The exception in a line, with the user's own file and line where the traceback passes through it."""
    place = ""
    if isinstance(error, SyntaxError) and error.lineno:
        place = f" ({source.path.name}:{error.lineno})"
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == str(source.path):
            place = f" ({source.path.name}:{traceback.tb_lineno})"
        traceback = traceback.tb_next
    return f"{type(error).__name__}: {error}{place}"
