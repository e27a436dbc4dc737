"""Mail aliases of the managed host: Salt's ``aliases`` execution module.

The option ``aliases.file`` is the path of the file (default /etc/aliases). A line is ``alias: targets # comment``. After
a change ``newaliases`` runs, if the host has it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.model.text_lines import lines_of

OUTPUTTERS = {
    "rm_alias": "txt",
    "has_target": "txt",
    "get_target": "txt",
    "set_target": "txt",
    "list_aliases": "yaml",
}

_LINE = re.compile(r"([^:#]*)\s*:?\s*([^#]*?)(\s+#.*|$)")


class AliasLine(NamedTuple):
    """One line of the file of mail aliases: alias, target, comment. A line without an alias has its whole text in
    ``comment``.
    """

    alias: str
    target: str
    #: With the blanks before the #.
    comment: str

    def text(self) -> str:
        """Return the line as text for the file, without its line end."""
        return f"{self.alias}: {self.target}{self.comment}" if self.alias and self.target else self.comment


def list_aliases(ctx: Context) -> dict[str, str]:
    """Return all mail aliases of the host: a map of alias to its targets as text.

    CLI Example:

        salt '*' aliases.list_aliases
    """
    return {line.alias: line.target for line in parse(_text(ctx)) if line.alias}


def get_target(ctx: Context, alias: str) -> str:
    """Return the targets of a mail alias as text, "" if there is no such alias.

    CLI Example:

        salt '*' aliases.get_target root
    """
    return list_aliases(ctx).get(alias, "")


def has_target(ctx: Context, alias: str, target: str | Sequence[str]) -> bool:
    """Return whether a mail alias has exactly this target (text, or a list of targets). Raise InvocationError for an
    empty target.

    CLI Example:

        salt '*' aliases.has_target root admin@example.com
    """
    if not target:
        raise InvocationError("target can not be an empty string")
    known = list_aliases(ctx)
    return alias in known and known[alias] == _joined(target)


def set_target(ctx: Context, alias: str, target: str | Sequence[str]) -> bool:
    """Set the target of a mail alias (text, or a list of targets); a missing alias is added. Return True. Raise
    InvocationError for an empty alias or target.

    CLI Example:

        salt '*' aliases.set_target root admin@example.com
    """
    if not alias:
        raise InvocationError("alias can not be an empty string")
    if not target:
        raise InvocationError("target can not be an empty string")
    new = _joined(target)
    if get_target(ctx, alias) == new:
        return True
    lines: list[AliasLine] = []
    done = False
    for line in parse(_text(ctx)):
        if line.alias != alias:
            lines.append(line)
        elif not done:
            lines.append(AliasLine(alias, new, line.comment))
            done = True
    return _write(ctx, lines if done else [*lines, AliasLine(alias, new, "")])


def rm_alias(ctx: Context, alias: str) -> bool:
    """Remove a mail alias. Return True, even if there was none.

    CLI Example:

        salt '*' aliases.rm_alias root
    """
    if get_target(ctx, alias):
        _write(ctx, [line for line in parse(_text(ctx)) if line.alias != alias])
    return True


def parse(text: str) -> list[AliasLine]:
    """Return the text of a file of mail aliases as a list of AliasLine (alias, target, comment), one for each line."""
    found = []
    for line in lines_of(text):
        match = _LINE.match(line)
        found.append(AliasLine(*match.groups()) if match else AliasLine("", "", line.strip()))
    return found


def _joined(target: str | Sequence[str]) -> str:
    return target if isinstance(target, str) else ", ".join(str(each) for each in target)


def _file(ctx: Context) -> str:
    return str(ctx.call("config.option", "aliases.file"))


def _text(ctx: Context) -> str:
    data = managed_file.read(ctx.host.path(_file(ctx)), _file(ctx))
    return (data or b"").decode("utf-8", "surrogateescape")


def _write(ctx: Context, lines: Sequence[AliasLine]) -> bool:
    path = ctx.host.path(_file(ctx))
    text = "".join(f"{line.text()}\n" for line in lines)
    new = Attributes() if path.exists() else Attributes(mode=0o644)
    managed_file.replace(ctx.host, path, text.encode("utf-8", "surrogateescape"), new)
    if (program := ctx.host.which("newaliases")) is not None:
        ctx.host.run([program])
    return True
