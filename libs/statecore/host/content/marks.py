"""What a file bears besides owner and mode: attributes of its file system, a security context."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore.host import file_attributes, selinux_contexts
from statecore.host.file_attributes import Difference
from statecore.host.selinux_contexts import SecurityContext
from statecore.model.ports import ManagedHost


@dataclass(frozen=True, slots=True)
class Marks:
    """The wanted marks of one file; None leaves what is there."""

    host: ManagedHost
    #: The host's own name of the file, links resolved.
    name: str
    flags: str | None = None
    security: SecurityContext | None = None

    @classmethod
    def of(cls, host: ManagedHost, place: Path, attrs: Any, selinux: Any) -> Marks:
        """From the arguments of a state, for a file at one of our paths. Raises InvocationError."""
        flags = None if attrs is None else file_attributes.checked(attrs)
        return cls(host, _host_name(host, place), flags, selinux_contexts.wanted(selinux))

    def __bool__(self) -> bool:
        return self.flags is not None or self.security is not None

    def changes(self) -> dict[str, Any]:
        """What would change on the file that is there, as Salt tells it. Raises HostError."""
        found: dict[str, Any] = {}
        if self.flags is not None:
            has = file_attributes.read(self.host, self.name)
            if any(file_attributes.difference(has, self.flags)):
                found["attrs"] = {"old": has, "new": self.flags}
        if self.security is not None:
            now = selinux_contexts.read(self.host, self.name)
            todo = selinux_contexts.difference(now, self.security)
            if any(todo):
                found["selinux"] = selinux_contexts.told(now, todo)
        return found

    def possible(self, place: Path) -> None:
        """Raises HostError where a new file at one of our paths could not bear them."""
        if not self:
            return
        while not place.is_dir():
            place = place.parent
        above = _host_name(self.host, place)
        if self.flags is not None:
            file_attributes.read(self.host, above)
        if self.security is not None:
            selinux_contexts.read(self.host, above)

    def unseal(self) -> None:
        """Takes off, for the work at hand, what would keep the file from being changed; ``put`` brings it back."""
        if self.flags is None:
            return
        seals = "".join(
            letter for letter in file_attributes.read(self.host, self.name) if letter in file_attributes.SEALS
        )
        file_attributes.change(self.host, self.name, Difference("", seals))

    def put(self) -> dict[str, Any]:
        """Sets what is not as wanted; tells it. Raises HostError."""
        found = self.changes()
        if "selinux" in found and self.security is not None:
            now = selinux_contexts.read(self.host, self.name)
            todo = selinux_contexts.difference(now, self.security)
            selinux_contexts.change(self.host, self.name, now, todo)
        # Last: nothing else can be changed of a file that is immutable.
        if "attrs" in found and self.flags is not None:
            has = file_attributes.read(self.host, self.name)
            file_attributes.change(self.host, self.name, file_attributes.difference(has, self.flags))
        return found


def _host_name(host: ManagedHost, place: Path) -> str:
    """The host's own name of one of our paths."""
    return "/" + "/".join(place.relative_to(host.root).parts)
