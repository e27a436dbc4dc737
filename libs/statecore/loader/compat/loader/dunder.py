"""``salt.loader.dunder`` for users' modules: the dunder names of the running module (``__salt__`` ...) as importable
objects.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from statecore.loader.current_context import context_of
from statecore.loader.dunders import dunder


class NamedLoaderContext(MutableMapping[str, Any]):
    """Importable object for one dunder name (``__salt__`` ...). Its value is that of the module function that runs
    now.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def value(self) -> Any:
        """Return the value that the running module has under this name. Raise CommandError if no module's function runs."""
        return dunder(self._name, context_of(f"salt.loader.dunder.{self._name}"))

    def __getitem__(self, key: str) -> Any:
        return self.value()[key]

    def __setitem__(self, key: str, item: Any) -> None:
        self.value()[key] = item

    def __delitem__(self, key: str) -> None:
        del self.value()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.value())

    def __len__(self) -> int:
        return len(self.value())

    def __bool__(self) -> bool:
        return bool(self.value())

    def __contains__(self, key: object) -> bool:
        return key in self.value()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.value(), name)


__salt__ = NamedLoaderContext("__salt__")
__utils__ = NamedLoaderContext("__utils__")
__states__ = NamedLoaderContext("__states__")
__serializers__ = NamedLoaderContext("__serializers__")
__opts__ = NamedLoaderContext("__opts__")
__grains__ = NamedLoaderContext("__grains__")
__pillar__ = NamedLoaderContext("__pillar__")
__context__ = NamedLoaderContext("__context__")
__low__ = NamedLoaderContext("__low__")
__running__ = NamedLoaderContext("__running__")
__proxy__ = NamedLoaderContext("__proxy__")
__file_client__ = NamedLoaderContext("__file_client__")
