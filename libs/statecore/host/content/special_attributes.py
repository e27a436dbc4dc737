"""Attributes of a file besides owner and mode: chattr attributes and the SELinux context."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from statecore.host import file_attributes, selinux_contexts
from statecore.host.file_attributes import Difference
from statecore.host.selinux_contexts import SecurityContext
from statecore.model.ports import ManagedHost


@dataclass(frozen=True, slots=True)
class SpecialAttributes:
    """Wanted chattr attributes and SELinux context of one file; None keeps the current ones."""

    host: ManagedHost
    #: The host's own path of the file, with links resolved.
    name: str
    flags: str | None = None
    security: SecurityContext | None = None

    @classmethod
    def of(cls, host: ManagedHost, place: Path, attrs: object, selinux: object) -> SpecialAttributes:
        """Return the SpecialAttributes that a state's arguments ``attrs`` and ``selinux`` demand for a file.

        Raises InvocationError for malformed arguments.
        """
        flags = None if attrs is None else file_attributes.checked(attrs)
        return cls(host, _host_name(host, place), flags, selinux_contexts.wanted(selinux))

    def __bool__(self) -> bool:
        return self.flags is not None or self.security is not None

    def changes(self) -> dict[str, object]:
        """Return the changes of chattr attributes and SELinux context that an existing file needs.

        They are in Salt's format: the keys "attrs" and "selinux"; {} if nothing differs. Raise HostError if the current
        values cannot be read.
        """
        found: dict[str, object] = {}
        if self.flags is not None:
            has = file_attributes.read(self.host, self.name)
            if any(file_attributes.difference(has, self.flags)):
                found["attrs"] = {"old": has, "new": self.flags}
        if self.security is not None:
            now = selinux_contexts.read(self.host, self.name)
            todo = selinux_contexts.difference(now, self.security)
            if any(todo):
                found["selinux"] = selinux_contexts.reported_change(now, todo)
        return found

    def possible(self, place: Path) -> None:
        """Raise HostError if the file system of a file to be created does not support chattr attributes or SELinux
        contexts.
        """
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
        """Remove the chattr attributes "immutable" and "append only" from a file, so that its content can be changed.

        ``put`` sets them again. Nothing happens if the state does not manage chattr attributes. Raise HostError if they
        cannot be removed.
        """
        if self.flags is None:
            return
        seals = "".join(
            letter for letter in file_attributes.read(self.host, self.name) if letter in file_attributes.SEALS
        )
        file_attributes.change(self.host, self.name, Difference("", seals))

    def put(self) -> dict[str, object]:
        """Set the chattr attributes and the SELinux context of a file where they differ.

        Return the changes in Salt's format: a map with the keys "attrs" and "selinux". Raise HostError if they cannot
        be read or set.
        """
        found = self.changes()
        if "selinux" in found and self.security is not None:
            now = selinux_contexts.read(self.host, self.name)
            todo = selinux_contexts.difference(now, self.security)
            selinux_contexts.change(self.host, self.name, now, todo)
        # Set last, because nothing else can be changed on an immutable file.
        if "attrs" in found and self.flags is not None:
            has = file_attributes.read(self.host, self.name)
            file_attributes.change(self.host, self.name, file_attributes.difference(has, self.flags))
        return found


def _host_name(host: ManagedHost, place: Path) -> str:
    """Convert a path of this process to the managed host's own path, as text."""
    return "/" + "/".join(place.relative_to(host.root).parts)
