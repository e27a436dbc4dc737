"""The parts of redis-py that a master needs. Import redis-py's names from here.

``import redis`` loads two clients (threads and asyncio), clusters, notifications and, if installed, OpenTelemetry's
SDK: 14 MB in each role and a third of a second at each start. A master uses one client. So this module registers the
packages ``redis`` and ``redis.asyncio`` without running their ``__init__``, and puts stand-ins in place of modules that
only the other parts use, while ``redis.client`` and ``redis.sentinel`` are imported. That takes 5 MB.

Nothing is missing afterwards: the first access to another name of ``redis`` (for example ``redis.RedisCluster`` in a
user's runner) imports everything into the same module objects. A stand-in imports its module when it is used. If
redis-py is imported already, or a version cannot be imported in this way, it is imported normally. Source:
docs/decisions/0012-redis-py-in-part.md
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

#: Packages of which ``__init__`` is not run, each after its parent.
_PACKAGES = ("redis", "redis.asyncio")

#: Packages and modules that only other parts of redis-py use. Parents come first.
_STOOD_IN = (
    "asyncio",
    "importlib.metadata",
    "opentelemetry",
    "opentelemetry.metrics",
    "opentelemetry.sdk",
    "opentelemetry.sdk.metrics",
    "redis.commands.cluster",
)

#: What a master uses; they import the rest of what they need.
_WANTED = ("redis.client", "redis.sentinel")

_SHARED = threading.RLock()


class _Package(ModuleType):
    """A Python package whose ``__init__`` is run when a name that the package lacks is first used."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name not in ("__version__", "__all__"):
            raise AttributeError(name)
        with _SHARED:
            # While its ``__init__`` runs, that asks it for names that it will have.
            if type(self) is _Package and not vars(self).get("_runs"):
                _complete()
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'") from None


class _Name(Exception):
    """Placeholder for an imported name; an exception class, because the name may be used in an ``except`` clause."""


class _StandIn(ModuleType):
    """Module that creates placeholder names while redis-py is imported; afterwards it forwards to the real module."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.importing = True
        self._made: dict[str, type[_Name]] = {}

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if not self.importing:
            return getattr(importlib.import_module(self.__name__), name)
        return self._made.setdefault(name, type(name, (_Name,), {"__module__": self.__name__}))


def _complete() -> None:
    """Import the rest of redis-py: run the ``__init__`` of its packages, and put the real names in place of placeholders."""
    packages = [sys.modules[name] for name in _PACKAGES]
    for package in packages:
        vars(package)["_runs"] = True
    for module in [module for name, module in sys.modules.items() if name.startswith("redis.")]:
        for name, value in list(vars(module).items()):
            if isinstance(value, type) and issubclass(value, _Name):
                # A package of which only a part is installed has no more names than it has.
                with contextlib.suppress(ImportError, AttributeError):
                    setattr(module, name, getattr(importlib.import_module(value.__module__), value.__name__))
    for package in packages:
        spec = package.__spec__
        assert spec is not None
        assert spec.loader is not None
        spec.loader.exec_module(package)
    for package in packages:
        del vars(package)["_runs"]
        package.__class__ = ModuleType


def _spared() -> None:
    """Import ``redis.client`` and ``redis.sentinel`` without the other modules of redis-py.

    If that fails, remove all modules of redis-py from ``sys.modules``: the next import then loads redis-py completely.
    """
    found = importlib.util.find_spec("redis")
    if found is None or found.origin is None:
        return
    with _stand_ins(found.origin):
        try:
            for name in _PACKAGES:
                _put_up(name)
            for name in _WANTED:
                importlib.import_module(name)
            for name in _PACKAGES:
                sys.modules[name].__class__ = _Package
        except Exception:  # noqa: BLE001 - whatever this version does else, it is imported as its makers meant
            for name in [name for name in sys.modules if name.partition(".")[0] == "redis"]:
                del sys.modules[name]


def _put_up(name: str) -> None:
    spec = importlib.util.find_spec(name)
    assert isinstance(spec, ModuleSpec)
    package = ModuleType(name)
    package.__spec__, package.__loader__, package.__package__ = spec, spec.loader, name
    package.__file__, package.__path__ = spec.origin, list(spec.submodule_search_locations or [])
    sys.modules[name] = package
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, package)


@contextlib.contextmanager
def _stand_ins(origin: str) -> Iterator[None]:
    """Put placeholder modules into ``sys.modules`` while the ``with`` block runs."""
    there = {name for name in _STOOD_IN if importlib.util.find_spec(name.partition(".")[0]) is not None}
    made = {name: _StandIn(name) for name in _STOOD_IN if name in there and name not in sys.modules}
    for name, module in made.items():
        parent, _, last = name.rpartition(".")
        if parent in made:
            setattr(made[parent], last, module)
            made[parent].__path__ = []
    if "importlib.metadata" in made:
        # Each connection tells Redis which client it is; to read a name of a directory needs no reader of packages.
        vars(made["importlib.metadata"]).update(version=_Version(Path(origin)), PackageNotFoundError=LookupError)
    sys.modules.update(made)
    try:
        yield
    finally:
        for name, module in made.items():
            module.importing = False
            if sys.modules.get(name) is module:
                del sys.modules[name]


class _Version:
    """Replacement for ``importlib.metadata.version`` that knows only redis-py, the package at ``origin``."""

    def __init__(self, origin: Path) -> None:
        # Read once: each connection asks for it, and a role that is forked later shares it.
        found = (path.name for path in origin.parent.parent.iterdir() if path.name.startswith("redis-"))
        self._version = next((name[6:-10] for name in found if name.endswith(".dist-info")), "")

    def __call__(self, name: str) -> str:
        """Return the version in the name of the package's dist-info directory. Raises LookupError if there is none."""
        if name != "redis" or not self._version:
            raise LookupError(name)
        return self._version


if "redis" not in sys.modules:
    _spared()

from redis.backoff import NoBackoff  # noqa: E402 - the first import of it is prepared above
from redis.client import Pipeline, Redis  # noqa: E402
from redis.connection import SSLConnection, parse_url  # noqa: E402
from redis.crc import key_slot  # noqa: E402
from redis.exceptions import (  # noqa: E402
    ClusterDownError,
    ConnectionError,  # noqa: A004
    MovedError,
    NoScriptError,
    RedisError,
    ResponseError,
    TimeoutError,  # noqa: A004
)
from redis.retry import Retry  # noqa: E402
from redis.sentinel import Sentinel, SentinelManagedConnection  # noqa: E402

__all__ = [
    "ClusterDownError",
    "ConnectionError",
    "MovedError",
    "NoBackoff",
    "NoScriptError",
    "Pipeline",
    "Redis",
    "RedisError",
    "ResponseError",
    "Retry",
    "SSLConnection",
    "Sentinel",
    "SentinelManagedConnection",
    "TimeoutError",
    "key_slot",
    "parse_url",
]
