"""A file that is there and is to be edited: read once, written once, with its backup beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore.builtin.states.file.places import Refused, need_parent, place_of, step
from statecore.host.content import diffs, managed_file
from statecore.host.content.edits import text
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.types import FileChange, Outcome, Plan


@dataclass(frozen=True, slots=True)
class Target:
    """The file, and what it holds."""

    ctx: Context
    name: str
    place: Path
    old: bytes

    @classmethod
    def of(cls, ctx: Context, name: str) -> Target:
        """The file of this name. Raises Refused when there is none, HostError when it is no regular file."""
        place = place_of(ctx, name)
        old = managed_file.read(place, name)
        if old is None:
            raise Refused(f"{name}: file not found")
        return cls(ctx, name, place, old)

    @property
    def text(self) -> str:
        """Its text. Raises InvocationError for a binary file."""
        return text.decoded(self.old, self.name)

    def diff(self, new: str, *, shown: bool = True) -> str | bool:
        """What an edit changes; True where nobody is to see it."""
        return diffs.unified(self.old, text.encoded(new)) if shown else True

    def write(
        self,
        new: str,
        would: str,
        did: str,
        changes: Mapping[str, Any],
        *,
        predicted: Mapping[str, Any] | None = None,
        backup: str = "",
        shown: bool = True,
    ) -> Plan:
        """A plan that writes the new text; ``backup`` is the suffix of the old one's copy, "" for none."""
        content = text.encoded(new)

        def work() -> Outcome:
            need_parent(self.ctx, self.place, False, Attributes(), f"{self.name} not writable: it has no directory")
            if backup:
                managed_file.keep_beside(self.ctx.host, self.place, backup)
            managed_file.replace(self.ctx.host, self.place, content, Attributes())
            return Outcome(did, changes)

        write = step(f"edit {self.name}", work, FileChange(self.name, self.old, content, shown))
        return Plan.change(would, (write,), changes if predicted is None else predicted)


def suffix(backup: Any) -> str:
    """The suffix of the old file's copy, as ``backup`` gives it."""
    return str(backup) if backup else ""
