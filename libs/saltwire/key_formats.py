"""cryptography's ``serialization`` without its SSH keys, which no wire of Salt's has: import its names from here.

The package imports them for who might want them, and with them ``inspect`` and four more kinds of keys: 1.5 MB in each
process that opens a PEM. So it is put up without running its ``__init__``; what that only passes on is looked up where
it comes from. Who asks the package for anything else (a certificate, a user's module) makes it whole by asking: the
same module, the same classes. Where it is imported already, or a version keeps its names elsewhere, it is imported as
its makers meant.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Mapping
from types import ModuleType
from typing import Any

_PACKAGE = "cryptography.hazmat.primitives.serialization"

#: What is asked for most, also by the package's own modules while they are imported -> the module that it comes from.
_HOMES: Mapping[str, str] = dict.fromkeys(
    (
        *("BestAvailableEncryption", "Encoding", "KeySerializationEncryption", "NoEncryption", "ParameterFormat"),
        *("PrivateFormat", "PublicFormat", "_KeySerializationEncryption"),
    ),
    "cryptography.hazmat.primitives._serialization",
) | dict.fromkeys(
    ("load_der_private_key", "load_der_public_key", "load_pem_private_key", "load_pem_public_key"), f"{_PACKAGE}.base"
)

_SHARED = threading.RLock()


class _Package(ModuleType):
    """A package whose ``__init__`` runs when a name is asked for that has no home here."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        home = _HOMES.get(name)
        try:
            if home is not None:
                value = getattr(importlib.import_module(home), name)
                setattr(self, name, value)
                return value
        except (ImportError, AttributeError):
            # Another version's names are where its __init__ says.
            pass
        with _SHARED:
            # While it runs, it may ask itself for what it will have.
            if type(self) is _Package and not vars(self).get("_runs"):
                _complete(self)
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'") from None


def _complete(package: _Package) -> None:
    assert package.__spec__ is not None
    assert package.__spec__.loader is not None
    vars(package)["_runs"] = True
    try:
        package.__spec__.loader.exec_module(package)
    finally:
        del vars(package)["_runs"]
    package.__class__ = ModuleType  # type: ignore[assignment]
    # It may have put another object in its place, which warns of names that are on their way out.
    _known_to_parent()


def _known_to_parent() -> None:
    parent, _, last = _PACKAGE.rpartition(".")
    setattr(sys.modules[parent], last, sys.modules[_PACKAGE])


def _put_up() -> None:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None:
        return
    package = importlib.util.module_from_spec(spec)
    package.__class__ = _Package
    sys.modules[_PACKAGE] = package
    _known_to_parent()


if _PACKAGE not in sys.modules:
    _put_up()

from cryptography.hazmat.primitives.serialization import (  # noqa: E402 - the first import of it is prepared above
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

__all__ = ["Encoding", "NoEncryption", "PrivateFormat", "PublicFormat", "load_pem_private_key", "load_pem_public_key"]
