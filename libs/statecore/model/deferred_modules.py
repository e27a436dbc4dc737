"""Modules of Python that cost nothing until something in them is used.

``dataclasses`` imports ``inspect``, and with it all that reads and takes apart programs; ``urllib`` imports ``ipaddress``, ``zmq``
imports ``pickle``, ``linecache`` imports ``tokenize``, ``hashlib`` loads OpenSSL: three megabytes that a role which only waits does
not need, and each process has its own.
"""

from __future__ import annotations

import codecs
import importlib
import importlib.util
import os
import sys
import threading
from _operator import _compare_digest
from collections.abc import Callable, Mapping
from types import CodeType, CoroutineType, FunctionType, ModuleType
from typing import Any

#: Flag of the code of ``async def``, as ``inspect`` has it.
_CO_COROUTINE = 0x80

#: Bytes of which a digest takes no time, whoever makes it.
_SHORT = 65536

#: Digest -> modules of Python that work it out without OpenSSL: of 3.11, of later ones.
_OWN_DIGESTS: Mapping[str, tuple[str, ...]] = {"sha1": ("_sha1",), "sha256": ("_sha256", "_sha2")}

#: Letters of a label of a host's name, and one.
_LONGEST_LABEL = 64

_SHARED = threading.RLock()
# A process that is forked while a thread loads a module has no such thread to wait for.
os.register_at_fork(before=_SHARED.acquire, after_in_parent=_SHARED.release, after_in_child=_SHARED.release)


class _Deferred(ModuleType):
    """A module that is run when a name is asked for that it does not have yet."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        with _SHARED:
            # While it runs, it may ask itself for what it will have.
            if type(self) is _Deferred and not vars(self).get("_runs"):
                _run(self)
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'") from None


def _run(module: ModuleType) -> None:
    assert module.__spec__ is not None
    assert module.__spec__.loader is not None
    vars(module)["_runs"] = True
    try:
        module.__spec__.loader.exec_module(module)
    finally:
        del vars(module)["_runs"]
    module.__class__ = ModuleType


def _is_coroutine_function(function: Any) -> bool:
    """``inspect.iscoroutinefunction``: decorators ask for it of each function that they decorate."""
    code = getattr(function, "__code__", None)
    if type(function) is FunctionType and isinstance(code, CodeType):
        return bool(code.co_flags & _CO_COROUTINE)
    answer: bool = _real("inspect").iscoroutinefunction(function)
    return answer


def _is_coroutine(value: Any) -> bool:
    """``inspect.iscoroutine``: redis-py asks for it of what Redis answered."""
    return isinstance(value, CoroutineType)


def _real(name: str) -> ModuleType:
    module = sys.modules[name]
    with _SHARED:
        if type(module) is _Deferred:
            _run(module)
    return module


def _digest(name: str) -> Callable[..., Any]:
    """``hashlib.sha1`` (a store names its scripts by it), ``hashlib.sha256`` (of keys): of something short by Python itself."""

    def digest(data: Any = b"", **named: Any) -> Any:
        own = next(filter(importlib.util.find_spec, _OWN_DIGESTS[name]), None) if 0 < len(data) < _SHORT else None
        module = importlib.import_module(own) if own else _real("hashlib")
        return getattr(module, name)(data, **named)

    return digest


def _idna(text: str, errors: str = "strict") -> tuple[bytes, int]:
    """Encodes a host's name, as each that is looked up is: one of ASCII letters stays what it is."""
    if text.isascii() and all(0 < len(label) < _LONGEST_LABEL for label in text.removesuffix(".").split(".")):
        return text.encode("ascii"), len(text)
    encoded: tuple[bytes, int] = _real("encodings.idna").Codec().encode(text, errors)
    return encoded


def _idna_codec() -> codecs.CodecInfo:
    """``encodings.idna.getregentry``: all but ``_idna`` is Python's own, which loads 0.35 MB of tables of letters."""

    def own(name: str) -> Any:
        return lambda *given: getattr(_real("encodings.idna"), name)(*given)

    return codecs.CodecInfo(
        _idna,
        lambda data, errors="strict": _real("encodings.idna").Codec().decode(data, errors),
        streamreader=own("StreamReader"),
        streamwriter=own("StreamWriter"),
        incrementalencoder=own("IncrementalEncoder"),
        incrementaldecoder=own("IncrementalDecoder"),
        name="idna",
    )


#: Module -> what others ask it for all the time, which does not run it.
DEFERRED: Mapping[str, Mapping[str, Any]] = {
    "argparse": {},
    "calendar": {},
    "difflib": {},
    "gzip": {},
    "encodings.idna": {"getregentry": _idna_codec, "getaliases": tuple},
    "hashlib": {"sha1": _digest("sha1"), "sha256": _digest("sha256")},
    # ``secrets`` takes it along, of which redis-py makes names.
    "hmac": {"compare_digest": _compare_digest},
    "inspect": {"iscoroutinefunction": _is_coroutine_function, "iscoroutine": _is_coroutine},
    "ipaddress": {},
    "json": {},
    "pickle": {"DEFAULT_PROTOCOL": 5 if sys.version_info >= (3, 14) else 4},
    "shutil": {},
    "subprocess": {},
    "tempfile": {},
    "textwrap": {},
    "tokenize": {},
    "uuid": {},
}


def defer() -> None:
    """To be called before anything imports them; a module that is imported already stays."""
    for name, known in DEFERRED.items():
        spec = importlib.util.find_spec(name) if name not in sys.modules else None
        if spec is not None:
            module = importlib.util.module_from_spec(spec)
            vars(module).update(known)
            module.__class__ = _Deferred
            sys.modules[name] = module
            package, _, last = name.rpartition(".")
            if package:
                setattr(sys.modules[package], last, module)
