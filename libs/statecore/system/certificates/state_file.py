"""The file of a managed key or certificate: its current content, its wanted owner and mode, and how it is written. Shared
by the states ``x509`` and ``ssh_pki``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.content.write_plan import Write
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError, StateFailure
from statecore.model.types import Outcome, Plan, Step

#: Supported arguments of ``file.managed``.
_TAKEN = frozenset(
    {
        "user",
        "group",
        "mode",
        "makedirs",
        "dir_mode",
        "backup",
        "create",
        "follow_symlinks",
        "check_cmd",
        "tmp_dir",
        "tmp_ext",
    }
)

#: Arguments of ``file.managed`` that are refused.
_REFUSED = frozenset(
    {"attrs", "selinux", "win_owner", "win_perms", "win_deny_perms", "win_inheritance", "win_perms_reset"}
)

#: Arguments of ``file.managed`` without effect here, because keys and certificates are ASCII.
_IDLE = frozenset({"file_encoding", "encoding_errors"})

#: Errors of arguments or unreadable files; their text is the comment of the failed state.
FaultOfCall = (CommandError, InvocationError)


def split(given: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Return (arguments of a state about the file such as owner and mode, all other arguments that are not None), both
    as maps of name to value.
    """
    ours = {name: value for name, value in given.items() if name in _TAKEN | _REFUSED}
    known = _TAKEN | _REFUSED | _IDLE
    return ours, {name: value for name, value in given.items() if name not in known and value is not None}


def need_nothing_more(rest: Mapping[str, object]) -> None:
    """Raise InvocationError if arguments are left that the state does not accept."""
    if rest:
        raise InvocationError(f"Unrecognized keyword arguments: {sorted(rest)}")


@dataclass(frozen=True, slots=True)
class ManagedFile:
    """The file of a key or certificate on the host, with its current content and its wanted owner and mode."""

    ctx: Context
    name: str
    place: Path
    real: Path
    #: Current content; None if there is no file, or a symbolic link that will be replaced.
    old: bytes | None
    #: Whether a symbolic link is replaced by the file.
    unlinks: bool
    attributes: Attributes
    given: Mapping[str, object]

    @classmethod
    def of(cls, ctx: Context, name: str, given: Mapping[str, Any], mode: str | None = None) -> ManagedFile:
        """Return the file that a state manages, with its current content. ``mode``: default mode.

        Raise InvocationError for an unsupported argument or mode, a relative path or a directory; HostError if the path
        cannot be resolved or read.
        """
        if refused := sorted(argument for argument in _REFUSED if given.get(argument)):
            raise InvocationError(f"not supported: {', '.join(refused)}")
        if not str(name).startswith("/"):
            raise InvocationError(f"Specified file {name} is not an absolute path")
        place = ctx.host.path(name, follow=bool(given.get("follow_symlinks", True)))
        real = ctx.host.path(name)
        if real.is_dir():
            raise InvocationError(f"Specified target {name} is a directory")
        unlinks = place.is_symlink()
        bits = managed_file.parse_mode(given.get("mode") or mode)
        attributes = Attributes(given.get("user"), given.get("group"), bits)
        return cls(
            ctx, name, place, real, None if unlinks else managed_file.read(real, name), unlinks, attributes, given
        )

    @property
    def left_alone(self) -> bool:
        """True if the file does not exist and the state must not create it."""
        return not self.given.get("create", True) and not self.real.is_file()

    def plan(
        self,
        what: str,
        changes: Mapping[str, object],
        make: Callable[[], bytes],
        *,
        again: bool,
        verb: str = "recreate",
        done: str = "",
        note: str = "",
    ) -> Plan:
        """Return a plan that writes the bytes returned by ``make`` to the file, if there are ``changes``. Without
        changes, the plan only corrects owner and mode; it has no steps if these are right too.

        ``what``: words for the content in comments, such as "certificate"; ``again``: True if the content exists
        already; ``verb``: what is done then; ``done``: the word for what was done, if it is another; ``note``: further
        words in test mode.
        """
        if self.left_alone:
            return Plan.unchanged(f"File {self.name} is not present and is not set for creation")
        if not changes:
            owned = self._write(self.old or b"").plan()
            return owned if owned.steps else Plan.unchanged(f"The {what} is in the correct state")
        word = f"{verb if again else 'create'}d"

        def work() -> Outcome:
            try:
                write = self._write(make())
            except (CommandError, InvocationError) as error:
                raise StateFailure(str(error)) from error
            for each in write.plan().steps:
                each.run()
            return Outcome(f"The {what} has been {done or word}", changes)

        return Plan.change(f"The {what} would have been {word}{note}", [Step(f"write {self.name}", work)], changes)

    def plan_of(self, content: bytes) -> Plan:
        """Return a plan that writes these bytes to the key's or certificate's file, like ``file.managed``."""
        if self.left_alone:
            return Plan.unchanged(f"File {self.name} is not present and is not set for creation")
        return self._write(content).plan()

    def _write(self, new: bytes) -> Write:
        given = self.given
        return Write(
            ctx=self.ctx,
            name=self.name,
            real_path=self.place,
            real=self.real,
            old=self.old,
            new=new,
            attributes=self.attributes,
            makedirs=bool(given.get("makedirs")),
            dir_mode=given.get("dir_mode"),
            backup=str(given.get("backup") or ""),
            show_changes=False,
            check_cmd=None if given.get("check_cmd") is None else str(given["check_cmd"]),
            tmp_dir=str(given.get("tmp_dir") or ""),
            tmp_ext=str(given.get("tmp_ext") or ""),
        )
